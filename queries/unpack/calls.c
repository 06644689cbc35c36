/* calls.c - see calls.h. The macro CALLS_OF (schema/macros.sql) says the same in SQL. */
#include "queries/unpack/calls.h"

#include <stdbool.h>
#include <stdlib.h>

#include "schema/digit.h"
#include "queries/unpack/run_clock.h"
#include "queries/unpack/shapes.h"

enum {
	CODE_BITS = 11,		/* of call_path_code's ids, below the trace */
	CODES = 1 << CODE_BITS, /* a number below CODES - 1 is a code */
	CODES_LESS = CODES - 2, /* what a call path is more than itself that has none */
	POSITIONS = 1024,	/* of a row, at most (as in the view: the table number) */
	RUN_BRANCHES_BITS = 10	/* of a branch's id, below its run's */
};

/* Columns of groups_sql. */
enum { ID, THREAD, RUNS, RUN, RUN_ADD, SHAPE, SHAPE_HIGH, CALL_PATH, PATH_ADD, PATH_ADD_HIGH, CYC, CYC_HIGH };
static const char groups_sql[] = "SELECT id, thread, runs, run, run_add, shape, shape_high, call_path, "
				 "path_add, path_add_high, cyc, cyc_high"
				 " FROM call_group WHERE trace = ?1 ORDER BY id";

enum { WHOLE_ID, WHOLE_PATH, CALL_BRANCH, RETURN_BRANCH, CALL_TSC, RETURN_TSC, WHOLE_INSNS, WHOLE_CYC };
static const char whole_sql[] =
    "SELECT id, call_path, call_branch, return_branch, call_tsc, return_tsc, insn_count, cyc_count"
    " FROM call_whole WHERE trace = ?1 ORDER BY id";

static const char codes_sql[] = "SELECT id - (?1 << 11), call_path FROM call_path_code"
				" WHERE id BETWEEN ?1 << 11 AND (?1 << 11) + 2047";

struct unpacker {
	sqlite3 *db;
	struct run_clock *clock;
	struct shapes *shapes;
	sqlite3_stmt *groups, *whole;
	bool whole_is_row;    /* the statement has one */
	int64_t paths[CODES]; /* by code */
	unpacked_call_fn *each;
	void *arg;
};

static int read_codes(struct unpacker *u, int64_t trace, struct pt_error *e)
{
	sqlite3_stmt *s = unpack_prepare(u->db, codes_sql, e);
	int ret = s ? 0 : -1, row = SQLITE_DONE;

	for (int i = 0; i < CODES; i++)
		u->paths[i] = UNPACK_UNKNOWN;
	sqlite3_bind_int64(s, 1, trace);
	while (!ret && (row = sqlite3_step(s)) == SQLITE_ROW)
		u->paths[sqlite3_column_int64(s, 0) & (CODES - 1)] = unpack_number(s, 1);
	if (!ret && row != SQLITE_DONE)
		ret = unpack_sql_error(u->db, e);
	sqlite3_finalize(s);
	return ret;
}

/* ---- Groups ------------------------------------------------------------------------------------------- */

/* The texts of a row, read one number after the other. */
struct group {
	const uint8_t *run_add, *shape, *shape_high, *path_add, *path_add_high, *cyc, *cyc_high;
	int64_t thread, run, call_path;
};

/* The smallest call path of the next run: macro LEAST_CALL_PATH_AT. */
static int64_t least_path(const struct unpacker *u, struct group *g)
{
	uint32_t number = digits_wide(&g->path_add, &g->path_add_high);

	if (g->call_path != UNPACK_UNKNOWN)
		return g->call_path + number;
	return number <= CODES_LESS ? u->paths[number] : (int64_t)number - CODES_LESS;
}

static int call_times(struct unpacker *u, const struct shape_call *s, int64_t run, struct unpacked_call *c,
		      struct pt_error *e)
{
	int64_t call_run = run - s->runs_back;

	c->call_branch = (int64_t)((uint64_t)call_run << RUN_BRANCHES_BITS) + s->call_at;
	c->return_branch = (int64_t)((uint64_t)run << RUN_BRANCHES_BITS) + s->return_at;
	c->call_tsc = c->return_tsc;
	return call_run == run ? 0 : run_clock_tsc(u->clock, call_run, &c->call_tsc, e);
}

/* The calls that return in a run. */
static int unpack_run(struct unpacker *u, struct group *g, int64_t run, uint32_t shape, int64_t least,
		      struct pt_error *e)
{
	struct unpacked_call c = {.thread = g->thread};
	const struct shape_call *s;
	uint32_t n;
	int ret;

