/*
 * kept_paths.h - what the lines of a run say of its path, when the graph forgets that before they are printed.
 *
 * A run's lines wait until its times are known (text_runs.h). Paths of runs that wait, of which there are few,
 * are copied when the graph is recycled.
 */
#ifndef DECODE_OUTPUT_KEPT_PATHS_H
#define DECODE_OUTPUT_KEPT_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/code/graph.h"
#include "decode/output/insn_texts.h"

struct pt_kept_path {
	uint32_t users; /* runs; 0: it is free, and next the next one that is, and 1 */
	size_t next;
	/* Edges, and the instructions before each of them. */
	uint32_t count, tail_insns;
	struct pt_edge *edges;
	uint32_t *insns;
	/* Or instructions: how long the text of each is; the texts, one after the other. */
	uint32_t *text_bytes;
	char *texts;
};

/* Zeroed: it has none. */
struct pt_kept_paths {
	struct pt_kept_path *items;
	size_t count, room, free; /* free: the first one, and 1; 0: none is */
};

/* A copy of a path of the graph, for one run: of its edges, or of its instructions' texts (NULL: edges). Its
 * item; SIZE_MAX: no memory. */
size_t pt_keep_path(struct pt_kept_paths *k, const struct pt_graph *g, uint32_t path,
		    const struct pt_insn_texts *texts);
/* Another run's, too; and one run's no more. */
void pt_kept_path_share(struct pt_kept_paths *k, size_t item);
void pt_kept_path_release(struct pt_kept_paths *k, size_t item);
void pt_kept_paths_deinit(struct pt_kept_paths *k);

#endif
