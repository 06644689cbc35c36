/*
 * capture_switch.c - the capture goes on in another container (--switch-output).
 *
 * The one that ends gets all that its rounds have read, the next one all that follows, and before it what a
 * decoder needs: META, events, the kernel as it is now, what sideband has said (sideband_state.h), and of
 * each stream the bytes from its last PSB on (aux_tail.h). Events are not stopped: the rings hold what
 * comes meanwhile.
 *
 * The kernel's code is read when AUX data that is older is still to come. What was patched since is put
 * back: its old bytes, valid from the start, as the TEXT_POKE records have them.
 */
#include "capture/pt/packet_len.h"
#include "capture/record/capabilities.h"
#include "capture/record/capture_internal.h"
#include "capture/record/mapping_records.h"
#include "capture/record/sample_id.h"
#include "schema/bytes.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE_S	   1	      /* between looks what need not be kept */
#define SNAPSHOT_SETTLE_NS 2000000000 /* with buffers that are overwritten: what is older than that */

/* ---- What is kept ---- */

int capture_switch_prepare(struct capture *c, struct pt_error *e)
{
	if (!c->o->steering.rotation || c->o->steering.rotation->by == HW_ROTATE_NEVER)
		return 0;
	c->state = hw_state_create();
	c->drain.tails = calloc(c->ev.ring_count, sizeof *c->drain.tails);
	if (!c->state || !c->drain.tails)
		return pt_fail_no_memory(e, "what the next container begins with");
	c->tasks.state = c->state;
	return 0;
}

void capture_switch_deinit(struct capture *c)
{
	for (size_t i = 0; c->drain.tails && i < c->ev.ring_count; i++)
		hw_aux_tail_deinit(&c->drain.tails[i]);
	free(c->drain.tails);
	hw_state_destroy(c->state);
}

/* The time of the PSB that the tail begins with; 0: nothing says it. */
static uint64_t tail_since_ns(const struct capture *c, const struct hw_aux_tail *t)
{
	uint64_t tsc;

	if (t->bytes.count && pt_psb_plus(t->bytes.bytes, t->bytes.count, &tsc) > 0)
		return hw_clock_ns(&c->clock, tsc);
	return t->since_ns;
}

/* Of a ring: what was before is not needed. */
static uint64_t ring_since_ns(struct capture *c, size_t i, uint64_t settled_ns)
{
	const struct hw_aux_tail *t = &c->drain.tails[i];
	uint64_t since_ns;

	pthread_mutex_lock(&c->ev.rings[i].lock);
	since_ns = t->bytes.count ? tail_since_ns(c, t) : settled_ns;
	pthread_mutex_unlock(&c->ev.rings[i].lock);
	return since_ns < settled_ns ? since_ns : settled_ns;
}

static void settle(struct capture *c)
{
	uint64_t now_ns = capture_now_ns(c), oldest_ns, settled_ns = c->drain.round_ns;

	if (c->ev.overwrite)
		settled_ns = now_ns > SNAPSHOT_SETTLE_NS ? now_ns - SNAPSHOT_SETTLE_NS : 0;
	oldest_ns = settled_ns;
	hw_state_settle(c->state, settled_ns);
	for (size_t i = 0; i < c->ev.ring_count; i++) {
		uint64_t since_ns = ring_since_ns(c, i, settled_ns);

		hw_state_settle_cpu(c->state, c->ev.rings[i].cpu, since_ns);
		oldest_ns = since_ns < oldest_ns ? since_ns : oldest_ns;
	}
	hw_state_settle_pokes(c->state, oldest_ns);
}

/* The bytes that a patch of the kernel has overwritten: {u64 address; u16 old, new bytes; bytes} after
 * the header. */
static int put_old_bytes(struct capture *c, const uint8_t *p, struct pt_error *e)
{
	struct perf_event_header h;
	uint16_t n;

	memcpy(&h, p, sizeof h);
	memcpy(&n, p + 16, sizeof n);
	if ((size_t)20 + n + sizeof(struct hw_sample_id) > h.size)
		return 0;
	return hw_images_put_kernel_bytes(c->images, u64(p + 8), p + 20, n, 0, e);
}

int capture_switch_record(struct capture *c, const struct hw_record *r, struct pt_error *e)
{
	if (!c->state || !r->has_id || r->header.type == PERF_RECORD_SAMPLE)
		return 0;
	/* Not put: drain.h. */
	if (r->header.type == PERF_RECORD_SWITCH && c->ev.rings[0].all_switches)
		return 0;
	if (r->header.type == PERF_RECORD_TEXT_POKE && r->time_ns < c->part.kernel_ns &&
	    r->header.size >= 20 + sizeof(struct hw_sample_id) &&
	    !hw_state_poked(c->state, u64(r->bytes + 8)) && put_old_bytes(c, r->bytes, e))
		return -1;
	return hw_state_record(c->state, r->bytes, e);
}

/* ---- The next container's beginning ---- */

/* What was patched as it was before; from the last record on: of a place that was patched twice the oldest
 * bytes are the right ones. */
static int put_all_old_bytes(struct capture *c, const struct hw_bytes *b, struct pt_error *e)
{
	size_t *at = malloc((b->count / sizeof(struct perf_event_header) + 1) * sizeof *at), n = 0;
	struct perf_event_header h;
	int r = at ? 0 : pt_fail_no_memory(e, NULL);

	for (size_t i = 0; at && i < b->count; i += h.size) {
		memcpy(&h, b->bytes + i, sizeof h);
		if (h.type == PERF_RECORD_TEXT_POKE)
			at[n++] = i;
	}
	for (size_t i = 0; r == 0 && i < n; i++)
		r = put_old_bytes(c, b->bytes + at[n - 1 - i], e);
	free(at);
	return r;
}

