/* segment_begin.c - see segment_decoder.h: where segments begin, and with what flow. */
#include "decode/flow/segment_decoder.h"

#include <stdlib.h>

/* Packets of a PSB+, at most: TSC, TMA, CBR, MODE.Exec, MODE.TSX, PIP, VMCS, FUP, PADs, MTCs. */
#define PSB_PACKETS_MAX 64

/* A segment begins at `at`, after the decoder's last one, with the flow as it is. False: no memory. */
static bool begin_segment(struct pt_segment_decoder *d, const uint8_t *at, bool after_psb)
{
	struct pt_segment *s = calloc(1, sizeof *s), *last = d->segment;
	const struct pt_flow *f = d->flow;
	const struct pt_code *user = f->user, *kernel = f->kernel;

	if (!s)
		return false;
	if (last)
		last->next = s;
	d->segment = s;
	d->asked = d->lost = d->user_entered = d->begun = d->cyc_run = false;
	s->graph = &d->graph;
	s->begin_at = at;
	s->after_psb = after_psb;
	s->in_kernel = kernel && f->at.code == kernel;
	s->user = user ? user->space : NULL;
	s->kernel = kernel ? kernel->space : NULL;
	s->user_generation = user ? user->generation : 0;
	s->kernel_generation = kernel ? kernel->generation : 0;
	s->user_code = user ? user->id : UINT32_MAX;
	s->kernel_code = kernel ? kernel->id : UINT32_MAX;
	s->user_uid = user ? user->uid : UINT32_MAX;
	s->kernel_uid = kernel ? kernel->uid : UINT32_MAX;
	s->begin = *f;
	return true;
}

/* ---- After a PSB+ ----------------------------------------------------------------------------------- */

const uint8_t *pt_segment_after_psb(const uint8_t *psb, const uint8_t *end, struct pt_segment_psb *ret)
{
	struct pt_packet k;

	*ret = (struct pt_segment_psb){.cr3 = 0};
	for (int i = 0; i < PSB_PACKETS_MAX; i++) {
		int n = pt_packet_decode(psb, end, 0, &k);

		if (n <= 0 || k.type == PT_OVF)
			return NULL;
		psb += n;
		if (k.type == PT_PIP)
			*ret = (struct pt_segment_psb){.cr3 = k.a, .in_guest = k.b};
		if (k.type == PT_PSBEND)
			return psb;
	}
	return NULL;
}

/* A flow that has seen no packet yet. NULL: no memory. */
static struct pt_flow *create_flow(struct pt_segment_decoder *d)
{
	struct pt_flow *f;
	const struct pt_flow_config config = {.graph = &d->graph,
					      .clock = d->task->clock,
					      .env = &pt_segment_env,
					      .env_arg = d,
					      .output = &pt_segment_output,
					      .output_arg = d,
					      .errata = d->task->errata,
					      .snapshot = d->task->snapshot,
					      .no_tnt = d->config.no_tnt};

	f = pt_flow_create(&config);
	if (!f)
		return NULL;
	f->cyc_binding.samples = PT_CYC_BINDING_SAMPLES;
	f->cyc_binding.times_last = d->task->times_last;
	f->clock.has_cyc = d->task->has_cyc;
	return f;
}

/* The flow has seen a PSB+, which ends before `at`, and nothing else: a segment begins. False: it does not. */
static bool begin_after_psb(struct pt_segment_decoder *d, const uint8_t *at)
{
	struct pt_flow *f = d->flow;

	if (d->ended || f->state != PT_FLOW_RUNNING || !f->slice.open || f->graph->full ||
	    f->undelivered.count)
		return false;
	f->psb.alone = false;
	f->timing.now_tsc = f->clock.tsc;
	f->timing.tnt_tsc = FLOW_TNT_UNSEEN;
	return begin_segment(d, at, true);
}

