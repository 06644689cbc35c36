/* segment_take.c - see segment.h: the flow takes over what was decoded ahead. */
#include "decode/flow/segment_log.h"
#include "decode/flow/vm_transition.h"

#include <stdlib.h>

#include "decode/code/huge_pages.h"

struct pt_segment_numbers {
	const struct pt_graph *from; /* the decoder's graph */
	uint32_t *paths, *edges;     /* by its numbers; 0: not asked for yet */
};

struct pt_segment_numbers *pt_segment_numbers_create(const struct pt_segment_decoder *d)
{
	struct pt_segment_numbers *n = calloc(1, sizeof *n);

	if (!n)
		return NULL;
	n->from = pt_segment_decoder_graph(d);
	n->paths = pt_pages_reserve(n->from->path_room, sizeof *n->paths);
	n->edges = pt_pages_reserve(n->from->edge_room, sizeof *n->edges);
	if (n->paths && n->edges)
		return n;
	pt_segment_numbers_destroy(n);
	return NULL;
}

void pt_segment_numbers_destroy(struct pt_segment_numbers *n)
{
	if (!n)
		return;
	pt_pages_release(n->paths, n->from->path_room, sizeof *n->paths);
	pt_pages_release(n->edges, n->from->edge_room, sizeof *n->edges);
	free(n);
}

void pt_segment_numbers_forget(struct pt_segment_numbers *n)
{
	pt_pages_wipe(n->paths, n->from->path_room, sizeof *n->paths);
	pt_pages_wipe(n->edges, n->from->edge_room, sizeof *n->edges);
}

/* ---- Numbers ---------------------------------------------------------------------------------------- */

/* Who takes what over. */
struct taking {
	struct pt_flow *f;
	struct pt_segment *segment;
	struct pt_segment_numbers *numbers;
};

/* The flow's code, by its id, and by its uid, in the decoder's graph. */
static struct pt_code *code_of_id(const struct taking *t, uint32_t id)
{
	return id == t->segment->kernel_code ? t->f->kernel : t->f->user;
}
static struct pt_code *code_of_uid(const struct taking *t, uint32_t uid)
{
	return uid == t->segment->kernel_uid ? t->f->kernel : t->f->user;
}

static uint32_t edge_number(const struct taking *t, uint32_t local)
{
	const struct pt_edge *edge = &t->segment->graph->edges[local];
	uint32_t *number = &t->numbers->edges[local];
	struct pt_code *code = code_of_uid(t, edge->code);

	if (!*number)
		*number = edge->ends_trace ? pt_graph_end_edge(t->f->graph, code, edge->from, edge->to,
							       (enum ptr_kind)edge->kind)
					   : pt_graph_edge(t->f->graph, code, edge->from, edge->to,
							   (enum ptr_kind)edge->kind);
	return *number;
}

static uint32_t find_path(const struct taking *t, uint32_t local)
{
	const struct pt_graph *from = t->segment->graph;
	const struct pt_path *path = &from->paths[local];
	uint32_t edges[PTR_PATH_EDGES + 3];
	const struct pt_path_key key = {.code = code_of_id(t, path->code),
					.start_ip = path->start_ip,
					.end_ip = path->end_ip,
					.edges = edges,
					.count = path->count,
					.mode = (enum insn_mode)path->mode,
					.like = from,
					.like_path = local};

	for (uint32_t i = 0; i < path->count; i++)
		edges[i] = edge_number(t, from->path_edges[path->first + i]);
	return t->numbers->paths[local] = pt_graph_path(t->f->graph, &key, 0);
}

static inline uint32_t path_number(const struct taking *t, uint32_t local)
{
	uint32_t number = t->numbers->paths[local];

	/* In another version of the code it is another path. */
	if (number &&
	    t->f->graph->paths[number].code == code_of_id(t, t->segment->graph->paths[local].code)->id)
		return number;
	return find_path(t, local);
}

static uint32_t position_number(const struct taking *t, uint32_t local)
{
	const struct pt_where *w = &t->segment->graph->where[local];

	return local ? pt_graph_position(t->f->graph, code_of_id(t, w->code), w->ip, (enum insn_mode)w->mode)
		     : 0;
}

void pt_segment_assume(struct pt_segment_task *task, const struct pt_flow *f)
{
	task->user = f->user ? f->user->space : NULL;
	task->kernel = f->kernel ? f->kernel->space : NULL;
	task->switch_ip = f->kernel ? f->kernel->switch_ip : 0;
	task->has_cyc = f->timing.has_cyc;
	task->times_last = f->cyc_binding.times_last;
	task->clock = f->clock.config;
	task->errata = f->errata;
}

/* ---- Assumptions ------------------------------------------------------------------------------------ */

static bool is_code(const struct pt_code *code, const struct img_space *space, uint32_t generation)
{
	return code
		   ? code->space == space && space->generation == generation && code->generation == generation
		   : !space;
}

