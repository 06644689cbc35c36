/* branches.c - see branches.h. The view `branches` (schema/views.sql) says the same in SQL. */
#include "schema/unpack/branches.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "schema/perf_time.h"
#include "schema/unpack/branch_lookup.h"
#include "schema/unpack/runs.h"

enum {
	RUN_SHIFT = 10,		       /* a branch's id >> this is its run's */
	RUN_BRANCHES = 1 << RUN_SHIFT, /* at most */
	ENDS_TRACE = 32		       /* see kind in schema/tables.sql */
};

/* What each row has; the columns after them, by these. */
struct branch {
	int64_t id, run_group, slice, path, edge, tsc, insn_count, cyc_count, tsc_lo, tsc_hi, exact;
};
enum { STORED = sizeof(struct branch) / sizeof(int64_t) };

/* As in `columns` below. */
enum {
	TRACE = STORED,
	CPU,
	VCPU,
	PID,
	TID,
	MACHINE,
	COMM,
	TIME_NS,
	TIME_CLASS,
	KIND,
	ENDS,
	FROM_IP,
	FROM_SYMBOL,
	FROM_OFFSET,
	FROM_HEX,
	FROM_DSO,
	TO_IP,
	TO_SYMBOL,
	TO_OFFSET,
	TO_HEX,
	TO_DSO
};

/* ---- Rows -------------------------------------------------------------------------------------------- */

/* The time of the branch that is number `at` of the run's `count`: the macro BRANCH_ESTIMATE. */
static int64_t estimate(const struct unpacked_run *r, int64_t at, int64_t count)
{
	uint64_t span = (uint64_t)r->tsc_next - (uint64_t)r->tsc_est;

	if (at == 0)
		return r->tsc_est;
	if (r->tsc_est == UNPACK_UNKNOWN || r->tsc_next == UNPACK_UNKNOWN)
		return UNPACK_UNKNOWN;
	return unpack_plus(r->tsc_est, (int64_t)(span * (uint64_t)at) / count);
}

static int add_run(const struct unpacked_run *r, const struct lookup_path *p, struct group_rows *rows,
		   struct pt_error *e)
{
	int64_t count = r->repeats * p->edges, id = (int64_t)((uint64_t)r->id * RUN_BRANCHES);
	struct branch *b;

	if (count > RUN_BRANCHES)
		return unpack_damaged("run_group", e);
	b = group_rows_room(rows, rows->count + (size_t)count, e);
	if (!b)
		return -1;
	b += rows->count;
	for (int64_t i = 0; i < count; i++, b++)
		*b = (struct branch){.id = unpack_plus(id, i),
				     .run_group = r->run_group,
				     .slice = r->slice,
				     .path = r->path,
				     .edge = p->edge[i % p->edges],
				     .tsc = estimate(r, i, count),
				     .insn_count = p->insns[i % p->edges],
				     .cyc_count = i + 1 == count ? r->cyc_count : UNPACK_UNKNOWN,
				     .tsc_lo = r->tsc,
				     .tsc_hi = r->exact && i == 0 ? r->tsc : r->tsc_end,
				     .exact = r->exact && i == 0};
	rows->count += (size_t)count;
	return 0;
}

static int unpack_rows(void *state, sqlite3_stmt *group, struct group_rows *rows, struct pt_error *e)
{
	struct unpacked_run runs[RUN_GROUP_MAX];
	int n = run_group_unpack(group, runs, e);
	const struct lookup_slice *slice = n > 0 ? branch_lookup_slice(state, runs[0].slice, e) : NULL;

	if (n <= 0 || !slice)
		return n == 0 ? 0 : -1;
	for (int i = 0; slice->known && i < n; i++) {
		const struct lookup_path *p = branch_lookup_path(state, runs[i].path, e);

		if (!p || (p->edges && add_run(&runs[i], p, rows, e) < 0))
			return -1;
	}
	return 0;
}

/* ---- Columns ----------------------------------------------------------------------------------------- */

static void put_number(sqlite3_context *to, int64_t v)
{
	if (v != UNPACK_UNKNOWN)
		sqlite3_result_int64(to, v);
}

static void put_text(sqlite3_context *to, const char *text)
{
	if (text)
		sqlite3_result_text(to, text, -1, SQLITE_TRANSIENT);
}

static void put_hex(sqlite3_context *to, int64_t v)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRIx64, (uint64_t)v);
	put_text(to, v == UNPACK_UNKNOWN ? NULL : text);
}

static void put_time(sqlite3_context *to, const struct lookup_slice *s, int64_t tsc)
{
	if (tsc != UNPACK_UNKNOWN && s->time_zero != UNPACK_UNKNOWN && s->time_mult != UNPACK_UNKNOWN &&
	    s->time_shift >= 0 && s->time_shift <= 62)
		put_number(to, pt_perf_time_ns(s->time_zero, s->time_mult, s->time_shift, tsc));
}

static int put_of_slice(struct branch_lookup *l, const struct branch *b, int column, sqlite3_context *to,
			struct pt_error *e)
{
	const struct lookup_slice *s = branch_lookup_slice(l, b->slice, e);

	if (!s)
		return -1;
	switch (column) {
	case TRACE: put_number(to, s->trace); break;
	case CPU: put_number(to, s->cpu); break;
	case VCPU: put_number(to, s->vcpu); break;
	case PID: put_number(to, s->pid); break;
	case TID: put_number(to, s->tid); break;
	case MACHINE: put_text(to, s->machine); break;
	case COMM: put_text(to, s->comm); break;
	default: put_time(to, s, b->tsc); break;
	}
	return 0;
}

