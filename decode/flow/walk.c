/* walk.c - where a flow is, and what it executes without a packet: direct branches; see internal.h. */
#include "decode/flow/internal.h"

/* The code that has both ends of an edge to `to`. */
static struct pt_code *code_of_edge(struct pt_flow *f, uint64_t to)
{
	if (!to || to >> 63 || f->at.code != f->kernel)
		return f->at.code;
	/* The user's sees its kernel, too. */
	f->user_wanted = true;
	return f->user ? f->user : f->at.code;
}

uint32_t pt_flow_edge(struct pt_flow *f, uint64_t from, uint64_t to, enum ptr_kind kind)
{
	return pt_graph_edge(f->graph, code_of_edge(f, to), from, to, kind);
}

uint32_t pt_flow_end_edge(struct pt_flow *f, uint64_t from, uint64_t to, enum ptr_kind kind)
{
	return pt_graph_end_edge(f->graph, code_of_edge(f, to), from, to, kind);
}

/* ---- Positions -------------------------------------------------------------------------------------- */

struct pt_code *pt_flow_code_at(const struct pt_flow *f, uint64_t ip)
{
	return ip >> 63 && f->kernel ? f->kernel : f->user;
}

bool pt_flow_arrive(struct pt_flow *f, uint64_t ip)
{
	struct pt_code *code = pt_flow_code_at(f, ip);

	if (code != f->at.code || f->at.mode != f->at.next_mode) {
		pt_flow_end_path(f);
		if (f->at.code && code != f->at.code && f->kernel)
			pt_flow_stack_cross(f, code);
		f->at.code = code;
		f->at.mode = f->at.next_mode;
	}
	if (!code) {
		f->at.position = 0; /* of the code before: no path leads from there to nowhere */
		return pt_flow_enter_no_image(f, PT_FLOW_NO_CODE, ip, pt_flow_no_code_message(NULL, ip),
					      false);
	}
	f->at.position = pt_graph_position(f->graph, code, ip, f->at.mode);
	f->at.decision = PT_D_UNRESOLVED;
	if (!f->at.position)
		return pt_flow_desync(f, PT_FLOW_FULL, ip, "");
	return true;
}

bool pt_flow_begin_at(struct pt_flow *f, uint64_t ip)
{
	f->state = PT_FLOW_RUNNING;
	f->at.mode = f->at.next_mode;
	f->at.code = pt_flow_code_at(f, ip);
	return f->at.code ||
	       pt_flow_enter_no_image(f, PT_FLOW_NO_CODE, ip, pt_flow_no_code_message(NULL, ip), false);
}

bool pt_flow_sync_at(struct pt_flow *f, uint64_t ip)
{
	pt_flow_ask_user(f, ip);
	f->overflow.pending = false;
	f->pips.count = 0;
	f->path.len = 0;
	f->path.start_ip = ip;
	if (!pt_flow_begin_at(f, ip))
		return false;
	if (!f->slice.open)
		pt_flow_begin_slice(f);
	return pt_flow_arrive(f, ip);
}

bool pt_flow_fall_through(struct pt_flow *f, uint64_t ip)
{
	enum insn_mode next = f->at.next_mode;
	bool ok;

	/* A MODE.Exec that has come is that of the branch after the VM entry. */
	f->at.next_mode = f->at.mode;
	ok = pt_flow_arrive(f, ip);
	f->at.next_mode = next;
	return ok;
}

/* ---- From position to position ---------------------------------------------------------------------- */

bool pt_flow_leads_on(const struct pt_flow *f)
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

bool pt_flow_go_on(struct pt_flow *f)
{
	const struct pt_arc *arc = &f->graph->positions[f->at.position].arc[0];

	if (arc->decision == PT_D_UNRESOLVED && !pt_graph_follow(f->graph, f->at.position, 0))
		return pt_flow_desync(f, PT_FLOW_FULL, pt_flow_here(f), "");
	pt_flow_take_prefix(f);
	pt_flow_path_keep_room(f);
	f->at.position = arc->next;
	f->at.decision = arc->decision;
	if (f->graph->where[f->at.position].ip == f->at.code->switch_ip && f->env->switching) {
		/* Whatever comes of it: no path, and so nothing that is memoized, leads over this place. */
		pt_flow_stop_recording(f);
		pt_flow_end_path_at(f, pt_flow_here(f));
		pt_flow_deliver(f);
		f->env->switching(f->env_arg, f);
	}
	return f->state == PT_FLOW_RUNNING;
}

unsigned pt_flow_reach_decision(struct pt_flow *f)
{
	for (int i = 0;; i++) {
		unsigned d = f->at.decision;

		if (d == PT_D_UNRESOLVED)
			d = f->at.decision = pt_graph_decision(f->graph, f->at.position);
		if (d == PT_D_DEAD) {
			const struct pt_block *last = pt_graph_last_block(f->graph, f->at.position);
			uint64_t ip = pt_block_term_ip(last);

			if (last->why == PT_DEAD_NO_CODE && pt_flow_ask_missing(f, ip)) {
				if (f->state != PT_FLOW_RUNNING)
					return d;
				f->at.decision = PT_D_UNRESOLVED;
				continue;
			}
			if (!f->graph->full && last->why != PT_DEAD_BAD_INSN) {
				pt_flow_take_prefix(f);
				pt_flow_end_path_at(f, ip);
			} else {
				pt_flow_end_path_at(f, pt_flow_here(f));
			}
			pt_flow_dead_end(f);
			return d;
		}
		if (d != PT_D_CONT)
			return d;
		if (i == 0 && !pt_flow_leads_on(f)) {
			pt_flow_desync(f, PT_FLOW_MISMATCH, pt_flow_here(f), PT_FLOW_ENDLESS_LOOP_MESSAGE);
			return PT_D_DEAD;
		}
		if (!pt_flow_go_on(f))
			return PT_D_DEAD;
	}
}

