/* walk.c - where a flow stands, and how TNT bits and direct branches move it; see flow.h. */
#include "decode/flow/internal.h"
#include "decode/flow/cyc_binding.h"

/* ---- Positions -------------------------------------------------------------------------------------- */

struct pt_code *pt_flow_code_at(struct pt_flow *f, uint64_t ip)
{
	return ip >> 63 && f->kernel ? f->kernel : f->user;
}

/* Stands at ip, reached by the edges gathered (or by none: then start_ip must be set). */
bool pt_flow_stand(struct pt_flow *f, uint64_t ip)
{
	struct pt_code *code = pt_flow_code_at(f, ip);

	if (code != f->at.code || f->at.mode != f->at.next_mode) {
		pt_flow_flush(f);
		if (f->at.code && code != f->at.code && f->kernel)
			pt_flow_cross(f, code);
		f->at.code = code;
		f->at.mode = f->at.next_mode;
	}
	if (!code) {
		f->at.position = 0; /* of the code before: no path leads from there to nowhere */
		return pt_flow_lose_image(f, PT_FLOW_NO_CODE, ip, "it is not known which process runs",
					  false);
	}
	f->at.position = pt_graph_position(f->graph, code, ip, f->at.mode);
	f->at.decision = PT_D_UNRESOLVED;
	if (!f->at.position)
		return pt_flow_lose(f, PT_FLOW_FULL, ip, "");
	return true;
}

/* Behind a VM entry that failed: a MODE.Exec that has come is of the branch behind it. */
bool pt_flow_fall_through(struct pt_flow *f, uint64_t ip)
{
	enum insn_mode next = f->at.next_mode;
	bool ok;

	f->at.next_mode = f->at.mode;
	ok = pt_flow_stand(f, ip);
	f->at.next_mode = next;
	return ok;
}

void pt_flow_add_edge(struct pt_flow *f, uint32_t edge)
{
	if (f->path.len >= FULL_EDGES)
		pt_flow_flush(f);
	if (edge)
		f->path.edges[f->path.len++] = edge;
}

void pt_flow_push(struct pt_flow *f, uint32_t position)
{
	f->stack.entries[f->stack.top++ % PT_STACK] = position;
	pt_flow_risen(f);
}

/* Direct branches lead from the position to a decision, not round and round (Brent's algorithm). */
static bool leads_on(struct pt_flow *f)
{
	struct pt_graph *g = f->graph;
	uint32_t position = f->at.position, turtle = position, steps = 0, limit = 1;

	for (;;) {
		const struct pt_arc *arc = &g->positions[position].arc[0];

		if (pt_graph_decision(g, position) != PT_D_CONT)
			return true;
		if (arc->decision == PT_D_UNRESOLVED && !pt_graph_follow(g, position, 0))
			return false;
		position = arc->next;
		if (position == turtle)
			return false;
		if (++steps == limit) {
			turtle = position;
			limit *= 2;
			steps = 0;
		}
	}
}

/* Takes the arc of a PT_D_CONT; the sink is told when it leads to where the kernel switches threads. */
static void go_on(struct pt_flow *f)
{
	const struct pt_arc *arc = &f->graph->positions[f->at.position].arc[0];

	if (arc->decision == PT_D_UNRESOLVED && !pt_graph_follow(f->graph, f->at.position, 0))
		return;
	take(f);
	pt_flow_keep_room(f);
	f->at.position = arc->next;
	f->at.decision = arc->decision;
	if (f->graph->where[f->at.position].ip == f->at.code->switch_ip && f->env->switching) {
		f->recorder.memo = NULL;
		pt_flow_deliver(f);
		f->env->switching(f->env_arg, f);
	}
}

