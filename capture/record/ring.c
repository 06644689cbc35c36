/* ring.c - see ring.h. */
#include "capture/record/ring.h"

#include <string.h>

#define PAGE ((uint64_t)4096)

/* Checks that n bytes are whole records. */
static int check_records(const uint8_t *p, size_t n, struct pt_error *e)
{
	struct perf_event_header h;

	for (; n; p += h.size, n -= h.size) {
		if (n >= sizeof h)
			memcpy(&h, p, sizeof h);
		if (n < sizeof h || h.size < sizeof h || h.size > n)
			return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
				       "a record with a wrong size in the kernel's ring buffer");
	}
	return 0;
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
	return n ? check_records(to->bytes + begin, to->count - begin, e) : 0;
}

uint64_t hw_ring_aux_head(const struct hw_ring *r)
{
	return __atomic_load_n(&r->page->aux_head, __ATOMIC_ACQUIRE);
}

uint64_t hw_ring_aux(const struct hw_ring *r, uint64_t from, uint64_t max, const uint8_t **ret_bytes)
{
	uint64_t at = from & (r->aux_size - 1), n = r->aux_size - at;

	*ret_bytes = r->aux + at;
	return n < max ? n : max;
}

void hw_ring_aux_done(struct hw_ring *r, uint64_t to)
{
	__atomic_store_n(&r->page->aux_tail, to & ~(PAGE - 1), __ATOMIC_RELEASE);
}