static int put_records(struct capture *c, const struct hw_bytes *b, struct pt_error *e)
{
	return hw_mapping_records_put(c->images,
				      &(struct hw_mapping_records){.w = c->w,
								   .attr = c->drain.events.sideband_attr,
								   .flags = PTC_SIDEBAND_CONTEXT,
								   .bytes = b->bytes,
								   .count = b->count},
				      e);
}

int capture_switch_process(struct capture *c, int32_t pid, struct pt_error *e)
{
	struct hw_bytes b = {0};
	int r;

	if (!c->state)
		return 0;
	r = hw_state_put_process(c->state, pid, c->drain.round_ns, &b, e);
	if (r == 0)
		r = put_records(c, &b, e);
	hw_bytes_deinit(&b);
	return r;
}

static int put_state(struct capture *c, struct pt_error *e)
{
	struct hw_bytes b = {0};
	/* Of a whole machine those that are seen: tasks.h. */
	int r = hw_state_begin(c->state, !c->o->target.system_wide, &b, e);

	if (r == 0)
		r = put_all_old_bytes(c, &b, e);
	if (r == 0)
		r = put_records(c, &b, e);
	hw_bytes_deinit(&b);
	return r;
}

static int put_tails(struct capture *c, struct pt_error *e)
{
	for (size_t i = 0; i < c->ev.ring_count; i++) {
		const struct hw_drain_ring *r = &c->ev.rings[i];
		const struct hw_aux_tail *t = &c->drain.tails[i];
		struct ptc_aux aux = {.aux_offset = t->end - t->bytes.count,
				      .flags = PTC_AUX_CONTEXT | (r->overwrite ? PTC_AUX_OVERWRITE : 0),
				      .time_ns = tail_since_ns(c, t),
				      .bytes = t->bytes.bytes,
				      .size = t->bytes.count};

		/* What ran then may be patched since, and nobody knows how it was. */
		if (!aux.size || aux.time_ns < hw_state_pokes_since_ns(c->state))
			continue;
		if (ptc_put_aux(c->w, r->stream, &aux, e))
			return -1;
	}
	return 0;
}

static int put_head(struct capture *c, struct pt_error *e)
{
	if (capture_put_events(c, e))
		return -1;
	if (ptc_put_metaf(c->w, e, "part", "%u", c->part.number) ||
	    ptc_put_meta(c->w, "continues", c->part.before, e) || capture_put_cpus_not_traced(c, e))
		return -1;
	c->part.kernel_ns = capture_now_ns(c);
	if (capture_put_kernels(c, e) || put_state(c, e) || put_tails(c, e))
		return -1;
	return ptc_flush_meta(c->w, e);
}

/* ---- The switch ---- */

bool capture_switch_due(struct capture *c, sig_atomic_t *answered)
{
	const struct hw_steering *s = &c->o->steering;
	double now = capture_seconds();

	if (!c->state)
		return false;
	if (now - c->part.settled_s > SETTLE_S) {
		c->part.settled_s = now;
		settle(c);
	}
	switch (s->rotation->by) {
	case HW_ROTATE_SIGNAL:
		if (*s->want_snapshot == *answered && !c->part.fired)
			return false;
		*answered = *s->want_snapshot;
		return true;
	case HW_ROTATE_SIZE: return ptc_writer_bytes(c->w) >= s->rotation->bytes;
	case HW_ROTATE_TIME: return now - c->part.started_s >= s->rotation->seconds;
	default: return false;
	}
}

/* Ends the container, names it and opens the next one. */
static int next_file(struct capture *c, struct pt_error *e)
{
	const char *name;
	char text[1200];

	c->part.bytes_before += ptc_writer_bytes(c->w);
	hw_capabilities_output(true);
	if (hw_rotation_next(c->o->steering.rotation, false, &name, e))
		return -1;
	hw_capabilities_output(false);
	if (!c->o->quiet) {
		snprintf(text, sizeof text, "%.1000s is complete", name);
		c->notice(text);
	}
	return 0;
}

/* Drain threads go on copying what comes meanwhile out of the rings for as long as it may take long. */
static int end_container(struct capture *c, struct pt_error *e)
{
	if (hw_drain_settle(&c->drain, e))
		return -1;
	settle(c);
	if (capture_put_end(c, e) || ptc_writer_settle(c->w, e))
		return -1;
	hw_drain_threads_destroy(c->drain.threads);
	c->drain.threads = NULL;
	return ptc_writer_finish(c->w, e) || next_file(c, e) ? -1 : 0;
}

static int make_writer(struct capture *c, struct pt_error *e)
{
	ptc_writer_destroy(c->w);
	c->w = ptc_writer_create(c->o->steering.rotation->out->fd, capture_container_name(c), c->o->level, e);
	if (!c->w)
		return -1;
	ptc_writer_level(c->w, c->compression.level);
	return capture_use_writer(c, e);
}

int capture_switch(struct capture *c, struct pt_error *e)
{
	/* As at a capture's end. By a signal or a trigger it has been taken. */
	if (c->o->events.snapshot && c->o->steering.rotation->by != HW_ROTATE_SIGNAL &&
	    capture_take_snapshot(c, true, e))
		return -1;
	if (end_container(c, e))
		return -1;
	snprintf(c->part.before, sizeof c->part.before, "%s", c->part.uuid);
	c->part.number++;
	c->part.fired = false;
	c->part.started_s = capture_seconds();
	if (make_writer(c, e))
		return -1;
	if (capture_make_threads(c, e) || put_head(c, e))
		return -1;
	/* What the trigger fired for meanwhile may be overwritten by now. */
	if (c->o->steering.trigger)
		c->o->steering.trigger->ready_ns = capture_now_ns(c);
	return 0;
}
