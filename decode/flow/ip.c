/* ip.c - the packets that carry an IP: TIP, TIP.PGE, TIP.PGD, FUP; see internal.h. */
#include "decode/flow/internal.h"

/* ---- What they share -------------------------------------------------------------------------------- */

/* What comes is the first to happen at the clock's time, or later. */
static void end_run_if_clock_moved(struct pt_flow *f)
{
	if (f->timing.clock_moved)
		pt_flow_end_run(f, 0);
}

/* The TIP's branch has been taken: it is the one that is timed, and TNT bits that waited for it go on. */
static bool after_tip(struct pt_flow *f)
{
	if (f->timing.clock_moved)
		pt_flow_end_run_before_last(f, true);
	return !f->tnt.n || pt_flow_run_tnt(f);
}

/* An asynchronous event leads from the FUP's IP to ip (0: not seen). ends: tracing stops with it. */
static bool take_async(struct pt_flow *f, uint64_t ip, bool ends)
{
	enum ptr_kind kind = f->fup.tsx_abort ? PTR_TX_ABORT : PTR_ASYNC;
	uint32_t edge =
	    ends ? pt_flow_end_edge(f, f->fup.ip, ip, kind) : pt_flow_edge(f, f->fup.ip, ip, kind);

	f->fup.pending = f->fup.tsx_abort = false;
	f->pips.count = 0;
	if (!edge)
		return pt_flow_desync(f, PT_FLOW_FULL, ip, "");
	pt_flow_add_edge(f, edge);
	return true;
}

/* With TNT disabled: what is executed between here and the next IP packet is not known. */
static void pass_over(struct pt_flow *f)
{
	pt_flow_end_path_at(f, pt_flow_here(f));
	pt_flow_end_slice(f);
	pt_flow_stop_recording(f);
	f->at.position = 0;
	f->path.len = 0;
	f->stack.bottom = f->stack.top;
	f->state = PT_FLOW_DISABLED;
}

/* ---- TIP -------------------------------------------------------------------------------------------- */

/* A hypervisor whose VM entry has failed returns to its caller. When the TIP leads elsewhere, it is the
 * guest's: the entry has not failed, but is concealed (the VMX control "Conceal VM entries from Intel PT").
 * False only where that is certain. */
static bool may_return(const struct pt_flow *f, uint64_t ip)
{
	const struct pt_graph *g = f->graph;

	return g->positions[f->at.position].ind.prefix.rise || f->stack.top == f->stack.bottom ||
	       f->stack_state.unsure || g->where[f->stack.entries[(f->stack.top - 1) % PT_STACK]].ip == ip;
}

/* Looks up the branch's target, and fills its slot of the jump cache. */
static bool find_target(struct pt_flow *f, uint64_t ip, struct pt_jump *j, bool *ret_backward)
{
	uint32_t from = f->at.position, edge;
	const struct pt_block *last = pt_graph_last_block(f->graph, from);
	const struct pt_code *code = f->at.code;
	const uint64_t from_ip = pt_block_term_ip(last);
	bool far = f->at.decision == PT_D_FAR, same_mode = f->at.mode == f->at.next_mode;

	edge = pt_flow_edge(f, from_ip, ip, pt_kind_of(last->cls));
	if (!edge)
		return pt_flow_desync(f, PT_FLOW_FULL, ip, "");
	*ret_backward = ip <= from_ip;
	f->path.edges[f->path.len++] = edge;
	if (!pt_flow_arrive(f, ip))
		return false;
	/* A near branch leads to another code or mode only where the code is not what ran, or a packet is
	 * damaged. */
	if (far || f->at.code != code || !same_mode)
		return true;
	f->at.decision = pt_graph_decision(f->graph, f->at.position);
	*j = (struct pt_jump){.to = ip,
			      .position = from,
			      .edge = edge,
			      .next = f->at.position,
			      .decision = (uint8_t)f->at.decision,
			      .backward = *ret_backward};
	return true;
}

/* The branch of the flow's position goes to ip: where it went last, where it went before, or where it never
 * went. */
