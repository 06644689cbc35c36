/* drain_spill.c - what is copied out of the rings between rounds, and is read before them; see drain.h. */
#include "capture/record/drain_internal.h"

#include <stdlib.h>
#include <string.h>

#define SPILL_PART 3 /* a ring over a third full is copied */

/* ---- Copying, at any time ---- */

static void spill_records(struct hw_drain *d, struct hw_drain_ring *r)
{
	uint64_t head = __atomic_load_n(&r->ring.page->data_head, __ATOMIC_ACQUIRE),
		 n = head - r->ring.page->data_tail;

	if (n < r->ring.data_size / SPILL_PART || d->spill.record_bytes + n > HW_SPILL_RECORDS_MAX ||
	    d->spill.error.kind)
		return;
	if (hw_ring_records(&r->ring, &r->spill.records, &d->spill.error) == 0)
		d->spill.record_bytes += n;
}

static void append(struct hw_drain_ring *r, struct hw_spilled_aux *s)
{
	if (r->spill.aux)
		r->spill.aux_last->next = s;
	else
		r->spill.aux = s;
	r->spill.aux_last = s;
}

static void spill_aux(struct hw_drain *d, struct hw_drain_ring *r)
{
	uint64_t from, head;

	if (!r->stream || !r->ring.aux || r->spill.reading || r->overwrite)
		return;
	from = r->spill.aux ? r->spill.aux_last->offset + r->spill.aux_last->size : r->taken;
	head = hw_ring_aux_head(&r->ring);
	if (head - from < r->ring.aux_size / SPILL_PART ||
	    d->spill.aux_bytes + (head - from) > HW_SPILL_AUX_MAX)
		return;
	while (from < head) {
		const uint8_t *bytes;
		uint64_t n = hw_ring_aux(&r->ring, from, head - from, &bytes);
		struct hw_spilled_aux *s = malloc(sizeof *s + n);

		if (!s)
			return; /* it is left in its ring */
		*s = (struct hw_spilled_aux){.offset = from, .size = n};
		memcpy(s->bytes, bytes, n);
		append(r, s);
		d->spill.aux_bytes += n;
		from += n;
		hw_ring_aux_done(&r->ring, from);
	}
}

void hw_drain_spill(struct hw_drain *d)
{
	pthread_mutex_lock(&d->spill.lock);
	for (size_t i = 0; i < d->ring_count; i++) {
		spill_records(d, &d->rings[i]);
		spill_aux(d, &d->rings[i]);
	}
	pthread_mutex_unlock(&d->spill.lock);
}

/* ---- Reading, in a round ---- */

int hw_drain_fetch_records(struct hw_drain *d, struct hw_drain_ring *r, struct pt_error *e)
{
	int ret = -1;

	pthread_mutex_lock(&d->spill.lock);
	if (r->spill.records.count) {
		struct hw_bytes swap = d->raw;

		d->spill.record_bytes -= r->spill.records.count;
		d->raw = r->spill.records;
		r->spill.records = swap;
	}
	if (d->spill.error.kind)
		*e = d->spill.error;
	else
		ret = hw_ring_records(&r->ring, &d->raw, e);
	pthread_mutex_unlock(&d->spill.lock);
	return ret;
}

uint64_t hw_drain_next_aux(struct hw_drain *d, struct hw_drain_ring *r, uint64_t max, const uint8_t **ret)
{
	const struct hw_spilled_aux *s;
	uint64_t n;

	pthread_mutex_lock(&d->spill.lock);
	s = r->spill.aux;
	r->spill.reading = !s;
	pthread_mutex_unlock(&d->spill.lock);
	if (!s)
		return hw_ring_aux(&r->ring, r->taken, max, ret);
	*ret = s->bytes + (r->taken - s->offset);
	n = s->offset + s->size - r->taken;
	return n < max ? n : max;
}

void hw_drain_aux_taken(struct hw_drain *d, struct hw_drain_ring *r, uint64_t n)
{
	struct hw_spilled_aux *s;

	pthread_mutex_lock(&d->spill.lock);
	s = r->spill.aux;
	r->taken += n;
	if (r->spill.reading)
		hw_ring_aux_done(&r->ring, r->taken);
	r->spill.reading = false;
	if (s && r->taken == s->offset + s->size) {
		r->spill.aux = s->next;
		d->spill.aux_bytes -= s->size;
		free(s);
	}
	pthread_mutex_unlock(&d->spill.lock);
}

void hw_drain_spill_deinit(struct hw_drain_ring *r)
{
	while (r->spill.aux) {
		struct hw_spilled_aux *s = r->spill.aux;

		r->spill.aux = s->next;
		free(s);
	}
	hw_bytes_deinit(&r->spill.records);
}
