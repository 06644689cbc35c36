/* segment_take.c - see segment.h: the flow takes over what was decoded ahead. */
#include "decode/flow/segment_log.h"
#include "decode/flow/vm_transition.h"

/* ---- What was reported ------------------------------------------------------------------------------ */

/* The run, with that path in place of the decoder's. */
static void take_run(struct segment_taking *t, const struct pt_flow_run *of, uint32_t path)
{
	struct segment_offsets *o = &t->segment->offsets;
	struct pt_flow *f = t->f;
	struct pt_flow_run *run = &f->undelivered.runs[f->undelivered.count];

	if (!path)
		return; /* the graph is full */
	*run = *of;
	run->path = path;
	run->timing = pt_segment_timing(o->tnt_tsc, run->timing, run->tsc);
	if (run->cyc_count != PTR_UNKNOWN && !o->counted) {
		run->cyc_count += o->cyc_since;
		run->insn_count += o->insns_since;
		o->counted = true;
	}
	f->undelivered.count++;
}

/* As many as can be delivered at once; how many. What is known of their paths is far apart in memory: it is
 * fetched for all of them before it is looked at. */
static size_t take_some_runs(struct segment_taking *t, const struct pt_flow_run *runs, size_t n)
{
	uint32_t known[PT_FLOW_RUNS];
	size_t some = PT_FLOW_RUNS - t->f->undelivered.count;

	if (some > n)
		some = n;
	for (size_t i = 0; i < some; i++) {
		known[i] = t->numbers->paths[runs[i].path];
		__builtin_prefetch(&t->f->graph->paths[known[i] >> 1]);
	}
	for (size_t i = some; i < n && i < some + PT_FLOW_RUNS; i++)
		__builtin_prefetch(&t->numbers->paths[runs[i].path]);
	for (size_t i = 0; i < some; i++) {
		uint32_t path = pt_segment_known_path(t, known[i], runs[i].path);

		take_run(t, &runs[i], path);
		pt_segment_know_path(t->numbers, runs[i].path, t->f->graph, path);
	}
	return some;
}

static void take_each_run(struct segment_taking *t, size_t from, size_t to)
{
	while (from < to) {
		from += take_some_runs(t, &t->segment->runs[from], to - from);
		if (t->f->undelivered.count == PT_FLOW_RUNS)
			pt_flow_deliver_runs(t->f);
	}
}

/* False: they are to be taken one by one. */
static bool take_span(struct segment_taking *t, const struct segment_span *span)
{
	struct pt_flow *f = t->f;

	pt_flow_deliver(f); /* which may define paths */
	if (!pt_segment_numbers_hold(f, span->encoded.kept) || !f->output->encoded_runs ||
	    !f->output->encoded_runs(f->output_arg, f, &span->encoded))
		return false;
	pt_graph_add_sums(&f->graph->sums, &span->encoded.sums);
	return true;
}

static void take_runs(struct segment_taking *t, size_t from, size_t to)
{
	const struct segment_span *span;

	while ((span = pt_segment_next_span(t, from, to))) {
		size_t end = span->first + span->encoded.count;

		take_each_run(t, from, span->first);
		if (!take_span(t, span))
			take_each_run(t, span->first, end);
		from = end;
	}
	take_each_run(t, from, to);
}

static void take_entry(struct segment_taking *t, const struct segment_entry *entry)
{
	struct pt_flow *f = t->f;
	struct segment_offsets *o = &t->segment->offsets;
	uint64_t cyc = entry->cyc;

	pt_flow_deliver(f);
	f->clock.tsc = entry->clock_tsc;
	switch (entry->type) {
	case SEGMENT_BEGIN:
		o->counted = o->begun = true;
		f->output->begin(f->output_arg, f, entry->tsc, entry->kernel ? f->kernel : f->user,
				 entry->ip);
		break;
	case SEGMENT_END:
		if (!o->begun && cyc != PTR_UNKNOWN)
			cyc += o->slice_cyc;
		f->output->end(f->output_arg, f, entry->tsc, entry->insns + (o->begun ? 0 : o->slice_insns),
			       cyc);
		break;
	case SEGMENT_EVENT: f->output->event(f->output_arg, f, entry->name, entry->ip, entry->fields); break;
	case SEGMENT_CFE:
	case SEGMENT_EVD:
		if (f->output->event_trace)
			f->output->event_trace(f->output_arg, f, entry->type == SEGMENT_CFE, entry->event,
					       entry->value);
		break;
	case SEGMENT_USER:
		f->side.cr3 = entry->cr3;
		f->env->user(f->env_arg, f);
		break;
	case SEGMENT_HOST_TSC:
		if (f->env->host_tsc)
			f->env->host_tsc(f->env_arg, f, entry->tsc);
		break;
	}
}

