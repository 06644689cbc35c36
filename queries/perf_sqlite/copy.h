/*
 * copy.h - rows of one database into a table of another. SQLite's ATTACH would do it, but pt-query's
 * connection only reads.
 */
#ifndef QUERIES_PERF_SQLITE_COPY_H
#define QUERIES_PERF_SQLITE_COPY_H

#include <sqlite3.h>
#include <stdio.h>

#include "schema/error.h"

/*
 * Runs `insert` on `to` for each row of `select` on `from`: its parameter ?N is column N of the row. Macros
 * are expanded in select. Returns 0, or -1: PT_ERR_BAD_INPUT (SQLite's message), PT_ERR_IO (the file cannot
 * grow), PT_ERR_REFUSED (`from` was stopped), PT_ERR_NO_MEMORY.
 */
int copy_rows(sqlite3 *from, const char *select, sqlite3 *to, const char *insert, struct pt_error *e);

/* Runs statements that have no rows. 0, or -1 as above. */
int copy_execute(sqlite3 *to, const char *sql, struct pt_error *e);

/*
 * Makes a database in a file of $TMPDIR, or /var/tmp, that has no name: fill() puts into it what it will. Then
 * copies it to out. 0, or -1: as fill(); PT_ERR_IO (the temporary file; whether it arrived, out says),
 * PT_ERR_NO_MEMORY.
 */
int copy_database(int (*fill)(void *arg, sqlite3 *to, struct pt_error *e), void *arg, FILE *out,
		  struct pt_error *e);

#endif
