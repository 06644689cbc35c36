/*
 * perf_sqlite.h - a database's traces in the tables of perf's export-to-sqlite.py, which perf's
 * exported-sql-viewer.py opens.
 *
 * All that its script writes for "branches calls": threads, comms, dsos, symbols, samples (branches, and the
 * events ptwrite, cbr, mwait, pwre, exstop, pwrx), call paths, calls, context switches; its views and
 * indexes; tables that are empty are left out as there. samples are numbered in the order of time, as there,
 * and say in two more columns which row of our views branches and events they are. ptwrite.exact_ip is 0:
 * not known. What was not seen is 0, or -1 of a pid, tid and cpu: perf's convention.
 */
#ifndef QUERIES_PERF_SQLITE_PERF_SQLITE_H
#define QUERIES_PERF_SQLITE_PERF_SQLITE_H

#include <sqlite3.h>
#include <stdio.h>

#include "schema/error.h"

/*
 * db: of database_open(). Makes the other database in a file of $TMPDIR, or /var/tmp, that has no name, then
 * copies it to out. 0, or -1: PT_ERR_IO (the temporary file; whether it arrived, out says), PT_ERR_BAD_INPUT
 * (SQLite's message), PT_ERR_REFUSED (it took longer than database_stop_when() says), PT_ERR_NO_MEMORY.
 */
int perf_sqlite_write(sqlite3 *db, FILE *out, struct pt_error *e);

#endif
