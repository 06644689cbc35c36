/*
 * sql.h - statements of readers in C, and what went wrong with them.
 */
#ifndef SCHEMA_UNPACK_SQL_H
#define SCHEMA_UNPACK_SQL_H

#include <sqlite3.h>
#include <stdint.h>

#include "schema/error.h"

/* NULL in SQL. */
#define UNPACK_UNKNOWN INT64_MIN

/* What SQLite says about its last failure: PT_ERR_BAD_INPUT; PT_ERR_REFUSED, its time was over. Returns -1. */
int unpack_sql_error(sqlite3 *db, struct pt_error *e);

/* A table does not say what tables.sql promises: PT_ERR_BAD_INPUT. Returns -1. */
int unpack_damaged(const char *table, struct pt_error *e);

/* For sqlite3_finalize(). NULL: as unpack_sql_error(). */
sqlite3_stmt *unpack_prepare(sqlite3 *db, const char *sql, struct pt_error *e);

/* a + b, which wraps: in a database that somebody made up ids may be the greatest ones. */
static inline int64_t unpack_plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* A column's number; UNPACK_UNKNOWN when it is NULL. */
static inline int64_t unpack_number(sqlite3_stmt *st, int column)
{
	return sqlite3_column_type(st, column) == SQLITE_NULL ? UNPACK_UNKNOWN
							      : sqlite3_column_int64(st, column);
}

#endif
