/* runs.c - see runs.h. The view `run` (schema/views.sql) says the same in SQL. */
#include "schema/unpack/runs.h"

#include <stddef.h>

#include "schema/digit.h"
#include "schema/unpack/group_times.h"

enum {
	ID,
	N,
	SLICE,
	TSC,
	PATH,
	PATH_HIGH,
	STEP,
	TIME,
	REPEATS,
	CYC,
	CYC_HIGH,
	INSN_AT,
	INSN,
	INSN_HIGH,
	BACK,
	CYC_WHOLE,
	INSN_WHOLE,
	EST,
	EST_NEXT,
	END_ADD,
	EST_ADD,
	EXACT,
	OPEN
};
/* The texts of a row, read one number after the other. */
struct group {
	const uint8_t *path, *path_high, *repeats, *cyc, *cyc_high, *insn_at, *insn, *insn_high, *back;
	uint32_t insns_at; /* the next position of insn_at, from 1; 0: there is none */
	int64_t zeros;	   /* runs without cycles before the next one */
	int64_t cyc_whole, insn_whole;
};

/* Cycles, and what they are of, of the run at position `at` from 0. */
static void unpack_cycles(struct group *g, uint32_t at, struct unpacked_run *r)
{
	const uint8_t *cyc = g->cyc;
	uint32_t low = digits_next(&cyc), number = digits_wide(&g->cyc, &g->cyc_high);

	r->back = g->back ? digits_next(&g->back) : low ? g->zeros : 0;
	g->zeros = low ? 0 : g->zeros + 1;
	r->cyc_count = number ? (int64_t)number - 1 : UNPACK_UNKNOWN;
	r->insn_count = number ? RUN_INSNS_OF_PATH : UNPACK_UNKNOWN;
	if (at + 1 == g->insns_at) {
		r->insn_count = digits_wide(&g->insn, &g->insn_high);
		g->insns_at = g->insn_at ? digits_point(&g->insn_at) : 0;
	}
	if (g->cyc_whole != UNPACK_UNKNOWN)
		r->cyc_count = g->cyc_whole;
	if (g->insn_whole != UNPACK_UNKNOWN)
		r->insn_count = g->insn_whole;
}

static void read_group(sqlite3_stmt *s, struct group *g)
{
	*g = (struct group){.path = sqlite3_column_text(s, PATH),
			    .path_high = sqlite3_column_text(s, PATH_HIGH),
			    .repeats = sqlite3_column_text(s, REPEATS),
			    .cyc = sqlite3_column_text(s, CYC),
			    .cyc_high = sqlite3_column_text(s, CYC_HIGH),
			    .insn_at = sqlite3_column_text(s, INSN_AT),
			    .insn = sqlite3_column_text(s, INSN),
			    .insn_high = sqlite3_column_text(s, INSN_HIGH),
			    .back = sqlite3_column_text(s, BACK),
			    .cyc_whole = unpack_number(s, CYC_WHOLE),
			    .insn_whole = unpack_number(s, INSN_WHOLE)};
	g->insns_at = g->insn_at ? digits_point(&g->insn_at) : 0;
}

static void read_times(sqlite3_stmt *s, uint32_t n, struct group_times *t)
{
	const struct group_times_row row = {.n = n,
					    .tsc = unpack_number(s, TSC),
					    .est = unpack_number(s, EST),
					    .est_next = unpack_number(s, EST_NEXT),
					    .end_add = unpack_number(s, END_ADD),
					    .exact = (uint64_t)sqlite3_column_int64(s, EXACT),
					    .open = (uint64_t)sqlite3_column_int64(s, OPEN),
					    .step = sqlite3_column_text(s, STEP),
					    .time = sqlite3_column_text(s, TIME),
					    .est_add = sqlite3_column_text(s, EST_ADD)};

	group_times_read(t, &row);
}

int run_group_unpack(sqlite3_stmt *s, struct unpacked_run rows[RUN_GROUP_MAX], struct pt_error *e)
{
	int64_t n = sqlite3_column_int64(s, N), id = sqlite3_column_int64(s, ID);
	struct unpacked_run r = {.run_group = id, .slice = unpack_number(s, SLICE)};
	struct group_times times;
	struct group g;

	if (n < 0 || n > RUN_GROUP_MAX)
		return unpack_damaged("run_group", e);
	read_group(s, &g);
	read_times(s, (uint32_t)n, &times);
	r.group_tsc = times.row.tsc;
	r.group_tsc_end = times.end;
	for (uint32_t i = 0; i < n; i++) {
		r.id = unpack_plus(id, i);
		r.path = digits_wide(&g.path, &g.path_high);
		r.repeats = digits_next(&g.repeats) + 1;
		unpack_cycles(&g, i, &r);
		r.tsc = group_times_tsc(&times, i);
		r.tsc_end = group_times_end(&times, i);
		r.tsc_est = group_times_estimate(&times, i);
		r.tsc_next = group_times_next(&times, i);
		r.exact = times.row.exact >> i & 1;
		rows[i] = r;
	}
	return (int)n;
}

static const char trace_sql[] = "SELECT " RUN_GROUP_COLUMNS " FROM trace t CROSS JOIN run_group g"
				" WHERE t.id = ?1 AND g.id BETWEEN t.first_run AND t.last_run ORDER BY g.id";

int runs_unpack(sqlite3 *db, int64_t trace, unpacked_run_fn *each, void *arg, struct pt_error *e)
{
	sqlite3_stmt *s = unpack_prepare(db, trace_sql, e);
	int ret = s ? 0 : -1, row = SQLITE_DONE;
	struct unpacked_run rows[RUN_GROUP_MAX];

	sqlite3_bind_int64(s, 1, trace);
	while (!ret && (row = sqlite3_step(s)) == SQLITE_ROW) {
		int n = run_group_unpack(s, rows, e);

		ret = n < 0 ? -1 : 0;
		for (int i = 0; i < n && !ret; i++)
			ret = each(arg, &rows[i], e);
	}
	if (!ret && row != SQLITE_DONE)
		ret = unpack_sql_error(db, e);
	sqlite3_finalize(s);
	return ret;
}

/* ---- The table --------------------------------------------------------------------------------------- */

static int unpack_rows(void *state, sqlite3_stmt *group, struct group_rows *rows, struct pt_error *e)
{
	struct unpacked_run *room = group_rows_room(rows, RUN_GROUP_MAX, e);
	int n = room ? run_group_unpack(group, room, e) : -1;

	(void)state;
	rows->count = n > 0 ? (size_t)n : 0;
	return n < 0 ? -1 : 0;
}

const struct group_table run_table = {
    .name = "unpacked_run",
    .columns = "id, run_group, slice, tsc, path, repeats, cyc_count, insn_count, back, tsc_end, tsc_est, "
	       "tsc_next, exact, group_tsc, group_tsc_end",
    .column_count = sizeof(struct unpacked_run) / sizeof(int64_t),
    .id_column = offsetof(struct unpacked_run, id) / sizeof(int64_t),
    .group_column = offsetof(struct unpacked_run, run_group) / sizeof(int64_t),
    .groups = "SELECT " RUN_GROUP_COLUMNS " FROM run_group g",
    .table = "run_group",
    .unpack = unpack_rows};
