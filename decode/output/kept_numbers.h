/*
 * kept_numbers.h - record numbers of edges and paths that the graph does not have any more.
 *
 * When the graph is recycled depends on what was decoded by which thread; what is written must not. So an edge
 * or a path that comes again gets the number that it has, until all are forgotten (definitions.h), which is
 * always after the same definitions.
 *
 *     records      def P1   def P2       run P1      def P3 | def P1     all numbers are forgotten at |
 *     graph        P1       P1, P2       (recycled) P1  ...
 *     kept                               P1, P2
 *
 * 16 bytes in a hash table for each: they are the same when 96 bits of their hashes are, as in code/paths.h.
 */
#ifndef DECODE_OUTPUT_KEPT_NUMBERS_H
#define DECODE_OUTPUT_KEPT_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/code/graph.h"

struct pt_kept_slot {
	uint64_t high;
	uint32_t low;
	uint32_t number; /* 0 free */
};

/* Zeroed: it has none. */
struct pt_kept_numbers {
	struct pt_kept_slot *slots; /* mask + 1 */
	uint32_t mask, count;
	/* Bits: a Bloom filter with one hash of those that were forgotten; so many are set. NULL: none was. */
	uint64_t *forgotten;
	uint32_t forgotten_count;
};

/* The numbers of all of the graph's paths, and of its edges, that have one. False: no memory. */
bool pt_keep_path_numbers(struct pt_kept_numbers *k, const struct pt_graph *g);
bool pt_keep_edge_numbers(struct pt_kept_numbers *k, const struct pt_graph *g);
/* The number of an edge, or a path, of the graph; 0: none is kept. */
uint32_t pt_kept_edge_number(const struct pt_kept_numbers *k, const struct pt_edge *edge);
uint32_t pt_kept_path_number(const struct pt_kept_numbers *k, const struct pt_graph *g,
			     const struct pt_path *path);
/* The most memory that it takes up to when it has so many, and up to *ret_room. */
size_t pt_kept_numbers_bytes(const struct pt_kept_numbers *k, uint32_t count, uint32_t *ret_room);
/* Of none from now on. Returns how many of them had been forgotten before: it does not depend on when and by
 * what graph they were kept. */
uint32_t pt_kept_numbers_forget(struct pt_kept_numbers *k);
void pt_kept_numbers_deinit(struct pt_kept_numbers *k);

#endif
