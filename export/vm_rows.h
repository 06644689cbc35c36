/*
 * vm_rows.h - guest runs, VM exits and clocks: tables guest_run, vm_exit, vm_clock.
 */
#ifndef EXPORT_VM_ROWS_H
#define EXPORT_VM_ROWS_H

#include <sqlite3.h>
#include <stdint.h>

#include "export/bases.h"
#include "schema/records.h"

struct vm_rows;

/* bases are copied. NULL: PT_ERR_NO_MEMORY, or SQLite's error. */
struct vm_rows *vm_rows_create(sqlite3 *db, const struct trace_bases *bases, struct pt_error *e);
void vm_rows_destroy(struct vm_rows *v); /* NULL is fine */

/* Each inserts a row. 0, or -1: SQLite's error. */
int vm_rows_guest_run(struct vm_rows *v, const struct ptr_record *r, struct pt_error *e);
int vm_rows_vmexit(struct vm_rows *v, const struct ptr_record *r, struct pt_error *e);
int vm_rows_clock(struct vm_rows *v, const struct ptr_record *r, struct pt_error *e);

/* After the last record, when edges and paths are in their tables: fills what refers to later
 * records. 0, or -1 as above. */
int vm_rows_finish(struct vm_rows *v, struct pt_error *e);

#endif
