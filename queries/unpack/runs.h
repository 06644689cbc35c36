/*
 * runs.h - the runs of a trace, as the view `run` has them, in the order of their ids.
 */
#ifndef QUERIES_UNPACK_RUNS_H
#define QUERIES_UNPACK_RUNS_H

#include <sqlite3.h>
#include <stdint.h>

#include "queries/unpack/sql.h"
#include "schema/error.h"

#define RUN_INSNS_OF_PATH INT64_MAX

/* Columns of the view, UNPACK_UNKNOWN where they are NULL. */
struct unpacked_run {
	int64_t id, slice, tsc, path, repeats, cyc_count, back;
	int64_t insn_count; /* of its stretch of cycles; RUN_INSNS_OF_PATH: path.stretch_insns */
};

/* What is called for each; another value than 0 ends it. */
typedef int unpacked_run_fn(void *arg, const struct unpacked_run *run, struct pt_error *e);

/* Calls each(arg, ...). Its value that was not 0, else 0; or -1: as unpack_sql_error(), unpack_damaged(). */
int runs_unpack(sqlite3 *db, int64_t trace, unpacked_run_fn *each, void *arg, struct pt_error *e);

#endif
