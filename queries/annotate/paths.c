/* paths.c - see paths.h. */
#include "queries/annotate/paths.h"

#include <stdlib.h>
#include <string.h>

#include "schema/array.h"
#include "schema/digit.h"
#include "schema/unpack/sql.h"

static const char branch_sql[] =
    "SELECT e.id, e.from_ip, e.to_ip, e.kind & 31, s.start_ip IS e.to_ip AND s.unnamed IS NULL, e.to_symbol"
    " FROM edge e LEFT JOIN symbol s ON s.id = e.to_symbol WHERE e.trace = ?1 ORDER BY e.id";

static const char path_sql[] =
    "SELECT id, edges, edge, edge_add, edge_add_high, insn, insn_high, tail_insns, start, end_ip,"
    " coalesce(repeats, runs), coalesce((SELECT v.version FROM path_version v WHERE v.path = path.id), 1) "
    "FROM path WHERE trace = ?1 ORDER BY id";

/* A slice after one that an error ended is cut off from it. */
static const char slice_sql[] =
    "SELECT s.id, s.first_run, s.last_run, h.first, EXISTS (SELECT 1 FROM error r WHERE r.slice = s.id)"
    " FROM slice s LEFT JOIN thread h ON h.id = s.thread"
    " WHERE s.trace = ?1 AND s.first_run IS NOT NULL AND (?2 IS NULL OR h.tid = ?2 OR h.comm = ?2)"
    " ORDER BY h.first, s.tsc, s.id";

static const char run_sql[] = "SELECT n, path, path_high, repeats FROM run_group"
			      " WHERE id BETWEEN ?1 - 63 AND ?2 AND slice = ?3 ORDER BY id";

static bool inside(const struct fn *f, uint64_t ip)
{
	return ip >= f->low && ip < f->high;
}

/* Prepares, with the trace as its first parameter. NULL: failed. */
static sqlite3_stmt *prepare(sqlite3 *db, const char *sql, int64_t trace, struct pt_error *e)
{
	sqlite3_stmt *s;

	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK) {
		unpack_sql_error(db, e);
		return NULL;
	}
	sqlite3_bind_int64(s, 1, trace);
	return s;
}

static int add_branch(struct paths *p, sqlite3_stmt *s, struct pt_error *e)
{
	int64_t id = sqlite3_column_int64(s, 0);

	if (!p->branch_count)
		p->first_branch = id;
	if (id != p->first_branch + (int64_t)p->branch_count)
		return unpack_damaged("edge", e);
	if (pt_array_grow(&p->branches, p->branch_count, &p->branch_room, e) < 0)
		return -1;
	p->branches[p->branch_count++] = (struct branch){.from = (uint64_t)sqlite3_column_int64(s, 1),
							 .to = (uint64_t)sqlite3_column_int64(s, 2),
							 .kind = (uint32_t)sqlite3_column_int64(s, 3),
							 .to_entry = sqlite3_column_int(s, 4),
							 .to_symbol = sqlite3_column_int64(s, 5)};
	return 0;
}

/* The path of a row of path_sql; *ret_touches: one of its ends is in the function. */
static int read_path(const struct paths *p, const struct fn *f, sqlite3_stmt *s, struct code_path *ret,
		     bool *ret_touches, struct pt_error *e)
{
	const uint8_t *low = sqlite3_column_text(s, 3), *high = sqlite3_column_text(s, 4);
	const uint8_t *insn = sqlite3_column_text(s, 5), *insn_high = sqlite3_column_text(s, 6);
	int64_t n = sqlite3_column_int64(s, 1), first = sqlite3_column_int64(s, 2) - p->first_branch;

	*ret = (struct code_path){.end = (uint64_t)sqlite3_column_int64(s, 9),
				  .times = (uint64_t)sqlite3_column_int64(s, 10),
				  .version = (uint32_t)sqlite3_column_int64(s, 11),
				  .tail_insns = (uint32_t)sqlite3_column_int64(s, 7),
				  .branches = (uint32_t)n};
	if (n < 0 || n > PTR_PATH_EDGES)
		return unpack_damaged("path", e);
	*ret_touches = inside(f, ret->end);
	for (uint32_t i = 0; i < n; i++) {
		int64_t at = first + 1 + digits_wide(&low, &high);
		const struct branch *b;

		if (at < 0 || at >= (int64_t)p->branch_count)
			return unpack_damaged("path", e);
		ret->branch[i] = (uint32_t)at;
		ret->insns[i] = digits_wide(&insn, &insn_high);
		b = &p->branches[at];
		*ret_touches |= inside(f, b->from) || inside(f, b->to);
	}
	if (sqlite3_column_type(s, 8) != SQLITE_NULL) {
		uint64_t start = (uint64_t)sqlite3_column_int64(s, 8);

		ret->start = n ? p->branches[ret->branch[0]].from - start : start;
		*ret_touches |= inside(f, ret->start);
	}
	return 0;
}

