/*
 * rows.h - a statement's rows, all in memory: for the formats that must see them before they can
 * write the first.
 */
#ifndef QUERIES_ROWS_H
#define QUERIES_ROWS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "schema/error.h"

struct cell {
	char *text; /* NULL: SQL's NULL */
	bool number;
};

struct rows {
	size_t columns, count;
	char **names;	    /* of the columns */
	struct cell *cells; /* count * columns, row by row */
};

/* Runs the statement to its end. 0, or -1 and nothing to deinit: PT_ERR_BAD_INPUT (SQLite's message),
 * PT_ERR_NO_MEMORY. */
int rows_init(struct rows *rows, sqlite3_stmt *statement, struct pt_error *e);
void rows_deinit(struct rows *rows);

static inline const struct cell *rows_at(const struct rows *rows, size_t row, size_t column)
{
	return &rows->cells[row * rows->columns + column];
}

/* The value of a column of the statement's row as text, until the next step; *ret is NULL for SQL's NULL.
 * 0, or -1: PT_ERR_NO_MEMORY. */
int rows_text(sqlite3_stmt *statement, int column, const char **ret, struct pt_error *e);

/* What SQLite says about the statement's failure: PT_ERR_BAD_INPUT; PT_ERR_REFUSED, its time was over.
 * Returns -1. */
int rows_sql_error(sqlite3_stmt *statement, struct pt_error *e);

/* The next row: 1 there is one, 0 there is none, -1: as rows_sql_error(). */
int rows_step(sqlite3_stmt *statement, struct pt_error *e);

#endif
