/* segment_fits.c - is the flow what a segment assumes? See segment_log.h. */
#include "decode/flow/segment_log.h"
#include "decode/flow/vm_transition.h"

void pt_segment_assume_code(struct pt_segment_task *task, const struct pt_code *user,
			    const struct pt_code *kernel)
{
	task->user = user ? user->space : NULL;
	task->kernel = kernel ? kernel->space : NULL;
	task->switch_ip = kernel ? kernel->switch_ip : 0;
}

void pt_segment_assume(struct pt_segment_task *task, const struct pt_flow *f)
{
	pt_segment_assume_code(task, f->user, f->kernel);
	task->has_cyc = f->clock.has_cyc;
	task->times_last = f->cyc_binding.times_last;
	task->clock = f->clock.config;
	task->errata = f->errata;
	task->snapshot = f->snapshot;
	task->now = f->clock;
	task->vmcs = f->side.vmcs;
	task->kernel_unseen = f->stack_state.kernel_unseen;
}

/* ---- Code and clock --------------------------------------------------------------------------------- */

static bool is_code(const struct pt_code *code, const struct img_space *space, uint32_t generation)
{
	return code
		   ? code->space == space && space->generation == generation && code->generation == generation
		   : !space;
}

bool pt_segment_same_kernel(const struct pt_flow *f, const struct pt_segment *s)
{
	return is_code(f->kernel, s->kernel, s->kernel_generation);
}

bool pt_segment_same_user(const struct pt_flow *f, const struct pt_segment *s)
{
	return is_code(f->user, s->user, s->user_generation);
}

static bool same_codes(const struct pt_flow *f, const struct pt_segment *s)
{
	return pt_segment_same_kernel(f, s) && (s->in_kernel || pt_segment_same_user(f, s));
}

/* The clocks are the same, but for the sum of cycles. */
static bool same_clock(const struct pt_clock *a, const struct pt_clock *b)
{
	return a->tsc == b->tsc && a->anchor_tsc == b->anchor_tsc && a->limit_tsc == b->limit_tsc &&
	       a->has_cyc == b->has_cyc && a->cyc - a->anchor_cyc == b->cyc - b->anchor_cyc &&
	       a->have_ctc == b->have_ctc &&
	       (!a->have_ctc ||
		(a->ctc_tsc == b->ctc_tsc && a->ctc_base == b->ctc_base && a->ctc == b->ctc)) &&
	       a->tsc_per_cyc == b->tsc_per_cyc && a->cbr == b->cbr && a->loose == b->loose;
}

/* What CYC packets time. (When the run began counts with times_last only: the next one may get that time. The
 * time before, timing.before_tsc, is of no use any more when a run has begun.) */
static bool same_binding(const struct pt_flow *f, const struct pt_flow *b)
{
	if (!f->clock.has_cyc)
		return true;
	return f->cyc_binding.samples >= PT_CYC_BINDING_SAMPLES &&
	       f->cyc_binding.times_last == b->cyc_binding.times_last &&
	       (!f->cyc_binding.times_last || f->timing.now_tsc == b->timing.now_tsc);
}

/* ---- What waits ------------------------------------------------------------------------------------- */

/* For a packet. */
static bool nothing_waits(const struct pt_flow *f)
{
	return !f->undelivered.count && !f->tnt.n && !f->fup.pending && !f->fup.binds && !f->fup.tsx_abort &&
	       !f->held.name && !f->evds && !f->packet.bip_bytes && !f->overflow.pending &&
	       !f->overflow.psb_fup && !f->psb.open && !f->psb.alone && f->psb.ever && !f->psb.no_time &&
	       !f->side.changes && !f->side.concealed && !f->tsc.waits && !f->tsc.tma_waits &&
	       !f->tsc.ignored;
}

bool pt_segment_may_begin(const struct pt_flow *f)
{
	/* (Who is asked whose user space comes may know only after the flow has arrived there.) */
	return f->state == PT_FLOW_RUNNING && f->slice.open && f->at.position &&
	       (f->at.code == f->user || f->at.code == f->kernel) && nothing_waits(f) && !f->graph->full;
}

/* After a PSB: nor was anything lost of what the return stack is a model of, but for what the kernel did before
 * that was not seen: as the segment assumes it. */
static bool is_after_psb(const struct pt_flow *f, const struct pt_flow *b)
{
	const struct flow_stack_state *s = &f->stack_state;

	return !f->path.len && !f->run.repeats && !f->timing.clock_moved && !f->timing.cyc_fresh &&
	       f->stack.bottom == f->stack.top && !s->unsure && !s->stale_hw && !s->skipped &&
	       s->kernel_unseen == b->stack_state.kernel_unseen && !s->guest_unseen && !s->guest_lost &&
	       !s->has_floor && (!f->pips.count || f->pips.insns != f->counts.insns);
}

/* ---- Elsewhere: all of the state -------------------------------------------------------------------- */

static bool same_place(const struct pt_graph *fg, uint32_t f, const struct pt_graph *bg, uint32_t b)
{
	const struct pt_where *fw = &fg->where[f], *bw = &bg->where[b];

	return !f == !b && (!f || (fw->ip == bw->ip && fw->mode == bw->mode &&
				   fg->codes[fw->code]->space == bg->codes[bw->code]->space));
}

/* Where user space entered the kernel. */
static bool same_user_entry(const struct flow_return_stack *f, const struct flow_return_stack *b)
{
	if (b->user.unseen)
		return true;
	return f->user.known == b->user.known &&
	       (!f->user.known || (f->user.top - f->top == b->user.top - b->top &&
				   f->user.bottom - f->top == b->user.bottom - b->top));
}

