/* path_set.c - see path_set.h. */
#include "queries/report/path_set.h"

#include <stdbool.h>
#include <stdlib.h>

#include "queries/report/json.h"
#include "queries/report/sql.h"

enum { PATHS_MAX = 1 << 30 };

int path_set_init(struct path_set *set, sqlite3 *db, struct pt_error *e)
{
	sqlite3_stmt *st = NULL;
	int64_t last = 0;
	int r;

	sqlite3_prepare_v2(db, "SELECT max(id) FROM call_path", -1, &st, NULL);
	r = report_step(db, st, e);
	if (r > 0)
		last = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	if (r < 0)
		return -1;
	if (last < 0 || last > PATHS_MAX)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "call paths have numbers up to %lld",
			       (long long)last);
	set->bytes = (size_t)last / 8 + 1;
	set->bits = calloc(set->bytes, 1);
	return set->bits ? 0 : pt_fail_no_memory(e, "call paths");
}

static bool has(const struct path_set *set, int64_t path)
{
	return set->bits[path / 8] >> (path % 8) & 1;
}

int path_set_add(void *arg, int64_t path, struct pt_error *e)
{
	struct path_set *set = arg;

	if (path < 0 || (size_t)path / 8 >= set->bytes)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "there is no call path %lld",
			       (long long)path);
	set->bits[path / 8] |= (uint8_t)(1 << (path % 8));
	return 0;
}

/* Their callers, and callers of these. */
static int close_upwards(struct path_set *set, sqlite3 *db, struct pt_error *e)
{
	sqlite3_stmt *st = NULL;
	int r = 0, row;

	if (sqlite3_prepare_v2(db, "SELECT parent FROM call_path WHERE id = ?", -1, &st, NULL) != SQLITE_OK)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s", sqlite3_errmsg(db));
	for (int64_t i = 0; r == 0 && (size_t)i < set->bytes * 8; i++) {
		int64_t path = i;

		while (r == 0 && has(set, path)) {
			sqlite3_reset(st);
			sqlite3_bind_int64(st, 1, path);
			row = report_step(db, st, e);
			if (row < 0)
				r = -1;
			if (row <= 0 || sqlite3_column_type(st, 0) != SQLITE_INTEGER)
				break;
			path = sqlite3_column_int64(st, 0);
			if (path < 0 || (size_t)path / 8 >= set->bytes || has(set, path))
				break;
			r = path_set_add(set, path, e);
		}
	}
	sqlite3_finalize(st);
	return r;
}

int path_set_write(struct path_set *set, sqlite3 *db, int no_demangle, FILE *out, struct pt_error *e)
{
	sqlite3_stmt *st = report_prepare(db, "path", e);
	bool any = false;
	int r = st ? close_upwards(set, db, e) : -1, row;

	fputs("{\"columns\":[\"id\",\"parent\",\"name\",\"symbol\"],\"rows\":[", out);
	for (int64_t i = 0; r == 0 && (size_t)i < set->bytes * 8; i++) {
		if (!has(set, i))
			continue;
		sqlite3_reset(st);
		report_bind(st, ":path", i);
		if (no_demangle)
			report_bind(st, ":no_demangle", 1);
		row = report_step(db, st, e);
		if (row < 0)
			r = -1;
		if (row <= 0)
			continue;
		if (any)
			fputs(",\n", out);
		any = true;
		json_row(st, out);
	}
	fputs("]}", out);
	sqlite3_finalize(st);
	return r;
}

void path_set_deinit(struct path_set *set)
{
	free(set->bits);
	set->bits = NULL;
}
