/* runs.c - see runs.h. The view `run` (schema/views.sql) says the same in SQL. */
#include "queries/unpack/runs.h"

#include <stddef.h>

#include "schema/digit.h"

enum { GROUP = 64 /* runs in a row, at most */ };

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
	INSN_WHOLE
};
static const char sql[] =
    "SELECT g.id, g.n, g.slice, g.tsc, g.path, g.path_high, g.step, g.time, g.repeats, g.cyc, g.cyc_high, "
    "g.insn_at, g.insn,"
    " g.insn_high, g.back, g.cyc_whole, g.insn_whole FROM trace t CROSS JOIN run_group g"
    " WHERE t.id = ?1 AND g.id BETWEEN t.first_run AND t.last_run ORDER BY g.id";

/* The texts of a row, read one number after the other. */
struct group {
	const uint8_t *path, *path_high, *step, *repeats, *cyc, *cyc_high, *insn_at, *insn, *insn_high, *back;
	uint32_t add[GROUP]; /* the numbers of time */
	uint32_t insns_at;   /* the next position of insn_at, from 1; 0: there is none */
	int64_t zeros;	     /* runs without cycles before the next one */
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

static int unpack_group(sqlite3_stmt *s, unpacked_run_fn *each, void *arg, struct pt_error *e)
{
	struct group g = {.path = sqlite3_column_text(s, PATH),
			  .path_high = sqlite3_column_text(s, PATH_HIGH),
			  .step = sqlite3_column_text(s, STEP),
			  .repeats = sqlite3_column_text(s, REPEATS),
			  .cyc = sqlite3_column_text(s, CYC),
			  .cyc_high = sqlite3_column_text(s, CYC_HIGH),
			  .insn_at = sqlite3_column_text(s, INSN_AT),
			  .insn = sqlite3_column_text(s, INSN),
			  .insn_high = sqlite3_column_text(s, INSN_HIGH),
			  .back = sqlite3_column_text(s, BACK),
			  .cyc_whole = unpack_number(s, CYC_WHOLE),
			  .insn_whole = unpack_number(s, INSN_WHOLE)};
	struct unpacked_run r = {.id = sqlite3_column_int64(s, ID), .slice = unpack_number(s, SLICE)};
	const uint8_t *time = sqlite3_column_text(s, TIME);
	int64_t n = sqlite3_column_int64(s, N), tsc = unpack_number(s, TSC);
	int ret = 0;

	if (n < 0 || n > GROUP)
		return unpack_damaged("run_group", e);
	for (uint32_t i = 0; i < n; i++)
		g.add[i] = digits_next(&time);
	g.insns_at = g.insn_at ? digits_point(&g.insn_at) : 0;
	for (uint32_t i = 0; i < n && !ret; i++, r.id++) {
		uint32_t k = g.step ? digits_next(&g.step) : i;

		r.tsc = tsc == UNPACK_UNKNOWN ? tsc : tsc + (k < n ? g.add[k] : 0);
		r.path = digits_wide(&g.path, &g.path_high);
		r.repeats = digits_next(&g.repeats) + 1;
		unpack_cycles(&g, i, &r);
		ret = each(arg, &r, e);
	}
	return ret;
}

int runs_unpack(sqlite3 *db, int64_t trace, unpacked_run_fn *each, void *arg, struct pt_error *e)
{
	sqlite3_stmt *s = unpack_prepare(db, sql, e);
	int ret = s ? 0 : -1, row = SQLITE_DONE;

	sqlite3_bind_int64(s, 1, trace);
	while (!ret && (row = sqlite3_step(s)) == SQLITE_ROW)
		ret = unpack_group(s, each, arg, e);
	if (!ret && row != SQLITE_DONE)
		ret = unpack_sql_error(db, e);
	sqlite3_finalize(s);
	return ret;
}
