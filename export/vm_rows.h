/*
 * vm_rows.h - stays in guests, round trips out of them and their clocks: tables guest_run, vm_exit, vm_clock.
 */
#ifndef EXPORT_VM_ROWS_H
#define EXPORT_VM_ROWS_H

#include <sqlite3.h>
#include <stdint.h>

#include "export/traces.h"
#include "schema/records.h"

struct vm_rows;

/* bases are copied. NULL: PT_ERR_NO_MEMORY, or SQLite's. */
struct vm_rows *vm_rows_create(sqlite3 *db, const struct trace_bases *bases, struct pt_error *e);
void vm_rows_destroy(struct vm_rows *v);

int vm_rows_guest_run(struct vm_rows *v, const struct ptr_record *r, struct pt_error *e);
int vm_rows_vmexit(struct vm_rows *v, const struct ptr_record *r, struct pt_error *e);
int vm_rows_clock(struct vm_rows *v, const struct ptr_record *r, struct pt_error *e);

/* After the last, when edges and paths are in their tables: fills what refers to records that came later. */
int vm_rows_finish(struct vm_rows *v, struct pt_error *e);

#endif
