/* records_calls.c - CALL records that are encoded before they are put, in any thread. See records.h. */
#include "schema/records.h"

#include <stdlib.h>

#include "schema/array.h"
#include "schema/records_encode.h"

/* A chunk is put into one block, of which what is left over is lost. */
#define CHUNK_BYTES_MAX 4096

static bool needs_chunk(const struct ptr_calls *c)
{
	return !c->chunk_count ||
	       c->chunks[c->chunk_count - 1].bytes + 1 + PTR_CALL_BYTES_MAX > CHUNK_BYTES_MAX;
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

int ptr_calls_add(struct ptr_calls *c, const struct ptr_call *r)
{
	bool begins = needs_chunk(c);
	struct ptr_calls_chunk *chunk;
	uint8_t *begin, *end;

	if (grow_bytes(c) < 0 ||
	    (begins && pt_array_grow(&c->chunks, c->chunk_count, &c->chunk_room, NULL) < 0))
		return -1;
	if (begins)
		c->chunks[c->chunk_count++] = (struct ptr_calls_chunk){0};
	chunk = &c->chunks[c->chunk_count - 1];
	begin = c->bytes + c->used;
	*begin = PTR_CALL;
	end = put_call(&chunk->last, begin + 1, r, begins);
	c->used += (size_t)(end - begin);
	chunk->bytes += (uint32_t)(end - begin);
	chunk->count++;
	return 0;
}

void ptr_calls_empty(struct ptr_calls *c)
{
	c->used = c->chunk_count = 0;
}

void ptr_calls_deinit(struct ptr_calls *c)
{
	free(c->bytes);
	free(c->chunks);
	*c = (struct ptr_calls){0};
}
