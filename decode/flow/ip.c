/* ip.c - the packets that carry an IP: TIP, TIP.PGE, TIP.PGD, FUP; see flow.h. */
#include "decode/flow/internal.h"

/* ---- TIP, FUP --------------------------------------------------------------------------------------- */

/* What comes is the first to happen at the clock's time, or later. */
static void time_moved(struct pt_flow *f)
{
	if (f->timing.clock_moved)
		pt_flow_cut(f, 0);
}

static bool after_tip(struct pt_flow *f)
{
	if (f->timing.clock_moved)
		pt_flow_cut_after(f, true);
	return !f->tnt.n || pt_flow_run_tnt(f);
}

static bool async_to(struct pt_flow *f, uint64_t ip)
{
	enum ptr_kind kind = f->fup.tsx_abort ? PTR_TX_ABORT : PTR_ASYNC;
	uint32_t edge = pt_flow_edge(f, f->fup.ip, ip, kind);

	f->fup.pending = f->fup.tsx_abort = false;
	f->pips.count = 0;
	if (!edge)
		return pt_flow_lose(f, PT_FLOW_FULL, ip, "");
	pt_flow_add_edge(f, edge);
	return true;
}

/* With TNT disabled: what was executed between here and the next IP packet is not known. */
static void pass_over(struct pt_flow *f)
{
	pt_flow_flush_tail(f, pt_flow_here(f));
	pt_flow_end_slice(f);
	f->recorder.memo = NULL;
	f->at.position = 0;
	f->path.len = 0;
	f->stack.bottom = f->stack.top;
	f->state = PT_FLOW_DISABLED;
}

/*
 * Whether the return at hand may go to ip. One that goes to its caller would be compressed, so one that does not goes
 * elsewhere; as code behind a VM entry that has failed does not do. "Conceal VM entries from Intel PT" has the guest's TIP there.
 */
static bool may_return(const struct pt_flow *f, uint64_t ip)
{
	const struct pt_graph *g = f->graph;

	return g->positions[f->at.position].ind.prefix.rise || f->stack.top == f->stack.bottom ||
	       f->stack_state.unsure || g->where[f->stack.entries[(f->stack.top - 1) % PT_STACK]].ip == ip;
}

