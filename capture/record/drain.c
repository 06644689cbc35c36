/* drain.c - rounds, and the AUX data of the rings; see drain.h. */
#include "capture/record/drain_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- AUX data ---- */

/* Whether rounds read its AUX data. */
static bool has_aux(const struct hw_drain_ring *r)
{
	return r->stream && r->ring.aux && !r->overwrite;
}

/* Puts [r->taken, to) of one PERF_RECORD_AUX, or of none (a NULL: the kernel had to drop it). */
static int put_piece(struct hw_drain *d, struct hw_drain_ring *r, struct ptc_aux_writer *aux_writer,
		     uint64_t to, const struct hw_aux_record *a, struct pt_error *e)
{
	do {
		struct ptc_aux aux = {
		    .aux_offset = r->taken, .flags = a ? a->flags : 0, .time_ns = a ? a->time_ns : 0};
		uint64_t n = hw_drain_next_aux(d, r, to - r->taken, &aux.bytes);

		aux.size = n;
		/* The loss is after the record's last byte. */
		if (a && r->taken + n != a->offset + a->size)
			aux.flags &= ~(uint64_t)PERF_AUX_FLAG_TRUNCATED;
		if (aux_writer ? ptc_aux_writer_put(aux_writer, r->stream, &aux, e)
			       : ptc_put_aux(d->w, r->stream, &aux, e))
			return -1;
		__atomic_fetch_add(&d->aux_bytes, n, __ATOMIC_RELAXED);
		hw_drain_aux_taken(d, r, n);
	} while (r->taken < to);
	return 0;
}

static int take_aux(struct hw_drain *d, struct hw_drain_ring *r, struct ptc_aux_writer *aux_writer,
		    struct pt_error *e)
{
	size_t used = 0;
	uint64_t to;

	if (!has_aux(r))
		return 0;
	for (; used < r->aux_record_count; used++) {
		struct hw_aux_record *a = &r->aux_records[used];
		uint64_t end = a->offset + a->size;

		if (a->offset > r->head || end > r->head)
			break; /* published after the round began */
		if (end < r->taken)
			continue;
		if (a->offset > r->taken && put_piece(d, r, aux_writer, a->offset, NULL, e))
			return -1;
		/* A record of no bytes can still report a loss. */
		if ((end > r->taken || a->flags) && put_piece(d, r, aux_writer, end, a, e))
			return -1;
		if (a->time_ns > r->published_ns)
			r->published_ns = a->time_ns;
	}
	r->aux_record_count -= used;
	if (used && r->aux_record_count)
		memmove(r->aux_records, r->aux_records + used, r->aux_record_count * sizeof *r->aux_records);
	/* Data without a record: the record may not be published yet, as an interrupt's record becomes
	 * visible together with the one that it interrupted. When it is not there by the next round, the
	 * kernel had to drop it. */
	to = r->last_head;
	if (r->aux_record_count && r->aux_records[0].offset < to)
		to = r->aux_records[0].offset;
	r->last_head = r->head;
	return to > r->taken ? put_piece(d, r, aux_writer, to, NULL, e) : 0;
}

static int take_aux_of(void *arg, size_t ring, struct ptc_aux_writer *aux_writer, struct pt_error *e)
{
	struct hw_drain *d = arg;

	return take_aux(d, &d->rings[ring], aux_writer, e);
}

static int take_all_aux(struct hw_drain *d, struct pt_error *e)
{
	size_t full = 0;

	for (size_t i = 0; i < d->ring_count; i++)
		full += d->rings[i].stream && d->rings[i].ring.aux && d->rings[i].head != d->rings[i].taken;
	if (d->threads && full > 1) {
		if (ptc_flush_meta(d->w, e))
			return -1;
		return hw_drain_threads_run(d->threads, d->ring_count, take_aux_of, d, e);
	}
	for (size_t i = 0; i < d->ring_count; i++)
		if (take_aux(d, &d->rings[i], NULL, e))
			return -1;
	return 0;
}

/* ---- Rounds ---- */

static void read_heads(struct hw_drain *d)
{
	d->fill = 0;
	for (size_t i = 0; i < d->ring_count; i++) {
		struct hw_drain_ring *r = &d->rings[i];
		unsigned fill;

		if (!has_aux(r))
			continue;
		r->head = hw_ring_aux_head(&r->ring);
		fill = (unsigned)((r->head - r->taken) * 100 / r->ring.aux_size);
		if (fill > d->fill)
			d->fill = fill;
	}
}

/* The time that all AUX data still to come is later than; 0: not known. */
static uint64_t round_time(const struct hw_drain *d, uint64_t now_ns)
{
	uint64_t bound = now_ns;

	for (size_t i = 0; i < d->ring_count; i++) {
		const struct hw_drain_ring *r = &d->rings[i];

		if (r->overwrite)
			return 0; /* a snapshot can be taken of what is long past */
		if (!r->stream || !r->ring.aux ||
		    (r->task && r->presence == HW_TASK_AWAY && r->taken == hw_ring_aux_head(&r->ring)))
			continue;
		if (r->published_ns < bound)
			bound = r->published_ns;
	}
	if (d->jit && hw_jit_bound(d->jit) < bound)
		bound = hw_jit_bound(d->jit);
	return bound;
}

int hw_drain_round(struct hw_drain *d, uint64_t now_ns, struct pt_error *e)
{
	uint64_t bound;

	read_heads(d);
	for (size_t i = 0; i < d->ring_count; i++)
		if (hw_drain_records(d, &d->rings[i], e))
			return -1;
	if (d->jit && hw_jit_settle(d->jit, e))
		return -1;
	if (hw_drain_samples(d, e) || take_all_aux(d, e))
		return -1;
	hw_drain_restart(d);
	if (d->jit && hw_jit_read(d->jit, d->jit_always, e))
		return -1;
	bound = round_time(d, now_ns);
	if (bound <= d->round_ns)
		return 0;
	d->round_ns = bound;
	return ptc_put_round(d->w, bound, e);
}

void hw_drain_deinit(struct hw_drain *d)
{
	for (size_t i = 0; i < d->ring_count; i++) {
		free(d->rings[i].aux_records);
		aux_sample_deinit(&d->rings[i].samples);
		hw_drain_spill_deinit(&d->rings[i]);
	}
	for (uint32_t a = 0; a < HW_DRAIN_ATTRS; a++)
		hw_bytes_deinit(&d->sorted[a]);
	hw_bytes_deinit(&d->samples);
	hw_bytes_deinit(&d->next_samples);
	hw_bytes_deinit(&d->raw);
	free(d->events.ids);
	free(d->events.attrs);
}
