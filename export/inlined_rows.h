/*
 * inlined_rows.h - the rows of the table inlined_call: of calls that executed code is of, and of those
 * around them.
 */
#ifndef EXPORT_INLINED_ROWS_H
#define EXPORT_INLINED_ROWS_H

#include "export/bases.h"
#include "export/source_files.h"

struct inserter;

struct inlined_rows;

/* files: numbers the files that calls stand in. bases are copied. NULL: PT_ERR_NO_MEMORY, or SQLite's
 * error. */
struct inlined_rows *inlined_rows_create(struct inserter *inserter, const struct trace_bases *bases,
					 struct source_files *files, struct pt_error *e);
void inlined_rows_destroy(struct inlined_rows *r); /* NULL is fine */

/* The number of the call's row, which is written when it is new. 0: PT_ERR_NO_MEMORY, or SQLite's error. */
uint32_t inlined_rows_number(struct inlined_rows *r, struct inlined_call *call, struct pt_error *e);

#endif
