/*
 * sql.h - what a Perfetto trace is made of: queries/perfetto/NAME.sql, which begin with what they answer.
 */
#ifndef QUERIES_PERFETTO_SQL_H
#define QUERIES_PERFETTO_SQL_H

#include <sqlite3.h>
#include <stdint.h>

#include "schema/error.h"

/* What is asked of each. */
struct perfetto_range {
	int64_t trace;
	const char *after, *until; /* NULL: not bounded */
};

/* The statement of that file, with macros expanded and its parameters bound, for sqlite3_finalize(). NULL:
 * PT_ERR_BAD_INPUT (SQLite's message), PT_ERR_NO_MEMORY. */
sqlite3_stmt *perfetto_prepare(sqlite3 *db, const char *name, const struct perfetto_range *range,
			       struct pt_error *e);

/* What SQLite says about its last failure: PT_ERR_BAD_INPUT; PT_ERR_REFUSED, its time was over. Returns -1. */
int perfetto_sql_error(sqlite3 *db, struct pt_error *e);

#endif