/* From one checkpoint (NULL: the segment's begin) to another. */
static void take_log(struct segment_taking *t, const struct segment_checkpoint *from,
		     const struct segment_checkpoint *to)
{
	size_t run = from ? from->runs : 0;

	for (size_t i = from ? from->entries : 0; i < to->entries; i++) {
		const struct segment_entry *entry = &t->segment->entries[i];

		take_runs(t, run, entry->runs);
		run = entry->runs;
		take_entry(t, entry);
	}
	take_runs(t, run, to->runs);
	pt_flow_deliver(t->f);
}

/* ---- What the flow is then -------------------------------------------------------------------------- */

/* The entry of the decoder's stack, in the flow's graph. What was there before the segment may be of codes
 * that are none of its own. */
static uint32_t stack_entry(const struct segment_taking *t, const struct pt_flow *from, uint32_t i)
{
	const struct pt_segment *s = t->segment;
	uint32_t local = from->stack.entries[i % PT_STACK];
	bool before = !s->after_psb &&
		      i - s->begin.stack.bottom < s->begin.stack.top - s->begin.stack.bottom &&
		      local == s->begin.stack.entries[i % PT_STACK];

	return before ? s->begin_stack[(i + s->offsets.stack_top) % PT_STACK] : pt_segment_position(t, local);
}

static void take_stack(const struct segment_taking *t, const struct pt_flow *from, struct pt_flow *to)
{
	uint32_t by = t->segment->offsets.stack_top;

	memcpy(to->stack.entries, t->f->stack.entries, sizeof to->stack.entries);
	/* What is returned to when user space goes on, also where the kernel's part has been emptied since; the
	 * flow has what is older than the segment. */
	if (from->stack.user.known && !from->stack.user.unseen)
		for (uint32_t i = pt_flow_user_bottom(&from->stack); i != from->stack.user.top; i++)
			if ((int32_t)(i - t->segment->begin.stack.bottom) >= 0)
				to->stack.entries[(i + by) % PT_STACK] = stack_entry(t, from, i);
	to->stack.top = from->stack.top + by;
	to->stack.bottom = from->stack.bottom + by;
	for (uint32_t i = from->stack.bottom; i != from->stack.top; i++)
		to->stack.entries[(i + by) % PT_STACK] = stack_entry(t, from, i);
	to->stack.user = t->f->stack.user;
	if (!from->stack.user.unseen) {
		to->stack.user.known = from->stack.user.known;
		to->stack.user.top = from->stack.user.top + by;
		to->stack.user.bottom = from->stack.user.bottom + by;
	}
	to->host_stack = t->f->host_stack;
	to->stack_state = from->stack_state;
	if (t->segment->after_psb)
		to->stack_state.guest_floor = t->f->stack_state.guest_floor;
	else
		to->stack_state.guest_floor += by;
	to->stack_state.others_top = to->stack.top;
}

static void take_path(const struct segment_taking *t, const struct pt_flow *from, struct pt_flow *to)
{
	for (uint32_t i = 0; i < from->path.len; i++)
		to->path.edges[i] = pt_segment_edge(t, from->path.edges[i]);
	to->path.last = 0;
	to->run.path = from->run.repeats ? pt_segment_path(t, from->run.path) : 0;
	if (!to->run.path)
		to->run.repeats = 0;
}

static void take_counts(const struct segment_taking *t, const struct segment_checkpoint *c,
			struct pt_flow *to)
{
	const struct segment_offsets *o = &t->segment->offsets;
	bool same_slice = !c->begun;

	to->counts.insns += o->insns;
	to->counts.packets += o->packets;
	to->counts.psbs += o->psbs;
	to->counts.kernel_skips += o->kernel_skips;
	to->clock.cyc += o->cyc;
	to->clock.anchor_cyc += o->cyc;
	to->timing.cyc_cyc += o->cyc - (same_slice && !c->cyc_run ? o->cyc_since : 0);
	to->timing.cyc_insns += o->insns - (same_slice && !c->cyc_run ? o->insns_since : 0);
	to->slice.insns += o->insns - (same_slice ? o->slice_insns : 0);
	to->slice.cyc += o->cyc - (same_slice ? o->slice_cyc : 0);
	to->overflow.insns += o->insns;
	to->pips.insns += o->insns;
	to->packet.mode_exec = to->packet.mode_exec == t->segment->begin.packet.mode_exec
				   ? t->f->packet.mode_exec
				   : to->packet.mode_exec + o->packets;
}

