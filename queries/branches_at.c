/* branches_at.c - the table branches_at(time_from, time_to). See on_demand.h. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "queries/database.h"
#include "queries/on_demand.h"

struct source {
	sqlite3 *db;
	const char *container;
	const struct database_watch *watch;
};

struct table {
	sqlite3_vtab base;
	struct source *source;
	int columns; /* of the view; time_from and time_to are the two after them */
};

struct cursor {
	sqlite3_vtab_cursor base;
	sqlite3 *scratch;
	sqlite3_stmt *st;
	sqlite3_int64 bounds[2], row;
	bool end;
};

/* "CREATE TABLE" with the view's columns, for sqlite3_free(). *ret: how many. NULL: no memory, or there
 * is no such view. */
static char *declaration(sqlite3 *db, int *ret)
{
	sqlite3_str *text = sqlite3_str_new(db);
	sqlite3_stmt *st = NULL;

	*ret = 0;
	sqlite3_str_appendall(text, "CREATE TABLE branches_at (");
	if (sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info('branches')", -1, &st, NULL) ==
	    SQLITE_OK)
		for (; sqlite3_step(st) == SQLITE_ROW; ++*ret)
			sqlite3_str_appendf(text, "\"%w\", ", sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	sqlite3_str_appendall(text, "time_from HIDDEN, time_to HIDDEN)");
	return sqlite3_str_finish(text);
}

static int on_connect(sqlite3 *db, void *arg, int argc, const char *const *argv, sqlite3_vtab **ret,
		      char **error)
{
	struct table *t = sqlite3_malloc(sizeof *t);
	char *sql = NULL;
	int r = SQLITE_NOMEM;

	(void)argc, (void)argv, (void)error;
	if (t) {
		memset(t, 0, sizeof *t);
		t->source = arg;
		sql = declaration(db, &t->columns);
	}
	if (sql)
		r = sqlite3_declare_vtab(db, sql);
	sqlite3_free(sql);
	if (r != SQLITE_OK)
		sqlite3_free(t);
	else
		*ret = &t->base;
	return r;
}

static int on_disconnect(sqlite3_vtab *vtab)
{
	sqlite3_free(vtab);
	return SQLITE_OK;
}

/* Both times must be known. */
static int on_plan(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	const struct table *t = (const struct table *)vtab;
	int found = 0;

	for (int i = 0; i < info->nConstraint; i++) {
		int which = info->aConstraint[i].iColumn - t->columns;

		if (which < 0 || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
			continue;
		if (!info->aConstraint[i].usable)
			return SQLITE_CONSTRAINT;
		info->aConstraintUsage[i].argvIndex = which + 1;
		info->aConstraintUsage[i].omit = 1;
		found |= 1 << which;
	}
	if (found != 3) {
		vtab->zErrMsg =
		    sqlite3_mprintf("branches_at(time_from, time_to) wants two times, in ns of perf's clock");
		return SQLITE_ERROR;
	}
	info->estimatedCost = 1e6;
	return SQLITE_OK;
}

static int on_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret)
{
	struct cursor *c = sqlite3_malloc(sizeof *c);

	(void)vtab;
	if (!c)
		return SQLITE_NOMEM;
	memset(c, 0, sizeof *c);
	*ret = &c->base;
	return SQLITE_OK;
}

static void reset(struct cursor *c)
{
	sqlite3_finalize(c->st);
	sqlite3_close(c->scratch);
	c->st = NULL;
	c->scratch = NULL;
	c->end = true;
}

static int on_close(sqlite3_vtab_cursor *cursor)
{
	reset((struct cursor *)cursor);
	sqlite3_free(cursor);
	return SQLITE_OK;
}

static int on_next(sqlite3_vtab_cursor *cursor)
{
	struct cursor *c = (struct cursor *)cursor;
	int r = sqlite3_step(c->st);

	c->row++;
	c->end = r != SQLITE_ROW;
	return r == SQLITE_ROW || r == SQLITE_DONE ? SQLITE_OK : r;
}

static int on_filter(sqlite3_vtab_cursor *cursor, int plan, const char *text, int argc, sqlite3_value **argv)
{
	struct cursor *c = (struct cursor *)cursor;
	struct table *t = (struct table *)cursor->pVtab;
	struct on_demand_range range = {0};
	struct pt_error e = {0};

	(void)plan, (void)text, (void)argc;
	reset(c);
	if (sqlite3_value_type(argv[0]) == SQLITE_NULL || sqlite3_value_type(argv[1]) == SQLITE_NULL)
		return SQLITE_OK; /* as a comparison with NULL: no row */
	for (int i = 0; i < 2; i++)
		c->bounds[i] = sqlite3_value_int64(argv[i]);
	range.after_ns = c->bounds[0];
	range.until_ns = c->bounds[1];
	c->scratch = on_demand_open(t->source->db, t->source->container, &range, t->source->watch, &e);
	if (c->scratch)
		c->st = database_prepare(
		    c->scratch, "SELECT * FROM branches WHERE time_ns BETWEEN ? AND ? ORDER BY id", &e);
	if (!c->st) {
		t->base.zErrMsg = sqlite3_mprintf("%s", e.message);
		return SQLITE_ERROR;
	}
	for (int i = 0; i < 2; i++)
		sqlite3_bind_int64(c->st, i + 1, c->bounds[i]);
	return on_next(cursor);
}

static int on_end(sqlite3_vtab_cursor *cursor)
{
	return ((struct cursor *)cursor)->end;
}

static int on_column(sqlite3_vtab_cursor *cursor, sqlite3_context *to, int column)
{
	struct cursor *c = (struct cursor *)cursor;
	int columns = ((struct table *)cursor->pVtab)->columns;

	if (column < columns)
		sqlite3_result_value(to, sqlite3_column_value(c->st, column));
	else
		sqlite3_result_int64(to, c->bounds[column - columns]);
	return SQLITE_OK;
}

static int on_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret)
{
	*ret = ((struct cursor *)cursor)->row;
	return SQLITE_OK;
}

int on_demand_register(sqlite3 *db, const char *container, const struct database_watch *watch,
		       struct pt_error *e)
{
	static const sqlite3_module module = {.xConnect = on_connect,
					      .xBestIndex = on_plan,
					      .xDisconnect = on_disconnect,
					      .xOpen = on_open,
					      .xClose = on_close,
					      .xFilter = on_filter,
					      .xNext = on_next,
					      .xEof = on_end,
					      .xColumn = on_column,
					      .xRowid = on_rowid};
	struct source *s = malloc(sizeof *s);

	if (!s)
		return pt_fail_no_memory(e, NULL);
	*s = (struct source){.db = db, .container = container, .watch = watch};
	return sqlite3_create_module_v2(db, "branches_at", &module, s, free) == SQLITE_OK
		   ? 0
		   : pt_fail_no_memory(e, NULL);
}
