/*
 * run_groups.h - runs packed 64 per row, as schema/tables.sql explains: tables run_group and run_chunk.
 *
 * Rows name paths by ids that are known only after the last run: those that most runs have get the
 * shortest. Until then the groups are in a scratch file, at some 8 bytes a run.
 */
#ifndef EXPORT_RUN_GROUPS_H
#define EXPORT_RUN_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "export/row_turns.h"
#include "schema/derived/run_times.h"
#include "schema/error.h"

struct dictionary;
struct inserter;

/* A run as it goes into the database: ids are the database's. */
struct group_run {
	int64_t id;
	int64_t slice;
	uint64_t tsc;  /* PTR_NO_TSC unknown */
	uint32_t path; /* the stream's number */
	uint32_t repeats;
	uint64_t cyc_count;  /* PTR_UNKNOWN */
	uint64_t insn_count; /* of the stretch, when cyc_count is known */
	uint64_t back;	     /* its stretch began that many runs before */
};

struct run_groups;

/* scratch: a file of the caller's. NULL: PT_ERR_NO_MEMORY. */
struct run_groups *run_groups_create(int scratch, struct pt_error *e);
void run_groups_destroy(struct run_groups *g); /* NULL is fine */
/* The next run, in the order of ids, and its times. 0, or -1: PT_ERR_IO. */
int run_groups_add(struct run_groups *g, const struct group_run *r, const struct ptr_timed_run *times,
		   struct pt_error *e);
/* After the last run and dictionary_rank(): there are tables to fill. 0, or -1: PT_ERR_IO, PT_ERR_NO_MEMORY,
 * SQLite's error. */
int run_groups_begin(struct run_groups *g, struct inserter *inserter, struct dictionary *d,
		     struct pt_error *e);
/* Then makes the rows, and records in the dictionary where its paths are. Errors: also PT_ERR_REFUSED (too
 * many runs). */
struct row_maker run_groups_maker(struct run_groups *g);
/* All rows are in. 0, or -1: SQLite's error. */
int run_groups_end(struct run_groups *g, struct pt_error *e);

#endif
