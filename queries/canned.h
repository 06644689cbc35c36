/*
 * canned.h - the queries that are built in: queries/NAME.sql, and those of a folder of the user's.
 *
 * A query is SQL that runs as it is in the sqlite3 shell, too. Its first line is "-- NAME: what it
 * answers"; comment lines follow: units, and a line "-- :PARAMETER = DEFAULT what it is" for each
 * parameter. In the SQL a parameter that is not given is NULL, so it stands there as
 * coalesce(:PARAMETER, DEFAULT). Three more lines are for pt-query: "-- format: folded" names the
 * format when none is asked for, "-- chart: lines" is for html.h, "-- dashboard: PARAMETER=VALUE" is
 * what the dashboard gives.
 */
#ifndef QUERIES_CANNED_H
#define QUERIES_CANNED_H

#include <stdbool.h>
#include <stddef.h>

struct canned {
	const char *name;
	const char *sql; /* NUL-terminated */
	bool dashboard;	 /* is part of it */
};

extern const struct canned canned_queries[];
extern const size_t canned_count;

/* The built-in query, NULL when there is none of that name. */
const struct canned *canned_find(const char *name);
/* The one whose name is most like it. */
const struct canned *canned_nearest(const char *name);
/* Whether the leading comment has a line that begins with "-- NOTE"; the rest of the line goes to ret
 * (room bytes, cut). */
bool canned_note(const char *sql, const char *note, char *ret, size_t room);
/* What it answers: the first line behind the name. *ret_length of it. */
const char *canned_title(const char *sql, size_t *ret_length);

#endif
