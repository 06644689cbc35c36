/*
 * messages.h - messages of any size, one after another in memory, each aligned for any type: what one thread
 * fills, and another one reads and empties (feed.h, kept rows of inserter.h).
 */
#ifndef EXPORT_MESSAGES_H
#define EXPORT_MESSAGES_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "schema/apart.h"

/* Zeroed at first. data is to be freed. */
struct messages {
	size_t bytes, room;
	unsigned char *data;
};

/* Before each of them. */
struct message_head {
	alignas(max_align_t) size_t bytes; /* from this head to the next */
};

/* Of a message whose memory is fetched before it is written: the other thread has read it. */
#define MESSAGES_AHEAD_BYTES 1024

/* What a message of so many bytes takes. */
static inline size_t message_takes(size_t bytes)
{
	size_t unit = sizeof(struct message_head);

	return unit + (bytes + unit - 1) / unit * unit;
}

/* Room for so many bytes in all. False: no memory, and all is as it was. */
static inline bool messages_reserve(struct messages *m, size_t room)
{
	unsigned char *grown;

	if (room <= m->room)
		return true;
	grown = realloc(m->data, room);
	if (!grown)
		return false;
	m->data = grown;
	m->room = room;
	return true;
}

/* One more, which takes so many bytes, for which there is room. */
static inline void *messages_add(struct messages *m, size_t takes)
{
	struct message_head *head = (void *)(m->data + m->bytes);

	head->bytes = takes;
	m->bytes += takes;
	pt_fetch_all_to_write(m->data + m->bytes + MESSAGES_AHEAD_BYTES, takes);
	return head + 1;
}

/* NULL: there is none. */
static inline void *messages_first(const struct messages *m)
{
	return m->bytes ? m->data + sizeof(struct message_head) : NULL;
}

/* Its bytes, and what aligns the next one. */
static inline size_t message_bytes(const void *message)
{
	return ((const struct message_head *)message - 1)->bytes - sizeof(struct message_head);
}

/* The one after it; NULL: it is the last one. */
static inline void *messages_next(const struct messages *m, const void *message)
{
	size_t after = (size_t)((const unsigned char *)message - m->data) + message_bytes(message);

	return after < m->bytes ? m->data + after + sizeof(struct message_head) : NULL;
}

#endif
