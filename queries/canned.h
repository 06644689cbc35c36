/*
 * canned.h - the queries that are built in: queries/NAME.sql.
 *
 * A query is one SELECT with macros (schema/sql_macros.h), which source.h expands. Its first line is
 * "-- NAME: what it answers". Comment lines follow: units, and a line "-- :PARAMETER = DEFAULT what
 * it is" for each parameter. In the SQL a parameter that is not given is NULL, so it is written as
 * coalesce(:PARAMETER, DEFAULT). Four more lines are for pt-query: "-- format: folded" (or lines) names the
 * format when none is asked for, "-- chart: lines" is for html.h, "-- dashboard: PARAMETER=VALUE"
 * sets a parameter in the dashboard; "-- needs: branches" (calls, vm) is for detail.h.
 */
#ifndef QUERIES_CANNED_H
#define QUERIES_CANNED_H

#include <stdbool.h>
#include <stddef.h>

struct canned {
	const char *name;
	const char *sql; /* with macros */
	bool dashboard;	 /* the dashboard has it */
};

extern const struct canned canned_queries[];
extern const size_t canned_count;

/* The query of that name; NULL: there is none. */
const struct canned *canned_find(const char *name);
/* The query whose name is most like it. */
const struct canned *canned_nearest(const char *name);

/* Of any query's leading comment: whether it has a line that begins with "-- NOTE". ret gets the rest
 * of that line, cut to room bytes with its NUL; room 0: it is not wanted. */
bool canned_note(const char *sql, const char *note, char *ret, size_t room);
/* What the query answers: the first line after the name, *ret_length bytes of it. No comment of that
 * form: 0 bytes. */
const char *canned_title(const char *sql, size_t *ret_length);

#endif