static int add_path(struct paths *p, const struct fn *f, sqlite3_stmt *s, struct pt_error *e)
{
	int64_t id = sqlite3_column_int64(s, 0);
	struct code_path path;
	size_t room = p->path_count;
	bool touches = false;

	if (!p->path_count)
		p->first_path = id;
	if (id != p->first_path + (int64_t)p->path_count)
		return unpack_damaged("path", e);
	if (!(room & (room - 1))) { /* full: its room is a power of two */
		uint32_t *grown = realloc(p->number, (room ? 2 * room : 1) * sizeof *grown);

		if (!grown)
			return pt_fail_no_memory(e, "the paths");
		p->number = grown;
	}
	p->number[p->path_count++] = 0;
	if (read_path(p, f, s, &path, &touches, e) < 0)
		return -1;
	if (!touches)
		return 0;
	if (pt_array_grow(&p->all, p->count, &p->room, e) < 0)
		return -1;
	p->all[p->count++] = path;
	p->number[p->path_count - 1] = (uint32_t)p->count;
	return 0;
}

int paths_load(struct paths *p, sqlite3 *db, const struct fn *f, struct pt_error *e)
{
	sqlite3_stmt *branches = prepare(db, branch_sql, f->trace, e), *all;
	int ret = branches ? 0 : -1, row;

	*p = (struct paths){0};
	while (!ret && (row = sqlite3_step(branches)) != SQLITE_DONE)
		ret = row == SQLITE_ROW ? add_branch(p, branches, e) : unpack_sql_error(db, e);
	sqlite3_finalize(branches);
	if (ret)
		return ret;
	all = prepare(db, path_sql, f->trace, e);
	ret = all ? 0 : -1;
	while (!ret && (row = sqlite3_step(all)) != SQLITE_DONE)
		ret = row == SQLITE_ROW ? add_path(p, f, all, e) : unpack_sql_error(db, e);
	sqlite3_finalize(all);
	return ret;
}

void paths_deinit(struct paths *p)
{
	free(p->branches);
	free(p->all);
	free(p->number);
}

/* ---- Runs --------------------------------------------------------------------------------------------- */

struct walk {
	const struct paths *paths;
	struct path_run at;
	int (*run)(void *arg, const struct path_run *r, struct pt_error *e);
	void *arg;
};

static int walk_group(struct walk *w, sqlite3_stmt *s, struct pt_error *e)
{
	const uint8_t *path = sqlite3_column_text(s, 1), *high = sqlite3_column_text(s, 2);
	const uint8_t *repeats = sqlite3_column_text(s, 3);
	int64_t n = sqlite3_column_int64(s, 0);

	for (int64_t i = 0; i < n; i++) {
		int64_t number = (int64_t)digits_wide(&path, &high) - w->paths->first_path;
		uint32_t times = digits_next(&repeats) + 1;

		if (number < 0 || number >= (int64_t)w->paths->path_count || times > PTR_RUN_BRANCHES)
			return unpack_damaged("run_group", e);
		if (!w->paths->number[number])
			continue;
		w->at.path = w->paths->number[number] - 1;
		w->at.repeats = times;
		if (w->run(w->arg, &w->at, e) < 0)
			return -1;
		w->at.first = w->at.cut = false;
	}
	return 0;
}

static int walk_slice(struct walk *w, sqlite3 *db, sqlite3_stmt *slice, sqlite3_stmt *groups,
		      struct pt_error *e)
{
	int ret = 0, row;

	sqlite3_bind_int64(groups, 1, sqlite3_column_int64(slice, 1));
	sqlite3_bind_int64(groups, 2, sqlite3_column_int64(slice, 2));
	sqlite3_bind_int64(groups, 3, sqlite3_column_int64(slice, 0));
	while (!ret && (row = sqlite3_step(groups)) != SQLITE_DONE)
		ret = row == SQLITE_ROW ? walk_group(w, groups, e) : unpack_sql_error(db, e);
	sqlite3_reset(groups);
	return ret;
}

int paths_walk(const struct paths *p, sqlite3 *db, const struct fn *f, const char *thread,
	       int (*run)(void *arg, const struct path_run *r, struct pt_error *e), void *arg,
	       struct pt_error *e)
{
	struct walk w = {.paths = p, .run = run, .arg = arg};
	sqlite3_stmt *slices = prepare(db, slice_sql, f->trace, e), *groups = NULL;
	int64_t last = -1, now;
	int ret = slices ? 0 : -1, row;
	bool ended = false;

	if (!ret && sqlite3_prepare_v2(db, run_sql, -1, &groups, NULL) != SQLITE_OK)
		ret = unpack_sql_error(db, e);
	if (!ret && thread && thread[strspn(thread, "0123456789")])
		sqlite3_bind_text(slices, 2, thread, -1, SQLITE_STATIC);
	else if (!ret && thread)
		sqlite3_bind_int64(slices, 2, strtoll(thread, NULL, 10));
	while (!ret && (row = sqlite3_step(slices)) != SQLITE_DONE) {
		if (row != SQLITE_ROW) {
			ret = unpack_sql_error(db, e);
			break;
		}
		now = sqlite3_column_int64(slices, 3);
		w.at.first |= now != last;
		w.at.cut |= ended && now == last;
		last = now;
		ended = sqlite3_column_int(slices, 4);
		ret = walk_slice(&w, db, slices, groups, e);
	}
	sqlite3_finalize(slices);
	sqlite3_finalize(groups);
	return ret;
}