/* Of one of an edge's two places; column: as of where it comes from. */
static int put_of_place(struct branch_lookup *l, int64_t ip, int64_t symbol, int column, sqlite3_context *to,
			struct pt_error *e)
{
	const struct lookup_symbol *s;
	const struct lookup_name *dso;

	if (column == FROM_IP)
		put_number(to, ip);
	if (column == FROM_HEX)
		put_hex(to, ip);
	if (column == FROM_IP || column == FROM_HEX || symbol == UNPACK_UNKNOWN)
		return 0;
	s = branch_lookup_symbol(l, symbol, e);
	if (!s)
		return -1;
	if (column == FROM_SYMBOL)
		put_text(to, s->name);
	else if (column == FROM_OFFSET && s->known && ip != UNPACK_UNKNOWN && s->start_ip != UNPACK_UNKNOWN)
		put_number(to, (int64_t)((uint64_t)ip - (uint64_t)s->start_ip));
	if (column != FROM_DSO || !s->known || s->dso == UNPACK_UNKNOWN)
		return 0;
	dso = branch_lookup_dso(l, s->dso, e);
	if (dso)
		put_text(to, dso->name);
	return dso ? 0 : -1;
}

static int put_of_edge(struct branch_lookup *l, const struct branch *b, int column, sqlite3_context *to,
		       struct pt_error *e)
{
	const struct lookup_edge *edge = branch_lookup_edge(l, b->edge, e);
	const struct lookup_name *kind;

	if (!edge)
		return -1;
	if (!edge->known)
		return 0;
	if (column >= TO_IP)
		return put_of_place(l, edge->to_ip, edge->to_symbol, column - TO_IP + FROM_IP, to, e);
	if (column >= FROM_IP)
		return put_of_place(l, edge->from_ip, edge->from_symbol, column, to, e);
	if (column == ENDS) {
		if (edge->to_ip == UNPACK_UNKNOWN || edge->kind != UNPACK_UNKNOWN)
			sqlite3_result_int(to, edge->to_ip == UNPACK_UNKNOWN || edge->kind >= ENDS_TRACE);
		return 0;
	}
	kind = edge->kind == UNPACK_UNKNOWN ? NULL : branch_lookup_kind(l, edge->kind, e);
	if (kind)
		put_text(to, kind->name);
	return kind || edge->kind == UNPACK_UNKNOWN ? 0 : -1;
}

static int put_column(void *state, const int64_t *row, int column, sqlite3_context *to, struct pt_error *e)
{
	const struct branch *b = (const struct branch *)row;

	if (column < TIME_CLASS)
		return put_of_slice(state, b, column, to, e);
	if (column > TIME_CLASS)
		return put_of_edge(state, b, column, to, e);
	if (b->tsc_lo != UNPACK_UNKNOWN)
		sqlite3_result_text(to, b->exact ? "exact" : "interval", -1, SQLITE_STATIC);
	return 0;
}

static void *create(sqlite3 *db, struct pt_error *e)
{
	return branch_lookup_create(db, e);
}

static void destroy(void *state)
{
	branch_lookup_destroy(state);
}

/* A chunk's runs, and their branches, are between its times; a trace's chunks between its runs. (LIMIT
 * keeps the order, which SQLite might leave out.) */
static const char timed_groups[] =
    "SELECT " RUN_GROUP_COLUMNS
    " FROM (SELECT * FROM trace ORDER BY first_run LIMIT -1) t CROSS JOIN run_chunk c CROSS JOIN run_group g"
    " WHERE c.id BETWEEN t.first_run AND t.last_run AND c.tsc <= ?6 AND coalesce(c.tsc_end >= ?5, 1)"
    " AND (?8 = 9223372036854775807 OR TSC_TO_TIME(t, c.tsc) <= ?8)"
    " AND (?7 < -9223372036854775807 OR coalesce(TSC_TO_TIME(t, c.tsc_end) >= ?7, 1))"
    " AND g.id BETWEEN c.id AND c.last";

/* Types are those of the tables' columns that the view has as they are: of a comparison with a text. */
const struct group_table branch_table = {
    .name = "unpacked_branch",
    .columns =
	"id, run_group, slice INTEGER, path, edge INTEGER, tsc, insn_count, cyc_count, tsc_lo, tsc_hi, "
	"exact, trace INTEGER, cpu INTEGER, vcpu INTEGER, pid INTEGER, tid INTEGER, machine TEXT, "
	"comm TEXT, time_ns, time_class, kind TEXT, ends_trace, from_ip INTEGER, from_symbol TEXT, "
	"from_offset, from_hex, from_dso TEXT, to_ip INTEGER, to_symbol TEXT, to_offset, to_hex, "
	"to_dso TEXT",
    .column_count = STORED,
    .id_column = offsetof(struct branch, id) / sizeof(int64_t),
    .group_column = offsetof(struct branch, run_group) / sizeof(int64_t),
    .id_shift = RUN_SHIFT,
    .groups = "SELECT " RUN_GROUP_COLUMNS " FROM run_group g",
    .table = "run_group",
    .timed_groups = timed_groups,
    .tsc_column = offsetof(struct branch, tsc) / sizeof(int64_t),
    .time_column = TIME_NS,
    .create = create,
    .destroy = destroy,
    .unpack = unpack_rows,
    .column = put_column};