bool pt_flow_on_tip(struct pt_flow *f, uint64_t ip)
{
	uint64_t failed_entry = 0;
	union pt_position *p;
	union pt_edge_list *edge_list;
	const struct pt_where *w;
	unsigned d;
	bool back;

	if (f->overflow.pending && f->errata & PT_SKD010 && ip) /* the FUP was dropped */
		return pt_flow_sync_at(f, ip);
	if (f->state < PT_FLOW_NO_IMAGE)
		return pt_flow_lose(f, PT_FLOW_MISMATCH, ip, "a TIP packet while tracing is disabled");
	if (!ip)
		return pt_flow_lose(f, PT_FLOW_BAD_PACKET, 0, "a TIP packet without an IP");
	if (f->side.changes)
		return pt_flow_change_side(f, ip) && after_tip(f);
	if (f->state == PT_FLOW_NO_IMAGE) {
		f->fup.pending = false;
		return pt_flow_see(f, ip);
	}
	if (f->at.code == f->kernel && f->tnt.n == 0)
		pt_flow_approach(f, ip);
	if (f->fup.pending) {
		time_moved(f);
		if (!async_to(f, ip) || !pt_flow_stand(f, ip))
			return false;
		return after_tip(f);
	}
	for (;;) {
		d = pt_flow_settle(f);
		if (d == PT_D_DEAD)
			return f->state == PT_FLOW_NO_IMAGE && pt_flow_see(f, ip);
		p = &f->graph->positions[f->at.position];
		edge_list = &f->graph->edge_lists[f->at.position];
		w = &f->graph->where[f->at.position];
		if (d != PT_D_FAR || w->cls != INSN_VMENTRY)
			break;
		/* Without a PIP it was no VM entry: it failed and fell through (SDM, VMLAUNCH: VMfail). */
		failed_entry = w->decision_ip;
		take(f);
		if (!pt_flow_fall_through(f, w->decision_next))
			return false;
	}
	if (failed_entry && d == PT_D_RET && !may_return(f, ip))
		return pt_flow_lose(f, PT_FLOW_MISMATCH, failed_entry,
				    "a VM entry without a PIP that has not failed: its guest is concealed");
	if (d == PT_D_JCC && f->no_tnt) {
		pass_over(f);
		return pt_flow_on_tip_pge(f, ip);
	}
	if (d == PT_D_JCC)
		return pt_flow_lose(f, PT_FLOW_MISMATCH, w->decision_ip,
				    "a TIP packet where the code has a conditional branch");
	take(f);
	time_moved(f);
	if (d == PT_D_FAR)
		f->recorder.memo = NULL;
	if (d == PT_D_RET)
		pt_flow_popped(f, ip);
	if (d == PT_D_IND && p->ind.calls)
		pt_flow_push(f, edge_list->push);
	if (d == PT_D_IND && p->ind.ip == ip && f->at.mode == f->at.next_mode) {
		f->path.edges[f->path.len++] = edge_list->edge;
		f->at.position = p->ind.next;
		f->at.decision = p->ind.decision;
		back = p->ind.backward;
	} else {
		struct pt_jump *j = jump_of(f->graph, f->at.position, ip);

		if (j->position != f->at.position || j->to != ip || d == PT_D_FAR ||
		    f->at.mode != f->at.next_mode) {
			uint32_t from = f->at.position;
			uint32_t edge = pt_flow_edge(f, w->decision_ip, ip, pt_kind_of(w->cls));

			if (!edge)
				return pt_flow_lose(f, PT_FLOW_FULL, ip, "");
			back = ip <= w->decision_ip;
			f->path.edges[f->path.len++] = edge;
			if (!pt_flow_stand(f, ip))
				return false;
			if (d != PT_D_FAR) {
				f->at.decision = pt_graph_decision(f->graph, f->at.position);
				*j = (struct pt_jump){.to = ip,
						      .position = from,
						      .edge = edge,
						      .next = f->at.position,
						      .decision = (uint8_t)f->at.decision,
						      .backward = back};
			}
		} else {
			f->path.edges[f->path.len++] = j->edge;
			f->at.position = j->next;
			f->at.decision = j->decision;
			back = j->backward;
		}
		if (d == PT_D_IND && f->path.len) {
			p->ind.ip = ip;
			edge_list->edge = f->path.edges[f->path.len - 1];
			p->ind.next = f->at.position;
			p->ind.backward = back;
			p->ind.decision = (uint8_t)f->at.decision;
		}
	}
	if (f->path.len >= CUT_EDGES && (back || f->path.len >= FULL_EDGES))
		pt_flow_flush(f);
	return after_tip(f);
}

/* The first MOV to CR3 in a block that no PIP packet was seen for: had tracing gone on, there would be one. */
static uint64_t unseen_mov_cr3(struct pt_flow *f, const struct pt_block *b, uint32_t *pips,
			       uint32_t *ret_insns)
{
	uint64_t ip = 0;

	for (*ret_insns = 0; (ip = pt_graph_find(f->graph, b, INSN_MOV_CR3, ret_insns)) != 0; --*pips)
		if (*pips == 0)
			break;
	return ip;
}

/* Tracing has stopped, nobody knows where. */
static bool ended_somewhere(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message)
{
	pt_flow_err(f, kind, ip, message);
	f->state = PT_FLOW_DISABLED;
	return false;
}

/* SKL014: with a direct branch to ip tracing may have stopped without a packet that says so. */
static bool leaves_filter(struct pt_flow *f, uint64_t ip)
{
	return f->errata & PT_SKL014 && f->env->filtered && f->env->filtered(f->env_arg, f, ip);
}

/*
 * The branch with which tracing stopped, in *ret_from and *ret_kind (SDM, "Packet Generation under Different Enable
 * Conditions"). With an IP it left an IP filter's range, and the IP is its target. Without, it is the next one that the
 * code has and that is no direct jump or call: a far one that leaves what is traced; a conditional branch, taken, or a
 * compressed return that leaves the range; or a MOV to CR3. False after an error was told.
 */
