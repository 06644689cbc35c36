/*
 * largest.h - those of many stacks with the largest shares: a heap, the least of them first.
 */
#ifndef QUERIES_REPORT_LARGEST_H
#define QUERIES_REPORT_LARGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

/* sum: its user's number of it. Of equal shares that of the smaller path, and thread, is larger. */
struct stack_share {
	double share;
	uint32_t path, thread, sum;
};

struct largest {
	struct stack_share *stacks;
	size_t count, max;
};

/* max: how many are kept. 0, or -1: PT_ERR_NO_MEMORY. */
int largest_init(struct largest *l, size_t max, struct pt_error *e);
void largest_deinit(struct largest *l);
/* Keeps it if there is room, or else if it is larger than the least one. True: *ret_left is not kept, or no
 * more. */
bool largest_add(struct largest *l, const struct stack_share *x, struct stack_share *ret_left);
/* By path, then thread; nothing is added any more. */
void largest_sort(struct largest *l);

#endif
