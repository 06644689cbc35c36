/*
 * inserter.h - rows for SQLite, which another thread inserts while the caller makes the next ones. A table's
 * are inserted in the order in which they were run; a statement of one's own finds all that were run before it.
 *
 *     insert_int(i, 1, id);
 *     insert_text(i, 2, name, strlen(name));
 *     if (insert_run(i, e) < 0) ...
 *
 * While rows may wait, the connection is the inserter's: inserter_settle() before anything else is done with
 * it.
 */
#ifndef EXPORT_INSERTER_H
#define EXPORT_INSERTER_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

struct inserter;
struct insert;

/* db remains the caller's, and has one inserter, as long as it is open. threaded: with a thread of its own, if
 * one can be had. NULL: PT_ERR_NO_MEMORY, or SQLite's error. */
struct inserter *inserter_create(sqlite3 *db, bool threaded, struct pt_error *e);
/* Its statements have been destroyed. NULL is fine. */
void inserter_destroy(struct inserter *r);
/* All rows are in. 0, or -1: what SQLite said of one of them. */
int inserter_settle(struct inserter *r, struct pt_error *e);

/* A statement that inserts rows of so many columns, and one with so many parameters that returns nothing. NULL:
 * PT_ERR_NO_MEMORY, or SQLite's error. */
struct insert *insert_create(struct inserter *r, const char *table, int columns, struct pt_error *e);
struct insert *insert_create_sql(struct inserter *r, const char *sql, int parameters, struct pt_error *e);
/* Its rows are in, or could not be. NULL is fine. */
void insert_destroy(struct insert *i);

/* Values of the next row, by column, from 1 on. Those that are not set are NULL. */
void insert_int(struct insert *i, int at, int64_t value);
/* value, or NULL when it is not known. */
void insert_known(struct insert *i, int at, bool known, int64_t value);
void insert_double(struct insert *i, int at, double value);
/* What is at these must not change until insert_run(). */
void insert_text(struct insert *i, int at, const char *text, size_t bytes);
void insert_blob(struct insert *i, int at, const void *blob, size_t bytes);

/* The row. 0, or -1: PT_ERR_NO_MEMORY, or what SQLite said of it or of one before. */
int insert_run(struct insert *i, struct pt_error *e);
/* Bytes of all rows that were run, as they wait. */
uint64_t insert_bytes(const struct insert *i);

/* ---- Rows that another thread makes -------------------------------------------------------------------- */

/* Rows that are kept, to be run later. */
struct kept_rows;

struct kept_rows *kept_rows_create(void);	/* NULL: no memory */
void kept_rows_destroy(struct kept_rows *kept); /* NULL is fine */

/* From now on the statement's rows are added to these, which any thread may do; NULL: they are run again. */
void insert_keep(struct insert *i, struct kept_rows *kept);
/* Runs the rows, of which none is kept any more. 0, or -1 as insert_run(). */
int inserter_run_kept(struct inserter *r, struct kept_rows *kept, struct pt_error *e);

#endif
