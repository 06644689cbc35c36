/*
 * call_spool.h - calls on their way to call_groups.h: until the last one has come, nobody knows which shapes
 * are frequent, and who the callers are. They wait in a scratch file (spool.h), of a run's calls some 12 bytes.
 */
#ifndef EXPORT_CALL_SPOOL_H
#define EXPORT_CALL_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "export/call_shapes.h"
#include "export/spool.h"
#include "schema/error.h"
#include "schema/records.h"

/* The calls that return in a run, or a single one that fits no shape. */
struct spooled_calls {
	uint64_t return_run, return_tsc;
	uint32_t thread, shape, path, elapsed; /* as in struct group_calls; shape is a handle */
	uint32_t n, callers;		       /* calls; places of their callers (callers.h) */
	bool has_cyc;			       /* cyc counts */
	uint64_t places[SHAPE_CALLS];
	uint32_t cyc[SHAPE_CALLS]; /* as group_calls.cyc */
	/* When shape is SHAPE_NONE: it, and of the above only thread, n (1), callers (1) and places count. */
	struct ptr_call whole;
};

/* Ready when it is zeroed but for spool.scratch. */
struct call_spool {
	struct spool spool;
	/* Those before, to which numbers are differences. */
	uint64_t return_run, return_tsc, place;
};

/* Appends. 0, or -1: PT_ERR_IO. */
int call_spool_put(struct call_spool *s, const struct spooled_calls *calls, struct pt_error *e);
/* To be called once, after the last ones were put and before the first are got. 0, or -1: PT_ERR_IO. */
int call_spool_rewind(struct call_spool *s, struct pt_error *e);
/* The next ones, in the order of putting: what does not count of them is as it was. 0, or -1: PT_ERR_IO. */
int call_spool_get(struct call_spool *s, struct spooled_calls *ret, struct pt_error *e);

#endif