/* kernel_unseen: before it. */
static void feed_psb(struct pt_segment_decoder *d, const uint8_t *psb, const uint8_t *begin,
		     bool kernel_unseen, const uint8_t **at)
{
	const struct pt_segment_task *task = d->task;
	struct pt_flow *f = d->flow;

	d->asked = true; /* nothing is logged */
	f->stack_state.kernel_unseen = kernel_unseen;
	pt_flow_feed(f, psb, begin, task->aux_offset + (uint64_t)(psb - task->psb), false, at);
	f->stack.user.unseen = f->host_stack.user.unseen = true;
}

/* ---- At a PSB in the host --------------------------------------------------------------------------- */

/*
 * At a PSB+ in the host, which ends before `begin`: the flow is there then as a flow that came there running,
 * in the code of user and the task's kernel, and a segment begins. False: it does not.
 */
static bool begin_at_psb(struct pt_segment_decoder *d, const uint8_t *psb, const uint8_t *begin,
			 struct img_space *user_space)
{
	const struct pt_segment_task *task = d->task;
	struct pt_code *user = pt_segment_code_of(d, user_space),
		       *kernel = pt_segment_code_of(d, task->kernel);
	const uint8_t *at = psb;
	bool kernel_unseen = d->flow ? d->flow->stack_state.kernel_unseen : task->kernel_unseen;

	pt_flow_destroy(d->flow);
	d->flow = create_flow(d);
	if (!d->flow)
		return false;
	if (kernel)
		kernel->switch_ip = task->switch_ip;
	pt_flow_set_code(d->flow, user, kernel);
	feed_psb(d, psb, begin, kernel_unseen, &at);
	return at == begin && begin_after_psb(d, begin);
}

/* The next PSB in the host from `from` on where a segment can begin, which begins then. Returns after its
 * PSB+; NULL: there is none. */
static const uint8_t *begin_at_next_psb(struct pt_segment_decoder *d, const uint8_t *from)
{
	const struct pt_segment_task *task = d->task;

	for (const uint8_t *psb = from; !d->ended && (psb = pt_find_psb(psb, task->end)); psb++) {
		struct pt_segment_psb says;
		const uint8_t *begin = pt_segment_after_psb(psb, task->end, &says);
		struct img_space *user = says.cr3 && task->world
					     ? pt_segment_process_space(&task->world->machines[0], says.cr3)
					     : NULL;

		if (begin && !says.in_guest && begin_at_psb(d, psb, begin, user ? user : task->user))
			return begin;
	}
	return NULL;
}

/* ---- At a PSB in a guest ---------------------------------------------------------------------------- */

/* A PSB+ that is being passed in a guest, and what was before it. */
struct passed_psb {
	const uint8_t *psb; /* NULL: none */
	struct pt_clock clock;
	uint64_t vmcs;
	bool kernel_unseen;
};

/* A new flow, which has seen the PSB+ and nothing else. False: it is not in a guest. */
static bool feed_guest_psb(struct pt_segment_decoder *d, const struct passed_psb *passed,
			   const uint8_t *begin)
{
	const uint8_t *at = passed->psb;

	d->flow = create_flow(d);
	if (!d->flow)
		return false;
	d->flow->clock = passed->clock;
	d->flow->side.vmcs = passed->vmcs;
	feed_psb(d, passed->psb, begin, passed->kernel_unseen, &at);
	return at == begin && d->flow->side.nr;
}

/*
 * The flow has passed a PSB+ in a guest, which ends before `begin`. What it was before, which may well be
 * wrong, matters no more: a segment begins with a new flow. False: it does not.
 */
static bool begin_at_guest_psb(struct pt_segment_decoder *d, const struct passed_psb *passed,
			       const uint8_t *begin)
{
	struct pt_flow *before = d->flow;

	if (feed_guest_psb(d, passed, begin) && begin_after_psb(d, begin)) {
		pt_flow_destroy(before);
		return true;
	}
	pt_flow_destroy(d->flow);
	d->flow = before;
	return false;
}

/* ---- Anywhere --------------------------------------------------------------------------------------- */

