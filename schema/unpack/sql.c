/* sql.c - see sql.h. */
#include "schema/unpack/sql.h"

#include <stddef.h>

int unpack_sql_error(sqlite3 *db, struct pt_error *e)
{
	if (sqlite3_errcode(db) == SQLITE_INTERRUPT)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "it takes longer than --timeout says");
	return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s", sqlite3_errmsg(db));
}

int unpack_damaged(const char *table, struct pt_error *e)
{
	return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "the table %s is damaged", table);
}

sqlite3_stmt *unpack_prepare(sqlite3 *db, const char *sql, struct pt_error *e)
{
	sqlite3_stmt *st = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		unpack_sql_error(db, e);
	return st;
}
