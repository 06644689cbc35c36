/*
 * db.h - SQLite with this project's errors.
 */
#ifndef EXPORT_DB_H
#define EXPORT_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "export/bases.h"
#include "schema/error.h"

/* Fills e with what SQLite says about the connection's last failure: PT_ERR_IO, PT_ERR_NO_MEMORY,
 * PT_ERR_REFUSED (interrupted, or no database). what: "writing trace.db". Returns -1. */
int db_fail(sqlite3 *db, const char *what, struct pt_error *e);

/* The same about the database under the name that the user gave it: without DB_LOADING
 * (store.h). */
#define DB_LOADING ".loading"
int db_fail_main(sqlite3 *db, struct pt_error *e);

/* The database's path. */
const char *db_name(sqlite3 *db);

/* Runs statements that return nothing. 0 or -1. */
int db_exec(sqlite3 *db, const char *sql, struct pt_error *e);
/* The same of SQL with macros (schema/sql_macros.h). */
int db_exec_macros(sqlite3 *db, const char *sql, struct pt_error *e);

/* *ret: the first column of the first row; `otherwise` when there is no row or it is NULL. 0 or -1. */
int db_number(sqlite3 *db, const char *sql, int64_t otherwise, int64_t *ret, struct pt_error *e);

/* A statement that inserts a row of `columns` values into table, for sqlite3_finalize(). NULL: failed. */
sqlite3_stmt *db_insert(sqlite3 *db, const char *table, int columns, struct pt_error *e);

/* Runs a bound statement that returns nothing, and makes it ready to be bound again. 0 or -1. */
int db_run(sqlite3_stmt *statement, struct pt_error *e);

/* value, or NULL when it is not known. */
static inline void db_bind(sqlite3_stmt *statement, int at, bool known, int64_t value)
{
	if (known)
		sqlite3_bind_int64(statement, at, value);
	else
		sqlite3_bind_null(statement, at);
}

/* A tsc (PTR_NO_TSC: unknown) as perf's clock has it, exactly as macros.sql's TSC_TO_TIME. NULL: the
 * clock is not known. */
void db_bind_time(sqlite3_stmt *statement, int at, const struct trace_clock *clock, uint64_t tsc);

#endif
