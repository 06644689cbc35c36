/*
 * sql_macros.h - the preprocessor of this project's SQL: what repeats itself has a name, and SQLite
 * gets plain SQL.
 *
 *     CREATE MACRO NUMBER_AT(text, at) AS coalesce(unicode(substr(text, at, 1)) - 1, 0);
 *
 *     SELECT NUMBER_AT(g.repeats, i.i + 1) ...     becomes
 *     SELECT coalesce(unicode(substr(g.repeats, (i.i + 1), 1)) - 1, 0) ...
 *
 * macros.sql has the macros that all SQL of the project may use; a text may define more, before their
 * first use. pt-load expands the views before it creates them, pt-query each query before it runs or
 * prints it, users' own included. So what stands in a database, and what `pt-query --print` shows,
 * needs nothing but SQLite.
 *
 * Names are matched exactly (by custom they are capitals). A name is a call only before "(" and
 * after neither "." nor ":". Comments, strings and quoted names are never looked into. Each word of
 * the body that is a parameter's name is replaced by the argument, in parentheses unless it is a
 * name, a number, a function call, or has them already; a word after a "." is none, so `g.path` with
 * g = h becomes `h.path`. Arguments are expanded first, then what the body became. In the body each
 * stretch of blanks and comments becomes one blank.
 */
#ifndef SCHEMA_SQL_MACROS_H
#define SCHEMA_SQL_MACROS_H

#include "schema/error.h"

/*
 * The text without macros, for the caller to free(). NULL: PT_ERR_NO_MEMORY, or PT_ERR_BAD_INPUT: a
 * malformed or repeated definition, a call with too few, too many or empty arguments or without its
 * ")", macros that call themselves.
 */
char *pt_sql_expand(const char *sql, struct pt_error *e);

#endif