static inline bool take_to(struct pt_flow *f, uint64_t ip, bool *ret_backward)
{
	unsigned d = f->at.decision;
	bool same_mode = f->at.mode == f->at.next_mode;
	union pt_position *p = &f->graph->positions[f->at.position];
	struct pt_edge_list *edge_list = &f->graph->edge_lists[f->at.position];
	struct pt_jump *j;

	if (d == PT_D_IND && p->ind.ip == ip && same_mode) {
		f->path.edges[f->path.len++] = edge_list->edges[PT_BRANCH_EDGE];
		f->at.position = p->ind.next;
		f->at.decision = p->ind.decision;
		*ret_backward = p->ind.backward;
		return true;
	}
	j = pt_flow_jump_slot(f->graph, f->at.position, ip);
	if (j->position == f->at.position && j->to == ip && d != PT_D_FAR && same_mode) {
		f->path.edges[f->path.len++] = j->edge;
		f->at.position = j->next;
		f->at.decision = j->decision;
		*ret_backward = j->backward;
	} else if (!find_target(f, ip, j, ret_backward)) {
		return false;
	}
	if (d == PT_D_IND && f->path.len && same_mode) {
		p->ind.ip = ip;
		edge_list->edges[PT_BRANCH_EDGE] = f->path.edges[f->path.len - 1];
		p->ind.next = f->at.position;
		p->ind.backward = *ret_backward;
		p->ind.decision = (uint8_t)f->at.decision;
	}
	return true;
}

/* The next branch of the code that needs a packet goes to ip. */
static inline bool branch_to(struct pt_flow *f, uint64_t ip)
{
	uint64_t failed_entry = 0;
	const struct pt_block *last;
	unsigned d;
	bool backward = false;

	for (;;) {
		d = pt_flow_reach_decision(f);
		if (d == PT_D_DEAD)
			return f->state == PT_FLOW_NO_IMAGE && pt_flow_leave_no_image(f, ip);
		last = pt_graph_last_block(f->graph, f->at.position);
		if (d != PT_D_FAR || last->cls != INSN_VMENTRY)
			break;
		/* Without a PIP it was no VM entry: it failed and fell through (SDM, VMLAUNCH: VMfail). */
		failed_entry = pt_block_term_ip(last);
		pt_flow_take_prefix(f);
		if (!pt_flow_fall_through(f, pt_block_next_ip(last)))
			return false;
	}
	if (failed_entry && d == PT_D_RET && !may_return(f, ip))
		return pt_flow_desync(f, PT_FLOW_MISMATCH, failed_entry,
				      "a VM entry without a PIP that has not failed: its guest is concealed");
	if (d == PT_D_JCC && f->no_tnt) {
		pass_over(f);
		return pt_flow_on_tip_pge(f, ip);
	}
	if (d == PT_D_JCC)
		return pt_flow_desync(f, PT_FLOW_MISMATCH, pt_block_term_ip(last),
				      "a TIP packet where the code has a conditional branch");
	pt_flow_take_prefix(f);
	end_run_if_clock_moved(f);
	if (d == PT_D_FAR)
		pt_flow_stop_recording(f);
	if (d == PT_D_RET)
		pt_flow_stack_return_to(f, ip);
	if (d == PT_D_IND && f->graph->positions[f->at.position].ind.calls)
		pt_flow_stack_push(f, f->graph->edge_lists[f->at.position].push);
	if (!take_to(f, ip, &backward))
		return false;
	if (f->path.len >= PATH_BREAK_EDGES && (backward || f->path.len >= PATH_FULL_EDGES))
		pt_flow_end_path(f);
	return after_tip(f);
}

bool pt_flow_on_tip(struct pt_flow *f, uint64_t ip)
{
	if (f->overflow.pending && f->errata & PT_SKD010 && ip) /* the FUP was dropped */
		return pt_flow_sync_at(f, ip);
	if (f->state < PT_FLOW_NO_IMAGE)
		return pt_flow_desync(f, PT_FLOW_MISMATCH, ip, "a TIP packet while tracing is disabled");
	if (!ip)
		return pt_flow_desync(f, PT_FLOW_BAD_PACKET, 0, "a TIP packet without an IP");
	if (f->side.changes)
		return pt_flow_vm_transition(f, ip, true) && after_tip(f);
	if (f->state == PT_FLOW_NO_IMAGE) {
		f->fup.pending = false;
		return pt_flow_leave_no_image(f, ip);
	}
	if (f->at.code == f->kernel && f->tnt.n == 0)
		pt_flow_ask_user(f, ip);
	if (!f->fup.pending)
		return branch_to(f, ip);
	end_run_if_clock_moved(f);
	return take_async(f, ip, false) && pt_flow_arrive(f, ip) && after_tip(f);
}

/* ---- TIP.PGD ---------------------------------------------------------------------------------------- */

/* Tracing has stopped, and it is not known where. */
static bool ended_somewhere(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message)
{
	pt_flow_end_with_error(f, kind, ip, message);
	f->state = PT_FLOW_DISABLED;
	return false;
}

/* SKL014: a direct branch to ip may have been the end, though the TIP.PGD has no IP. */
static bool leaves_filter(struct pt_flow *f, uint64_t ip)
{
	return f->errata & PT_SKL014 && f->env->filtered && f->env->filtered(f->env_arg, f, ip);
}

