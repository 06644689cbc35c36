/* tnt.c - TNT packets: conditional branches and compressed returns; see internal.h. */
#include "decode/flow/internal.h"

#include "decode/flow/cyc_binding.h"

/* ---- Compressed returns ----------------------------------------------------------------------------- */

/* The top of the stack is where a compressed return goes. Returns lead from user to user, from guest to
 * guest, and so on. */
static inline bool caller_known(const struct pt_flow *f)
{
	if (f->stack.top == f->stack.bottom)
		return false;
	return !f->stack_state.unsure ||
	       f->graph->where[f->stack.entries[(f->stack.top - 1) % PT_STACK]].code == f->at.code->id;
}

static bool no_caller(struct pt_flow *f)
{
	uint64_t ip = pt_block_term_ip(pt_graph_last_block(f->graph, f->at.position));

	if (f->stack_state.skipped) {
		pt_flow_skip_code(f);
		return false;
	}
	if (f->stack_state.stale_hw || f->stack_state.unsure)
		return pt_flow_enter_no_image(f, PT_FLOW_NO_CODE, ip,
					      "a compressed return to a caller that was not seen", false);
	return pt_flow_desync(f, PT_FLOW_MISMATCH, ip, "a compressed return without its call");
}

/* The return's edge to position `to`, from the jump cache, into its edge list. False: there is an error. */
static bool find_return(struct pt_flow *f, uint32_t to)
{
	struct pt_graph *g = f->graph;
	struct pt_edge_list *edge_list = &g->edge_lists[f->at.position];
	struct pt_jump *j = pt_flow_jump_slot(g, f->at.position, to);

	if (j->position != f->at.position || j->to != to) {
		uint64_t from_ip = pt_block_term_ip(pt_graph_last_block(g, f->at.position));
		const struct pt_where *w = &g->where[to];
		uint64_t ip = w->ip;
		uint32_t edge;

		/* Between user space and kernel, or modes, only where packets are damaged. */
		if (g->codes[w->code]->uid != f->at.code->uid || w->mode != f->at.mode)
			return no_caller(f);
		edge = pt_graph_edge(g, f->at.code, from_ip, ip, PTR_RET);
		if (!edge)
			return pt_flow_desync(f, PT_FLOW_FULL, 0, "");
		*j = (struct pt_jump){.to = to,
				      .position = f->at.position,
				      .edge = edge,
				      .next = to,
				      .decision = pt_graph_decision(g, to),
				      .backward = ip <= from_ip};
	}
	edge_list->next = to;
	edge_list->edges[PT_BRANCH_EDGE] = j->edge;
	edge_list->backward = j->backward;
	edge_list->decision = j->decision;
	return true;
}

/*
 * The caller's position is in the stack since another process ran, whose call that was: after a fork the child
 * returns from calls of its parent. It goes on in its own code. 0: the graph is full.
 */
__attribute__((noinline)) static uint32_t own_position(struct pt_flow *f, uint32_t position)
{
	struct pt_graph *g = f->graph;
	const struct pt_where *w = &g->where[position];

	f->stack_state.others_top = f->stack.top;
	if (f->at.code != f->user || w->code == f->user->id || g->codes[w->code] == f->kernel)
		return position;
	return pt_graph_position(g, f->user, w->ip, (enum insn_mode)w->mode);
}

/* A return with a TNT bit of 1. */
static inline bool compressed_return(struct pt_flow *f, bool *ret_backward)
{
	struct pt_graph *g = f->graph;
	const struct pt_edge_list *edge_list = &g->edge_lists[f->at.position];
	uint32_t to;

	if (__builtin_expect(!g->positions[f->at.position].ind.prefix.rise && !caller_known(f), 0))
		return no_caller(f);
	pt_flow_take_prefix(f);
	to = pt_flow_stack_pop(f);
	if (__builtin_expect((int32_t)(f->stack.top - f->stack_state.others_top) < 0, 0) &&
	    !(to = own_position(f, to)))
		return pt_flow_desync(f, PT_FLOW_FULL, 0, "");
	if (to != edge_list->next && !find_return(f, to))
		return false;
	f->path.edges[f->path.len++] = edge_list->edges[PT_BRANCH_EDGE];
	f->at.decision = edge_list->decision;
	*ret_backward = edge_list->backward;
	f->at.position = to;
	return true;
}

/* ---- TNT bits --------------------------------------------------------------------------------------- */

/* What stands between the bits, but for conditional branches: takes it. *n: of f->tnt.bits, the bits that are
 * left. */
