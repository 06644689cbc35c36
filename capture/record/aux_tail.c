/* aux_tail.c - see aux_tail.h. */
#include "capture/record/aux_tail.h"
#include "capture/pt/packet_len.h"

/* The last PSB in n bytes: its place; n: there is none. */
static size_t last_psb(const uint8_t *p, size_t n)
{
	for (size_t i = n < PT_PSB_BYTES ? 0 : n - PT_PSB_BYTES + 1; i-- > 0;)
		if (pt_is_psb(p + i, n - i))
			return i;
	return n;
}

void hw_aux_tail_drop(struct hw_aux_tail *t)
{
	hw_bytes_clear(&t->bytes);
	t->since_ns = 0;
}

void hw_aux_tail_deinit(struct hw_aux_tail *t)
{
	hw_bytes_deinit(&t->bytes);
}

static void add(struct hw_aux_tail *t, const uint8_t *bytes, size_t n)
{
	struct pt_error e;

	if (n > HW_AUX_TAIL_MAX - t->bytes.count || hw_bytes_add(&t->bytes, bytes, n, &e))
		hw_aux_tail_drop(t);
}

void hw_aux_tail_add(struct hw_aux_tail *t, const struct ptc_aux *aux, uint64_t not_before_ns)
{
	size_t psb = last_psb(aux->bytes, aux->size);

	if (aux->aux_offset != t->end)
		hw_aux_tail_drop(t);
	t->end = aux->aux_offset + aux->size;
	if (psb < aux->size) {
		hw_aux_tail_drop(t);
		t->since_ns = not_before_ns;
		add(t, aux->bytes + psb, aux->size - psb);
	} else if (t->bytes.count) {
		/* (A PSB across two pieces is not seen: the one before it does as well.) */
		add(t, aux->bytes, aux->size);
	}
	if (aux->flags & PTC_AUX_TRUNCATED)
		hw_aux_tail_drop(t);
}
