/*
 * remote.h - a question to a ClickHouse server that pt-load fills (schema/clickhouse).
 *
 * Its dialect is another one than SQLite's, so the canned queries that it answers have a text of their own,
 * in queries/clickhouse, unless one text serves both. The rows come back as rows of an SQLite statement,
 * for all that prints those.
 */
#ifndef QUERIES_REMOTE_H
#define QUERIES_REMOTE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "queries/canned.h"
#include "schema/error.h"

struct remote {
	const char *url;
	const char *const *parameters; /* "NAME=VALUE" */
	size_t parameter_count;
	bool no_demangle;
	long long timeout_s; /* 0: none */
};

/* Those that it answers, in the order of the list. */
extern const struct canned remote_queries[];
extern const size_t remote_count;

bool remote_has(const char *name);
/* The text of a canned query of these. NULL: PT_ERR_USAGE, none has the name. */
const char *remote_find(const char *name, struct pt_error *e);

/* SQL with its macros expanded, and its parameters filled in: those that are not given are NULL. For the
 * caller to free(). NULL: PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (its macros), PT_ERR_USAGE (a parameter
 * that it has not). */
char *remote_sql(const struct remote *r, const char *sql, struct pt_error *e);

/* The statement whose rows are the answer to SQL of remote_sql(), on a connection of its own, *ret_db:
 * for sqlite3_finalize(), then sqlite3_close(). What does not fit memory goes to a temporary file. The
 * server may only read for it. NULL: PT_ERR_IO, PT_ERR_USAGE, PT_ERR_REFUSED; nothing is to be closed. */
sqlite3_stmt *remote_ask(const struct remote *r, const char *sql, sqlite3 **ret_db, struct pt_error *e);

/* The same, the rows being those of a view `name` of a database, for sqlite3_close(). */
sqlite3 *remote_gather(const struct remote *r, const char *sql, const char *name, struct pt_error *e);

/* The same, and `insert` is run on db for each row: its parameter ?N is column N. 0, or -1 as above. */
int remote_rows(const struct remote *r, const char *sql, sqlite3 *db, const char *insert, struct pt_error *e);

#endif