	if (shapes_get(u->shapes, shape, &s, &n, e) < 0 || run_clock_tsc(u->clock, run, &c.return_tsc, e) < 0)
		return -1;
	for (ret = 0; n && !ret; n--, s++) {
		uint32_t cyc = digits_wide(&g->cyc, &g->cyc_high);

		c.call_path =
		    s->path_add && least != UNPACK_UNKNOWN ? least + s->path_add - 1 : UNPACK_UNKNOWN;
		c.insn_count = s->insn_count;
		c.cyc_count = cyc ? (int64_t)cyc - 1 : UNPACK_UNKNOWN;
		ret = call_times(u, s, run, &c, e);
		if (!ret)
			ret = u->each(u->arg, &c, e);
	}
	return ret;
}

static int unpack_group(struct unpacker *u, struct pt_error *e)
{
	sqlite3_stmt *s = u->groups;
	struct group g = {.run_add = sqlite3_column_text(s, RUN_ADD),
			  .shape = sqlite3_column_text(s, SHAPE),
			  .shape_high = sqlite3_column_text(s, SHAPE_HIGH),
			  .path_add = sqlite3_column_text(s, PATH_ADD),
			  .path_add_high = sqlite3_column_text(s, PATH_ADD_HIGH),
			  .cyc = sqlite3_column_text(s, CYC),
			  .cyc_high = sqlite3_column_text(s, CYC_HIGH),
			  .thread = unpack_number(s, THREAD),
			  .run = sqlite3_column_int64(s, RUN),
			  .call_path = unpack_number(s, CALL_PATH)};
	int64_t runs = sqlite3_column_int64(s, RUNS);
	bool has_run_add = g.run_add != NULL;
	int ret = 0;

	if (runs < 0 || runs > POSITIONS)
		return unpack_damaged("call_group", e);
	for (int64_t i = 0; i < runs && !ret; i++) {
		uint32_t shape = digits_wide(&g.shape, &g.shape_high);
		int64_t least = least_path(u, &g);
		int64_t run = g.run + (has_run_add ? (int64_t)digits_next(&g.run_add) - 1 : i);

		if (shape)
			ret = unpack_run(u, &g, run, shape, least, e);
	}
	return ret;
}

/* The call of a group that has no shape. Both tables are read in the order of ids. */
static int unpack_whole(struct unpacker *u, struct pt_error *e)
{
	int64_t id = sqlite3_column_int64(u->groups, ID);
	sqlite3_stmt *w = u->whole;
	struct unpacked_call c = {.thread = unpack_number(u->groups, THREAD)};

	while (!u->whole_is_row || sqlite3_column_int64(w, WHOLE_ID) < id) {
		int row = sqlite3_step(w);

		if (row != SQLITE_ROW)
			return row == SQLITE_DONE ? unpack_damaged("call_whole", e)
						  : unpack_sql_error(u->db, e);
		u->whole_is_row = true;
	}
	if (sqlite3_column_int64(w, WHOLE_ID) != id)
		return unpack_damaged("call_whole", e);
	c.call_path = unpack_number(w, WHOLE_PATH);
	c.call_branch = unpack_number(w, CALL_BRANCH);
	c.return_branch = unpack_number(w, RETURN_BRANCH);
	c.call_tsc = unpack_number(w, CALL_TSC);
	c.return_tsc = unpack_number(w, RETURN_TSC);
	c.insn_count = sqlite3_column_int64(w, WHOLE_INSNS);
	c.cyc_count = unpack_number(w, WHOLE_CYC);
	return u->each(u->arg, &c, e);
}

static int unpack_groups(struct unpacker *u, int64_t trace, struct pt_error *e)
{
	int ret = 0, row;

	sqlite3_bind_int64(u->groups, 1, trace);
	sqlite3_bind_int64(u->whole, 1, trace);
	while (!ret && (row = sqlite3_step(u->groups)) != SQLITE_DONE) {
		if (row != SQLITE_ROW)
			ret = unpack_sql_error(u->db, e);
		else if (sqlite3_column_type(u->groups, SHAPE) == SQLITE_NULL &&
			 sqlite3_column_type(u->groups, SHAPE_HIGH) == SQLITE_NULL)
			ret = unpack_whole(u, e);
		else
			ret = unpack_group(u, e);
	}
	return ret;
}

int calls_unpack(sqlite3 *db, int64_t trace, unpacked_call_fn *each, void *arg, struct pt_error *e)
{
	struct unpacker u = {.db = db, .each = each, .arg = arg};
	int ret = -1;

	u.clock = run_clock_create(db, e);
	u.shapes = u.clock ? shapes_create(db, trace, e) : NULL;
	u.groups = u.shapes ? unpack_prepare(db, groups_sql, e) : NULL;
	u.whole = u.groups ? unpack_prepare(db, whole_sql, e) : NULL;
	if (u.whole && !read_codes(&u, trace, e))
		ret = unpack_groups(&u, trace, e);
	sqlite3_finalize(u.whole);
	sqlite3_finalize(u.groups);
	shapes_destroy(u.shapes);
	run_clock_destroy(u.clock);
	return ret;
}
