/* ring.c - see ring.h. */
#include "capture/record/ring.h"

#include <stdlib.h>
#include <string.h>

#define PAGE	      ((uint64_t)4096)
#define HW_BYTES_KEPT ((size_t)1 << 20)

int hw_bytes_reserve(struct hw_bytes *b, size_t n, struct pt_error *e)
{
	size_t room = b->room ? b->room : 65536;
	uint8_t *grown;

	if (b->room - b->count >= n)
		return 0;
	while (room - b->count < n)
		room *= 2;
	grown = realloc(b->bytes, room);
	if (!grown)
		return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory for sideband (%zu bytes)",
			       room);
	b->bytes = grown;
	b->room = room;
	return 0;
}

int hw_bytes_add(struct hw_bytes *b, const void *from, size_t n, struct pt_error *e)
{
	if (hw_bytes_reserve(b, n, e))
		return -1;
	if (n)
		memcpy(b->bytes + b->count, from, n);
	b->count += n;
	return 0;
}

void hw_bytes_clear(struct hw_bytes *b)
{
	if (b->room > HW_BYTES_KEPT) {
		free(b->bytes);
		*b = (struct hw_bytes){0};
	}
	b->count = 0;
}

int hw_ring_records(struct hw_ring *r, struct hw_bytes *to, struct pt_error *e)
{
	/* Acquire: the records are there when their head is. */
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = r->page->data_tail, n = head - tail;
	uint64_t at = tail & (r->data_size - 1), first = r->data_size - at;
	size_t begin = to->count;

	if (n > r->data_size)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "the kernel's ring buffer holds %llu bytes and says that %llu are in it",
			       (unsigned long long)r->data_size, (unsigned long long)n);
	if (first > n)
		first = n;
	if (hw_bytes_add(to, r->data + at, first, e) || hw_bytes_add(to, r->data, n - first, e))
		return -1;
	/* Release: they are read before their room is given back. */
	__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
	for (size_t i = begin; i < to->count;) {
		struct perf_event_header h;

		if (to->count - i >= sizeof h)
			memcpy(&h, to->bytes + i, sizeof h);
		if (to->count - i < sizeof h || h.size < sizeof h || h.size > to->count - i)
			return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
				       "a record with a wrong size in the kernel's ring buffer");
		i += h.size;
	}
	return 0;
}

uint64_t hw_ring_aux_head(const struct hw_ring *r)
{
	return __atomic_load_n(&r->page->aux_head, __ATOMIC_ACQUIRE);
}

uint64_t hw_ring_aux(const struct hw_ring *r, uint64_t from, uint64_t most, const uint8_t **ret_bytes)
{
	uint64_t at = from & (r->aux_size - 1), n = r->aux_size - at;

	*ret_bytes = r->aux + at;
	return n < most ? n : most;
}

void hw_ring_aux_done(struct hw_ring *r, uint64_t to)
{
	__atomic_store_n(&r->page->aux_tail, to & ~(PAGE - 1), __ATOMIC_RELEASE);
}
