/*
 * group_table.h - rows that C unpacks, as a table that SQL reads: SQLite's eponymous virtual table.
 *
 * A row of a table like call_group holds a group of rows, with ids from its own on. What unpacks one gives
 * the rows as numbers, int64_t each, UNPACK_UNKNOWN for NULL. A question that says which ids or which groups
 * it wants (=, IN, <, ...) reads no others. Rows come in the order of their ids.
 */
#ifndef SCHEMA_UNPACK_GROUP_TABLE_H
#define SCHEMA_UNPACK_GROUP_TABLE_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

/* Where rows are unpacked to. It grows, and is not shared. */
struct group_rows {
	int64_t *values; /* count rows of so many numbers */
	size_t count, row_numbers, room;
};

/* Room for `count` rows, all of them; those that were there are kept. NULL: PT_ERR_NO_MEMORY. */
void *group_rows_room(struct group_rows *rows, size_t count, struct pt_error *e);

struct group_table {
	const char *name;    /* of the table in SQL */
	const char *columns; /* "id, ..." */
	int column_count;    /* of the numbers that a row has: the first columns */
	int id_column, group_column;
	int id_shift;	    /* an id >> this is one as the packed table's: from the group's own on */
	const char *groups; /* "SELECT ... FROM table g", for unpack() */
	const char *table;  /* the packed one, whose key is `id` */
	/* For questions that bound times, NULL else: as groups, then " ... WHERE", what the packed table's rows
	 * with times from ?5 to ?6 in column tsc_column, and from ?7 to ?8 in time_column, must meet. They come
	 * in the order of their ids. */
	const char *timed_groups;
	int tsc_column, time_column;
	/* What unpack() keeps from one group to the next; it lives as long as nothing writes the database.
	 * NULL: it keeps nothing. create(): NULL, as unpack_sql_error() or PT_ERR_NO_MEMORY. */
	void *(*create)(sqlite3 *db, struct pt_error *e);
	void (*destroy)(void *state);
	/* The rows of a group. 0, or -1: as unpack_sql_error(), unpack_damaged() or PT_ERR_NO_MEMORY. */
	int (*unpack)(void *state, sqlite3_stmt *group, struct group_rows *rows, struct pt_error *e);
	/* A column after those, as SQL's result, which is NULL until it is set. 0, or -1: as unpack().
	 * NULL: there are none. */
	int (*column)(void *state, const int64_t *row, int column, sqlite3_context *to, struct pt_error *e);
};

/* Makes the table known to db's statements. 0, or -1: PT_ERR_NO_MEMORY. */
int group_table_register(sqlite3 *db, const struct group_table *table, struct pt_error *e);

#endif