static inline __attribute__((always_inline)) enum pt_flow_tnt_result between(struct pt_flow *f, unsigned *n,
									     bool to_path_end)
{
	struct pt_graph *g = f->graph;
	const struct pt_block *last = pt_graph_last_block(g, f->at.position);
	bool backward = false;

	switch (f->at.decision) {
	case PT_D_RET:
		if (!(f->tnt.bits >> (*n - 1) & 1)) {
			f->tnt.n = 0;
			pt_flow_desync(f, PT_FLOW_MISMATCH, pt_block_term_ip(last),
				       "a return that the trace says was not taken");
			return PT_TNT_ERROR;
		}
		--*n;
		if (!compressed_return(f, &backward))
			return PT_TNT_ERROR;
		if (f->path.len < PATH_BREAK_EDGES || !(backward || f->path.len >= PATH_FULL_EDGES))
			return PT_TNT_DONE;
		pt_flow_end_path(f);
		return to_path_end ? PT_TNT_PATH_ENDED : PT_TNT_DONE;
	case PT_D_CONT:
	case PT_D_DEAD: return pt_flow_reach_decision(f) == PT_D_DEAD ? PT_TNT_ERROR : PT_TNT_DONE;
	default:
		if (f->at.decision == PT_D_IND || last->cls != INSN_VMENTRY) {
			f->tnt.n = *n;
			return PT_TNT_DEFERRED;
		}
		/* A VM entry that failed and fell through (SDM, VMLAUNCH: VMfail). */
		pt_flow_take_prefix(f);
		pt_flow_path_keep_room(f);
		if (!pt_flow_fall_through(f, pt_block_next_ip(last)))
			return PT_TNT_ERROR;
		f->at.decision = pt_graph_decision(g, f->at.position);
		return PT_TNT_DONE;
	}
}

/* What of a flow moves with every bit. */
struct walk {
	uint32_t position, len, top, insns; /* len: of f->path; insns: since the walk began */
	unsigned decision;
};

static inline __attribute__((always_inline)) struct walk begin_walk(const struct pt_flow *f)
{
	return (struct walk){
	    .position = f->at.position, .len = f->path.len, .top = f->stack.top, .decision = f->at.decision};
}

static inline __attribute__((always_inline)) void end_walk(struct pt_flow *f, const struct walk *w)
{
	f->at.position = w->position;
	f->at.decision = w->decision;
	f->path.len = w->len;
	f->stack.top = w->top;
	pt_flow_stack_risen(f);
	f->counts.insns += w->insns;
}

/*
 * Consumes f->tnt; to_path_end: up to where a path ends. The loop over conditional branches is what the speed
 * of the decoder is made of: one arc per bit, and nothing else. What it moves is in variables of its own; all
 * the rest goes through the flow.
 */
static inline __attribute__((always_inline)) enum pt_flow_tnt_result run(struct pt_flow *f, bool to_path_end)
{
	struct pt_graph *g = f->graph;
	const union pt_position *positions = g->positions;
	uint64_t bits = f->tnt.bits;
	unsigned n = f->tnt.n;
	struct walk w;

	f->fup.pending = false;
	pt_flow_path_keep_room(f);
	w = begin_walk(f);
	if (w.decision == PT_D_UNRESOLVED)
		w.decision = pt_graph_decision(g, w.position);
	while (n) {
		enum pt_flow_tnt_result result;

		if (__builtin_expect(w.decision == PT_D_JCC, 1)) {
			unsigned bit = bits >> (n - 1) & 1;
			const struct pt_arc *arc = &positions[w.position].arc[bit];

			if (__builtin_expect(arc->decision == PT_D_UNRESOLVED, 0) &&
			    !pt_graph_follow(g, w.position, bit)) {
				end_walk(f, &w);
				f->tnt.n = n;
				pt_flow_desync(f, PT_FLOW_FULL, 0, "");
				return PT_TNT_ERROR;
			}
			n--;
			memcpy(f->path.edges + w.len, g->edge_lists[w.position].edges,
			       sizeof g->edge_lists->edges);
			w.len += arc->n_edges;
			f->stack.entries[w.top % PT_STACK] = arc->push;
			w.top += (uint32_t)arc->rise;
			w.insns += arc->insns;
			w.position = arc->next;
			w.decision = arc->decision;
			if (__builtin_expect(w.len >= PATH_BREAK_EDGES, 0) &&
			    (arc->backward || w.len >= PATH_FULL_EDGES)) {
				f->path.len = w.len;
				pt_flow_end_path(f);
				w.len = 0;
				if (to_path_end && n)
					break;
			}
			continue;
		}
		end_walk(f, &w);
		result = between(f, &n, to_path_end);
		if (result == PT_TNT_ERROR || result == PT_TNT_DEFERRED)
			return result;
		w = begin_walk(f);
		if (result == PT_TNT_PATH_ENDED && n)
			break;
	}
	end_walk(f, &w);
	f->tnt.n = n;
	return n ? PT_TNT_PATH_ENDED : PT_TNT_DONE;
}

static bool run_all(struct pt_flow *f)
{
	return run(f, false) != PT_TNT_ERROR;
}

enum pt_flow_tnt_result pt_flow_run_tnt_to_path_end(struct pt_flow *f)
{
	return run(f, true);
}

/* ---- The time of the first branch ------------------------------------------------------------------- */