static bool same_codes(const struct pt_flow *f, const struct pt_segment *s)
{
	return is_code(f->user, s->user, s->user_generation) &&
	       is_code(f->kernel, s->kernel, s->kernel_generation);
}

/* The clocks are the same, but for the sum of cycles. */
static bool same_clock(const struct pt_clock *a, const struct pt_clock *b)
{
	return a->tsc == b->tsc && a->anchor_tsc == b->anchor_tsc && a->limit_tsc == b->limit_tsc &&
	       a->cyc - a->anchor_cyc == b->cyc - b->anchor_cyc && a->have_ctc == b->have_ctc &&
	       (!a->have_ctc ||
		(a->ctc_tsc == b->ctc_tsc && a->ctc_base == b->ctc_base && a->ctc == b->ctc)) &&
	       a->tsc_per_cyc == b->tsc_per_cyc && a->cbr == b->cbr && a->loose == b->loose;
}

/* Nothing waits for a packet, and nothing was lost of what the return stack is a model of. */
static bool waits_for_nothing(const struct pt_flow *f)
{
	const struct flow_stack_state *s = &f->stack_state;

	return !f->path.len && !f->run.repeats && !f->undelivered.count && !f->tnt.n && !f->fup.pending &&
	       !f->fup.binds && !f->fup.tsx_abort && !f->held.name && !f->evds && !f->packet.bip_bytes &&
	       !f->overflow.pending && !f->overflow.psb_fup && !f->psb.open && !f->psb.alone && f->psb.ever &&
	       !f->psb.no_time && !f->side.changes && !f->side.concealed && !f->side.nr && !f->tsc.waits &&
	       !f->tsc.tma_waits && !f->tsc.ignored && !f->timing.clock_moved && !f->timing.cyc_fresh &&
	       f->stack.bottom == f->stack.top && !s->unsure && !s->stale_hw && !s->skipped &&
	       !s->kernel_unseen && !s->guest_unseen && !s->guest_lost && !s->has_floor &&
	       (!f->pips.count || f->pips.insns != f->counts.insns);
}

/* What CYC packets time. */
static bool same_binding(const struct pt_flow *f, const struct pt_flow *b)
{
	if (f->timing.has_cyc != b->timing.has_cyc || f->timing.now_tsc != b->timing.now_tsc)
		return false;
	return !f->timing.has_cyc || (f->cyc_binding.samples >= PT_CYC_BINDING_SAMPLES &&
				      f->cyc_binding.times_last == b->cyc_binding.times_last);
}

bool pt_segment_fits(const struct pt_flow *f, const struct pt_segment *segment)
{
	const struct pt_flow *b = &segment->begin;
	const struct pt_where *w = &segment->graph->where[b->at.position];

	return f->state == PT_FLOW_RUNNING && f->slice.open && f->detail == PT_FLOW_FOLLOW &&
	       same_codes(f, segment) && waits_for_nothing(f) && f->at.mode == b->at.mode &&
	       f->at.next_mode == b->at.next_mode && pt_flow_here(f) == w->ip &&
	       (f->at.code == f->kernel && f->kernel) == (b->at.code == b->kernel && b->kernel) &&
	       f->path.start_ip == b->path.start_ip && same_clock(&f->clock, &b->clock) &&
	       f->run.tsc == b->run.tsc && f->run.timing == b->run.timing && same_binding(f, b) &&
	       f->packet.last_ip == b->packet.last_ip && f->packet.exec == b->packet.exec &&
	       f->side.cr3 == b->side.cr3 &&
	       (b->side.vmcs == PT_VMCS_UNKNOWN || f->side.vmcs == b->side.vmcs) &&
	       f->cbr.ratio == b->cbr.ratio && f->cbr.reported == b->cbr.reported && !f->graph->cache_full;
}

/* ---- What was reported ------------------------------------------------------------------------------ */

static uint32_t timing_of(const struct taking *t, uint32_t timing, uint64_t tsc)
{
	if (timing != FLOW_TIMING_UNSEEN)
		return timing;
	return t->segment->offsets.tnt_tsc == tsc ? PTR_TIME_AFTER : PTR_TIME_BEFORE;
}

static void take_runs(struct taking *t, size_t from, size_t to)
{
	struct pt_flow *f = t->f;
	struct pt_segment *s = t->segment;

	for (size_t i = from; i < to; i++) {
		struct pt_flow_run run = s->runs[i];

		run.path = path_number(t, run.path);
		run.timing = timing_of(t, run.timing, run.tsc);
		if (!run.path)
			continue; /* the graph is full */
		if (run.cyc_count != PTR_UNKNOWN && !s->offsets.counted) {
			run.cyc_count += s->offsets.cyc_since;
			run.insn_count += s->offsets.insns_since;
			s->offsets.counted = true;
		}
		f->undelivered.runs[f->undelivered.count++] = run;
		if (f->undelivered.count == PT_FLOW_RUNS)
			pt_flow_deliver_runs(f);
	}
}

