/* rows.c - see rows.h. */
#include "queries/rows.h"

#include <stdlib.h>
#include <string.h>

#include "schema/array.h"

int rows_sql_error(sqlite3_stmt *st, struct pt_error *e)
{
	sqlite3 *db = sqlite3_db_handle(st);

	if (sqlite3_errcode(db) == SQLITE_INTERRUPT)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "the query took longer than --timeout allows, and not all rows are there");
	return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s", sqlite3_errmsg(db));
}

int rows_step(sqlite3_stmt *st, struct pt_error *e)
{
	int r = sqlite3_step(st);

	return r == SQLITE_ROW ? 1 : r == SQLITE_DONE ? 0 : rows_sql_error(st, e);
}

int rows_text(sqlite3_stmt *st, int column, const char **ret, struct pt_error *e)
{
	bool null = sqlite3_column_type(st, column) == SQLITE_NULL;

	*ret = null ? NULL : (const char *)sqlite3_column_text(st, column);
	return null || *ret ? 0 : pt_fail_no_memory(e, "a row");
}

static bool copy_row(struct rows *r, sqlite3_stmt *st)
{
	struct cell *row = &r->cells[r->count * r->columns];

	memset(row, 0, r->columns * sizeof *row);
	r->count++;
	for (size_t i = 0; i < r->columns; i++) {
		int type = sqlite3_column_type(st, (int)i);
		const char *text = (const char *)sqlite3_column_text(st, (int)i);

		row[i].number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
		if (type == SQLITE_NULL)
			continue;
		row[i].text = text ? strdup(text) : NULL;
		if (!row[i].text)
			return false;
	}
	return true;
}

int rows_init(struct rows *r, sqlite3_stmt *st, struct pt_error *e)
{
	size_t room = 0;
	int result = SQLITE_NOMEM;

	*r = (struct rows){.columns = (size_t)sqlite3_column_count(st)};
	r->names = calloc(r->columns + 1, sizeof *r->names);
	for (size_t i = 0; r->names && i < r->columns; i++) {
		r->names[i] = strdup(sqlite3_column_name(st, (int)i));
		if (!r->names[i])
			goto fail;
	}
	if (!r->names)
		goto fail;
	while ((result = sqlite3_step(st)) == SQLITE_ROW) {
		result = SQLITE_NOMEM;
		if (pt_array_grow_bytes(&r->cells, r->count, &room, r->columns * sizeof *r->cells, e) ||
		    !copy_row(r, st))
			goto fail;
	}
	if (result == SQLITE_DONE)
		return 0;
fail:
	rows_deinit(r);
	if (result == SQLITE_NOMEM)
		return pt_fail_no_memory(e, "the rows; --format csv needs none");
	return rows_sql_error(st, e);
}

void rows_deinit(struct rows *r)
{
	for (size_t i = 0; i < r->count * r->columns; i++)
		free(r->cells[i].text);
	for (size_t i = 0; r->names && i < r->columns; i++)
		free(r->names[i]);
	free(r->cells);
	free(r->names);
	*r = (struct rows){0};
}
