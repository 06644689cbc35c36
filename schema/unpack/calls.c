/* calls.c - see calls.h. The macro CALLS_OF (schema/macros.sql) says the same in SQL. */
#include "schema/unpack/calls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "schema/array.h"
#include "schema/digit.h"
#include "schema/unpack/run_clock.h"
#include "schema/unpack/shapes.h"

enum {
	CODE_BITS = 11,		/* of call_path_code's ids, below the trace */
	CODES = 1 << CODE_BITS, /* a number below CODES - 1 is a code */
	CODES_LESS = CODES - 2, /* what a call path is more than itself that has none */
	POSITIONS = 1024,	/* of a row, at most (as in the view: the table number) */
	NEAR = 64		/* callers from there on are further away, see call_shape and call_group */
};

enum {
	ID,
	TRACE,
	THREAD,
	RUNS,
	RUN,
	RUN_ADD,
	SHAPE,
	SHAPE_HIGH,
	CALL_PATH,
	PATH_ADD,
	PATH_ADD_HIGH,
	BEFORE,
	CALLER,
	FAR_CALLER,
	FAR_TOP,
	CYC,
	CYC_HIGH
};
#define GROUPS                                                                                               \
	"SELECT g.id, g.trace, g.thread, g.runs, g.run, g.run_add, g.shape, g.shape_high, g.call_path, "     \
	"g.path_add, g.path_add_high, g.before, g.caller, g.far_caller, g.far_top, g.cyc, g.cyc_high "       \
	"FROM call_group g"

enum {
	WHOLE_PATH,
	CALL_BRANCH,
	RETURN_BRANCH,
	CALL_TSC,
	RETURN_TSC,
	BRANCHES,
	INSNS,
	WHOLE_CYC,
	FLAGS,
	PARENT
};
static const char whole_sql[] = "SELECT call_path, call_branch, return_branch, call_tsc, return_tsc, "
				"branch_count, insn_count, cyc_count, flags, parent"
				" FROM call_whole WHERE id = ?1";

static const char codes_sql[] = "SELECT id - (?1 << 11), call_path FROM call_path_code"
				" WHERE id BETWEEN ?1 << 11 AND (?1 << 11) + 2047";

struct unpacker {
	sqlite3 *db;
	struct run_clock *clock;
	sqlite3_stmt *whole, *codes;
	int64_t trace; /* whose shapes and codes are known; UNPACK_UNKNOWN: none's */
	struct shapes *shapes;
	int64_t paths[CODES]; /* by code */
	uint32_t *far;	      /* far callers of the group, see far_caller */
	size_t far_count, far_room;
};

static void destroy(void *state)
{
	struct unpacker *u = state;

	sqlite3_finalize(u->codes);
	sqlite3_finalize(u->whole);
	shapes_destroy(u->shapes);
	run_clock_destroy(u->clock);
	free(u->far);
	free(u);
}

static void *create(sqlite3 *db, struct pt_error *e)
{
	struct unpacker *u = calloc(1, sizeof *u);

	if (!u) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	u->db = db;
	u->trace = UNPACK_UNKNOWN;
	u->clock = run_clock_create(db, e);
	u->whole = u->clock ? unpack_prepare(db, whole_sql, e) : NULL;
	u->codes = u->whole ? unpack_prepare(db, codes_sql, e) : NULL;
	if (u->codes)
		return u;
	destroy(u);
	return NULL;
}

/* ---- What a trace's calls have in common ------------------------------------------------------------- */

static int read_codes(struct unpacker *u, int64_t trace, struct pt_error *e)
{
	int row;

	for (int i = 0; i < CODES; i++)
		u->paths[i] = UNPACK_UNKNOWN;
	sqlite3_bind_int64(u->codes, 1, trace);
	while ((row = sqlite3_step(u->codes)) == SQLITE_ROW)
		u->paths[sqlite3_column_int64(u->codes, 0) & (CODES - 1)] = unpack_number(u->codes, 1);
	if (row != SQLITE_DONE)
		unpack_sql_error(u->db, e);
	sqlite3_reset(u->codes);
	return row == SQLITE_DONE ? 0 : -1;
}

static int know_trace(struct unpacker *u, int64_t trace, struct pt_error *e)
{
	if (u->trace == trace)
		return 0;
	u->trace = UNPACK_UNKNOWN;
	shapes_destroy(u->shapes);
	u->shapes = shapes_create(u->db, trace, e);
	if (!u->shapes || read_codes(u, trace, e) < 0)
		return -1;
	u->trace = trace;
	return 0;
}

/* ---- Groups ------------------------------------------------------------------------------------------ */

/* The texts of a row, read one number after the other. */
struct group {
	const uint8_t *run_add, *shape, *shape_high, *path_add, *path_add_high, *before, *caller, *cyc,
	    *cyc_high;
	int64_t id, trace, thread, run, call_path;
};

