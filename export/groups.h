/*
 * groups.h - runs packed 64 a row, as schema/tables.sql explains: table run_group.
 */
#ifndef EXPORT_GROUPS_H
#define EXPORT_GROUPS_H

#include <sqlite3.h>
#include <stdint.h>

#include "schema/error.h"

enum { GROUP_RUNS = 64, GROUP_DIGIT_BITS = 15 };

/* A run as it goes into the database: ids are the database's. */
struct group_run {
	int64_t id;
	int64_t slice;
	uint64_t tsc;  /* PTR_NO_TSC unknown */
	uint32_t path; /* below 2^30 */
	uint32_t repeats;
	uint64_t cyc_count;  /* PTR_UNKNOWN */
	uint64_t insn_count; /* of the stretch, when cyc_count is known */
	uint64_t back;	     /* its stretch began that many ids before */
};

struct groups;

/* NULL: no memory, or the table is not there. */
struct groups *groups_create(sqlite3 *db, struct pt_error *e);
void groups_destroy(struct groups *g);
/* Runs come in the order of their ids. 0 or -1. */
int groups_add(struct groups *g, const struct group_run *r, struct pt_error *e);
/* Writes what is held back. 0 or -1. */
int groups_flush(struct groups *g, struct pt_error *e);

#endif
