/*
 * counts.h - how often each instruction of a function ran, and how often each of its branches was taken.
 */
#ifndef QUERIES_ANNOTATE_COUNTS_H
#define QUERIES_ANNOTATE_COUNTS_H

#include "queries/annotate/paths.h"

/* An instruction's way out: a taken branch, or an interrupt. */
struct way {
	uint32_t insn;	 /* NO_INSN: none of the function's */
	uint32_t target; /* its instruction, NO_INSN: of another function, or not seen */
	uint32_t branch; /* index into paths.branches: one that is like all of them */
	uint64_t count;
};

struct counts {
	uint64_t *ran;	  /* by instruction */
	struct way *ways; /* by instruction, the most frequent first */
	size_t way_count, way_room;
};

/* What lies between two branches of a path, or after the last: n instructions of straight code. */
struct stretch {
	uint32_t first; /* an instruction, or NO_INSN: it lies outside */
	uint32_t n;
	const struct branch *branch; /* that ends it; NULL: the path's end */
	const struct branch *before; /* that led to it; NULL: the path's beginning */
	uint32_t branch_index;
};
/* Number i, up to and including path->branches (the tail). */
struct stretch stretch_of(const struct fn *f, const struct paths *p, const struct code_path *path,
			  uint32_t i);

/* An interrupted instruction was not executed, or only begun. */
static inline bool branch_interrupts(const struct branch *b)
{
	return b->kind == PTR_ASYNC || b->kind == PTR_VMEXIT || b->kind == PTR_TX_ABORT;
}

/* times: of each of paths->all. 0, or -1: PT_ERR_NO_MEMORY. */
int counts_init(struct counts *c, const struct fn *f, const struct paths *p, const uint64_t *times,
		struct pt_error *e);
void counts_deinit(struct counts *c);

#endif
