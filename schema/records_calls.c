/* records_calls.c - CALL records that are encoded before they are put, in any thread. See records.h. */
#include "schema/records.h"

#include <stdlib.h>
#include <string.h>

#include "schema/apart.h"
#include "schema/array.h"
#include "schema/records_encode.h"

/* A chunk is put into one block, of which what is left over is lost: some 4 KB. */
#define CHUNK_CALLS 256
/* Before they are written: who puts a chunk, and has read it, may be another thread than who adds to the
 * next. */
#define FETCHED_BYTES 512

_Static_assert((CHUNK_CALLS + 1) * PTR_CALL_BYTES_MAX < PTR_BLOCK_MAX, "a chunk fits into a block");

static bool needs_chunk(const struct ptr_calls *c)
{
	return c->begins || !c->chunk_count || c->chunks[c->chunk_count - 1].count == CHUNK_CALLS;
}

/* Room for a chunk. */
static int grow(struct ptr_calls *c)
{
	size_t bytes = c->used + CHUNK_CALLS * (1 + PTR_CALL_BYTES_MAX),
	       waiting = c->waiting_count + CHUNK_CALLS;
	void *grown;

	if (bytes > c->room) {
		grown = realloc(c->bytes, 2 * bytes);
		if (!grown)
			return -1;
		c->bytes = grown;
		c->room = 2 * bytes;
	}
	if (waiting > c->waiting_room) {
		grown = realloc(c->waiting, 2 * waiting * sizeof *c->waiting);
		if (!grown)
			return -1;
		c->waiting = grown;
		c->waiting_room = 2 * waiting;
	}
	return pt_array_grow(&c->chunks, c->chunk_count, &c->chunk_room, NULL);
}

static int begin_chunk(struct ptr_calls *c)
{
	if (grow(c) < 0)
		return -1;
	c->chunks[c->chunk_count++] = (struct ptr_calls_chunk){.at = c->used, .waiting_at = c->waiting_count};
	c->begins = false;
	return 0;
}

int ptr_calls_add(struct ptr_calls *c, const struct ptr_call *r, uint32_t instead)
{
	bool begins = needs_chunk(c);
	struct ptr_calls_chunk *chunk;
	uint8_t *begin, *p;

	if (begins && begin_chunk(c) < 0)
		return -1;
	chunk = &c->chunks[c->chunk_count - 1];
	begin = c->bytes + c->used;
	*begin = PTR_CALL;
	p = put_call_thread(&chunk->last, begin + 1, r, begins);
	if (!instead) {
		p = pt_leb128_put(p, r->call_path);
	} else {
		c->waiting[c->waiting_count++] =
		    (struct ptr_call_waiting){chunk->bytes + (uint32_t)(p - begin), instead};
		chunk->waiting++;
	}
	p = put_call_rest(&chunk->last, p, r);
	c->used += (size_t)(p - begin);
	pt_fetch_to_write(p + FETCHED_BYTES);
	chunk->bytes += (uint32_t)(p - begin);
	chunk->count++;
	return 0;
}

uint32_t ptr_calls_room(const struct ptr_calls *c)
{
	return needs_chunk(c) ? 0 : CHUNK_CALLS - c->chunks[c->chunk_count - 1].count;
}

/* The byte after a number. */
static const uint8_t *after_v(const uint8_t *p)
{
	while (*p & 0x80)
		p++;
	return p + 1;
}

/* Of a CALL, the byte after its return_branch: what comes before differs when the call is made again. */
static const uint8_t *after_return_branch(const uint8_t *p)
{
	unsigned numbers = 5; /* flags, call path, two times, return_branch */

	if (p[1] & PTR_CALL_STACK)
		numbers += 2;
	for (p++; numbers; numbers--)
		p = after_v(p);
	return p;
}

bool ptr_calls_since(const struct ptr_calls *c, const struct ptr_calls_mark *mark, struct ptr_calls_like *ret)
{
	if (c->chunk_count != mark->chunks || c->waiting_count != mark->waiting)
		return false;
	ret->bytes = after_return_branch(c->bytes + mark->used);
	ret->n = (uint32_t)(c->bytes + c->used - ret->bytes);
	return true;
}

void ptr_calls_add_like(struct ptr_calls *c, const struct ptr_call *r, const struct ptr_calls_like *like)
{
	struct ptr_calls_chunk *chunk = &c->chunks[c->chunk_count - 1];
	uint8_t *begin = c->bytes + c->used, *p;

	*begin = PTR_CALL;
	p = put_call_thread(&chunk->last, begin + 1, r, false);
	p = pt_leb128_put(p, r->call_path);
	p = put_call_return(&chunk->last, p, r, 0);
	memcpy(p, like->bytes, like->n);
	p += like->n;
	chunk->last.return_branch += like->branches;
	c->used += (size_t)(p - begin);
	pt_fetch_to_write(p + FETCHED_BYTES);
	chunk->bytes += (uint32_t)(p - begin);
	chunk->count += like->count;
}

void ptr_calls_cut(struct ptr_calls *c)
{
	c->begins = true;
}

void ptr_calls_empty(struct ptr_calls *c)
{
	c->used = c->chunk_count = c->waiting_count = 0;
	c->begins = false;
}

void ptr_calls_deinit(struct ptr_calls *c)
{
	free(c->bytes);
	free(c->chunks);
	free(c->waiting);
	*c = (struct ptr_calls){0};
}
