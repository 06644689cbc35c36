/* drain.c - rounds; see drain.h. */
#include "capture/record/drain_internal.h"

#include <stdlib.h>

static uint64_t taken(struct hw_drain_ring *r)
{
	uint64_t ret;

	pthread_mutex_lock(&r->lock);
	ret = r->taken;
	pthread_mutex_unlock(&r->lock);
	return ret;
}

static void read_heads(struct hw_drain *d)
{
	struct ptc_load load;

	ptc_writer_load(d->w, &load);
	d->fill = load.max_bytes ? (unsigned)(load.bytes * 100 / load.max_bytes) : 0;
	for (size_t i = 0; i < d->ring_count; i++) {
		struct hw_drain_ring *r = &d->rings[i];
		unsigned fill;

		if (!hw_drain_has_aux(r))
			continue;
		r->head = hw_ring_aux_head(&r->ring);
		fill = (unsigned)((r->head - taken(r)) * 100 / r->ring.aux_size);
		if (fill > d->fill)
			d->fill = fill;
	}
}

/* What was released is taken, by the drain threads from now on, or here. */
static int take(struct hw_drain *d, struct pt_error *e)
{
	for (size_t i = 0; i < d->ring_count; i++)
		hw_drain_release(&d->rings[i]);
	if (d->threads)
		return hw_drain_threads_go(d->threads, e);
	for (size_t i = 0; i < d->ring_count; i++) {
		int r;

		while ((r = hw_drain_take(d, &d->rings[i], NULL, e)) > 0)
			;
		if (r < 0)
			return -1;
	}
	return 0;
}

int hw_drain_settle(struct hw_drain *d, struct pt_error *e)
{
	return d->threads ? hw_drain_threads_settle(d->threads, e) : 0;
}

/* The time that all AUX data still to come is later than; 0: not known. */
static uint64_t round_time(struct hw_drain *d, uint64_t now_ns)
{
	uint64_t bound = now_ns;

	for (size_t i = 0; i < d->ring_count; i++) {
		struct hw_drain_ring *r = &d->rings[i];
		bool absent = r->task && r->presence == HW_TASK_AWAY;

		if (r->overwrite)
			return 0; /* a snapshot can be taken of what is long past */
		if (!hw_drain_has_aux(r))
			continue;
		pthread_mutex_lock(&r->lock);
		if (!(absent && r->taken == hw_ring_aux_head(&r->ring)) && r->published_ns < bound)
			bound = r->published_ns;
		pthread_mutex_unlock(&r->lock);
	}
	if (d->jit && hw_jit_bound(d->jit) < bound)
		bound = hw_jit_bound(d->jit);
	return bound;
}

int hw_drain_round(struct hw_drain *d, uint64_t now_ns, struct pt_error *e)
{
	uint64_t bound;

	read_heads(d);
	if (hw_drain_records(d, e))
		return -1;
	if ((d->on_records_end && d->on_records_end(d->arg, e)) || (d->jit && hw_jit_settle(d->jit, e)))
		return -1;
	if (hw_drain_samples(d, e) || take(d, e))
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
	}
	hw_drain_spill_deinit(d);
	for (uint32_t a = 0; a < HW_DRAIN_ATTRS; a++)
		hw_bytes_deinit(&d->sorted[a]);
	hw_bytes_deinit(&d->samples);
	hw_bytes_deinit(&d->next_samples);
	hw_bytes_deinit(&d->raw);
	free(d->events.ids);
	free(d->events.attrs);
}