static bool find_end(struct pt_flow *f, uint64_t ip, uint64_t *ret_from, enum ptr_kind *ret_kind)
{
	struct pt_block *b = pt_graph_block(f->graph, f->at.code, pt_flow_here(f), f->at.mode);
	uint32_t pips = f->pips.insns == f->counts.insns ? f->pips.count : 0, insns;

	for (int i = 0; b && i < 1 << 16; i++) {
		if (b->dead) {
			if (b->why != PT_DEAD_NO_CODE || !pt_flow_missing(f, b->term_ip))
				break;
			b = pt_graph_block(f->graph, f->at.code, b->ip, f->at.mode);
			continue;
		}
		if (!ip && pt_flow_here(f) >> 63) { /* only a kernel can */
			*ret_from = unseen_mov_cr3(f, b, &pips, &insns);
			*ret_kind = PTR_TRACE_END;
			if (*ret_from) {
				f->counts.insns += insns;
				return true;
			}
		}
		f->counts.insns += b->insns;
		*ret_from = b->term_ip;
		*ret_kind = pt_kind_of(b->cls);
		switch (b->cls) {
		case INSN_JCC:
			if (f->no_tnt) {
				f->counts.insns -= b->insns;
				pass_over(f);
				return false;
			}
			if (ip && b->target != ip) {
				f->counts.insns -= b->insns;
				return ended_somewhere(
				    f, PT_FLOW_MISMATCH, ip,
				    "a TIP.PGD packet where the code has no branch to its IP");
			}
			return true;
		case INSN_JMP:
		case INSN_CALL:
			if (ip ? b->target == ip : leaves_filter(f, b->target))
				return true;
			pt_flow_add_edge(f, pt_flow_edge(f, b->term_ip, b->target, *ret_kind));
			if (b->cls == INSN_CALL && !b->rel0)
				pt_flow_push(f,
					     pt_graph_position(f->graph, f->at.code, b->next_ip, f->at.mode));
			b = pt_graph_block(f->graph, f->at.code, b->target, f->at.mode);
			break;
		case INSN_OTHER: b = pt_graph_next_block(f->graph, b); break;
		case INSN_RET:
			if (f->stack.top != f->stack.bottom)
				f->stack.top--;
			return true;
		case INSN_CALL_IND:
			pt_flow_push(f, pt_graph_position(f->graph, f->at.code, b->next_ip, f->at.mode));
			return true;
		default: return true;
		}
	}
	if (f->graph->full)
		return pt_flow_lose(f, PT_FLOW_FULL, ip, "");
	return ended_somewhere(f, PT_FLOW_NO_CODE, b ? b->term_ip : 0,
			       "the container has no code for the branch that ended tracing");
}

/* TIP.PGD: tracing stops. With a FUP before, from there; else with a branch that the code tells. */
bool pt_flow_on_tip_pgd(struct pt_flow *f, uint64_t ip)
{
	uint64_t from = 0;
	enum ptr_kind kind = PTR_TRACE_END;
	uint32_t edge;

	f->overflow.pending = false;
	if (f->side.changes && f->state >= PT_FLOW_DISABLED)
		return pt_flow_change_side(f, 0);
	if (f->state != PT_FLOW_RUNNING) {
		f->side.cr3 = ip ? f->side.cr3 : 0; /* as below */
		f->state = f->state == PT_FLOW_NO_IMAGE ? PT_FLOW_DISABLED : f->state;
		f->fup.pending = false;
		if (f->state == PT_FLOW_DISABLED) /* told twice: nothing was executed between */
			return true;
		return pt_flow_lose(f, PT_FLOW_MISMATCH, ip, "a TIP.PGD packet before a PSB");
	}
	if (f->fup.pending && f->errata & PT_SKD022) {
		struct pt_block *b = pt_graph_block(f->graph, f->at.code, f->fup.ip, f->at.mode);

		f->fup.pending = !b || b->insns != 1 || b->cls != INSN_VMENTRY;
	}
	if (f->fup.pending) {
		time_moved(f);
		if (!async_to(f, 0))
			return false;
	} else {
		if (!find_end(f, ip, &from, &kind))
			return false;
		edge = pt_graph_edge(f->graph, f->at.code, from, 0, kind);
		if (!edge)
			return pt_flow_lose(f, PT_FLOW_FULL, ip, "");
		pt_flow_add_edge(f, edge);
	}
	/* Neither out of a filter's range (that has an IP), nor to where the CPU is not traced: the kernel has switched tracing off,
	 * and may load CR3 before it switches it on again without a packet that says so. */
	if (!ip && kind == PTR_TRACE_END)
		f->side.cr3 = 0;
	if (f->timing.clock_moved)
		pt_flow_cut_after(f, true);
	if (f->path.len)
		f->stop_ip = f->graph->edges[f->path.edges[f->path.len - 1]].from;
	pt_flow_flush(f);
	f->path.start_ip = 0;
	f->state = PT_FLOW_DISABLED;
	f->at.position = 0;
	f->tnt.n = 0;
	f->timing.clock_moved = true;
	pt_flow_cut(f, 0);
	if (kind == PTR_VMENTRY && !ip)
		pt_flow_conceal(f, from);
	return true;
}