/* The branch with which tracing stopped. */
struct trace_end {
	uint64_t to; /* TIP.PGD's IP, 0 none */
	uint64_t from;
	enum ptr_kind kind;
	uint32_t pips;	/* PIP packets that have come, of which the MOV to CR3 is still to be found */
	uint32_t insns; /* of the block that it is in, up to it */
};

/* Tracing has stopped at the first MOV to CR3 in b that no PIP packet was seen of: had it gone on, there
 * would be one. Only a kernel can execute it. */
static bool ends_at_mov_cr3(struct pt_flow *f, const struct pt_block *b, struct trace_end *end)
{
	uint32_t insns = 0;
	uint64_t ip;

	if (end->to || !b->mov_cr3)
		return false;
	for (; (ip = pt_graph_find(f->graph, b, INSN_MOV_CR3, &insns)) != 0; end->pips--)
		if (end->pips == 0)
			break;
	if (ip)
		*end = (struct trace_end){.from = ip, .kind = PTR_TRACE_END, .insns = insns};
	return ip;
}

/* Tracing has stopped in b: fills *end. */
static bool ends_in(struct pt_flow *f, const struct pt_block *b, struct trace_end *end)
{
	if (ends_at_mov_cr3(f, b, end))
		return true;
	end->from = pt_block_term_ip(b);
	end->kind = pt_kind_of(b->cls);
	end->insns = b->insns;
	switch (b->cls) {
	case INSN_JMP:
	case INSN_CALL:
		if (end->to ? pt_block_target(b) != end->to : !leaves_filter(f, pt_block_target(b)))
			return false;
		end->to = pt_block_target(b);
		return true;
	case INSN_OTHER: return false;
	default: return true;
	}
}

/* No branch was found with which tracing stopped. b: where that ended; NULL: the graph is full. */
static bool end_not_found(struct pt_flow *f, const struct trace_end *end, const struct pt_block *b)
{
	if (f->graph->full)
		return pt_flow_desync(f, PT_FLOW_FULL, end->to, "");
	if (f->state != PT_FLOW_RUNNING || !b)
		return false;
	if (!b->dead)
		return ended_somewhere(f, PT_FLOW_MISMATCH, pt_block_term_ip(b),
				       PT_FLOW_ENDLESS_LOOP_MESSAGE);
	if (b->why != PT_DEAD_BAD_INSN)
		pt_flow_pass_to_dead(f, b);
	return ended_somewhere(f, PT_FLOW_NO_CODE, pt_block_term_ip(b),
			       "the container has no code for the branch that ended tracing");
}

/*
 * Finds the branch with which tracing stopped (SDM, "Packet Generation under Different Enable Conditions").
 * With an IP it left an IP filter's range, and the IP is its target. Without, it is the next one that the
 * code has and that is no direct jump or call: a far one that leaves what is traced; a conditional branch,
 * taken, or a compressed return that leaves the range; or a MOV to CR3. First looks, for code may become
 * known meanwhile; then takes what leads there. False after an error was reported.
 */
static bool find_end(struct pt_flow *f, struct trace_end *end)
{
	const struct trace_end begin = *end;
	struct pt_block *b = pt_flow_block_here(f);
	bool found = false;

	for (int i = 0; b && !found && i < 1 << 16; i++) {
		if (b->dead) {
			if (b->why != PT_DEAD_NO_CODE || !pt_flow_ask_missing(f, pt_block_term_ip(b)))
				break;
			b = pt_flow_block_here(f);
			*end = begin;
			continue;
		}
		found = ends_in(f, b, end);
		if (!found)
			b = pt_flow_direct_next(f, b);
	}
	if (!found)
		return end_not_found(f, end, b);
	if (b->cls == INSN_JCC && end->from == pt_block_term_ip(b)) {
		if (f->no_tnt) {
			pass_over(f);
			return false;
		}
		if (end->to && pt_block_target(b) != end->to)
			return ended_somewhere(f, PT_FLOW_MISMATCH, end->to,
					       "a TIP.PGD packet where the code has no branch to its IP");
	}
	pt_flow_pass_blocks(f, b);
	f->counts.insns += end->insns;
	if (end->kind == PTR_RET && f->stack.top != f->stack.bottom)
		f->stack.top--;
	if (end->kind == PTR_CALL_IND)
		pt_flow_stack_push(f,
				   pt_graph_position(f->graph, f->at.code, pt_block_next_ip(b), f->at.mode));
	return true;
}

