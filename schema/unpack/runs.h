/*
 * runs.h - the runs of a trace, as the view `run` has them, in the order of their ids.
 */
#ifndef SCHEMA_UNPACK_RUNS_H
#define SCHEMA_UNPACK_RUNS_H

#include <sqlite3.h>
#include <stdint.h>

#include "schema/error.h"
#include "schema/unpack/group_table.h"
#include "schema/unpack/group_times.h"
#include "schema/unpack/sql.h"

#define RUN_INSNS_OF_PATH INT64_MAX

/* Columns of the view, UNPACK_UNKNOWN where they are NULL. */
struct unpacked_run {
	int64_t id, run_group, slice, tsc, path, repeats, cyc_count;
	int64_t insn_count; /* of its stretch of cycles; RUN_INSNS_OF_PATH: path.stretch_insns */
	int64_t back, tsc_end, tsc_est, tsc_next, exact, group_tsc, group_tsc_end;
};

/* Of table g, run_group: what run_group_unpack() reads of a row. */
#define RUN_GROUP_COLUMNS                                                                                    \
	"g.id, g.n, g.slice, g.tsc, g.path, g.path_high, g.step, g.time, g.repeats, g.cyc, g.cyc_high, "     \
	"g.insn_at, g.insn, g.insn_high, g.back, g.cyc_whole, g.insn_whole, g.est, g.est_next, g.end_add, "  \
	"g.est_add, g.exact, g.open"

/* The runs of a row. How many; -1: unpack_damaged(). */
int run_group_unpack(sqlite3_stmt *group, struct unpacked_run rows[RUN_GROUP_MAX], struct pt_error *e);

/* What is called for each; another value than 0 ends it. */
typedef int unpacked_run_fn(void *arg, const struct unpacked_run *run, struct pt_error *e);

/* Calls each(arg, ...). Its value that was not 0, else 0; or -1: as unpack_sql_error(), unpack_damaged(). */
int runs_unpack(sqlite3 *db, int64_t trace, unpacked_run_fn *each, void *arg, struct pt_error *e);

/* The table unpacked_run: of all traces, a column for each of struct unpacked_run. */
extern const struct group_table run_table;

#endif
