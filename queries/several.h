/*
 * several.h - one question to several databases.
 *
 * A query is asked of each, one after the other; the rows come together with a first column `db` that says
 * which database each is from. A query that compares traces says in its leading comment which view it reads
 * ("-- gathers: VIEW"): then that view's rows are gathered, and the query is asked of them all at once.
 * There traces are counted through, from 1, and the parameter b is the second database's first one unless
 * it is given.
 */
#ifndef QUERIES_SEVERAL_H
#define QUERIES_SEVERAL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "queries/database.h"
#include "schema/error.h"

struct several {
	const char *const *databases; /* paths */
	size_t count;
	const char *const *parameters; /* "NAME=VALUE" */
	size_t parameter_count;
	bool no_demangle;
	const struct database_watch *watch; /* NULL: no limit */
};

/*
 * The statement whose rows are the answer, on a connection of its own, *ret_db, which keeps them: for
 * sqlite3_finalize(), then sqlite3_close(). What does not fit memory goes to a temporary file. NULL: as
 * database_open(), database_prepare(), database_bind() and rows_init() fail; PT_ERR_USAGE, the databases'
 * rows have different columns; nothing is to be closed.
 */
sqlite3_stmt *several_ask(const struct several *s, const char *sql, sqlite3 **ret_db, struct pt_error *e);

#endif
