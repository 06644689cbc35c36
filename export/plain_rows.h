/*
 * plain_rows.h - records that become a row as they are: tables machine, thread, dso, symbol, event,
 * error, interrupt; and the tables of numbers and names that the views join with.
 */
#ifndef EXPORT_PLAIN_ROWS_H
#define EXPORT_PLAIN_ROWS_H

#include <sqlite3.h>
#include <stdint.h>

#include "export/bases.h"
#include "schema/records.h"

struct plain_rows;

/* bases are copied. NULL: PT_ERR_NO_MEMORY, or SQLite's error. */
struct plain_rows *plain_rows_create(sqlite3 *db, const struct trace_bases *bases, struct pt_error *e);
void plain_rows_destroy(struct plain_rows *p); /* NULL is fine */

/* Each inserts a row. 0, or -1: SQLite's error. */
int plain_rows_machine(struct plain_rows *p, const struct ptr_record *r, struct pt_error *e);
int plain_rows_thread(struct plain_rows *p, const struct ptr_record *r, struct pt_error *e);
int plain_rows_dso(struct plain_rows *p, const struct ptr_record *r, struct pt_error *e);
int plain_rows_symbol(struct plain_rows *p, const struct ptr_record *r, struct pt_error *e);
int plain_rows_event(struct plain_rows *p, const struct ptr_record *r, struct pt_error *e);
int plain_rows_error(struct plain_rows *p, const struct ptr_record *r, struct pt_error *e);

struct interrupt_row { /* ids are the database's */
	int64_t branch, slice, path_edge;
	uint64_t tsc; /* PTR_NO_TSC */
};
int plain_rows_interrupt(struct plain_rows *p, const struct interrupt_row *row, struct pt_error *e);

/* After the last record: a thread that had several names has several rows, each of which gets the id
 * of the first. 0 or -1. */
int plain_rows_finish(struct plain_rows *p, struct pt_error *e);

/* Fills the tables number, kind, exit_reason, reason_source and clock_source of a new database. 0 or -1. */
int plain_rows_constants(sqlite3 *db, struct pt_error *e);

#endif
