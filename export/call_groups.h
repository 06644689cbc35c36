/*
 * call_groups.h - calls packed 64 a row, as schema/tables.sql explains: table call_group.
 */
#ifndef EXPORT_CALL_GROUPS_H
#define EXPORT_CALL_GROUPS_H

#include <sqlite3.h>
#include <stdint.h>

#include "schema/error.h"
#include "schema/records.h"

/* A call as it goes into the database: ids are the database's, 0 is unknown. */
struct group_call {
	int64_t id, thread;
	uint64_t parent_add; /* the caller's id is that much more, 0 unknown */
	/* Its numbers, unless it has a shape: */
	const struct ptr_call *whole; /* NULL: it has; its ids are the database's */
	uint32_t shape;
	uint64_t return_run;
	uint32_t cyc;	  /* number + 1; 0 unknown */
	uint32_t elapsed; /* TSC ticks + 1; 0 unknown */
};

struct call_groups;

struct call_groups *call_groups_create(sqlite3 *db, int64_t trace, struct pt_error *e);
void call_groups_destroy(struct call_groups *g);
/* Calls come in the order of their ids. 0 or -1. */
int call_groups_add(struct call_groups *g, const struct group_call *c, struct pt_error *e);
int call_groups_flush(struct call_groups *g, struct pt_error *e);

#endif