/* ---- From block to block ---------------------------------------------------------------------------- */

struct pt_block *pt_flow_block_here(struct pt_flow *f)
{
	uint64_t ip = pt_flow_here(f);

	return f->state == PT_FLOW_RUNNING && f->at.position
		   ? pt_graph_block(f->graph, f->at.code, ip, f->at.mode)
		   : NULL;
}

struct pt_block *pt_flow_direct_next(struct pt_flow *f, struct pt_block *b)
{
	switch (b->cls) {
	case INSN_JMP:
	case INSN_CALL: return pt_graph_block(f->graph, f->at.code, pt_block_target(b), f->at.mode);
	case INSN_OTHER:
	case INSN_VMENTRY: return pt_graph_next_block(f->graph, b); /* a VM entry that failed falls through */
	default: return NULL;
	}
}

/* The instructions of b before ip, or -1. */
static int insns_to(struct pt_flow *f, struct pt_block *b, uint64_t ip)
{
	return ip >= b->ip && ip <= pt_block_term_ip(b) ? pt_graph_insns_before(f->graph, b, ip) : -1;
}

static enum pt_flow_error_kind kind_of_dead(const struct pt_block *b)
{
	return b->why == PT_DEAD_NO_CODE    ? PT_FLOW_NO_CODE
	       : b->why == PT_DEAD_BAD_INSN ? PT_FLOW_BAD_INSN
					    : PT_FLOW_MISMATCH;
}

/* The block with ip, to which direct branches lead from here; NULL: they do not, or go round in a loop that
 * does not come by it (Brent's algorithm). */
static struct pt_block *find_block(struct pt_flow *f, uint64_t ip, struct flow_obstacle *ret_why)
{
	struct pt_block *b = pt_flow_block_here(f), *turtle = NULL;
	uint32_t steps = 0, limit = 1;
	bool vmentry = false;

	while (b && b != turtle) {
		if (insns_to(f, b, ip) >= 0)
			return b;
		ret_why->ip = pt_block_term_ip(b);
		if (b->dead && b->why == PT_DEAD_NO_CODE && pt_flow_ask_missing(f, pt_block_term_ip(b))) {
			b = pt_flow_block_here(f);
			turtle = NULL;
			vmentry = false;
			continue;
		}
		if (b->dead) {
			ret_why->kind = kind_of_dead(b);
			ret_why->block = b->why == PT_DEAD_BAD_INSN || vmentry ? NULL : b;
			return NULL;
		}
		if (++steps == limit) {
			turtle = b;
			limit *= 2;
			steps = 0;
		}
		vmentry |= b->cls == INSN_VMENTRY;
		b = pt_flow_direct_next(f, b);
	}
	ret_why->kind = f->graph->full ? PT_FLOW_FULL : PT_FLOW_MISMATCH;
	return NULL;
}

/* The block's direct branch. */
static void take_direct(struct pt_flow *f, const struct pt_block *b)
{
	pt_flow_add_edge(f, pt_graph_edge(f->graph, f->at.code, pt_block_term_ip(b), pt_block_target(b),
					  pt_kind_of(b->cls)));
	if (b->cls == INSN_CALL && !b->rel0)
		pt_flow_stack_push(f,
				   pt_graph_position(f->graph, f->at.code, pt_block_next_ip(b), f->at.mode));
}

void pt_flow_pass_blocks(struct pt_flow *f, const struct pt_block *last)
{
	struct pt_block *b = pt_flow_block_here(f);

	while (b && b != last) {
		f->counts.insns += b->insns;
		if (b->cls == INSN_JMP || b->cls == INSN_CALL)
			take_direct(f, b);
		b = pt_flow_direct_next(f, b);
	}
}

void pt_flow_pass_to_dead(struct pt_flow *f, const struct pt_block *b)
{
	if (f->graph->full)
		return;
	pt_flow_pass_blocks(f, b);
	f->counts.insns += b->insns;
	pt_flow_end_path_at(f, pt_block_term_ip(b));
	f->at.position = 0;
}

bool pt_flow_walk_to(struct pt_flow *f, uint64_t ip, struct flow_obstacle *ret_why)
{
	struct pt_block *b;

	*ret_why = (struct flow_obstacle){.kind = PT_FLOW_MISMATCH};
	b = find_block(f, ip, ret_why);
	if (!b) {
		if (ret_why->block)
			pt_flow_pass_to_dead(f, ret_why->block);
		return false;
	}
	pt_flow_pass_blocks(f, b);
	f->counts.insns += (uint32_t)insns_to(f, b, ip);
	return pt_flow_arrive(f, ip);
}
