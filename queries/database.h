/*
 * database.h - a database of pt-load, opened for questions, and their statements.
 */
#ifndef QUERIES_DATABASE_H
#define QUERIES_DATABASE_H

#include <sqlite3.h>
#include <stddef.h>
#include <time.h>

#include "schema/error.h"

/*
 * Opens it read-only, also where it is compressed: nothing that the database or a statement contains writes,
 * not even a temporary table, attaches another file or runs a trigger. What a killed load left half done is
 * undone first, for which it must be writable. For sqlite3_close(). NULL: PT_ERR_IO (there is none, another
 * program is writing it, or a load is to be undone and may not be), PT_ERR_BAD_INPUT (it is no database, not
 * one of pt-load's, or one of another version: the message says what to do).
 */
sqlite3 *database_open(const char *path, struct pt_error *e);

/* From now on the connection's statements only read, as those of database_open(). */
void database_only_reads(sqlite3 *db);

/* When an answer is not waited for any more: is_over(arg), asked often, is not 0 then. */
struct database_watch {
	int (*is_over)(void *arg);
	void *arg;
};

/* Over from `until` (CLOCK_MONOTONIC) on, which lives as long. */
struct database_watch database_until(const struct timespec *until);
/* Each statement of db fails with SQLITE_INTERRUPT once the watch is over, whose arg lives as long as db. NULL:
 * none does. */
void database_stop_when(sqlite3 *db, const struct database_watch *watch);

/* The one statement that sql is. For sqlite3_finalize(). NULL: PT_ERR_BAD_INPUT (SQLite's message),
 * PT_ERR_USAGE (no statement, or several), PT_ERR_REFUSED (one that does not only read). */
sqlite3_stmt *database_prepare(sqlite3 *db, const char *sql, struct pt_error *e);

/* Binds a parameter, given as "NAME=VALUE": a number when VALUE looks like one (decimal, 0x..., 1.5),
 * else a text. 0, or -1: PT_ERR_USAGE, the statement has none of that name. */
int database_bind(sqlite3_stmt *statement, const char *parameter, struct pt_error *e);

/* Names as the files have them: binds no_demangle (macros.sql), if the statement has it. */
void database_raw_names(sqlite3_stmt *statement);

#endif
