/*
 * call_groups.h - the runs that calls return in, packed 64 per row, as schema/tables.sql explains:
 * tables call_group and call_whole.
 */
#ifndef EXPORT_CALL_GROUPS_H
#define EXPORT_CALL_GROUPS_H

#include <stdint.h>

#include "export/call_shapes.h"
#include "schema/error.h"
#include "schema/records.h"

struct inserter;
struct kept_rows;

/* The calls of one shape that return in one run, as they are stored. Ids are the database's; 0 is unknown. */
struct group_calls {
	int64_t id; /* of the first; the others follow */
	uint32_t n;
	int64_t thread;
	uint64_t return_run;
	uint32_t shape;	     /* its number */
	uint32_t path;	     /* the smallest call path, 0 when there is none */
	uint32_t path_code;  /* its code (call_path_ranks.h), 0 when it has none */
	uint32_t elapsed;    /* TSC ticks of the longest + 1; 0 unknown */
	uint64_t return_tsc; /* where elapsed is known */
	/* Callers that are not in the shape, 0 none: of the calls whose shaped_call has 0 the first
	 * of these, of those that have SHAPE_CALLER_OTHER + i number 1 + i. */
	uint32_t callers;
	uint64_t caller[SHAPE_CALLS];
	const uint32_t *cyc; /* n numbers + 1, 0 unknown; NULL: all are unknown */
	/* A single call that fits no shape, with the database's ids. Of the fields above only id,
	 * thread and caller[0] are used then. */
	const struct ptr_call *whole;
};

struct call_groups;

/* NULL: PT_ERR_NO_MEMORY, or SQLite's error. */
struct call_groups *call_groups_create(struct inserter *inserter, int64_t trace, struct pt_error *e);
void call_groups_destroy(struct call_groups *g); /* NULL is fine */
/* The next calls, in the order of ids. 0, or -1: SQLite's error, PT_ERR_REFUSED (more calls than
 * there are ids). */
int call_groups_add(struct call_groups *g, const struct group_calls *c, struct pt_error *e);
/* Writes the row that is not full yet. 0, or -1: SQLite's error. */
int call_groups_flush(struct call_groups *g, struct pt_error *e);
uint64_t call_groups_bytes(const struct call_groups *g); /* of all rows (insert_bytes()) */
/* As insert_keep(). */
void call_groups_keep(struct call_groups *g, struct kept_rows *rows);

#endif
