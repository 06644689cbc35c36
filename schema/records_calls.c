/* records_calls.c - CALL records that are encoded before they are put, in any thread. See records.h. */
#include "schema/records.h"

#include <stdlib.h>

#include "schema/array.h"
#include "schema/records_encode.h"

/* A chunk is put into one block, of which what is left over is lost: some 4 KB. */
#define CHUNK_CALLS 256

_Static_assert((CHUNK_CALLS + 1) * PTR_CALL_BYTES_MAX < PTR_BLOCK_MAX, "a chunk fits into a block");

static bool needs_chunk(const struct ptr_calls *c)
{
	return c->begins || !c->chunk_count || c->chunks[c->chunk_count - 1].count == CHUNK_CALLS;
}

static int grow_bytes(struct ptr_calls *c)
{
	size_t room = c->room ? 2 * c->room : 1u << 16;
	uint8_t *grown;

	if (c->used + 1 + PTR_CALL_BYTES_MAX <= c->room)
		return 0;
	grown = realloc(c->bytes, room);
	if (!grown)
		return pt_fail_no_memory(NULL, NULL);
	c->bytes = grown;
	c->room = room;
	return 0;
}

static int begin_chunk(struct ptr_calls *c)
{
	if (pt_array_grow(&c->chunks, c->chunk_count, &c->chunk_room, NULL) < 0)
		return -1;
	c->chunks[c->chunk_count++] = (struct ptr_calls_chunk){.at = c->used, .waiting_at = c->waiting_count};
	c->begins = false;
	return 0;
}

int ptr_calls_add(struct ptr_calls *c, const struct ptr_call *r, uint32_t instead)
{
	bool begins = needs_chunk(c);
	struct ptr_calls_chunk *chunk;
	uint8_t *begin, *end, *path;

	if (grow_bytes(c) < 0 || pt_array_grow(&c->waiting, c->waiting_count, &c->waiting_room, NULL) < 0 ||
	    (begins && begin_chunk(c) < 0))
		return -1;
	chunk = &c->chunks[c->chunk_count - 1];
	begin = c->bytes + c->used;
	*begin = PTR_CALL;
	path = put_call_thread(&chunk->last, begin + 1, r, begins);
	if (instead) {
		c->waiting[c->waiting_count++] =
		    (struct ptr_call_waiting){chunk->bytes + (uint32_t)(path - begin), instead};
		chunk->waiting++;
		end = put_call_rest(&chunk->last, path, r);
	} else {
		end = put_call_rest(&chunk->last, put_v(path, r->call_path), r);
	}
	c->used += (size_t)(end - begin);
	chunk->bytes += (uint32_t)(end - begin);
	chunk->count++;
	return 0;
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