static bool same_stack(const struct pt_graph *fg, const struct flow_return_stack *f,
		       const struct pt_graph *bg, const struct flow_return_stack *b)
{
	uint32_t n = f->top - f->bottom;

	if (n != b->top - b->bottom || !same_user_entry(f, b))
		return false;
	for (uint32_t i = 1; i <= n; i++)
		if (!same_place(fg, f->entries[(f->top - i) % PT_STACK], bg,
				b->entries[(b->top - i) % PT_STACK]))
			return false;
	return true;
}

static bool same_stacks(const struct pt_flow *f, const struct pt_segment *segment)
{
	const struct pt_flow *b = &segment->begin;
	const struct flow_stack_state *fs = &f->stack_state, *bs = &b->stack_state;

	return fs->unsure == bs->unsure && fs->stale_hw == bs->stale_hw && fs->skipped == bs->skipped &&
	       fs->kernel_unseen == bs->kernel_unseen && fs->guest_unseen == bs->guest_unseen &&
	       fs->guest_lost == bs->guest_lost && fs->has_floor == bs->has_floor &&
	       (!(fs->has_floor || fs->guest_lost) ||
		fs->guest_floor - f->stack.top == bs->guest_floor - b->stack.top) &&
	       same_stack(f->graph, &f->stack, segment->graph, &b->stack) &&
	       (!f->side.nr || same_stack(f->graph, &f->host_stack, segment->graph, &b->host_stack));
}

/* The code has the same number in the flow. */
static bool is_of_segment(const struct segment_taking *t, uint32_t uid)
{
	const struct pt_segment *s = t->segment;

	return uid == s->kernel_uid || (uid == s->user_uid && pt_segment_same_user(t->f, s));
}

/* The branches that are gathered, and the run that is held. */
static bool same_path(const struct segment_taking *t)
{
	const struct pt_flow *f = t->f, *b = &t->segment->begin;
	const struct pt_graph *g = t->segment->graph;

	if (f->path.len != b->path.len || f->run.repeats != b->run.repeats)
		return false;
	for (uint32_t i = 0; i < b->path.len; i++)
		if (!is_of_segment(t, g->edges[b->path.edges[i]].code) ||
		    pt_segment_edge(t, b->path.edges[i]) != f->path.edges[i])
			return false;
	return !b->run.repeats || (is_of_segment(t, g->codes[g->paths[b->run.path].code]->uid) &&
				   pt_segment_path(t, b->run.path) == f->run.path);
}

static bool same_timing(const struct pt_flow *f, const struct pt_segment *segment)
{
	const struct pt_flow *b = &segment->begin;

	return f->timing.clock_moved == b->timing.clock_moved && f->timing.cyc_fresh == b->timing.cyc_fresh &&
	       (b->timing.tnt_tsc == FLOW_TNT_UNSEEN || f->timing.tnt_tsc == b->timing.tnt_tsc);
}

static bool same_pips(const struct pt_flow *f, const struct pt_flow *b)
{
	bool fs = f->pips.insns == f->counts.insns, bs = b->pips.insns == b->counts.insns;

	return fs == bs && (!fs || f->pips.count == b->pips.count);
}

/* The last packet was a MODE.Exec. */
static bool same_mode_exec(const struct pt_flow *f, const struct pt_flow *b)
{
	return (f->packet.mode_exec == f->counts.packets) == (b->packet.mode_exec == b->counts.packets);
}

static bool same_state(const struct segment_taking *t)
{
	const struct pt_flow *f = t->f, *b = &t->segment->begin;

	return same_pips(f, b) && same_mode_exec(f, b) && same_timing(f, t->segment) &&
	       same_stacks(f, t->segment) && same_path(t);
}

/* ---- All of it -------------------------------------------------------------------------------------- */

static bool same_packet_state(const struct pt_flow *f, const struct pt_flow *b)
{
	return f->packet.last_ip == b->packet.last_ip && f->packet.exec == b->packet.exec &&
	       f->side.nr == b->side.nr && f->side.cr3 == b->side.cr3 &&
	       (b->side.vmcs == PT_VMCS_UNKNOWN || f->side.vmcs == b->side.vmcs) &&
	       f->cbr.ratio == b->cbr.ratio && f->cbr.reported == b->cbr.reported;
}

bool pt_segment_fits(const struct segment_taking *t)
{
	const struct pt_segment *segment = t->segment;
	const struct pt_flow *f = t->f, *b = &segment->begin;
	const struct pt_where *w = &segment->graph->where[b->at.position];

	return pt_segment_may_begin(f) && f->detail == PT_FLOW_FOLLOW && !f->graph->cache_full &&
	       same_codes(f, segment) && f->at.mode == b->at.mode && f->at.next_mode == b->at.next_mode &&
	       pt_flow_here(f) == w->ip &&
	       (f->at.code == f->kernel && f->kernel) == (b->at.code == b->kernel && b->kernel) &&
	       f->path.start_ip == b->path.start_ip && same_clock(&f->clock, &b->clock) &&
	       f->run.tsc == b->run.tsc &&
	       f->run.timing == pt_segment_timing(f->timing.tnt_tsc, b->run.timing, b->run.tsc) &&
	       same_binding(f, b) && same_packet_state(f, b) &&
	       (segment->after_psb ? is_after_psb(f, b) : same_state(t));
}
