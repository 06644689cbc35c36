/*
 * call_groups.h - the runs that calls return in, packed 64 a row, as schema/tables.sql explains: tables call_group and
 * call_whole.
 */
#ifndef EXPORT_CALL_GROUPS_H
#define EXPORT_CALL_GROUPS_H

#include <sqlite3.h>
#include <stdint.h>

#include "export/call_shapes.h"
#include "schema/error.h"
#include "schema/records.h"

/* The calls that return in a run, or up to SHAPE_CALLS of them, as they go into the database: ids are the database's, 0
 * is unknown. */
struct group_calls {
	int64_t id; /* the first's */
	uint32_t n;
	int64_t thread;
	uint64_t return_run;
	uint32_t shape;
	uint32_t path;	  /* the smallest call path, 0 when there is none */
	uint32_t elapsed; /* the longest's TSC ticks + 1; 0 unknown */
	/* Their callers, but for those who are in the shape: the last call's, and those that call_shapes.h has as
	 * SHAPE_CALLER_OTHER + 0, + 1, ... */
	uint32_t callers;
	uint64_t caller[SHAPE_CALLS];
	const uint32_t *cyc; /* n numbers + 1, 0 unknown; NULL: all are */
	/* A single call that fits no shape, its ids the database's. Then nothing else counts but id, thread and caller[0]. */
	const struct ptr_call *whole;
};

struct call_groups;

struct call_groups *call_groups_create(sqlite3 *db, int64_t trace, struct pt_error *e);
void call_groups_destroy(struct call_groups *g);
/* They come in the order of their ids. 0 or -1. */
int call_groups_add(struct call_groups *g, const struct group_calls *c, struct pt_error *e);
int call_groups_flush(struct call_groups *g, struct pt_error *e);

#endif
