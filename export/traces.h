/*
 * traces.h - the row of `trace`: which recording it is, where its ids begin, what it amounts to; and its removal.
 */
#ifndef EXPORT_TRACES_H
#define EXPORT_TRACES_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

/* What is added to the record stream's numbers to make ids; trace is the trace's own id. */
struct trace_bases {
	int64_t trace, machine, thread, dso, symbol, edge, path, slice, run, call_path, call, event, error,
	    guest_run, vmexit, vm_clock;
};

/* The META of a trace, as it comes. */
struct trace_meta {
	struct trace_pair {
		char *key, *value;
	} * pairs;
	size_t count, room;
};

struct trace_totals {
	uint64_t runs, branches, insns, not_taken, calls, events, errors, edges, paths;
	uint64_t cyc_count;	      /* PTR_UNKNOWN */
	uint64_t first_tsc, last_tsc; /* PTR_NO_TSC */
};

int trace_meta_add(struct trace_meta *m, const char *key, const char *value, struct pt_error *e);
const char *trace_meta_get(const struct trace_meta *m, const char *key); /* NULL: absent */
void trace_meta_deinit(struct trace_meta *m);

/* The container's identity: its uuid; without one, "meta-" and a hash of its META; "" when it has none at all. */
void trace_identity(const struct trace_meta *m, char ret[64]);

/* The id of the trace with that identity, 0 none. */
int trace_find(sqlite3 *db, const char *identity, int64_t *ret, struct pt_error *e);
int trace_delete(sqlite3 *db, int64_t trace, struct pt_error *e);
/* The bases behind all that is there. */
int trace_bases(sqlite3 *db, struct trace_bases *ret, struct pt_error *e);
/* name NULL: the command. */
int trace_insert(sqlite3 *db, const struct trace_bases *bases, const struct trace_meta *m, const char *name,
		 const struct trace_totals *totals, struct pt_error *e);

#endif