static void read_group(sqlite3_stmt *s, struct group *g)
{
	*g = (struct group){.run_add = sqlite3_column_text(s, RUN_ADD),
			    .shape = sqlite3_column_text(s, SHAPE),
			    .shape_high = sqlite3_column_text(s, SHAPE_HIGH),
			    .path_add = sqlite3_column_text(s, PATH_ADD),
			    .path_add_high = sqlite3_column_text(s, PATH_ADD_HIGH),
			    .before = sqlite3_column_text(s, BEFORE),
			    .caller = sqlite3_column_text(s, CALLER),
			    .cyc = sqlite3_column_text(s, CYC),
			    .cyc_high = sqlite3_column_text(s, CYC_HIGH),
			    .id = sqlite3_column_int64(s, ID),
			    .trace = sqlite3_column_int64(s, TRACE),
			    .thread = unpack_number(s, THREAD),
			    .run = sqlite3_column_int64(s, RUN),
			    .call_path = unpack_number(s, CALL_PATH)};
}

static int read_far(struct unpacker *u, sqlite3_stmt *s, struct pt_error *e)
{
	const uint8_t *low = sqlite3_column_text(s, FAR_CALLER), *high = sqlite3_column_text(s, FAR_TOP);

	for (u->far_count = 0; (low && *low) || (high && *high); u->far_count++) {
		if (pt_array_grow(&u->far, u->far_count, &u->far_room, e) < 0)
			return -1;
		u->far[u->far_count] = digits_wide(&low, &high);
	}
	return 0;
}

/* The smallest call path of the next run: macro LEAST_CALL_PATH_AT. */
static int64_t least_path(const struct unpacker *u, struct group *g)
{
	uint32_t number = digits_wide(&g->path_add, &g->path_add_high);

	if (g->call_path != UNPACK_UNKNOWN)
		return unpack_plus(g->call_path, number);
	return number <= CODES_LESS ? u->paths[number] : (int64_t)number - CODES_LESS;
}

/* ---- Calls ------------------------------------------------------------------------------------------- */

/* The calls that return in a run. */
struct returns {
	int64_t run, tsc, least; /* least: the smallest call path, or UNPACK_UNKNOWN */
	int64_t first, last;	 /* ids */
	uint32_t caller;	 /* of those whose shape has none */
};

static int64_t branch_id(int64_t run, uint32_t at)
{
	return (int64_t)((uint64_t)run << RUN_BRANCHES_BITS) + at;
}

static int set_times(struct unpacker *u, const struct returns *r, const struct shape_call *s,
		     struct unpacked_call *c, struct pt_error *e)
{
	int64_t call_run = unpack_plus(r->run, -(int64_t)s->runs_back);

	c->call_branch = branch_id(call_run, s->call_at);
	c->return_branch = branch_id(r->run, s->return_at);
	c->call_tsc = c->return_tsc = r->tsc;
	return call_run == r->run ? 0 : run_clock_tsc(u->clock, call_run, &c->call_tsc, e);
}

static int64_t parent_of(const struct unpacker *u, const struct returns *r, const struct shape_call *s,
			 const struct unpacked_call *c)
{
	uint32_t at;

	if (s->caller && s->caller < NEAR)
		return unpack_plus(c->id, s->caller);
	if (r->caller < NEAR)
		return r->caller ? unpack_plus(r->last, r->caller) : UNPACK_UNKNOWN;
	at = r->caller - NEAR + (s->caller ? s->caller - NEAR + 1 : 0);
	return at < u->far_count && u->far[at] ? unpack_plus(c->call_group, u->far[at]) : UNPACK_UNKNOWN;
}

/* Unpacks n calls to c. */
static int unpack_run(struct unpacker *u, struct group *g, const struct returns *r,
		      const struct shape_call *s, uint32_t n, struct unpacked_call *c, struct pt_error *e)
{
	for (uint32_t i = 0; i < n; i++, s++, c++) {
		uint32_t cyc = digits_wide(&g->cyc, &g->cyc_high);

		*c = (struct unpacked_call){.id = unpack_plus(r->first, i),
					    .call_group = g->id,
					    .trace = g->trace,
					    .thread = g->thread,
					    .call_path = s->path_add && r->least != UNPACK_UNKNOWN
							     ? unpack_plus(r->least, s->path_add - 1)
							     : UNPACK_UNKNOWN,
					    .branch_count = s->branch_count,
					    .insn_count = s->insn_count,
					    .cyc_count = cyc ? (int64_t)cyc - 1 : UNPACK_UNKNOWN,
					    .flags = s->flags};
		c->parent = parent_of(u, r, s, c);
		if (set_times(u, r, s, c, e) < 0)
			return -1;
	}
	return 0;
}

