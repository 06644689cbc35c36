/* capture_snapshot.c - a snapshot of all overwritten buffers is written to the container. */
#include "capture/record/capture_internal.h"

static int put_ring(struct capture *c, size_t i, struct pt_error *e)
{
	struct hw_drain_ring *r = &c->ev.rings[i];
	struct hw_snapshot_piece p = hw_snapshot_take(&c->snapshots[i], &r->ring);

	while (p.bytes) {
		struct ptc_aux aux = {
		    .aux_offset = p.offset, .flags = PTC_AUX_OVERWRITE, .time_ns = capture_now_ns(c)};
		uint64_t n = hw_ring_aux(&r->ring, p.from, p.bytes, &aux.bytes);

		aux.size = n;
		if (ptc_put_aux(c->w, r->stream, &aux, e))
			return -1;
		if (c->drain.tails)
			hw_aux_tail_add(&c->drain.tails[i], &aux, 0);
		c->drain.aux_bytes += n;
		p.from += n;
		p.offset += n;
		p.bytes -= n;
	}
	return 0;
}

/* Whether the snapshot is the trigger's. What it was taken for takes no other one. */
static void note_trigger(struct capture *c, struct hw_trigger *t)
{
	if (c->fire && ++c->result->triggered == t->max)
		c->triggered = true;
	c->part.fired |= c->fire;
	t->armed_ns = capture_now_ns(c);
	c->fire = false;
}

int capture_take_snapshot(struct capture *c, bool resume, struct pt_error *e)
{
	if (!c->o->events.snapshot)
		return 0;
	hw_events_disable(&c->ev);
	if (hw_drain_round(&c->drain, capture_now_ns(c), e))
		return -1;
	for (size_t i = 0; i < c->ev.ring_count; i++)
		if (c->ev.rings[i].ring.aux && put_ring(c, i, e))
			return -1;
	if (c->o->steering.trigger)
		note_trigger(c, c->o->steering.trigger);
	c->result->snapshots++;
	if (c->o->verbose)
		c->notice("snapshot taken");
	if (resume && !c->paused && !c->triggered)
		hw_events_enable(&c->ev);
	return 0;
}
