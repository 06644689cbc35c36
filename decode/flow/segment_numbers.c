/* segment_numbers.c - the flow's numbers for what a decoder has numbered; see segment_log.h. */
#include "decode/flow/segment_log.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "decode/code/huge_pages.h"

struct pt_segment_numbers *pt_segment_numbers_create(const struct pt_segment_decoder *d)
{
	struct pt_segment_numbers *n = calloc(1, sizeof *n);

	if (!n)
		return NULL;
	n->from = pt_segment_decoder_graph(d);
	n->paths = pt_pages_reserve(n->from->path_room, sizeof *n->paths);
	n->edges = pt_pages_reserve(n->from->edge_room, sizeof *n->edges);
	n->known = pt_pages_reserve(n->from->path_room, sizeof *n->known);
	if (pt_segment_decoder_sums(d))
		n->sum_at = pt_pages_reserve(n->from->path_room, sizeof *n->sum_at);
	if (n->paths && n->edges && n->known && (n->sum_at || !pt_segment_decoder_sums(d)))
		return n;
	pt_segment_numbers_destroy(n);
	return NULL;
}

void pt_segment_numbers_destroy(struct pt_segment_numbers *n)
{
	if (!n)
		return;
	pt_pages_release(n->paths, n->from->path_room, sizeof *n->paths);
	pt_pages_release(n->edges, n->from->edge_room, sizeof *n->edges);
	pt_pages_release(n->known, n->from->path_room, sizeof *n->known);
	pt_pages_release(n->sum_at, n->from->path_room, sizeof *n->sum_at);
	free(n);
}

void pt_segment_numbers_forget(struct pt_segment_numbers *n)
{
	pt_pages_wipe(n->paths, n->from->path_room, sizeof *n->paths);
	pt_pages_wipe(n->edges, n->from->edge_room, sizeof *n->edges);
	pt_pages_wipe(n->known, n->from->path_room, sizeof *n->known);
	atomic_fetch_add_explicit(&n->generation, 1, memory_order_release);
}

/* ---- Edges, paths, positions ------------------------------------------------------------------------ */

/* By its uid in the decoder's graph. */
static struct pt_code *code_of_uid(const struct segment_taking *t, uint32_t uid)
{
	return uid == t->segment->kernel_uid ? t->f->kernel : t->f->user;
}

uint32_t pt_segment_edge(const struct segment_taking *t, uint32_t local)
{
	const struct pt_edge *edge = &t->segment->graph->edges[local];
	uint32_t *number = &t->numbers->edges[local];
	struct pt_code *code = code_of_uid(t, edge->code);

	if (!*number)
		*number = edge->ends_trace ? pt_graph_end_edge(t->f->graph, code, edge->from, edge->to,
							       (enum ptr_kind)edge->kind)
					   : pt_graph_edge(t->f->graph, code, edge->from, edge->to,
							   (enum ptr_kind)edge->kind);
	return *number;
}

uint32_t pt_segment_find_path(const struct segment_taking *t, uint32_t local)
{
	const struct pt_graph *from = t->segment->graph;
	const struct pt_path *path = &from->paths[local];
	uint32_t edges[PTR_PATH_EDGES + 3];
	const struct pt_path_key key = {.code = pt_segment_code(t, path->code),
					.start_ip = path->start_ip,
					.end_ip = path->end_ip,
					.edges = edges,
					.count = path->count,
					.mode = (enum insn_mode)path->mode,
					.like = from,
					.like_path = local};

	uint32_t number;

	for (uint32_t i = 0; i < path->count; i++)
		edges[i] = pt_segment_edge(t, from->path_edges[path->first + i]);
	number = pt_graph_path(t->f->graph, &key, 0);
	t->numbers->paths[local] = number ? number << 1 | (path->code == t->segment->kernel_code) : 0;
	return number;
}

uint32_t pt_segment_position(const struct segment_taking *t, uint32_t local)
{
	const struct pt_where *w = &t->segment->graph->where[local];

	return local ? pt_graph_position(t->f->graph, pt_segment_code(t, w->code), w->ip,
					 (enum insn_mode)w->mode)
		     : 0;
}
