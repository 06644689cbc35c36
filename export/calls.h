/*
 * calls.h - calls and call paths: tables call_group, call_shape, call_whole and call_path.
 *
 * A call comes when it returns, before its caller does, and how often calls of its shape come is known at the end: what
 * is to be stored waits in a scratch file (memory stays flat), which is read once. Call paths are kept in memory, with sums of
 * their calls.
 */
#ifndef EXPORT_CALLS_H
#define EXPORT_CALLS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "schema/records.h"

struct calls_bases {   /* what is added to the stream's numbers */
	int64_t trace; /* the trace itself */
	int64_t thread, symbol, run, call_path, call;
};

struct calls;

/* scratch: two files of the caller's. NULL: PT_ERR_NO_MEMORY, PT_ERR_IO. */
struct calls *calls_create(sqlite3 *db, const int scratch[2], const struct calls_bases *bases,
			   struct pt_error *e);
void calls_destroy(struct calls *c);
/* The next symbol's first address, and the next call path. */
int calls_symbol(struct calls *c, uint64_t start, struct pt_error *e);
int calls_path(struct calls *c, const struct ptr_record *r, struct pt_error *e);
int calls_add(struct calls *c, const struct ptr_call *r, struct pt_error *e);
/* Every run's time, in order: a call whose branch tells its time need not store it. */
void calls_run(struct calls *c, uint64_t number, uint64_t tsc);
/* After the last: fills the tables. */
int calls_finish(struct calls *c, bool (*interrupted)(void), struct pt_error *e);

#endif