const uint8_t *pt_segment_begin_next(struct pt_segment_decoder *d, const uint8_t *at)
{
	const struct pt_segment_task *task = d->task;
	struct pt_flow *f = d->flow;
	const uint8_t *asks = task->psb + (d->asked_offset - task->aux_offset);
	struct passed_psb passed = {.psb = NULL};
	bool at_psbend = false;

	f->stop_tsc = UINT64_MAX;
	while (!d->lost && (at <= asks || !pt_segment_may_begin(f) ||
			    (!d->segment && f->pips.insns == f->counts.insns))) {
		const uint8_t *before;
		struct pt_packet k;
		int n;

		if (f->state == PT_FLOW_UNSYNCED && !f->psb.open)
			at = pt_find_psb(at, task->end);
		n = at ? pt_packet_decode(at, task->end, f->packet.bip_bytes, &k) : 0;
		if (n <= 0)
			return NULL;
		before = at;
		if (k.type == PT_PSB)
			passed =
			    (struct passed_psb){at, f->clock, f->side.vmcs, f->stack_state.kernel_unseen};
		at_psbend = k.type == PT_PSBEND;
		pt_flow_feed(f, at, at + n, task->aux_offset + (uint64_t)(at - task->psb), false, &at);
		if (d->ended || f->graph->full || f->graph->cache_full || at == before)
			return NULL;
	}
	if (d->lost)
		return begin_at_next_psb(d, at);
	if (at_psbend && passed.psb && f->side.nr && begin_at_guest_psb(d, &passed, at))
		return at;
	return begin_segment(d, at, false) ? at : NULL;
}

/* ---- A task ----------------------------------------------------------------------------------------- */

/*
 * The guest's code is not known at the PSB: nor was it before, and the flow has been in PT_FLOW_NO_IMAGE for a
 * while, without an error since. What comes after it is the first segment. Returns where; NULL: there is none.
 */
static const uint8_t *begin_after_guest(struct pt_segment_decoder *d)
{
	const struct pt_segment_task *task = d->task;
	struct pt_flow *f = d->flow;

	if (f->state == PT_FLOW_RUNNING)
		pt_flow_skip_code(f);
	f->stack_state.stale_hw = f->stack_state.skipped = false;
	f->stack_state.kernel_unseen = task->kernel_unseen;
	d->asked_offset = task->aux_offset;
	d->lost = false;
	return f->state == PT_FLOW_NO_IMAGE ? pt_segment_begin_next(d, task->begin) : NULL;
}

/* The task's PSB+ is in a guest. Returns where the first segment begins. NULL: there is none. */
static const uint8_t *begin_in_guest(struct pt_segment_decoder *d)
{
	const struct pt_segment_task *task = d->task;
	const struct passed_psb psb = {task->psb, task->now, task->vmcs, task->kernel_unseen};

	if (!feed_guest_psb(d, &psb, task->begin))
		return NULL;
	if (d->flow->state == PT_FLOW_RUNNING && pt_flow_has_code(d->flow, pt_flow_here(d->flow)))
		return begin_after_psb(d, task->begin) ? task->begin : NULL;
	return begin_after_guest(d);
}

/*
 * Tracing is off at the PSB, as it is where the kernel switches it on for a thread: TraceEn is set, a PSB+
 * comes, then a TIP.PGE. The first segment begins after that. Returns where; NULL: there is none.
 */
static const uint8_t *begin_when_enabled(struct pt_segment_decoder *d)
{
	const struct pt_segment_task *task = d->task;

	if (!d->flow || d->ended || d->flow->state != PT_FLOW_DISABLED)
		return NULL;
	d->asked_offset = task->aux_offset;
	d->lost = false;
	return pt_segment_begin_next(d, task->begin);
}

const uint8_t *pt_segment_begin_task(struct pt_segment_decoder *d)
{
	const struct pt_segment_task *task = d->task;

	if (task->in_guest)
		return begin_in_guest(d);
	return begin_at_psb(d, task->psb, task->begin, task->user) ? task->begin : begin_when_enabled(d);
}
