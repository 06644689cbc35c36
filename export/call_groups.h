/*
 * call_groups.h - calls packed 64 a row, as schema/tables.sql explains: table call_group.
 */
#ifndef EXPORT_CALL_GROUPS_H
#define EXPORT_CALL_GROUPS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "schema/error.h"

/* A call as it goes into the database: ids are the database's, 0 is unknown. */
struct group_call {
	int64_t id, thread, call_path;
	uint64_t call_branch, return_branch;
	/* Its times are those of these branches' runs: they need not be stored. */
	bool times_of_branches;
	uint64_t call_tsc, return_tsc; /* PTR_NO_TSC unknown */
	uint64_t branch_count, insn_count;
	uint64_t cyc_count;  /* PTR_UNKNOWN */
	uint64_t parent_add; /* the caller's id is that much more, 0 unknown */
	uint32_t flags;
};

struct call_groups;

struct call_groups *call_groups_create(sqlite3 *db, int64_t trace, struct pt_error *e);
void call_groups_destroy(struct call_groups *g);
/* Calls come in the order of their ids. 0 or -1. */
int call_groups_add(struct call_groups *g, const struct group_call *c, struct pt_error *e);
int call_groups_flush(struct call_groups *g, struct pt_error *e);

#endif
