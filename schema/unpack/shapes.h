/*
 * shapes.h - the table call_shape: what the calls that return in a run have in common with those of other
 * runs.
 */
#ifndef SCHEMA_UNPACK_SHAPES_H
#define SCHEMA_UNPACK_SHAPES_H

#include <sqlite3.h>
#include <stdint.h>

#include "schema/error.h"

/* A call of a shape; schema/tables.sql explains the numbers. */
struct shape_call {
	uint32_t path_add, runs_back, branch_count, insn_count, caller;
	uint16_t call_at, return_at;
	uint32_t flags;
};

struct shapes;

/* Those of a trace. Memory: 4 bytes a row of the table, and a cache of 7 MB. NULL: PT_ERR_NO_MEMORY, or as
 * unpack_sql_error(). */
struct shapes *shapes_create(sqlite3 *db, int64_t trace, struct pt_error *e);
void shapes_destroy(struct shapes *s); /* NULL is fine */

/* The calls of shape `number`, valid until the next one is asked for. 0, or -1: as unpack_sql_error(),
 * unpack_damaged(). */
int shapes_get(struct shapes *s, uint32_t number, const struct shape_call **ret_calls, uint32_t *ret_n,
	       struct pt_error *e);

#endif
