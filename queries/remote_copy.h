/*
 * remote_copy.h - one trace of a ClickHouse server as an SQLite database: what asks more than its server
 * can answer asks that.
 *
 * All of SQLite's tables are there, with the server's ids, and so all views; the trace's number is the
 * server's. Runs and calls are not packed: a row each, which takes some 100 bytes.
 */
#ifndef QUERIES_REMOTE_COPY_H
#define QUERIES_REMOTE_COPY_H

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>

#include "queries/remote.h"

/*
 * Which trace a question is about: that of the parameter `trace`; without one the server's only one, and
 * for why-slow (name) that of the slowest VM exit of all. 0, or -1: PT_ERR_USAGE, there are several, or the
 * parameter is no number; as remote_ask().
 */
int remote_copy_trace(const struct remote *r, const char *name, int64_t *ret, struct pt_error *e);

/* The trace, in a temporary file that nobody else sees; statements only read. sql: only the tables that
 * this statement reads have rows; NULL: all. For sqlite3_close(). NULL: PT_ERR_REFUSED (there is no such
 * trace, or it went away meanwhile), as remote_ask(). */
sqlite3 *remote_copy(const struct remote *r, int64_t trace, const char *sql, struct pt_error *e);

/* The same with all rows, as a database's file that goes to out: what pt-load makes of the trace, but that
 * its runs and calls are not packed. 0, or -1: as above. */
int remote_copy_write(const struct remote *r, int64_t trace, FILE *out, struct pt_error *e);

#endif
