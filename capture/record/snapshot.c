/* snapshot.c - see snapshot.h. */
#include "capture/record/snapshot.h"

#include <string.h>

static bool zero(const uint8_t *p, uint64_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* The n bytes before position head of the buffer. */
static void copy_before(const struct hw_ring *r, uint64_t head, uint8_t *to, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		to[i] = r->aux[(head - n + i) & (r->aux_size - 1)];
}

struct hw_snapshot_piece hw_snapshot_take(struct hw_snapshot *s, const struct hw_ring *r)
{
	uint64_t head = hw_ring_aux_head(r) & (r->aux_size - 1), whole;
	uint8_t now[HW_SNAPSHOT_REF];
	struct hw_snapshot_piece p;

	if (!s->wrapped)
		s->wrapped = !zero(r->aux + head, r->aux_size - head) || (s->any && head < s->head);
	whole = s->wrapped ? r->aux_size : head;
	copy_before(r, s->head, now, s->ref_bytes);
	if (s->ref_bytes && memcmp(now, s->ref, s->ref_bytes) == 0)
		p = (struct hw_snapshot_piece){s->head, (head - s->head) & (r->aux_size - 1), s->end, false};
	else if (s->any && s->end)
		p = (struct hw_snapshot_piece){s->wrapped ? head : 0, whole, s->end + r->aux_size, true};
	else
		p = (struct hw_snapshot_piece){s->wrapped ? head : 0, whole, 0, false};
	s->any = true;
	s->head = head;
	s->end = p.offset + p.bytes;
	s->ref_bytes = whole < HW_SNAPSHOT_REF ? whole : HW_SNAPSHOT_REF;
	copy_before(r, head, s->ref, s->ref_bytes);
	return p;
}
