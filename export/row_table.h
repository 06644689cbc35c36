/*
 * row_table.h - a virtual table whose rows the program hands out one by one, for
 *
 *     INSERT INTO edge SELECT c0, c1, c2 FROM row_table
 *
 * which inserts many rows in one statement: that takes SQLite a quarter less time than a statement a row.
 * The table is in the connection only, never in the database.
 */
#ifndef EXPORT_ROW_TABLE_H
#define EXPORT_ROW_TABLE_H

#include <sqlite3.h>
#include <stdbool.h>

#include "schema/error.h"

enum { ROW_TABLE_COLUMNS = 24 }; /* c0 to c23 */

struct row_table_source {
	bool (*next)(void *arg); /* false: there is no row any more; first called for the first one */
	/* Column `at` of the row, by sqlite3_result_*(). Texts and blobs are there until the next row. */
	void (*column)(void *arg, int at, sqlite3_context *context);
	void *arg;
};

/* source lives as long as the connection. 0, or -1: PT_ERR_NO_MEMORY, or SQLite's error. */
int row_table_create(sqlite3 *db, const struct row_table_source *source, struct pt_error *e);

#endif
