/* positions.c - see positions.h. */
#include "decode/code/graph.h"

#include <string.h>

static bool backward(uint64_t from, uint64_t to)
{
	return to <= from;
}

/* Direct jumps and calls in a prefix: an arc's fourth edge is the decision's own. */
#define PREFIX_EDGES 3
#define PREFIX_INSNS (1u << 20) /* about; endless loops have to be noticed */

/* What lies between a position and its decision. */
struct prefix {
	struct pt_arc arc;
	uint32_t edges[4];
	uint64_t push_ip; /* of the call's return, when arc.rise */
};

static bool pushes(const struct pt_block *b)
{
	return b->cls == INSN_CALL && !b->rel0;
}

static bool has_room(const struct prefix *prefix, const struct pt_block *b)
{
	return prefix->arc.n_edges < PREFIX_EDGES && !(pushes(b) && prefix->arc.rise);
}

/* Adds the direct jump or call that ends b. False when the graph is full. */
static bool add_direct(struct pt_graph *g, struct pt_code *code, const struct pt_block *b,
		       struct prefix *prefix)
{
	uint32_t edge = pt_graph_edge(g, code, pt_block_term_ip(b), pt_block_target(b), pt_kind_of(b->cls));

	if (!edge)
		return false;
	prefix->edges[prefix->arc.n_edges++] = edge;
	prefix->arc.backward = backward(pt_block_term_ip(b), pt_block_target(b));
	if (pushes(b)) {
		prefix->push_ip = pt_block_next_ip(b);
		prefix->arc.rise = 1;
	}
	return true;
}

static enum pt_decision decision_of(const struct pt_block *b)
{
	switch (b->cls) {
	case INSN_JCC: return PT_D_JCC;
	case INSN_RET: return PT_D_RET;
	case INSN_JMP_IND:
	case INSN_CALL_IND: return PT_D_IND;
	default: return PT_D_FAR;
	}
}

/* Runs from block b to the decision, and fills *ret, which is zeroed. *ret_last: as in struct pt_where. */
static enum pt_decision run_to_decision(struct pt_graph *g, struct pt_code *code, struct pt_block *b,
					struct prefix *ret, const struct pt_block **ret_last)
{
	const enum insn_mode mode = b->mode;

	while (b) {
		bool direct = b->cls == INSN_JMP || b->cls == INSN_CALL;

		*ret_last = b;
		if (ret->arc.insns > PREFIX_INSNS || (direct && !has_room(ret, b)))
			return PT_D_CONT;
		ret->arc.insns += b->insns;
		if (b->dead)
			return PT_D_DEAD;
		if (direct) {
			if (!add_direct(g, code, b, ret))
				return PT_D_DEAD;
			b = pt_graph_block(g, code, pt_block_target(b), mode);
			if (b && b->ip == code->switch_ip) {
				*ret_last = b;
				return PT_D_CONT;
			}
		} else if (b->cls == INSN_OTHER) {
			b = pt_graph_next_block(g, b);
		} else {
			return decision_of(b);
		}
	}
	return PT_D_DEAD;
}

static void build(struct pt_graph *g, struct pt_code *code, uint32_t p)
{
	union pt_position *position = &g->positions[p];
	struct pt_edge_list *edge_list = &g->edge_lists[p];
	struct prefix prefix = {0};
	struct pt_block *first = &g->blocks[g->where[p].block];
	const struct pt_block *last = first;
	enum pt_decision decision = run_to_decision(g, code, first, &prefix, &last);
	struct pt_arc *arc = &prefix.arc;

	g->where[p].block = (uint32_t)(last - g->blocks);
	g->decisions[p] = (uint8_t)decision;
	if (arc->rise)
		arc->push = pt_graph_position(g, code, prefix.push_ip, first->mode);
	position->arc[0] = *arc;
	memcpy(edge_list->edges, prefix.edges, sizeof prefix.edges);
	if (decision == PT_D_JCC || decision == PT_D_CONT) {
		/* What is beyond the decision is resolved when a packet leads there. */
		position->arc[1] = *arc;
	} else if (decision == PT_D_RET) {
		position->arc[1] = *arc;
		position->arc[1].n_edges++;
		position->arc[1].next = arc->push;
		position->arc[1].rise--;
		position->arc[1].decision = PT_D_RET;
	} else if (last->cls == INSN_CALL_IND) {
		position->ind.calls = true;
		edge_list->push = pt_graph_position(g, code, pt_block_next_ip(last), last->mode);
	}
}

uint32_t pt_graph_position(struct pt_graph *g, struct pt_code *code, uint64_t ip, enum insn_mode mode)
{
	struct pt_block *b = pt_graph_block(g, code, ip, mode);
	uint32_t p;

	if (!b)
		return 0;
	if (b->position)
		return b->position;
	if (g->position_count == g->position_room || g->full) {
		pt_graph_set_full(g);
		return 0;
	}
	pt_graph_watch_room(g, g->position_count, g->position_room);
	pt_graph_add_bytes(g, &g->code_bytes,
			   sizeof *g->positions + sizeof *g->edge_lists + sizeof *g->decisions +
			       sizeof *g->where);
	p = g->position_count++;
	b->position = p;
	g->where[p].ip = ip;
	g->where[p].code = code->id & ((1u << 30) - 1);
	g->where[p].mode = mode & 3;
	g->where[p].block = (uint32_t)(b - g->blocks);
	g->decisions[p] = PT_D_UNRESOLVED; /* built when the flow gets there */
	return p;
}

uint8_t pt_graph_decision(struct pt_graph *g, uint32_t p)
{
	if (g->decisions[p] == PT_D_UNRESOLVED) {
		build(g, g->codes[g->where[p].code], p);
		if (g->full) /* its arcs may lack something */
			g->decisions[p] = PT_D_DEAD;
	}
	return g->decisions[p];
}

/* Where a position's arc leads. */
static uint64_t address_after(const struct pt_block *last, enum pt_decision decision, bool taken)
{
	if (decision == PT_D_CONT)
		return last->ip;
	return taken ? pt_block_target(last) : pt_block_next_ip(last);
}

bool pt_graph_follow(struct pt_graph *g, uint32_t p, unsigned bit)
{
	const struct pt_block *last = pt_graph_last_block(g, p);
	struct pt_arc *arc = &g->positions[p].arc[bit];
	struct pt_code *code = g->codes[g->where[p].code];
	bool taken = bit && g->decisions[p] != PT_D_CONT;
	uint64_t from = pt_block_term_ip(last), to = address_after(last, g->decisions[p], taken);
	uint32_t edge = taken ? pt_graph_edge(g, code, from, to, PTR_JCC) : 0;
	uint32_t next = pt_graph_position(g, code, to, last->mode);
	uint8_t decision = next ? pt_graph_decision(g, next) : PT_D_DEAD;

	if (g->full)
		return false; /* and the arc is as it was */
	if (taken) {
		g->edge_lists[p].edges[arc->n_edges] = edge;
		arc->n_edges++;
		arc->backward = backward(from, to);
	}
	arc->next = next;
	arc->decision = decision;
	return true;
}
