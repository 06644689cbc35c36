/* drain_spill.c - what is copied out of the rings between rounds, and is read before them; see drain.h. */
#include "capture/record/drain_internal.h"

#include <stdlib.h>
#include <string.h>

#define PAGE	   ((uint64_t)4096)
#define SPILL_PART 3 /* a ring over a third full is copied */

/* ---- Lost AUX data ---- */

/* A number of the data area; all are aligned, so none lies across its end. */
static uint64_t number_at(const struct hw_ring *r, uint64_t position)
{
	uint64_t v;

	memcpy(&v, r->data + (position & (r->data_size - 1)), sizeof v);
	return v;
}

/* Notes losses of AUX data in the records that have come since the last look. Before they are read. */
static void scan(struct hw_drain_ring *r)
{
	uint64_t head = __atomic_load_n(&r->ring.page->data_head, __ATOMIC_ACQUIRE), at = r->restart.scanned;

	if (!r->stream || !r->ring.aux || r->overwrite)
		return;
	while (at < head) {
		uint64_t first = number_at(&r->ring, at);
		struct perf_event_header h;

		memcpy(&h, &first, sizeof h);
		if (h.size < sizeof h)
			break; /* hw_ring_records() says so */
		if (h.type == PERF_RECORD_AUX && h.size >= 32 &&
		    number_at(&r->ring, at + 24) & PERF_AUX_FLAG_TRUNCATED) {
			r->restart.due = true;
			r->restart.at = number_at(&r->ring, at + 8) + number_at(&r->ring, at + 16);
		}
		if (h.type == PERF_RECORD_LOST && !r->restart.due) {
			/* One that reported lost AUX data may be among what was dropped. */
			r->restart.due = true;
			r->restart.at = hw_ring_aux_head(&r->ring);
		}
		at += h.size;
	}
	r->restart.scanned = head;
}

static void restart(struct hw_drain *d, size_t i)
{
	struct hw_drain_ring *r = &d->rings[i];

	/* Whole pages are given back: hw_ring_aux_done(). */
	if (!r->restart.due || d->spill.no_restart || !d->restart ||
	    r->ring.page->aux_tail + PAGE <= r->restart.at)
		return;
	r->restart.due = false;
	d->restart(d->arg, i);
}

void hw_drain_restart(struct hw_drain *d)
{
	pthread_mutex_lock(&d->spill.lock);
	for (size_t i = 0; i < d->ring_count; i++)
		restart(d, i);
	pthread_mutex_unlock(&d->spill.lock);
}

void hw_drain_allow_restart(struct hw_drain *d, bool allow)
{
	pthread_mutex_lock(&d->spill.lock);
	d->spill.no_restart = !allow;
	pthread_mutex_unlock(&d->spill.lock);
}

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
	if (head == from || (head - from < r->ring.aux_size / SPILL_PART && !r->restart.due) ||
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
		scan(&d->rings[i]);
		spill_records(d, &d->rings[i]);
		spill_aux(d, &d->rings[i]);
		restart(d, i);
	}
	pthread_mutex_unlock(&d->spill.lock);
}

/* ---- Reading, in a round ---- */

int hw_drain_fetch_records(struct hw_drain *d, struct hw_drain_ring *r, struct pt_error *e)
{
	int ret = -1;

	pthread_mutex_lock(&d->spill.lock);
	scan(r);
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
