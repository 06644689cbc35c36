/*
 * traces.h - the row of `trace` and its META: which recording it is, where its ids begin, what it
 * amounts to; and how a trace is removed.
 */
#ifndef EXPORT_TRACES_H
#define EXPORT_TRACES_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "export/bases.h"
#include "schema/error.h"
#include "schema/hash.h"

/* The META of a trace, in the order of the stream; a zeroed one is empty. */
struct trace_meta {
	struct trace_pair {
		char *key, *value;
		uint64_t hash;
		size_t last; /* of the first pair of a key: the index of the last one */
	} * pairs;
	size_t count, room;
	struct pt_hash by_key; /* numbers of the keys' first pairs, from 1 */
};

struct trace_totals {
	uint64_t runs, branches, insns, not_taken, calls, events, errors, edges, paths;
	uint64_t cyc_count;	      /* PTR_UNKNOWN */
	uint64_t first_tsc, last_tsc; /* PTR_NO_TSC */
};

int trace_meta_add(struct trace_meta *m, const char *key, const char *value,
		   struct pt_error *e); /* 0, or -1: PT_ERR_NO_MEMORY */
const char *trace_meta_get(const struct trace_meta *m,
			   const char *key); /* NULL: absent; of several the last */
void trace_meta_deinit(struct trace_meta *m);

/* The container's identity: its uuid; without one, "meta-" and a hash of its META; "" when it has
 * none at all. */
void trace_identity(const struct trace_meta *m, char ret[64]);

/* The clock that META says; not known, when times up to last_tsc (PTR_NO_TSC: there are none) would
 * overflow. */
struct trace_clock trace_clock(const struct trace_meta *m, uint64_t last_tsc);

/* The functions below return 0, or -1: PT_ERR_NO_MEMORY, SQLite's error. */

/* *ret: the id of the trace with that identity, 0 none. */
int trace_find(sqlite3 *db, const char *identity, int64_t *ret, struct pt_error *e);
/* Removes all rows of a trace. */
int trace_delete(sqlite3 *db, int64_t trace, struct pt_error *e);
/* *ret: bases after all ids that are in the database, far from where sums of them would overflow. -1: also
 * PT_ERR_REFUSED, there is an id that pt-load does not give. */
int trace_bases(sqlite3 *db, struct trace_bases *ret, struct pt_error *e);
/* Inserts the trace's row and its META. name NULL: the command. */
int trace_insert(sqlite3 *db, const struct trace_bases *bases, const struct trace_meta *m, const char *name,
		 const struct trace_totals *totals, struct pt_error *e);
/* After trace_insert(): when the clock turned out another than the bases', the rows get their time_ns anew. */
int trace_settle_times(sqlite3 *db, const struct trace_bases *bases, const struct trace_meta *m,
		       uint64_t last_tsc, struct pt_error *e);

#endif
