/*
 * rows.h - rows of a scratch SQLite database as RowBinary, a block at a time.
 */
#ifndef EXPORT_CLICKHOUSE_ROWS_H
#define EXPORT_CLICKHOUSE_ROWS_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

/* What all rows of a load have. */
struct rows_constants {
	uint64_t load;
	uint16_t day; /* since 1970 */
	const char *host;
	int64_t trace;
};

struct rows;

/* The rows for a table. columns: its names and types, as system.columns has them, a line each with a tab
 * between; kept until rows_destroy(). NULL: PT_ERR_NO_MEMORY, PT_ERR_IO (SQLite's), PT_ERR_REFUSED (a
 * column or type that is not known: another version's). */
struct rows *rows_create(sqlite3 *db, const char *table, char *columns,
			 const struct rows_constants *constants, struct pt_error *e);
void rows_destroy(struct rows *r); /* NULL is fine */
/* The names of the columns, in their order, for an INSERT. */
const char *rows_columns(const struct rows *r);
/* The next rows, gzip, until the next call: *ret_rows of them, 0 when there are no more. 0 or -1. */
int rows_block(struct rows *r, const void **ret, size_t *ret_bytes, uint64_t *ret_rows, struct pt_error *e);

#endif
