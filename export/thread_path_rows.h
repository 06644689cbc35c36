/*
 * thread_path_rows.h - the rows of table thread_path_group: threads' sums of calls, up to 64 in a row.
 */
#ifndef EXPORT_THREAD_PATH_ROWS_H
#define EXPORT_THREAD_PATH_ROWS_H

#include "export/bases.h"
#include "export/thread_paths.h"
#include "schema/error.h"

struct inserter;

struct thread_path_rows;

/* bases are copied. NULL: PT_ERR_NO_MEMORY, or SQLite's error. */
struct thread_path_rows *thread_path_rows_create(struct inserter *inserter, const struct trace_bases *bases,
						 struct pt_error *e);
void thread_path_rows_destroy(struct thread_path_rows *r); /* NULL is fine */

/* They come in the order of thread_paths_next(). 0, or -1: PT_ERR_NO_MEMORY, SQLite's error. */
int thread_path_rows_add(struct thread_path_rows *r, const struct thread_path *sum, struct pt_error *e);
/* After the last one: its row. 0 or -1, as thread_path_rows_add(). */
int thread_path_rows_finish(struct thread_path_rows *r, struct pt_error *e);

#endif