/* Follows what needs no packet. Returns the decision, PT_D_DEAD after an error was told. */
unsigned pt_flow_settle(struct pt_flow *f)
{
	for (int i = 0;; i++) {
		unsigned d = f->at.decision;

		if (d == PT_D_UNRESOLVED)
			d = f->at.decision = pt_graph_decision(f->graph, f->at.position);
		if (d == PT_D_DEAD) {
			const struct pt_where *w = &f->graph->where[f->at.position];

			if (w->why == PT_DEAD_NO_CODE && pt_flow_missing(f, w->decision_ip)) {
				f->at.decision = PT_D_UNRESOLVED;
				continue;
			}
			pt_flow_lose_dead(f);
			return d;
		}
		if (d != PT_D_CONT)
			return d;
		if (i == 0 && !leads_on(f)) {
			pt_flow_lose(f, PT_FLOW_MISMATCH, pt_flow_here(f),
				     "an endless loop without a branch that the trace could tell of");
			return PT_D_DEAD;
		}
		go_on(f);
	}
}

/* The block behind b, by direct branches only; NULL when a decision is in the way. */
static struct pt_block *direct_next(struct pt_flow *f, struct pt_block *b)
{
	switch (b->cls) {
	case INSN_JMP:
	case INSN_CALL: return pt_graph_block(f->graph, f->at.code, b->target, f->at.mode);
	case INSN_OTHER:
	case INSN_VMENTRY: return pt_graph_next_block(f->graph, b); /* a VM entry that failed falls through */
	default: return NULL;
	}
}

/* The instructions of b before ip, or -1. */
static int insns_to(struct pt_flow *f, struct pt_block *b, uint64_t ip)
{
	return ip >= b->ip && ip <= b->term_ip ? pt_graph_insns_before(f->graph, b, ip) : -1;
}

/* Direct branches lead from here to ip; and not round and round past it (Brent's algorithm). */
static bool leads_to(struct pt_flow *f, uint64_t ip, enum pt_flow_error_kind *why, uint64_t *where)
{
	struct pt_block *b = pt_graph_block(f->graph, f->at.code, pt_flow_here(f), f->at.mode),
			*turtle = NULL;
	uint32_t steps = 0, limit = 1;

	while (b && b != turtle) {
		if (insns_to(f, b, ip) >= 0)
			return true;
		*where = b->term_ip;
		if (b->dead && b->why == PT_DEAD_NO_CODE && pt_flow_missing(f, b->term_ip)) {
			b = pt_graph_block(f->graph, f->at.code, pt_flow_here(f), f->at.mode);
			turtle = NULL;
			continue;
		}
		if (b->dead) {
			*why = b->why == PT_DEAD_NO_CODE    ? PT_FLOW_NO_CODE
			       : b->why == PT_DEAD_BAD_INSN ? PT_FLOW_BAD_INSN
							    : PT_FLOW_MISMATCH;
			return false;
		}
		if (++steps == limit) {
			turtle = b;
			limit *= 2;
			steps = 0;
		}
		b = direct_next(f, b);
	}
	*why = f->graph->full ? PT_FLOW_FULL : PT_FLOW_MISMATCH;
	return false;
}

/*
 * Walks block by block to ip, through direct branches only: where a FUP or a PSB says that the flow is.
 * False, with nothing changed, when they do not lead there.
 */
bool pt_flow_walk_to(struct pt_flow *f, uint64_t ip, enum pt_flow_error_kind *why, uint64_t *where)
{
	struct pt_block *b;
	int n;

	if (!leads_to(f, ip, why, where))
		return false;
	b = pt_graph_block(f->graph, f->at.code, pt_flow_here(f), f->at.mode);
	while (b && (n = insns_to(f, b, ip)) < 0) {
		f->counts.insns += b->insns;
		if (b->cls == INSN_JMP || b->cls == INSN_CALL) {
			pt_flow_add_edge(f, pt_graph_edge(f->graph, f->at.code, b->term_ip, b->target,
							  pt_kind_of(b->cls)));
			if (b->cls == INSN_CALL && !b->rel0)
				pt_flow_push(f,
					     pt_graph_position(f->graph, f->at.code, b->next_ip, f->at.mode));
		}
		b = direct_next(f, b);
	}
	if (!b)
		return false;
	f->counts.insns += (uint32_t)n;
	return pt_flow_stand(f, ip);
}

