/*
 * feed.h - messages to another thread, which takes them in the order in which they were given. What comes of
 * it is the same without the thread: then they are taken when some have gathered, by the caller's.
 */
#ifndef EXPORT_FEED_H
#define EXPORT_FEED_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/error.h"

struct feed;

/* A message: what feed_give() got, which may be written to. 0, or -1: after that none is taken any more. */
typedef int (*feed_take)(void *arg, void *message, struct pt_error *e);

/* A message that will be taken soon: what is read then can be fetched into the caches. */
typedef void (*feed_fetch)(void *arg, const void *message);

/* fetch: NULL, or called some messages ahead. threaded: in a thread of its own, if one can be had. what: for
 * "no memory for what". NULL: PT_ERR_NO_MEMORY. */
struct feed *feed_create(feed_take take, feed_fetch fetch, void *arg, bool threaded, const char *what,
			 struct pt_error *e);
/* Messages that were not taken yet are dropped. NULL is fine. */
void feed_destroy(struct feed *f);

/* Room for the next message, aligned for any type, to be filled before the next call. NULL: what a message
 * before it came to, or PT_ERR_NO_MEMORY. */
void *feed_give(struct feed *f, size_t bytes, struct pt_error *e);
/* While a message is taken: the one after it, or after another one, of those that are here already. NULL:
 * none. */
void *feed_next(const struct feed *f, const void *message);
/* All have been taken. 0, or -1: what one of them came to. */
int feed_settle(struct feed *f, struct pt_error *e);

#endif