/* Takes the branch with which tracing stopped. */
static bool take_end(struct pt_flow *f, struct trace_end *end)
{
	uint32_t edge;

	if (f->fup.pending && f->errata & PT_SKD022) {
		struct pt_block *b = pt_graph_block(f->graph, f->at.code, f->fup.ip, f->at.mode);

		f->fup.pending = !b || b->insns != 1 || b->cls != INSN_VMENTRY;
	}
	if (f->fup.pending) {
		end_run_if_clock_moved(f);
		return take_async(f, end->to, true);
	}
	end->pips = f->pips.insns == f->counts.insns ? f->pips.count : 0;
	if (!find_end(f, end))
		return false;
	edge = pt_flow_end_edge(f, end->from, end->to, end->kind);
	if (!edge)
		return pt_flow_desync(f, PT_FLOW_FULL, end->to, "");
	pt_flow_add_edge(f, edge);
	return true;
}

static bool pgd_not_running(struct pt_flow *f, uint64_t ip)
{
	if (!ip)
		f->side.cr3 = 0; /* as in pt_flow_on_tip_pgd() */
	if (f->state == PT_FLOW_NO_IMAGE)
		f->state = PT_FLOW_DISABLED;
	f->fup.pending = false;
	/* When it was disabled already, this is a repetition: nothing was executed between the two. */
	return f->state == PT_FLOW_DISABLED ||
	       pt_flow_desync(f, PT_FLOW_MISMATCH, ip, "a TIP.PGD packet before a PSB");
}

/*
 * Tracing has begun at ip, and ended there: nothing was executed. A branch that comes back to ip and leaves
 * what is traced is none, for then ip had been no place to begin at. Seen where a thread returns to user space
 * in a TraceStop range: TIP.PGE and TIP.PGD with its IP, TraceStop.
 */
static bool ends_where_it_began(const struct pt_flow *f, uint64_t ip)
{
	const struct pt_edge *begin = f->path.len == 1 ? &f->graph->edges[f->path.edges[0]] : NULL;

	return begin && begin->kind == PTR_TRACE_BEGIN && begin->to == ip && !f->tnt.n && !f->fup.pending &&
	       pt_flow_here(f) == ip;
}

bool pt_flow_on_tip_pgd(struct pt_flow *f, uint64_t ip)
{
	struct trace_end end = {.to = ip, .kind = PTR_TRACE_END};
	uint64_t from;

	f->overflow.pending = false;
	if (f->side.changes && f->state >= PT_FLOW_DISABLED)
		return pt_flow_vm_transition(f, ip, false);
	if (f->state != PT_FLOW_RUNNING)
		return pgd_not_running(f, ip);
	if (!ends_where_it_began(f, ip) && !take_end(f, &end))
		return false;
	/* Neither out of a filter's range (that has an IP), nor to where the CPU is not traced: the kernel
	 * has switched tracing off, and may load CR3 before it switches it on again without a packet that
	 * says so. */
	if (!ip && end.kind == PTR_TRACE_END)
		f->side.cr3 = 0;
	if (f->timing.clock_moved)
		pt_flow_end_run_before_last(f, true);
	from = f->path.len ? f->graph->edges[f->path.edges[f->path.len - 1]].from : 0;
	if (from)
		f->stop_ip = from;
	pt_flow_end_path(f);
	f->path.start_ip = 0;
	f->state = PT_FLOW_DISABLED;
	f->at.position = 0;
	f->tnt.n = 0;
	pt_flow_end_run(f, 0);
	if (end.kind == PTR_VMENTRY && !ip)
		pt_flow_conceal_guest(f, end.from);
	return true;
}

/* ---- TIP.PGE ---------------------------------------------------------------------------------------- */

bool pt_flow_on_tip_pge(struct pt_flow *f, uint64_t ip)
{
	uint32_t edge;

	f->overflow.pending = false;
	/* Erratum BDM70 and its like: a PSB+ before a TIP.PGE may hold a FUP although tracing is still
	 * disabled. */
	if (f->state == PT_FLOW_RUNNING && f->psb.alone)
		f->state = PT_FLOW_DISABLED;
	if (f->state == PT_FLOW_RUNNING)
		return pt_flow_desync(f, PT_FLOW_MISMATCH, pt_flow_here(f),
				      "a TIP.PGE packet while tracing is enabled");
	if (!ip)
		return pt_flow_desync(f, PT_FLOW_BAD_PACKET, 0, "a TIP.PGE packet without an IP");
	if (f->side.changes) {
		f->state = PT_FLOW_DISABLED;
		return pt_flow_vm_transition(f, ip, true) && after_tip(f);
	}
	if (f->side.concealed)
		pt_flow_reveal_host(f, ip);
	pt_flow_ask_user(f, ip);
	f->pips.count = 0;
	if (!pt_flow_begin_at(f, ip))
		return false;
	if (f->slice.open) {
		end_run_if_clock_moved(f);
	} else {
		pt_flow_begin_slice(f);
		pt_flow_time_slice(f);
	}
	f->path.start_ip = 0;
	edge = pt_graph_edge(f->graph, f->at.code, 0, ip, PTR_TRACE_BEGIN);
	if (!edge)
		return pt_flow_desync(f, PT_FLOW_FULL, ip, "");
	pt_flow_add_edge(f, edge);
	return pt_flow_arrive(f, ip) && after_tip(f);
}

