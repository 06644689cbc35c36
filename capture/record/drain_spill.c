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

static void restart(struct hw_drain *d, struct hw_drain_ring *r)
{
	/* Whole pages are given back: hw_ring_aux_done(). */
	if (!r->restart.due || !d->restart || r->ring.page->aux_tail + PAGE <= r->restart.at)
		return;
	pthread_mutex_lock(&d->restart_lock);
	if (!d->no_restart) {
		r->restart.due = false;
		d->restart(d->arg, (size_t)(r - d->rings));
	}
	pthread_mutex_unlock(&d->restart_lock);
}

void hw_drain_restart(struct hw_drain *d)
{
	for (size_t i = 0; i < d->ring_count; i++) {
		pthread_mutex_lock(&d->rings[i].lock);
		restart(d, &d->rings[i]);
		pthread_mutex_unlock(&d->rings[i].lock);
	}
}

void hw_drain_allow_restart(struct hw_drain *d, bool allow)
{
	pthread_mutex_lock(&d->restart_lock);
	d->no_restart = !allow;
	pthread_mutex_unlock(&d->restart_lock);
}

/* ---- Copying, at any time ---- */

/* Adds n to the sum of all rings; false: it would be more than max. */
static bool reserve(uint64_t *sum, uint64_t n, uint64_t max)
{
	if (__atomic_add_fetch(sum, n, __ATOMIC_RELAXED) <= max)
		return true;
	__atomic_fetch_sub(sum, n, __ATOMIC_RELAXED);
	return false;
}

static void spill_records(struct hw_drain *d, struct hw_drain_ring *r)
{
	uint64_t head = __atomic_load_n(&r->ring.page->data_head, __ATOMIC_ACQUIRE),
		 n = head - r->ring.page->data_tail;

	/* Of what comes meanwhile n bytes more may be copied. */
	if (n < r->ring.data_size / SPILL_PART || r->spill.error.kind ||
	    !reserve(&d->spilled_record_bytes, n, HW_SPILL_RECORDS_MAX))
		return;
	n += r->spill.records.count;
	hw_ring_records(&r->ring, &r->spill.records, &r->spill.error);
	__atomic_fetch_add(&d->spilled_record_bytes, r->spill.records.count - n, __ATOMIC_RELAXED);
}

/* A block for what is at offset; NULL: there is no memory, or as much is used as may be. */
static struct hw_spilled_aux *take_block(struct hw_drain *d, uint64_t offset)
{
	struct hw_spilled_aux *s = NULL;

	pthread_mutex_lock(&d->blocks.lock);
	if (d->blocks.unused) {
		s = d->blocks.unused;
		d->blocks.unused = s->next;
	} else if (d->blocks.bytes + HW_SPILL_BLOCK <= HW_SPILL_AUX_MAX) {
		s = malloc(sizeof *s + HW_SPILL_BLOCK);
		d->blocks.bytes += s ? HW_SPILL_BLOCK : 0;
	}
	d->blocks.used_bytes += s ? HW_SPILL_BLOCK : 0;
	pthread_mutex_unlock(&d->blocks.lock);
	if (s) {
		s->next = NULL;
		s->offset = offset;
		s->size = 0;
	}
	return s;
}

static void give_back_block(struct hw_drain *d, struct hw_spilled_aux *s)
{
	pthread_mutex_lock(&d->blocks.lock);
	s->next = d->blocks.unused;
	d->blocks.unused = s;
	d->blocks.used_bytes -= HW_SPILL_BLOCK;
	pthread_mutex_unlock(&d->blocks.lock);
}

/* The ring's last block when it has room, or another one after it; NULL as above. */
static struct hw_spilled_aux *block_of(struct hw_drain *d, struct hw_drain_ring *r, uint64_t offset)
{
	struct hw_spilled_aux *s = r->spill.aux ? r->spill.aux_last : NULL, *next;

