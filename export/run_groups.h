/*
 * run_groups.h - runs packed 64 per row, as schema/tables.sql explains: table run_group.
 */
#ifndef EXPORT_RUN_GROUPS_H
#define EXPORT_RUN_GROUPS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "export/digits.h"
#include "schema/error.h"

/* A run as it goes into the database: ids are the database's. */
struct group_run {
	int64_t id;
	int64_t slice;
	uint64_t tsc;  /* PTR_NO_TSC unknown */
	uint32_t path; /* below DIGITS_MAX */
	uint32_t repeats;
	uint64_t cyc_count;		     /* PTR_UNKNOWN */
	uint64_t insn_count;		     /* of the stretch, when cyc_count is known */
	uint64_t back;			     /* its stretch began that many runs before */
	bool exact;			     /* PTR_TIME_EXACT */
	uint64_t tsc_est, tsc_next, tsc_end; /* as in struct ptr_timed_run */
};

enum { RUN_GROUP_EST = 125 }; /* steps of est_add: one byte each */

struct run_groups;

/* NULL: PT_ERR_NO_MEMORY, or SQLite's error. */
struct run_groups *run_groups_create(sqlite3 *db, struct pt_error *e);
void run_groups_destroy(struct run_groups *g); /* NULL is fine */
/* The next run, in the order of ids. 0, or -1: SQLite's error. */
int run_groups_add(struct run_groups *g, const struct group_run *r, struct pt_error *e);
/* Writes the row that is not full yet. 0, or -1: SQLite's error. */
int run_groups_flush(struct run_groups *g, struct pt_error *e);

#endif