/* ---- FUP -------------------------------------------------------------------------------------------- */

/* BDM64: where a transaction was aborted right after a branch, the branch's packet may have a wrong target. */
static bool pass_wrong_target(struct pt_flow *f, uint64_t ip)
{
	pt_flow_end_with_error(
	    f, PT_FLOW_MISMATCH, pt_flow_here(f),
	    "the branch to here, before a transaction's abort, has a wrong target (BDM64)");
	f->state = PT_FLOW_DISABLED;
	if (!pt_flow_sync_at(f, ip))
		return false;
	f->fup.tsx_abort = true;
	return pt_flow_on_fup(f, ip);
}

/* The code does not lead from where the flow is to the FUP's IP. */
static bool fup_elsewhere(struct pt_flow *f, uint64_t ip, const struct flow_obstacle *why)
{
	uint64_t where = why->ip ? why->ip : ip;
	bool binds = f->fup.binds;

	if (f->state != PT_FLOW_RUNNING)
		return false;
	if (f->fup.tsx_abort && f->errata & PT_BDM64 && why->kind != PT_FLOW_FULL)
		return pass_wrong_target(f, ip);
	if (f->no_tnt && why->kind == PT_FLOW_MISMATCH) {
		pass_over(f);
		if (!pt_flow_sync_at(f, ip))
			return false;
		f->fup.binds = binds;
		return pt_flow_on_fup(f, ip);
	}
	if (why->kind == PT_FLOW_NO_CODE)
		pt_flow_enter_no_image(f, why->kind, where, pt_flow_no_code_message(f->at.code, where),
				       false);
	else if (why->kind == PT_FLOW_BAD_INSN)
		pt_flow_enter_no_image(f, why->kind, why->ip, PT_FLOW_BAD_INSN_MESSAGE, true);
	else
		pt_flow_desync(f, why->kind, where, "the code does not lead to the FUP's IP");
	return f->state == PT_FLOW_NO_IMAGE && pt_flow_on_fup(f, ip);
}

/* In sync and running. A FUP that is bound to a packet says where that was; any other where an asynchronous
 * event took place, whose TIP follows. */
static bool fup_running(struct pt_flow *f, uint64_t ip)
{
	struct flow_obstacle why;
	bool bound;

	if (f->tnt.n)
		return pt_flow_desync(f, PT_FLOW_MISMATCH, pt_flow_here(f),
				      "a FUP packet where a TIP is owed");
	if (!pt_flow_walk_to(f, ip, &why))
		return fup_elsewhere(f, ip, &why);
	bound = f->fup.binds && !f->fup.tsx_abort;
	f->fup.binds = false;
	if (!bound) {
		f->fup.pending = true;
		f->fup.ip = ip;
	}
	return true;
}

bool pt_flow_on_fup(struct pt_flow *f, uint64_t ip)
{
	if (f->psb.open) {
		f->psb.ip = ip;
		f->psb.fup = ip != 0;
		return true;
	}
	if (f->state <= PT_FLOW_DATA_LOST)
		return true;
	if (f->overflow.pending) { /* tracing goes on from here */
		bool ok;

		f->overflow.pending = f->fup.binds = false;
		ok = !ip || pt_flow_sync_at(f, ip);
		f->psb.alone = ip != 0; /* erratum APL12: it may be disabled all the same */
		return ok;
	}
	if (f->overflow.psb_fup && f->overflow.insns == f->counts.insns && ip == pt_flow_here(f)) {
		f->overflow.psb_fup = f->fup.binds = false;
		return true;
	}
	if (f->state == PT_FLOW_NO_IMAGE && ip && !f->fup.binds) {
		f->fup.pending = true;
		f->fup.ip = ip;
		return true;
	}
	if (f->state != PT_FLOW_RUNNING || !ip) {
		f->fup.binds = false;
		return true; /* of a packet that may come while disabled */
	}
	return fup_running(f, ip);
}