	if (s && s->size < HW_SPILL_BLOCK)
		return s;
	next = take_block(d, offset);
	if (!next)
		return NULL;
	if (s)
		s->next = next;
	else
		r->spill.aux = next;
	r->spill.aux_last = next;
	return next;
}

static void spill_aux(struct hw_drain *d, struct hw_drain_ring *r)
{
	uint64_t from, head;

	if (!r->stream || !r->ring.aux || r->spill.reading || r->overwrite)
		return;
	from = r->spill.aux ? r->spill.aux_last->offset + r->spill.aux_last->size : r->taken;
	head = hw_ring_aux_head(&r->ring);
	if (head == from || (head - from < r->ring.aux_size / SPILL_PART && !r->restart.due))
		return;
	while (from < head) {
		struct hw_spilled_aux *s = block_of(d, r, from);
		uint64_t n = head - from;
		const uint8_t *bytes;

		if (!s)
			return; /* it is left in its ring */
		n = n < HW_SPILL_BLOCK - s->size ? n : HW_SPILL_BLOCK - s->size;
		n = hw_ring_aux(&r->ring, from, n, &bytes);
		memcpy(s->bytes + s->size, bytes, n);
		s->size += n;
		from += n;
		hw_ring_aux_done(&r->ring, from);
	}
}

void hw_drain_spill_ring(struct hw_drain *d, struct hw_drain_ring *r)
{
	pthread_mutex_lock(&r->lock);
	scan(r);
	spill_records(d, r);
	spill_aux(d, r);
	restart(d, r);
	pthread_mutex_unlock(&r->lock);
}

void hw_drain_spill(struct hw_drain *d)
{
	for (size_t i = 0; i < d->ring_count; i++)
		hw_drain_spill_ring(d, &d->rings[i]);
}

/* ---- Reading, in a round ---- */

int hw_drain_fetch_records(struct hw_drain *d, struct hw_drain_ring *r, struct pt_error *e)
{
	size_t before = d->raw.count;
	int ret = -1;

	pthread_mutex_lock(&r->lock);
	scan(r);
	if (r->spill.error.kind) {
		*e = r->spill.error;
	} else if (hw_bytes_add(&d->raw, r->spill.records.bytes, r->spill.records.count, e) == 0) {
		__atomic_fetch_sub(&d->spilled_record_bytes, r->spill.records.count, __ATOMIC_RELAXED);
		hw_bytes_clear(&r->spill.records);
		ret = hw_ring_records(&r->ring, &d->raw, e);
	}
	r->raw_bytes = d->raw.count - before;
	pthread_mutex_unlock(&r->lock);
	return ret;
}

uint64_t hw_drain_next_aux(struct hw_drain_ring *r, uint64_t max, const uint8_t **ret)
{
	const struct hw_spilled_aux *s = r->spill.aux;
	uint64_t n;

	r->spill.reading = !s;
	if (!s)
		return hw_ring_aux(&r->ring, r->taken, max, ret);
	*ret = s->bytes + (r->taken - s->offset);
	n = s->offset + s->size - r->taken;
	return n < max ? n : max;
}

void hw_drain_aux_taken(struct hw_drain *d, struct hw_drain_ring *r, uint64_t n)
{
	struct hw_spilled_aux *s = r->spill.aux;

	r->taken += n;
	if (r->spill.reading)
		hw_ring_aux_done(&r->ring, r->taken);
	r->spill.reading = false;
	if (s && r->taken == s->offset + s->size) {
		r->spill.aux = s->next;
		give_back_block(d, s);
	}
	restart(d, r);
}

static void free_blocks(struct hw_spilled_aux *s)
{
	while (s) {
		struct hw_spilled_aux *next = s->next;

		free(s);
		s = next;
	}
}

void hw_drain_spill_deinit(struct hw_drain *d)
{
	for (size_t i = 0; i < d->ring_count; i++) {
		free_blocks(d->rings[i].spill.aux);
		hw_bytes_deinit(&d->rings[i].spill.records);
	}
	free_blocks(d->blocks.unused);
}
