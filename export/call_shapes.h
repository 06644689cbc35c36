/*
 * call_shapes.h - what the calls that return in a run look like, interned: table call_shape.
 *
 * A shape is all that the calls of one run have in common with those of others: from where in which
 * run before each was made, where it returns, its counts, which of them calls which, and their call
 * paths, as differences to the smallest. The same runs return from the same calls again and again:
 * some 8 % of a program's calls are of a shape that is new.
 *
 * Memory is bounded. The first SHAPES_RANKED shapes are counted, and at the end the most frequent get
 * the smallest numbers, which take the least room in call_group. Later shapes are written as they
 * come, and are found again only while a small cache has them.
 */
#ifndef EXPORT_CALL_SHAPES_H
#define EXPORT_CALL_SHAPES_H

#include <stdint.h>

#include "schema/error.h"

struct inserter;

enum {
	SHAPE_CALLS = 64,	 /* in a shape, at most */
	SHAPES_RANKED = 1 << 18, /* shapes that are counted, at most */
	SHAPES_BYTES = 1 << 24,	 /* of memory for these */
	SHAPES_CACHED = 1 << 15, /* later shapes in the cache */
	SHAPE_CALLER_OTHER = 64	 /* see struct shaped_call */
};

#define SHAPE_NONE UINT32_MAX

/* A call of a shape. Numbers are below DIGITS_MAX; call_at, return_at, branch_count, flags and caller
 * below DIGITS_ONE. */
struct shaped_call {
	uint32_t path_add; /* call path - the shape's smallest + 1; 0 unknown */
	uint32_t runs_back, call_at, return_at, branch_count, insn_count, flags;
	/* 1 to 63: the caller is that many calls further on in the shape. 0, and SHAPE_CALLER_OTHER +
	 * n: it is none of these, and struct group_calls has it. */
	uint32_t caller;
};

struct call_shapes;

/* scratch: a file of the caller's. NULL: PT_ERR_NO_MEMORY, or SQLite's error. */
struct call_shapes *call_shapes_create(struct inserter *inserter, int scratch, int64_t trace,
				       struct pt_error *e);
void call_shapes_destroy(struct call_shapes *s); /* NULL is fine */
/*
 * The calls of one more run, on their way to their shape. It is looked for in steps, with those of other runs
 * between them, for each step fetches what the next one reads: mostly that is in no cache.
 */
/* A hash of the calls' numbers, which identifies a shape: two of the 2^18 that are kept have the same one in
 * one trace of 10^28. */
struct shape_key {
	uint64_t words[2];
};
/* 1 <= n <= SHAPE_CALLS. */
void call_shapes_begin(const struct call_shapes *s, const struct shaped_call *calls, uint32_t n,
		       struct shape_key *ret);
/* Once after call_shapes_begin(). */
void call_shapes_fetch(const struct call_shapes *s, const struct shape_key *key);
/* Then, in the order of the runs: *ret_handle is for call_shapes_number(); SHAPE_NONE when all numbers are
 * taken. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_IO. */
int call_shapes_add(struct call_shapes *s, const struct shaped_call *calls, uint32_t n,
		    const struct shape_key *key, uint32_t *ret_handle, struct pt_error *e);
/* After the last run: numbers the shapes and fills the table. 0, or -1. */
int call_shapes_finish(struct call_shapes *s, struct pt_error *e);
/* After call_shapes_finish(): the shape's number in the table, from 1. */
uint32_t call_shapes_number(const struct call_shapes *s, uint32_t handle);

#endif
