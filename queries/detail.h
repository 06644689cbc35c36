/*
 * detail.h - whether a database holds what a question asks for: pt-decode --detail leaves branches or calls
 * out.
 *
 * A canned query that has no answer without them has a line "-- needs: branches" (or calls, vm) in its
 * leading comment. Of any other statement it is seen which tables it reads.
 */
#ifndef QUERIES_DETAIL_H
#define QUERIES_DETAIL_H

#include <sqlite3.h>
#include <stddef.h>

#include "schema/error.h"

/*
 * sql: with its comment; name: of the query, for messages; path: of the database. 0: it can be answered,
 * and *note says what is not there, "" nothing is missing. -1: PT_ERR_REFUSED, no trace has what it needs
 * (the message says what to do), or SQLite's error.
 */
int detail_check(sqlite3 *db, const char *path, const char *name, const char *sql, char *note, size_t room,
		 struct pt_error *e);

#endif