bool pt_flow_on_tip_pge(struct pt_flow *f, uint64_t ip)
{
	uint32_t edge;

	f->overflow.pending = false;
	/* Erratum BDM70 and its like: a PSB+ before a TIP.PGE may hold a FUP although tracing is still disabled. */
	if (f->state == PT_FLOW_RUNNING && f->psb.alone)
		f->state = PT_FLOW_DISABLED;
	if (f->state == PT_FLOW_RUNNING)
		return pt_flow_lose(f, PT_FLOW_MISMATCH, pt_flow_here(f),
				    "a TIP.PGE packet while tracing is enabled");
	if (!ip)
		return pt_flow_lose(f, PT_FLOW_BAD_PACKET, 0, "a TIP.PGE packet without an IP");
	if (f->side.changes) {
		f->state = PT_FLOW_DISABLED;
		return pt_flow_change_side(f, ip) && after_tip(f);
	}
	if (f->side.concealed)
		pt_flow_reveal(f, ip);
	pt_flow_approach(f, ip);
	f->state = PT_FLOW_RUNNING;
	f->pips.count = 0;
	f->at.mode = f->at.next_mode;
	f->at.code = pt_flow_code_at(f, ip);
	if (!f->at.code)
		return pt_flow_lose_image(f, PT_FLOW_NO_CODE, ip, "it is not known which process runs",
					  false);
	if (f->slice.open) {
		time_moved(f);
	} else {
		pt_flow_begin_slice(f);
		pt_flow_time_begin(f);
	}
	f->path.start_ip = 0;
	edge = pt_graph_edge(f->graph, f->at.code, 0, ip, PTR_TRACE_BEGIN);
	if (!edge)
		return pt_flow_lose(f, PT_FLOW_FULL, ip, "");
	pt_flow_add_edge(f, edge);
	if (!pt_flow_stand(f, ip))
		return false;
	return after_tip(f);
}

bool pt_flow_sync_at(struct pt_flow *f, uint64_t ip)
{
	pt_flow_approach(f, ip);
	f->state = PT_FLOW_RUNNING;
	f->pips.count = 0;
	f->overflow.pending = false;
	f->at.mode = f->at.next_mode;
	f->at.code = pt_flow_code_at(f, ip);
	f->path.len = 0;
	f->path.start_ip = ip;
	if (!f->at.code)
		return pt_flow_lose_image(f, PT_FLOW_NO_CODE, ip, "it is not known which process runs",
					  false);
	if (!f->slice.open)
		pt_flow_begin_slice(f);
	return pt_flow_stand(f, ip);
}

bool pt_flow_on_fup(struct pt_flow *f, uint64_t ip)
{
	enum pt_flow_error_kind why = PT_FLOW_MISMATCH;
	uint64_t where = 0;

	if (f->psb.open) {
		f->psb.ip = ip;
		f->psb.fup = ip != 0;
		return true;
	}
	if (f->state <= PT_FLOW_LOSING)
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
	if (f->tnt.n)
		return pt_flow_lose(f, PT_FLOW_MISMATCH, pt_flow_here(f), "a FUP packet where a TIP is owed");
	if (!pt_flow_walk_to(f, ip, &why, &where)) {
		if (f->state != PT_FLOW_RUNNING)
			return false;
		if (f->no_tnt && why == PT_FLOW_MISMATCH) {
			bool binds = f->fup.binds;

			pass_over(f);
			if (!pt_flow_sync_at(f, ip))
				return false;
			f->fup.binds = binds;
			return pt_flow_on_fup(f, ip);
		}
		if (why == PT_FLOW_NO_CODE)
			pt_flow_lose_image(f, why, where ? where : ip, pt_flow_no_code(f->at.code), false);
		else if (why == PT_FLOW_BAD_INSN)
			pt_flow_lose_image(f, why, where, "no CPU decodes these bytes as an instruction",
					   true);
		else
			pt_flow_lose(f, why, where ? where : ip, "the code does not lead to the FUP's IP");
		return f->state == PT_FLOW_NO_IMAGE && pt_flow_on_fup(f, ip);
	}
	if (f->fup.binds && !f->fup.tsx_abort) {
		f->fup.binds = false;
		return true;
	}
	f->fup.binds = false;
	f->fup.pending = true;
	f->fup.ip = ip;
	return true;
}
