/*
 * call_shapes.h - what the calls that return in a run look like, interned: table call_shape.
 *
 * A shape is that of a run's calls together: from where in which run before each was called, where it returns, its counts,
 * who of them is whose caller, and their call paths, as differences to the smallest. The same runs return from the same calls
 * again and again: some 8 % of a program's calls are in a shape for the first time. The first SHAPES_RANKED shapes are
 * counted, and the most frequent get the smallest numbers, which take the least room in call_group; later ones are written
 * as they come, and found again only while a small cache has them. Memory is bounded so.
 */
#ifndef EXPORT_CALL_SHAPES_H
#define EXPORT_CALL_SHAPES_H

#include <sqlite3.h>
#include <stdint.h>

#include "schema/error.h"

enum {
	SHAPE_CALLS = 64,	  /* in a shape, at most */
	SHAPES_RANKED = 1 << 18,  /* and no more than */
	SHAPES_BYTES = 1 << 24,	  /* of memory for what they are */
	SHAPES_CACHED = 1 << 15,  /* later ones, of up to */
	SHAPES_CACHED_BYTES = 56, /* each */
	/* Of shaped_call's caller: that many calls further on in the shape; from here on, and 0, another one. */
	SHAPE_CALLER_OTHER = 64
};

#define SHAPE_NONE UINT32_MAX

/* Each below DIGITS_MAX, call_at, return_at, branch_count, flags and caller below DIGITS_ONE. */
struct shaped_call {
	uint32_t path_add; /* call path - the shape's smallest + 1; 0 unknown */
	uint32_t runs_back, call_at, return_at, branch_count, insn_count, flags, caller;
};

struct call_shapes;

/* NULL: PT_ERR_NO_MEMORY, or SQLite's. */
struct call_shapes *call_shapes_create(sqlite3 *db, int64_t trace, struct pt_error *e);
void call_shapes_destroy(struct call_shapes *s);
/* One more run with such calls, 1 <= n <= SHAPE_CALLS. *ret_handle: for call_shapes_number(); SHAPE_NONE when there is no
 * number left. 0 or -1. */
int call_shapes_add(struct call_shapes *s, const struct shaped_call *calls, uint32_t n, uint32_t *ret_handle,
		    struct pt_error *e);
/* After the last: numbers them and fills the table. */
int call_shapes_finish(struct call_shapes *s, struct pt_error *e);
/* After call_shapes_finish(): the shape's number in the table, >= 1. */
uint32_t call_shapes_number(const struct call_shapes *s, uint32_t handle);

#endif
