/*
 * source.h - where the SQL of a question comes from: a canned query, a file of the user's, the command line.
 */
#ifndef QUERIES_SOURCE_H
#define QUERIES_SOURCE_H

#include "schema/error.h"

/* One of name, sql and file is not NULL. */
struct source {
	const char *name;   /* of a query: FOLDER/NAME.sql, else the canned one */
	const char *sql;    /* the text itself */
	const char *file;   /* a path; "-" is standard input */
	const char *folder; /* of queries of the user's, NULL: none */
};

/*
 * The text as SQLite can run it: with schema/macros.sql's macros expanded. The caller free()s it.
 * NULL: PT_ERR_USAGE (no query of that name; the message has the nearest one), PT_ERR_IO (the file
 * cannot be read), PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (a macro is used wrongly).
 */
char *source_read(const struct source *s, struct pt_error *e);

#endif
