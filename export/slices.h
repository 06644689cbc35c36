/*
 * slices.h - slices while they are open: table slice. It also divides the cycles of a stretch among
 * the paths that were executed in it.
 */
#ifndef EXPORT_SLICES_H
#define EXPORT_SLICES_H

#include <sqlite3.h>
#include <stdint.h>

#include "export/bases.h"
#include "export/dictionary.h"
#include "schema/records.h"

struct slices;

/* bases are copied; dictionary is the caller's. NULL: PT_ERR_NO_MEMORY, or SQLite's error. */
struct slices *slices_create(sqlite3 *db, struct dictionary *dictionary, const struct trace_bases *bases,
			     struct pt_error *e);
void slices_destroy(struct slices *s); /* NULL is fine */
/* The next slice. 0, or -1: PT_ERR_NO_MEMORY. */
int slices_begin(struct slices *s, const struct ptr_record *r, struct pt_error *e);
/* A run of an open slice, by its id in the database. *ret_back: how many ids before it its stretch of
 * cycles began (0 when the run has no cycles). 0, or -1: PT_ERR_NO_MEMORY. */
int slices_run(struct slices *s, int64_t id, const struct ptr_run *r, const struct dictionary_path *path,
	       uint64_t *ret_back, struct pt_error *e);
/* Stream and thread (its number) of the slice of the last slices_run(). */
uint32_t slices_stream(const struct slices *s);
uint32_t slices_thread(const struct slices *s);
/* Inserts the slice's row. 0, or -1: SQLite's error. */
int slices_end(struct slices *s, const struct ptr_slice_end *r, struct pt_error *e);
/* The stream is over: inserts the rows of slices that did not end, by what their runs say. 0, or -1:
 * SQLite's error. */
int slices_finish(struct slices *s, struct pt_error *e);

/* Of all slices. */
uint64_t slices_first_tsc(const struct slices *s); /* PTR_NO_TSC: unknown */
uint64_t slices_last_tsc(const struct slices *s);  /* PTR_NO_TSC: unknown */
uint64_t slices_cyc_count(const struct slices *s); /* PTR_UNKNOWN */

#endif
