/*
 * call_paths.h - call paths, in memory, with sums of their calls: tables call_path and thread_path.
 */
#ifndef EXPORT_CALL_PATHS_H
#define EXPORT_CALL_PATHS_H

#include <sqlite3.h>
#include <stdint.h>

#include "export/bases.h"
#include "schema/records.h"

struct call_paths;

/* bases are copied. NULL: PT_ERR_NO_MEMORY, or SQLite's error. */
struct call_paths *call_paths_create(sqlite3 *db, const struct trace_bases *bases, struct pt_error *e);
void call_paths_destroy(struct call_paths *c); /* NULL is fine */
/* The next symbol's first address. 0, or -1: PT_ERR_NO_MEMORY. */
int call_paths_symbol(struct call_paths *c, uint64_t start, struct pt_error *e);
/* The next call path. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_REFUSED (more than a database can hold). */
int call_paths_add(struct call_paths *c, const struct ptr_call_path *path, struct pt_error *e);
/* Adds a call to the sums of its path, if it has one. 0, or -1: PT_ERR_NO_MEMORY. */
int call_paths_sum(struct call_paths *c, const struct ptr_call *call, struct pt_error *e);
/* After the last call: fills the tables. 0, or -1: SQLite's error. */
int call_paths_finish(struct call_paths *c, struct pt_error *e);

#endif
