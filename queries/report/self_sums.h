/*
 * self_sums.h - what each thread spent in each call path itself: sums of its calls, less those of its
 * callees.
 *
 * Each path's own sums, with callees, are added for each thread, in any order; in that of the paths' numbers
 * it is fastest. Memory: 32 bytes, and 8 to 16 of the index, for each thread and path.
 */
#ifndef QUERIES_REPORT_SELF_SUMS_H
#define QUERIES_REPORT_SELF_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"
#include "schema/hash.h"

/* insns, cycles, ticks: UNPACK_UNKNOWN where nothing that was added is known (schema/unpack/sql.h). */
struct self_sum {
	uint32_t path, thread; /* thread: its user's number of it */
	int64_t insns, cycles, ticks;
};

struct self_sums {
	struct self_sum *sums;
	size_t count, room;
	struct pt_hash by_key; /* numbers of sums, from 1 */
};

/* expected: the index has room for so many sums. 0, or -1: PT_ERR_NO_MEMORY. self_sums_deinit() in either
 * case. */
int self_sums_init(struct self_sums *s, size_t expected, struct pt_error *e);
void self_sums_deinit(struct self_sums *s);

/* Adds what its calls took, callees included, to its path, and takes it off the caller's. parent: the
 * caller's path, 0: it has none. 0, or -1: PT_ERR_NO_MEMORY. */
int self_sums_add(struct self_sums *s, const struct self_sum *calls, uint32_t parent, struct pt_error *e);

/* a + b, of which one may be unknown. It wraps: what a database claims may be anything. */
int64_t self_sums_plus(int64_t a, int64_t b);

#endif
