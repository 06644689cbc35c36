/*
 * call_shapes.h - what many calls have in common, interned: table call_shape.
 *
 * The same call path is called from and returned to the same places of the same paths again and again: some 1 % of a
 * program's calls have a shape of their own. The first SHAPES_RANKED shapes are counted, and the most frequent get the
 * smallest numbers, which take the least room in call_group; later ones are written as they come, and found again only
 * while a small cache has them. Memory is bounded so.
 */
#ifndef EXPORT_CALL_SHAPES_H
#define EXPORT_CALL_SHAPES_H

#include <sqlite3.h>
#include <stdint.h>

#include "schema/error.h"

enum { SHAPES_RANKED = 1 << 19, SHAPES_CACHED = 1 << 16 };

#define SHAPE_NONE UINT32_MAX

/* Each below DIGITS_MAX, those of return_at, call_at, branch_count and flags below DIGITS_ONE. */
struct call_shape {
	uint32_t call_path; /* the database's id, 0 unknown */
	uint32_t runs_back, call_at, return_at, branch_count, insn_count, flags;
};

struct call_shapes;

/* NULL: PT_ERR_NO_MEMORY, or SQLite's. */
struct call_shapes *call_shapes_create(sqlite3 *db, int64_t trace, struct pt_error *e);
void call_shapes_destroy(struct call_shapes *s);
/* One more call of that shape. *ret_handle: for call_shapes_id(); SHAPE_NONE when there is no number left. 0 or -1. */
int call_shapes_add(struct call_shapes *s, const struct call_shape *shape, uint32_t *ret_handle,
		    struct pt_error *e);
/* After the last: numbers them and fills the table. */
int call_shapes_finish(struct call_shapes *s, struct pt_error *e);
/* After call_shapes_finish(): the shape's number in the table. */
uint32_t call_shapes_id(const struct call_shapes *s, uint32_t handle);

#endif
