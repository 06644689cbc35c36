/* shape.c - see shape.h. */
#include "export/shape.h"

#include <stdbool.h>
#include <string.h>

#include "export/db.h"
#include "export/schema_sql.h"

/* The next character of SQL, with a blank for white space of any length. */
static char next_of(const char **p)
{
	static const char white[] = " \t\r\n";
	size_t n = strspn(*p, white);

	*p += n;
	if (n)
		return ' ';
	return **p ? *(*p)++ : 0;
}

static bool same_sql(const char *a, const char *b)
{
	char x, y;

	do {
		x = next_of(&a);
		y = next_of(&b);
	} while (x == y && x);
	return x == y;
}

static int refuse(const char *path, const char *type, const char *name, const char *why, struct pt_error *e)
{
	return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
		       "%s has %s %s that %s: load into a new database, or remove the change", path,
		       type[0] == 'i'	? "an index"
		       : type[1] == 'r' ? "a trigger"
					: "a table",
		       name, why);
}

/* An object of ours: is it in db as we make it? */
static int check_there(sqlite3_stmt *find, const char *path, const char *type, const char *name,
		       const char *sql, struct pt_error *e)
{
	int ret = 0, row;

	sqlite3_bind_text(find, 1, name, -1, SQLITE_TRANSIENT);
	row = sqlite3_step(find);
	if (row == SQLITE_ROW) {
		const char *there = (const char *)sqlite3_column_text(find, 0);

		if (!there || !same_sql(there, sql))
			ret = refuse(path, type, name, "is not as pt-load makes it", e);
	} else if (row == SQLITE_DONE) {
		ret = pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s lacks the %s %s: load into a new database",
			      path, type, name);
	} else {
		ret = db_fail(sqlite3_db_handle(find), path, e);
	}
	sqlite3_reset(find);
	return ret;
}

/* An object of db's that a load would touch: is it one of ours? */
static int check_ours(sqlite3_stmt *find, const char *path, const char *type, const char *name,
		      struct pt_error *e)
{
	int row;

	sqlite3_bind_text(find, 1, name, -1, SQLITE_TRANSIENT);
	row = sqlite3_step(find);
	sqlite3_reset(find);
	return row == SQLITE_ROW ? 0 : refuse(path, type, name, "pt-load does not make", e);
}

static const char ours_sql[] =
    "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('table', 'index') AND sql NOT NULL";
static const char theirs_sql[] = "SELECT type, name, tbl_name FROM sqlite_schema WHERE type = 'trigger' OR "
				 "type = 'index' AND sql NOT NULL";
static const char find_sql[] = "SELECT sql FROM sqlite_schema WHERE name = ?";

/* pattern: a database with our tables and indexes. */
static int compare(sqlite3 *db, sqlite3 *pattern, const char *path, struct pt_error *e)
{
	sqlite3_stmt *ours = NULL, *theirs = NULL, *in_db = NULL, *in_pattern = NULL;
	int ret = 0;

	if (sqlite3_prepare_v2(pattern, ours_sql, -1, &ours, NULL) ||
	    sqlite3_prepare_v2(pattern, find_sql, -1, &in_pattern, NULL))
		ret = db_fail(pattern, path, e);
	else if (sqlite3_prepare_v2(db, theirs_sql, -1, &theirs, NULL) ||
		 sqlite3_prepare_v2(db, find_sql, -1, &in_db, NULL))
		ret = db_fail(db, path, e);
	while (!ret && sqlite3_step(ours) == SQLITE_ROW)
		ret = check_there(in_db, path, (const char *)sqlite3_column_text(ours, 0),
				  (const char *)sqlite3_column_text(ours, 1),
				  (const char *)sqlite3_column_text(ours, 2), e);
	while (!ret && sqlite3_step(theirs) == SQLITE_ROW) {
		bool trigger = strcmp((const char *)sqlite3_column_text(theirs, 0), "trigger") == 0;
		const char *on = (const char *)sqlite3_column_text(theirs, 2);

		sqlite3_bind_text(in_pattern, 1, on, -1, SQLITE_TRANSIENT);
		if (!trigger && sqlite3_step(in_pattern) != SQLITE_ROW) { /* of a table of the user's */
			sqlite3_reset(in_pattern);
			continue;
		}
		sqlite3_reset(in_pattern);
		ret = check_ours(in_pattern, path, (const char *)sqlite3_column_text(theirs, 0),
				 (const char *)sqlite3_column_text(theirs, 1), e);
	}
	sqlite3_finalize(ours);
	sqlite3_finalize(theirs);
	sqlite3_finalize(in_db);
	sqlite3_finalize(in_pattern);
	return ret;
}

int shape_check(sqlite3 *db, const char *path, struct pt_error *e)
{
	sqlite3 *pattern = NULL;
	int ret;

	if (sqlite3_open(":memory:", &pattern) != SQLITE_OK)
		ret = db_fail(pattern, path, e);
	else
		ret = db_exec(pattern, pt_tables_sql, e) || db_exec_macros(pattern, pt_indexes_sql, e)
			  ? -1
			  : compare(db, pattern, path, e);
	sqlite3_close(pattern);
	return ret;
}