static void take_entry(struct taking *t, const struct segment_entry *entry)
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
static void take_log(struct taking *t, const struct segment_checkpoint *from,
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

static void take_stack(const struct taking *t, const struct pt_flow *from, struct pt_flow *to)
{
	uint32_t by = t->segment->offsets.stack_top;

	memcpy(to->stack.entries, t->f->stack.entries, sizeof to->stack.entries);
	to->stack.top = from->stack.top + by;
	to->stack.bottom = from->stack.bottom + by;
	for (uint32_t i = from->stack.bottom; i != from->stack.top; i++)
		to->stack.entries[(i + by) % PT_STACK] =
		    position_number(t, from->stack.entries[i % PT_STACK]);
	to->stack.user = t->f->stack.user;
	if (from->stack.user.known) {
		to->stack.user.known = true;
		to->stack.user.top = from->stack.user.top + by;
		to->stack.user.bottom = from->stack.user.bottom + by;
	}
	to->host_stack = t->f->host_stack;
	to->stack_state = from->stack_state;
	to->stack_state.guest_floor = t->f->stack_state.guest_floor;
}

static void take_path(const struct taking *t, const struct pt_flow *from, struct pt_flow *to)
{
	for (uint32_t i = 0; i < from->path.len; i++)
		to->path.edges[i] = edge_number(t, from->path.edges[i]);
	to->path.last = 0;
	to->run.path = from->run.repeats ? path_number(t, from->run.path) : 0;
	if (!to->run.path)
		to->run.repeats = 0;
}

static void take_counts(const struct taking *t, const struct segment_checkpoint *c, struct pt_flow *to)
{
	const struct segment_offsets *o = &t->segment->offsets;
	bool same_slice = !c->begun;

	to->counts.insns += o->insns;
	to->counts.packets += o->packets;
	to->counts.psbs += o->psbs;
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
static void take_state(const struct taking *t, const struct segment_checkpoint *c)
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
	to.at.position = position_number(t, c->flow.at.position);
	to.at.decision = PT_D_UNRESOLVED;
	if (to.side.vmcs == PT_VMCS_UNKNOWN)
		to.side.vmcs = f->side.vmcs;
	if (!to.stop_ip)
		to.stop_ip = f->stop_ip;
	if (to.timing.tnt_tsc == FLOW_TNT_UNSEEN)
		to.timing.tnt_tsc = t->segment->offsets.tnt_tsc;
	to.run.timing = (uint8_t)timing_of(t, to.run.timing, to.run.tsc);
	take_stack(t, &c->flow, &to);
	take_path(t, &c->flow, &to);
	take_counts(t, c, &to);
	*f = to;
}

static void set_offsets(const struct pt_flow *f, struct pt_segment *s)
{
	const struct pt_flow *b = &s->begin;

	s->offsets = (struct segment_offsets){.insns = f->counts.insns - b->counts.insns,
					      .packets = f->counts.packets - b->counts.packets,
					      .psbs = f->counts.psbs - b->counts.psbs,
					      .cyc = f->clock.cyc - b->clock.cyc,
					      .cyc_since = f->clock.cyc - f->timing.cyc_cyc,
					      .insns_since = f->counts.insns - f->timing.cyc_insns,
					      .slice_insns = f->counts.insns - f->slice.insns,
					      .slice_cyc = f->clock.cyc - f->slice.cyc,
					      .tnt_tsc = f->timing.tnt_tsc,
					      .stack_top = f->stack.top - b->stack.top};
}

/* ---- From checkpoint to checkpoint ------------------------------------------------------------------ */

/* The flow would have stopped before the checkpoint. */
static bool stops_before(const struct pt_flow *f, const struct segment_checkpoint *c)
{
	uint64_t tsc = c->flow.clock.tsc;

	return tsc != PT_CLOCK_UNKNOWN && tsc >= f->stop_tsc && c->stop_tsc != f->stop_tsc;
}

/* Who is asked whose user space comes would change nothing. */
static bool users_stay(const struct pt_flow *f, const struct pt_segment *s, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (s->entries[i].type == SEGMENT_USER && f->env->user &&
		    !(f->env->user_stays && f->env->user_stays(f->env_arg, f, s->entries[i].cr3)))
			return false;
	return true;
}

enum pt_segment_taken pt_segment_take(struct pt_flow *f, struct pt_segment *segment,
				      struct pt_segment_numbers *numbers, const uint8_t **at)
{
	struct taking t = {f, segment, numbers};
	const struct segment_checkpoint *before =
	    segment->taken ? &segment->checkpoints[segment->taken - 1] : NULL;
	const struct segment_checkpoint *last = NULL;

	if (f->clock.tsc >= f->stop_tsc && f->clock.tsc != PT_CLOCK_UNKNOWN)
		return PT_SEGMENT_TIME;
	if (segment->taken ? segment->touched != f->touched || !same_codes(f, segment)
			   : !pt_segment_fits(f, segment))
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