/*
 * The clock has moved, and its time is that of the first branch of the TNT that has come (SDM, "Cycle Packet
 * Semantics"), whose bit this is. A new run begins with it; unless direct branches lead to it, which are older: then
 * f->timing.clock_moved stays for pt_flow_cut_after().
 */
static void time_branch(struct pt_flow *f, unsigned bit)
{
	const struct pt_arc *arc;
	unsigned branch = 0;

	if (f->at.decision == PT_D_UNRESOLVED)
		f->at.decision = pt_graph_decision(f->graph, f->at.position);
	for (int i = 0; f->at.decision == PT_D_CONT; i++) {
		if (i == 0 && !leads_on(f))
			return;
		go_on(f);
		if (f->at.decision == PT_D_UNRESOLVED)
			f->at.decision = pt_graph_decision(f->graph, f->at.position);
	}
	if (f->at.decision == PT_D_DEAD)
		return;
	if (f->at.decision == PT_D_FAR) { /* a VM entry that failed: the branch is behind it */
		if (f->path.len >= LEAD_EDGES)
			pt_flow_flush(f);
		return;
	}
	arc = &f->graph->positions[f->at.position].ind.prefix;
	if (f->at.decision == PT_D_JCC) {
		arc = &f->graph->positions[f->at.position].arc[bit];
		branch = bit;
		if (arc->decision == PT_D_UNRESOLVED && !pt_graph_follow(f->graph, f->at.position, bit))
			return;
	}
	if (arc->n_edges == branch) {
		pt_flow_cut(f, arc->insns);
		f->timing.first_insns = f->counts.insns + arc->insns;
		/* One that is not taken, or not the TNT's, is no branch of the run. */
		if (f->run.timing && !(bit && f->at.decision != PT_D_IND))
			f->run.timing = f->at.decision == PT_D_IND ? PTR_TIME_BEFORE : PTR_TIME_CYC;
	} else if (f->path.len >= LEAD_EDGES) {
		pt_flow_flush(f); /* so that the branch's edge will not be flushed with them */
	}
}

/* Ends the run before the last edge, when that is the branch that the clock's time is of. */
void pt_flow_cut_after(struct pt_flow *f, bool taken)
{
	uint32_t edge;

	if (!taken || !f->path.len) {
		pt_flow_cut(f, 0);
		f->run.timing = f->run.timing ? PTR_TIME_CYC : PTR_TIME_BEFORE;
		return;
	}
	edge = f->path.edges[--f->path.len];
	pt_flow_cut(f, 0);
	f->path.edges[f->path.len++] = edge;
}

/* ---- TNT -------------------------------------------------------------------------------------------- */

/* The top of the stack is where a compressed return goes. Returns lead from user to user, from guest to guest, and so on. */
static inline bool caller_known(const struct pt_flow *f)
{
	if (f->stack.top == f->stack.bottom)
		return false;
	return !f->stack_state.unsure ||
	       f->graph->where[f->stack.entries[(f->stack.top - 1) % PT_STACK]].code == f->at.code->id;
}

