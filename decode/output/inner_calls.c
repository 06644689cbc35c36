/* inner_calls.c - see inner_calls.h. */
#include "decode/output/inner_calls.h"

#include "decode/output/call_roles.h"

/* Calls that are open. */
struct open_call {
	uint64_t ret;
	uint32_t call_path; /* id */
	uint8_t edge;
	bool tail;
};

struct open_calls {
	struct open_call calls[PTR_PATH_EDGES];
	uint32_t count;
};

/* What the edge pushes is open. False: it pushes nothing, or what a tail call returns to is not known. */
static bool push(struct open_calls *o, const struct pt_edge *edge, uint32_t i)
{
	bool tail = edge->role == PT_ROLE_TAIL;

	if (edge->role != PT_ROLE_CALL && !(tail && o->count))
		return false;
	o->calls[o->count] =
	    (struct open_call){.ret = tail ? o->calls[o->count - 1].ret : edge->from + edge->bytes,
			       .edge = (uint8_t)i,
			       .tail = tail};
	o->count++;
	return true;
}

/* The edge returns from the call that was opened last; with its tail calls, which return together. */
static bool returns(const struct open_calls *o, const struct pt_edge *edge)
{
	return edge->role == PT_ROLE_RET && o->count && o->calls[o->count - 1].ret == edge->to;
}

static const struct pt_edge *edge_at(const struct pt_graph *g, uint32_t first, uint32_t i)
{
	return &g->edges[g->path_edges[first + i]];
}

uint32_t pt_inner_calls_find(const struct pt_graph *g, const struct pt_path *path)
{
	struct open_calls open;
	uint32_t inner = 0;

	if (pt_path_is_wide(path->insns))
		return 0;
	open.count = 0;
	for (uint32_t left = path->calls; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(left);
		const struct pt_edge *edge = edge_at(g, path->first, i);

		if (returns(&open, edge)) {
			const struct open_call *call;

			do
				call = &open.calls[--open.count];
			while (call->tail);
			inner |= path->calls & ((2u << i) - (1u << call->edge));
		} else if (!push(&open, edge, i)) {
			open.count = 0; /* those that are open do not return, or not in order */
		}
	}
	return inner;
}

/* ---- What they are ---------------------------------------------------------------------------------- */

struct maker {
	const struct pt_graph *graph;
	const struct pt_inner_at *at;
	const struct pt_call_sink *to;
	struct pt_inner_calls *ret;
	struct open_calls open;
};

static uint32_t insns_until(const struct maker *m, uint32_t i)
{
	return m->graph->path_until[m->at->first + i];
}

/* The call that was opened last returns with edge i. Was it a tail call? */
static bool pop(struct maker *m, uint32_t i)
{
	const struct open_call *call = &m->open.calls[--m->open.count];

	m->ret->calls[m->ret->count++] =
	    (struct pt_inner_call){.call_path = call->call_path,
				   .insns = insns_until(m, i) - insns_until(m, call->edge),
				   .branches = (uint8_t)(i - call->edge),
				   .returns_at = (uint8_t)(i - m->at->begin),
				   .depth = (uint8_t)m->open.count,
				   .flags = call->tail ? PTR_CALL_NON_CALL : 0};
	return call->tail;
}

/* The edge calls, from the call path `parent` if no call is open. False: no memory. */
static bool call(struct maker *m, const struct pt_edge *edge, uint32_t i, uint32_t parent)
{
	const struct pt_callee callee = {.ip = edge->to, .place = edge->place, .named = edge->named};
	struct open_calls *o = &m->open;
	uint32_t caller = o->count ? o->calls[o->count - 1].call_path : parent, id;

	push(o, edge, i);
	id = o->calls[o->count - 1].call_path = pt_call_path(m->to->paths, caller, &callee, m->to->added);
	return id;
}

bool pt_inner_calls_make(const struct pt_graph *g, const struct pt_inner_at *at, uint32_t parent,
			 const struct pt_call_sink *to, struct pt_inner_calls *ret)
{
	struct maker m;
	uint32_t left = at->calls >> at->begin << at->begin;

	m.graph = g;
	m.at = at;
	m.to = to;
	m.ret = ret;
	m.open.count = 0;
	ret->count = 0;
	for (uint32_t i; left && (i = (uint32_t)__builtin_ctz(left)) < at->end; left &= left - 1) {
		const struct pt_edge *edge = edge_at(g, at->first, i);

		if (returns(&m.open, edge)) {
			while (pop(&m, i))
				continue;
		} else if (!call(&m, edge, i, parent)) {
			return false;
		}
	}
	return true;
}
