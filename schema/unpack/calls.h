/*
 * calls.h - the calls of a trace, as the view `call` has them, in the order of returning.
 */
#ifndef SCHEMA_UNPACK_CALLS_H
#define SCHEMA_UNPACK_CALLS_H

#include <sqlite3.h>
#include <stdint.h>

#include "schema/error.h"
#include "schema/unpack/group_table.h"
#include "schema/unpack/sql.h"

enum { RUN_BRANCHES_BITS = 10 }; /* of a branch's id, below its run's */

/* Columns of the view, UNPACK_UNKNOWN where they are NULL; and the row of call_group that has it. */
struct unpacked_call {
	int64_t id, call_group, trace, thread, call_path, call_branch, return_branch, call_tsc, return_tsc;
	int64_t branch_count, insn_count, cyc_count, flags, parent;
};

/* What is called for each; another value than 0 ends it. */
typedef int unpacked_call_fn(void *arg, const struct unpacked_call *call, struct pt_error *e);

/* Calls each(arg, ...). Its value that was not 0, else 0; or -1: PT_ERR_NO_MEMORY, or as unpack_sql_error(),
 * unpack_damaged(). */
int calls_unpack(sqlite3 *db, int64_t trace, unpacked_call_fn *each, void *arg, struct pt_error *e);

/* The table unpacked_call: of all traces, a column for each of struct unpacked_call. */
extern const struct group_table call_table;

#endif