/* A compressed return: its TNT bit was 1. */
static inline bool compressed_ret(struct pt_flow *f, bool *ret_backward)
{
	struct pt_graph *g = f->graph;
	union pt_edge_list *edge_list = &g->edge_lists[f->at.position];
	uint32_t to;

	if (__builtin_expect(!g->positions[f->at.position].ind.prefix.rise && !caller_known(f), 0)) {
		uint64_t ip = g->where[f->at.position].decision_ip;

		if (f->stack_state.skipped) {
			pt_flow_stop_seeing(f);
			return false;
		}
		if (f->stack_state.stale_hw || f->stack_state.unsure)
			return pt_flow_lose_image(f, PT_FLOW_NO_CODE, ip,
						  "a compressed return to a caller that was not seen", false);
		return pt_flow_lose(f, PT_FLOW_MISMATCH, ip, "a compressed return without its call");
	}
	take(f);
	to = pt_flow_pop(f);
	if (to != edge_list->next) {
		struct pt_jump *j = jump_of(g, f->at.position, to);

		if (j->position != f->at.position || j->to != to) {
			const struct pt_where *w = &g->where[f->at.position];
			uint64_t ip = g->where[to].ip;
			uint32_t edge = pt_graph_edge(g, f->at.code, w->decision_ip, ip, PTR_RET);

			if (!edge)
				return pt_flow_lose(f, PT_FLOW_FULL, 0, "");
			*j = (struct pt_jump){.to = to,
					      .position = f->at.position,
					      .edge = edge,
					      .next = to,
					      .decision = pt_graph_decision(g, to),
					      .backward = ip <= w->decision_ip};
		}
		edge_list->next = to;
		edge_list->edge = j->edge;
		edge_list->backward = j->backward;
		edge_list->decision = j->decision;
	}
	f->path.edges[f->path.len++] = edge_list->edge;
	f->at.decision = edge_list->decision;
	*ret_backward = edge_list->backward;
	f->at.position = to;
	return true;
}

/*
 * Consumes f->tnt.bits; to_flush: up to where a path ends. The loop over conditional branches is what the speed of the
 * decoder is made of: an arc a bit, and nothing else.
 */
static inline __attribute__((always_inline)) enum pt_flow_ran run(struct pt_flow *f, bool to_flush)
{
	struct pt_graph *g = f->graph;
	union pt_position *positions = g->positions;
	uint32_t position = f->at.position, len, top = f->stack.top, insns = 0;
	uint64_t bits = f->tnt.bits;
	unsigned n = f->tnt.n, decision;
	bool ok = true, back = false, flushed = false;

	f->fup.pending = false;
	pt_flow_keep_room(f);
	len = f->path.len;
	decision = f->at.decision;
	if (decision == PT_D_UNRESOLVED)
		decision = pt_graph_decision(g, position);
	while (n) {
		if (__builtin_expect(decision == PT_D_JCC, 1)) {
			unsigned bit = bits >> (n - 1) & 1;
			const struct pt_arc *arc = &positions[position].arc[bit];

			if (__builtin_expect(arc->decision == PT_D_UNRESOLVED, 0)) {
				if (!pt_graph_follow(g, position, bit)) {
					ok = false;
					break;
				}
			}
			n--;
			memcpy(f->path.edges + len, g->edge_lists[position].edges[bit],
			       sizeof g->edge_lists->edges[0]);
			len += arc->n_edges;
			f->stack.entries[top % PT_STACK] = arc->push;
			top += (uint32_t)arc->rise;
			insns += arc->insns;
			position = arc->next;
			decision = arc->decision;
			if (__builtin_expect(len >= CUT_EDGES, 0) && (arc->backward || len >= FULL_EDGES)) {
				f->path.len = len;
				pt_flow_flush(f);
				len = 0;
				if (to_flush && n)
					break;
			}
			continue;
		}
		/* Everything else goes through the flow's own fields. */
		f->at.position = position;
		f->at.decision = decision;
		f->path.len = len;
		f->stack.top = top;
		pt_flow_risen(f);
		f->counts.insns += insns;
		insns = 0;
		if (decision == PT_D_RET) {
			if (!(bits >> (n - 1) & 1)) {
				f->tnt.n = 0;
				pt_flow_lose(f, PT_FLOW_MISMATCH, g->where[position].decision_ip,
					     "a return that the trace says was not taken");
				return PT_RAN_LOST;
			}
			n--;
			if (!compressed_ret(f, &back))
				return PT_RAN_LOST;
			decision = f->at.decision;
			if (f->path.len >= CUT_EDGES && (back || f->path.len >= FULL_EDGES)) {
				pt_flow_flush(f);
				flushed = to_flush;
			}
		} else if (decision == PT_D_CONT || decision == PT_D_DEAD) {
			decision = pt_flow_settle(f);
			if (decision == PT_D_DEAD)
				return PT_RAN_LOST;
		} else if (decision == PT_D_IND || g->where[position].cls != INSN_VMENTRY) {
			/* A deferred TIP (SDM, "Deferred TIPs"): the bits behind it came first. */
			f->tnt.n = n;
			return PT_RAN_DEFERRED;
		} else {
			/* A VM entry that failed and fell through (SDM, VMLAUNCH: VMfail). */
			take(f);
			pt_flow_keep_room(f);
			if (!pt_flow_fall_through(f, g->where[position].decision_next))
				return PT_RAN_LOST;
			decision = pt_graph_decision(g, f->at.position);
		}
		position = f->at.position;
		len = f->path.len;
		top = f->stack.top;
		if (flushed && n)
			break;
	}
	f->at.position = position;
	f->at.decision = decision;
	f->path.len = len;
	f->stack.top = top;
	pt_flow_risen(f);
	f->counts.insns += insns;
	f->tnt.n = n;
	if (!ok) {
		pt_flow_lose(f, PT_FLOW_FULL, 0, "");
		return PT_RAN_LOST;
	}
	return n ? PT_RAN_FLUSHED : PT_RAN_ALL;
}

