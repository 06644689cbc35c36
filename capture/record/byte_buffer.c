/* byte_buffer.c - see byte_buffer.h. */
#include "capture/record/byte_buffer.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_FIRST ((size_t)64 << 10)
#define BYTES_KEPT  ((size_t)1 << 20)

void hw_bytes_deinit(struct hw_bytes *b)
{
	free(b->bytes);
	*b = (struct hw_bytes){0};
}

static int reserve(struct hw_bytes *b, size_t n, struct pt_error *e)
{
	size_t room = b->room ? b->room : BYTES_FIRST;
	uint8_t *grown;

	if (b->room - b->count >= n)
		return 0;
	while (room - b->count < n)
		room *= 2;
	grown = realloc(b->bytes, room);
	if (!grown)
		return pt_fail_no_memory(e, "perf records");
	b->bytes = grown;
	b->room = room;
	return 0;
}

int hw_bytes_add(struct hw_bytes *b, const void *from, size_t n, struct pt_error *e)
{
	if (reserve(b, n, e))
		return -1;
	if (n)
		memcpy(b->bytes + b->count, from, n);
	b->count += n;
	return 0;
}

void hw_bytes_clear(struct hw_bytes *b)
{
	if (b->room > BYTES_KEPT)
		hw_bytes_deinit(b);
	b->count = 0;
}
