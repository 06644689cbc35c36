/* row_table.c - see row_table.h. */
#include "export/row_table.h"

#include <stdio.h>
#include <stdlib.h>

#include "export/db.h"

struct table {
	sqlite3_vtab base;
	const struct row_table_source *source;
};

struct cursor {
	sqlite3_vtab_cursor base;
	sqlite3_int64 row;
	bool ended;
};

static int on_connect(sqlite3 *db, void *source, int argc, const char *const *argv, sqlite3_vtab **ret,
		      char **ret_error)
{
	char sql[16 + 8 * ROW_TABLE_COLUMNS];
	int n = snprintf(sql, sizeof sql, "CREATE TABLE x(c0"), result;
	struct table *t;

	(void)argc, (void)argv, (void)ret_error;
	for (int i = 1; i < ROW_TABLE_COLUMNS; i++)
		n += snprintf(sql + n, sizeof sql - (size_t)n, ",c%d", i);
	snprintf(sql + n, sizeof sql - (size_t)n, ")");
	result = sqlite3_declare_vtab(db, sql);
	if (result != SQLITE_OK)
		return result;
	t = calloc(1, sizeof *t);
	if (!t)
		return SQLITE_NOMEM;
	t->source = source;
	*ret = &t->base;
	return SQLITE_OK;
}

static int on_disconnect(sqlite3_vtab *table)
{
	free(table);
	return SQLITE_OK;
}

static int on_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	(void)table;
	info->estimatedCost = 1;
	return SQLITE_OK;
}

static int on_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret)
{
	struct cursor *c = calloc(1, sizeof *c);

	(void)table;
	if (!c)
		return SQLITE_NOMEM;
	*ret = &c->base;
	return SQLITE_OK;
}

static int on_close(sqlite3_vtab_cursor *cursor)
{
	free(cursor);
	return SQLITE_OK;
}

static const struct row_table_source *source_of(const sqlite3_vtab_cursor *cursor)
{
	return ((const struct table *)cursor->pVtab)->source;
}

static int on_next(sqlite3_vtab_cursor *cursor)
{
	const struct row_table_source *source = source_of(cursor);
	struct cursor *c = (struct cursor *)cursor;

	c->row++;
	c->ended = !source->next(source->arg);
	return SQLITE_OK;
}

static int on_filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc,
		     sqlite3_value **argv)
{
	(void)number, (void)text, (void)argc, (void)argv;
	return on_next(cursor);
}

static int on_eof(sqlite3_vtab_cursor *cursor)
{
	return ((const struct cursor *)cursor)->ended;
}

static int on_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int at)
{
	const struct row_table_source *source = source_of(cursor);

	source->column(source->arg, at, context);
	return SQLITE_OK;
}

static int on_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret)
{
	*ret = ((const struct cursor *)cursor)->row;
	return SQLITE_OK;
}

int row_table_create(sqlite3 *db, const struct row_table_source *source, struct pt_error *e)
{
	/* No xCreate: the table is there by the module's name, and cannot be made. */
	static const sqlite3_module module = {.xConnect = on_connect,
					      .xDisconnect = on_disconnect,
					      .xBestIndex = on_best_index,
					      .xOpen = on_open,
					      .xClose = on_close,
					      .xFilter = on_filter,
					      .xNext = on_next,
					      .xEof = on_eof,
					      .xColumn = on_column,
					      .xRowid = on_rowid};

	if (sqlite3_create_module_v2(db, "row_table", &module, (void *)source, NULL) != SQLITE_OK)
		return db_fail_main(db, e);
	return 0;
}