static bool run_tnt(struct pt_flow *f)
{
	return run(f, false) != PT_RAN_LOST;
}

enum pt_flow_ran pt_flow_run_tnt_to_flush(struct pt_flow *f)
{
	return run(f, true);
}

enum pt_flow_ran pt_flow_time_tnt(struct pt_flow *f)
{
	uint64_t bits = f->tnt.bits, last = f->counts.insns;
	unsigned n = f->tnt.n;
	bool sample = f->timing.cyc_fresh && f->cyc_binding.samples < PT_CYC_BINDING_SAMPLES;

	f->timing.first_insns = 0;
	time_branch(f, bits >> (n - 1) & 1);
	if (!f->timing.clock_moved) {
		pt_flow_bind_cyc_to_last(f);
	} else {
		f->tnt.bits = bits >> (n - 1);
		f->tnt.n = 1;
		if (!run_tnt(f))
			return PT_RAN_LOST;
		if (f->tnt.n) { /* a TIP comes first */
			f->tnt.bits = bits;
			f->tnt.n = n;
			return PT_RAN_DEFERRED;
		}
		pt_flow_cut_after(f, bits >> (n - 1) & 1);
		pt_flow_bind_cyc_to_last(f);
		f->timing.first_insns = f->counts.insns;
		f->tnt.bits = bits & (((uint64_t)1 << (n - 1)) - 1);
		f->tnt.n = n - 1;
	}
	if (__builtin_expect(sample && f->timing.first_insns, 0))
		pt_cyc_binding_sample(&f->cyc_binding, f->counts.packets, f->clock.cyc, f->timing.first_insns,
				      last);
	return PT_RAN_ALL;
}

/* Consumes f->tnt.bits. */
bool pt_flow_run_tnt(struct pt_flow *f)
{
	enum pt_flow_ran ran = __builtin_expect(f->timing.clock_moved, 0) ? pt_flow_time_tnt(f) : PT_RAN_ALL;

	return ran == PT_RAN_ALL ? run_tnt(f) : ran == PT_RAN_DEFERRED;
}

bool pt_flow_on_tnt(struct pt_flow *f, uint64_t bits, unsigned n)
{
	f->psb.alone = false;
	if (f->state != PT_FLOW_RUNNING || f->overflow.pending) { /* blind: of code that nobody has */
		if (f->state == PT_FLOW_DISABLED && !(f->overflow.pending && f->errata & PT_SKD010))
			return pt_flow_lose(f, PT_FLOW_MISMATCH, 0, "a TNT packet while tracing is disabled");
		return true;
	}
	if (f->tnt.n) /* TIPs are still owed to the bits before */
		return pt_flow_lose(f, PT_FLOW_MISMATCH, f->graph->where[f->at.position].decision_ip,
				    "a TNT packet where the code has an indirect branch");
	f->tnt.bits = bits;
	f->tnt.n = n;
	return pt_flow_run_tnt(f);
}
