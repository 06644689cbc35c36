/* detach.c - a flow without its graph, while that is recycled; see flow.h. */
#include "decode/flow/internal.h"

#include <stdlib.h>

/* A position, without the graph. */
struct place {
	uint64_t ip;
	struct pt_code *code; /* NULL: none */
	uint8_t mode;	      /* enum insn_mode */
};

/* An edge, and a path. */
struct detached_edge {
	uint64_t from, to;
	struct pt_code *code;
	uint8_t kind; /* enum ptr_kind */
	bool ends_trace;
};
struct detached_path {
	struct pt_code *code; /* NULL: none */
	uint64_t start_ip, end_ip;
	uint8_t mode, count; /* enum insn_mode; edges */
	struct detached_edge edges[PTR_PATH_EDGES];
};

struct flow_places {
	struct place here, stack[PT_STACK], host_stack[PT_STACK];
	struct detached_edge gathered[PT_FLOW_GATHERED]; /* f->path.edges */
	struct detached_path held;			 /* f->run.path */
};

/* ---- Positions -------------------------------------------------------------------------------------- */

static struct place place_of(const struct pt_flow *f, uint32_t position)
{
	const struct pt_where *w = &f->graph->where[position];

	return (struct place){
	    .ip = w->ip, .code = position ? f->graph->codes[w->code] : NULL, .mode = w->mode};
}

static uint32_t position_at(struct pt_flow *f, const struct place *place)
{
	return place->code ? pt_graph_position(f->graph, place->code, place->ip, place->mode) : 0;
}

static void detach_stack(const struct pt_flow *f, const struct flow_return_stack *stack, struct place *places)
{
	for (uint32_t i = stack->bottom; i != stack->top; i++)
		places[i % PT_STACK] = place_of(f, stack->entries[i % PT_STACK]);
}

static void reattach_stack(struct pt_flow *f, struct flow_return_stack *stack, const struct place *places)
{
	for (uint32_t i = stack->bottom; i != stack->top; i++)
		stack->entries[i % PT_STACK] = position_at(f, &places[i % PT_STACK]);
}

/* ---- Edges, the path that is held ------------------------------------------------------------------- */

static void detach_edges(const struct pt_graph *g, const uint32_t *edges, uint32_t n,
			 struct detached_edge *ret)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct pt_edge *edge = &g->edges[edges[i]];

		ret[i] = (struct detached_edge){.from = edge->from,
						.to = edge->to,
						.code = g->codes[edge->code],
						.kind = edge->kind,
						.ends_trace = edge->ends_trace};
	}
}

/* False: the graph is full. */
static bool reattach_edges(struct pt_graph *g, const struct detached_edge *edges, uint32_t n, uint32_t *ret)
{
	bool ok = true;

	for (uint32_t i = 0; i < n; i++) {
		const struct detached_edge *e = &edges[i];
		enum ptr_kind kind = (enum ptr_kind)e->kind;

		ret[i] = e->ends_trace ? pt_graph_end_edge(g, e->code, e->from, e->to, kind)
				       : pt_graph_edge(g, e->code, e->from, e->to, kind);
		ok &= ret[i] != 0;
	}
	return ok;
}

static void detach_held(const struct pt_flow *f, struct detached_path *ret)
{
	const struct pt_graph *g = f->graph;
	const struct pt_path *path = &g->paths[f->run.path];

	*ret = (struct detached_path){.code = g->codes[path->code],
				      .start_ip = path->start_ip,
				      .end_ip = path->end_ip,
				      .mode = path->mode,
				      .count = path->count};
	detach_edges(g, g->path_edges + path->first, path->count, ret->edges);
}

/* Its number; 0: the graph is full. */
static uint32_t reattach_held(struct pt_graph *g, const struct detached_path *held)
{
	uint32_t edges[PTR_PATH_EDGES + 3];
	const struct pt_path_key key = {.code = held->code,
					.start_ip = held->start_ip,
					.end_ip = held->end_ip,
					.edges = edges,
					.count = held->count,
					.mode = (enum insn_mode)held->mode};

	return reattach_edges(g, held->edges, held->count, edges) ? pt_graph_path(g, &key, 0) : 0;
}

/* ---- All of it -------------------------------------------------------------------------------------- */

/* The run's path is of a version of the code that is not there any more: it cannot be found again. */
static bool held_is_old(const struct pt_flow *f)
{
	uint32_t code = f->graph->paths[f->run.path].code;

	return f->graph->codes[code]->id != code;
}

int pt_flow_detach(struct pt_flow *f, struct pt_error *e)
{
	struct flow_places *places = calloc(1, sizeof *places);

	if (!places)
		return pt_fail_no_memory(e, NULL);
	f->touched++;
	pt_flow_stop_recording(f);
	if (f->run.repeats && held_is_old(f))
		pt_flow_put_run(f, PTR_UNKNOWN, 0);
	pt_flow_deliver(f);
	if (f->run.repeats)
		detach_held(f, &places->held);
	detach_edges(f->graph, f->path.edges, f->path.len, places->gathered);
	f->run.path = f->path.last = 0;
	places->here = place_of(f, f->at.position);
	detach_stack(f, &f->stack, places->stack);
	detach_stack(f, &f->host_stack, places->host_stack);
	free(f->places);
	f->places = places;
	return 0;
}

void pt_flow_reattach(struct pt_flow *f)
{
	f->at.position = position_at(f, &f->places->here);
	f->at.decision = PT_D_UNRESOLVED;
	reattach_stack(f, &f->stack, f->places->stack);
	reattach_stack(f, &f->host_stack, f->places->host_stack);
	if (!reattach_edges(f->graph, f->places->gathered, f->path.len, f->path.edges))
		f->path.len = 0; /* no branch is reported any more */
	if (f->run.repeats && !(f->run.path = reattach_held(f->graph, &f->places->held)))
		f->run.repeats = 0;
	free(f->places);
	f->places = NULL;
}
