/* copy.c - see copy.h. */
#include "queries/perf_sqlite/copy.h"

#include <stdlib.h>

#include "schema/sql_macros.h"

static int sqlite_failed(sqlite3 *db, struct pt_error *e)
{
	switch (sqlite3_errcode(db)) {
	case SQLITE_INTERRUPT:
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "it takes longer than --timeout says");
	case SQLITE_NOMEM: return pt_fail_no_memory(e, "perf's tables");
	case SQLITE_FULL:
	case SQLITE_IOERR:
		return pt_fail(e, PT_ERR_IO, PT_NO_OFFSET,
			       "cannot write perf's tables to a temporary file: %s", sqlite3_errmsg(db));
	default: return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s", sqlite3_errmsg(db));
	}
}

int copy_execute(sqlite3 *to, const char *sql, struct pt_error *e)
{
	return sqlite3_exec(to, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_failed(to, e);
}

static int copy_row(sqlite3_stmt *row, sqlite3_stmt *insert)
{
	int columns = sqlite3_column_count(row);

	for (int i = 0; i < columns; i++)
		sqlite3_bind_value(insert, i + 1, sqlite3_column_value(row, i));
	sqlite3_step(insert);
	return sqlite3_reset(insert);
}

int copy_rows(sqlite3 *from, const char *select, sqlite3 *to, const char *insert, struct pt_error *e)
{
	sqlite3_stmt *row = NULL, *put = NULL;
	char *sql = pt_sql_expand(select, e);
	int r = sql ? 0 : -1, step = SQLITE_DONE;

	if (r == 0 && sqlite3_prepare_v2(from, sql, -1, &row, NULL) != SQLITE_OK)
		r = sqlite_failed(from, e);
	if (r == 0 && sqlite3_prepare_v2(to, insert, -1, &put, NULL) != SQLITE_OK)
		r = sqlite_failed(to, e);
	while (r == 0 && (step = sqlite3_step(row)) == SQLITE_ROW)
		if (copy_row(row, put) != SQLITE_OK)
			r = sqlite_failed(to, e);
	if (r == 0 && step != SQLITE_DONE)
		r = sqlite_failed(from, e);
	sqlite3_finalize(row);
	sqlite3_finalize(put);
	free(sql);
	return r;
}