/* Goes on by direct branches to a decision. False where there is none, or no way to it is known. */
static bool reach_branch(struct pt_flow *f)
{
	if (f->at.decision == PT_D_UNRESOLVED)
		f->at.decision = pt_graph_decision(f->graph, f->at.position);
	for (int i = 0; f->at.decision == PT_D_CONT; i++) {
		if (i == 0 && !pt_flow_leads_on(f))
			return false;
		if (!pt_flow_go_on(f))
			return false;
		if (f->at.decision == PT_D_UNRESOLVED)
			f->at.decision = pt_graph_decision(f->graph, f->at.position);
	}
	return f->at.decision != PT_D_DEAD;
}

/*
 * The clock has moved, and its time is that of the TNT's first branch (SDM, "Cycle Packet Semantics"), whose
 * bit this is. The run ends and a new one begins with that branch; unless direct branches lead to it, which
 * are earlier: then clock_moved remains set for pt_flow_end_run_before_last(). Returns the instructions
 * executed up to the branch, 0 when the run has not ended.
 */
static uint64_t time_first(struct pt_flow *f, unsigned bit)
{
	const struct pt_arc *arc;
	unsigned branch = 0;

	if (!reach_branch(f))
		return 0;
	if (f->at.decision == PT_D_FAR) { /* a VM entry that failed: the branch is after it */
		if (f->path.len >= PATH_LEAD_EDGES)
			pt_flow_end_path(f);
		return 0;
	}
	arc = &f->graph->positions[f->at.position].ind.prefix;
	if (f->at.decision == PT_D_JCC) {
		arc = &f->graph->positions[f->at.position].arc[bit];
		branch = bit;
		if (arc->decision == PT_D_UNRESOLVED && !pt_graph_follow(f->graph, f->at.position, bit))
			return 0;
	}
	if (arc->n_edges != branch) {
		if (f->path.len >= PATH_LEAD_EDGES)
			pt_flow_end_path(f); /* so that the branch's edge will not be in one path with them */
		return 0;
	}
	pt_flow_end_run(f, arc->insns);
	/* One that is not taken, or not the TNT's, is no branch of the run. */
	if (f->run.timing && !(bit && f->at.decision != PT_D_IND))
		f->run.timing = f->at.decision == PT_D_IND ? PTR_TIME_BEFORE : PTR_TIME_CYC;
	return f->counts.insns + arc->insns;
}

enum pt_flow_tnt_result pt_flow_time_tnt(struct pt_flow *f)
{
	uint64_t bits = f->tnt.bits, last = f->counts.insns, first;
	unsigned n = f->tnt.n, first_bit = bits >> (n - 1) & 1;
	bool sample = f->timing.cyc_fresh && f->cyc_binding.samples < PT_CYC_BINDING_SAMPLES;

	first = time_first(f, first_bit);
	if (f->state != PT_FLOW_RUNNING)
		return PT_TNT_ERROR;
	if (!f->timing.clock_moved) {
		pt_flow_bind_cyc_to_last(f);
	} else {
		f->tnt.bits = bits >> (n - 1);
		f->tnt.n = 1;
		if (!run_all(f))
			return PT_TNT_ERROR;
		if (f->tnt.n) { /* a TIP comes first */
			f->tnt = (struct flow_tnt){.bits = bits, .n = n};
			return PT_TNT_DEFERRED;
		}
		pt_flow_end_run_before_last(f, first_bit);
		pt_flow_bind_cyc_to_last(f);
		first = f->counts.insns;
		f->tnt.bits = bits & (((uint64_t)1 << (n - 1)) - 1);
		f->tnt.n = n - 1;
	}
	if (__builtin_expect(sample && first, 0))
		pt_cyc_binding_sample(&f->cyc_binding, &(struct pt_cyc_sample){.packet = f->counts.packets,
									       .cyc = f->clock.cyc,
									       .first_insns = first,
									       .last_insns = last});
	return PT_TNT_DONE;
}

bool pt_flow_run_tnt(struct pt_flow *f)
{
	enum pt_flow_tnt_result result =
	    __builtin_expect(f->timing.clock_moved, 0) ? pt_flow_time_tnt(f) : PT_TNT_DONE;

	return result == PT_TNT_DONE ? run_all(f) : result == PT_TNT_DEFERRED;
}

bool pt_flow_on_tnt(struct pt_flow *f, uint64_t bits, unsigned n)
{
	f->psb.alone = false;
	if (f->state != PT_FLOW_RUNNING || f->overflow.pending) {
		if (f->state == PT_FLOW_DISABLED && !(f->overflow.pending && f->errata & PT_SKD010))
			return pt_flow_desync(f, PT_FLOW_MISMATCH, 0,
					      "a TNT packet while tracing is disabled");
		return true; /* of code that is not there */
	}
	if (f->tnt.n) {					     /* TIPs are still owed to the bits before */
		pt_graph_decision(f->graph, f->at.position); /* so that its last block is known */
		return pt_flow_desync(f, PT_FLOW_MISMATCH,
				      pt_block_term_ip(pt_graph_last_block(f->graph, f->at.position)),
				      "a TNT packet where the code has an indirect branch");
	}
	f->tnt = (struct flow_tnt){.bits = bits, .n = n};
	return pt_flow_run_tnt(f);
}