static int unpack_group(struct unpacker *u, sqlite3_stmt *s, struct group_rows *rows, struct pt_error *e)
{
	int64_t runs = sqlite3_column_int64(s, RUNS);
	struct group g;
	bool has_run_add;

	if (runs < 0 || runs > POSITIONS)
		return unpack_damaged("call_group", e);
	read_group(s, &g);
	has_run_add = g.run_add != NULL;
	if (know_trace(u, g.trace, e) < 0 || read_far(u, s, e) < 0)
		return -1;
	for (int64_t i = 0; i < runs; i++) {
		uint32_t shape = digits_wide(&g.shape, &g.shape_high), n;
		struct returns r = {.least = least_path(u, &g),
				    .first = unpack_plus(g.id, digits_next(&g.before))};
		const struct shape_call *calls;
		struct unpacked_call *to;

		r.run = unpack_plus(g.run, has_run_add ? (int64_t)digits_next(&g.run_add) - 1 : i);
		r.caller = digits_next(&g.caller);
		if (!shape)
			continue;
		if (shapes_get(u->shapes, shape, &calls, &n, e) < 0 ||
		    run_clock_tsc(u->clock, r.run, &r.tsc, e) < 0)
			return -1;
		r.last = unpack_plus(r.first, (int64_t)n - 1);
		to = group_rows_room(rows, rows->count + n, e);
		if (!to || unpack_run(u, &g, &r, calls, n, to + rows->count, e) < 0)
			return -1;
		rows->count += n;
	}
	return 0;
}

/* The call of a group that has no shape. */
static int unpack_whole(struct unpacker *u, sqlite3_stmt *s, struct group_rows *rows, struct pt_error *e)
{
	struct unpacked_call *c = group_rows_room(rows, 1, e);
	sqlite3_stmt *w = u->whole;
	int row;

	if (!c)
		return -1;
	*c = (struct unpacked_call){.id = sqlite3_column_int64(s, ID),
				    .call_group = sqlite3_column_int64(s, ID),
				    .trace = unpack_number(s, TRACE),
				    .thread = unpack_number(s, THREAD)};
	sqlite3_bind_int64(w, 1, c->id);
	row = sqlite3_step(w);
	if (row == SQLITE_ROW) {
		c->call_path = unpack_number(w, WHOLE_PATH);
		c->call_branch = unpack_number(w, CALL_BRANCH);
		c->return_branch = unpack_number(w, RETURN_BRANCH);
		c->call_tsc = unpack_number(w, CALL_TSC);
		c->return_tsc = unpack_number(w, RETURN_TSC);
		c->branch_count = sqlite3_column_int64(w, BRANCHES);
		c->insn_count = sqlite3_column_int64(w, INSNS);
		c->cyc_count = unpack_number(w, WHOLE_CYC);
		c->flags = sqlite3_column_int64(w, FLAGS);
		c->parent = unpack_number(w, PARENT);
		rows->count = 1;
	} else if (row == SQLITE_DONE) {
		unpack_damaged("call_whole", e);
	} else {
		unpack_sql_error(u->db, e);
	}
	sqlite3_reset(w);
	return row == SQLITE_ROW ? 0 : -1;
}

static int unpack_rows(void *state, sqlite3_stmt *s, struct group_rows *rows, struct pt_error *e)
{
	rows->count = 0;
	if (sqlite3_column_type(s, SHAPE) == SQLITE_NULL && sqlite3_column_type(s, SHAPE_HIGH) == SQLITE_NULL)
		return unpack_whole(state, s, rows, e);
	return unpack_group(state, s, rows, e);
}

const struct group_table call_table = {
    .name = "unpacked_call",
    .columns = "id, call_group, trace, thread, call_path, call_branch, return_branch, call_tsc, return_tsc, "
	       "branch_count, insn_count, cyc_count, flags, parent",
    .column_count = sizeof(struct unpacked_call) / sizeof(int64_t),
    .id_column = offsetof(struct unpacked_call, id) / sizeof(int64_t),
    .group_column = offsetof(struct unpacked_call, call_group) / sizeof(int64_t),
    .groups = GROUPS,
    .table = "call_group",
    .create = create,
    .destroy = destroy,
    .unpack = unpack_rows};

int calls_unpack(sqlite3 *db, int64_t trace, unpacked_call_fn *each, void *arg, struct pt_error *e)
{
	struct group_rows rows = {.row_numbers = sizeof(struct unpacked_call) / sizeof(int64_t)};
	sqlite3_stmt *groups = unpack_prepare(db, GROUPS " WHERE g.trace = ?1 ORDER BY g.id", e);
	void *unpacker = groups ? create(db, e) : NULL;
	int ret = unpacker ? 0 : -1, row = SQLITE_DONE;

	sqlite3_bind_int64(groups, 1, trace);
	while (!ret && (row = sqlite3_step(groups)) == SQLITE_ROW) {
		const struct unpacked_call *c;

		ret = unpack_rows(unpacker, groups, &rows, e);
		c = (const struct unpacked_call *)rows.values;
		for (size_t i = 0; i < rows.count && !ret; i++)
			ret = each(arg, &c[i], e);
	}
	if (!ret && row != SQLITE_DONE)
		ret = unpack_sql_error(db, e);
	if (unpacker)
		destroy(unpacker);
	sqlite3_finalize(groups);
	free(rows.values);
	return ret;
}
