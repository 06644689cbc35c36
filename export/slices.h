/*
 * slices.h - slices while they are open: what is known of them only at their end, and whose instructions the cycles
 * of a CYC count belong to. Table slice.
 */
#ifndef EXPORT_SLICES_H
#define EXPORT_SLICES_H

#include <sqlite3.h>
#include <stdint.h>

#include "export/dictionary.h"
#include "schema/records.h"

struct slices_bases {  /* what is added to the stream's numbers */
	int64_t trace; /* the trace itself */
	int64_t thread, slice;
};

struct slices;

struct slices *slices_create(sqlite3 *db, struct dictionary *dictionary, const struct slices_bases *bases,
			     struct pt_error *e);
void slices_destroy(struct slices *s);
int slices_begin(struct slices *s, const struct ptr_record *r, struct pt_error *e);
/* A run with the id of the database. *ret_back: how many ids before it its stretch of cycles began (0 when the run has no
 * cycles). */
int slices_run(struct slices *s, int64_t id, const struct ptr_run *r, const struct dictionary_path *path,
	       uint64_t *ret_back, struct pt_error *e);
/* The thread, by its number, of the slice of the last slices_run(). */
uint32_t slices_stream(const struct slices *s);
uint32_t slices_thread(const struct slices *s);
/* Fills the row. */
int slices_end(struct slices *s, const struct ptr_slice_end *r, struct pt_error *e);
/* The stream is over: those without an end get one, of what their runs tell. */
int slices_finish(struct slices *s, struct pt_error *e);

/* Of all slices. */
uint64_t slices_first_tsc(const struct slices *s); /* PTR_NO_TSC */
uint64_t slices_last_tsc(const struct slices *s);  /* PTR_NO_TSC */
uint64_t slices_cyc_count(const struct slices *s); /* PTR_UNKNOWN */

#endif