/* The flow becomes what the decoder's was at the checkpoint. */
static void take_state(const struct segment_taking *t, const struct segment_checkpoint *c)
{
	struct pt_flow *f = t->f, to = c->flow;

	to.graph = f->graph;
	to.user = f->user;
	to.kernel = f->kernel;
	to.env = f->env;
	to.env_arg = f->env_arg;
	to.output = f->output;
	to.output_arg = f->output_arg;
	to.detail = f->detail;
	to.stop_tsc = f->stop_tsc;
	to.cyc_binding = f->cyc_binding;
	to.undelivered.count = 0;
	to.recorder.memo = NULL;
	to.packet_memo = NULL;
	to.full_reported = f->full_reported;
	to.places = f->places;
	to.touched = f->touched;
	to.at.code = !c->flow.at.code ? NULL : c->flow.at.code == c->flow.kernel ? f->kernel : f->user;
	to.at.position = pt_segment_position(t, c->flow.at.position);
	to.at.decision = PT_D_UNRESOLVED;
	if (to.side.vmcs == PT_VMCS_UNKNOWN)
		to.side.vmcs = f->side.vmcs;
	if (!to.stop_ip)
		to.stop_ip = f->stop_ip;
	if (to.timing.tnt_tsc == FLOW_TNT_UNSEEN)
		to.timing.tnt_tsc = t->segment->offsets.tnt_tsc;
	to.run.timing = (uint8_t)pt_segment_timing(t->segment->offsets.tnt_tsc, to.run.timing, to.run.tsc);
	take_stack(t, &c->flow, &to);
	take_path(t, &c->flow, &to);
	take_counts(t, c, &to);
	*f = to;
}

static void set_offsets(const struct pt_flow *f, struct pt_segment *s)
{
	const struct pt_flow *b = &s->begin;
	uint64_t insns = f->counts.insns - b->counts.insns, cyc = f->clock.cyc - b->clock.cyc;

	s->offsets =
	    (struct segment_offsets){.insns = insns,
				     .packets = f->counts.packets - b->counts.packets,
				     .psbs = f->counts.psbs - b->counts.psbs,
				     .kernel_skips = f->counts.kernel_skips - b->counts.kernel_skips,
				     .cyc = cyc,
				     .cyc_since = cyc - (f->timing.cyc_cyc - b->timing.cyc_cyc),
				     .insns_since = insns - (f->timing.cyc_insns - b->timing.cyc_insns),
				     .slice_insns = insns - (f->slice.insns - b->slice.insns),
				     .slice_cyc = cyc - (f->slice.cyc - b->slice.cyc),
				     .tnt_tsc = f->timing.tnt_tsc,
				     .stack_top = f->stack.top - b->stack.top};
	memcpy(s->begin_stack, f->stack.entries, sizeof s->begin_stack);
}

/* ---- From checkpoint to checkpoint ------------------------------------------------------------------ */

/* The flow would have stopped before the checkpoint. */
static bool stops_before(const struct pt_flow *f, const struct segment_checkpoint *c)
{
	uint64_t tsc = c->flow.clock.tsc;

	return tsc != PT_CLOCK_UNKNOWN && tsc >= f->stop_tsc && c->stop_tsc != f->stop_tsc;
}

/* The user's code is what the segment assumes, where it matters, and who is asked whose user space comes
 * would change nothing. */
static bool users_stay(const struct pt_flow *f, const struct pt_segment *s, size_t from, size_t to)
{
	bool same = !s->in_kernel || pt_segment_same_user(f, s);

	for (size_t i = from; i < to; i++)
		if (s->entries[i].type == SEGMENT_USER && f->env->user &&
		    !(same && f->env->user_stays && f->env->user_stays(f->env_arg, f, s->entries[i].cr3)))
			return false;
	return true;
}

/* The flow is as the last checkpoint has left it. */
static bool may_go_on(const struct pt_flow *f, const struct pt_segment *s)
{
	return s->touched == f->touched && pt_segment_same_kernel(f, s) &&
	       (s->in_kernel || pt_segment_same_user(f, s));
}

enum pt_segment_taken pt_segment_take(struct pt_flow *f, struct pt_segment *segment,
				      struct pt_segment_numbers *numbers, const uint8_t **at)
{
	struct segment_taking t = {f, segment, numbers};
	const struct segment_checkpoint *before =
	    segment->taken ? &segment->checkpoints[segment->taken - 1] : NULL;
	const struct segment_checkpoint *last = NULL;

	if (f->clock.tsc >= f->stop_tsc && f->clock.tsc != PT_CLOCK_UNKNOWN)
		return PT_SEGMENT_TIME;
	if (!(segment->taken ? may_go_on(f, segment) : pt_segment_fits(&t)))
		return PT_SEGMENT_ENDS;
	if (!segment->taken)
		set_offsets(f, segment);
	while (segment->taken < segment->checkpoint_count && !f->graph->cache_full) {
		const struct segment_checkpoint *c = &segment->checkpoints[segment->taken];

		if ((last && last->stop_tsc == f->stop_tsc && last->stop_tsc != UINT64_MAX) ||
		    stops_before(f, c) || !users_stay(f, segment, before ? before->entries : 0, c->entries))
			break;
		take_log(&t, before, c);
		segment->taken++;
		last = before = c;
	}
	if (!last)
		return PT_SEGMENT_ENDS;
	take_state(&t, last);
	segment->touched = f->touched;
	*at = last->at;
	return last->stop_tsc != UINT64_MAX && last->stop_tsc == f->stop_tsc ? PT_SEGMENT_TIME
									     : PT_SEGMENT_ENDS;
}
