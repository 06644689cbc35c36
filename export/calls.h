/*
 * calls.h - calls: tables call_group, call_shape and call_whole.
 *
 * A call comes when it returns, before its caller does, and how frequent its shape is is known at the
 * end only. So calls wait in a scratch file, which is read once at the end.
 */
#ifndef EXPORT_CALLS_H
#define EXPORT_CALLS_H

#include <stdint.h>

#include "export/bases.h"
#include "export/row_turns.h"
#include "schema/records.h"

struct inserter;

enum { CALLS_SCRATCHES = 4 };

struct calls;

/* scratch: files of the caller's. bases are copied. NULL: PT_ERR_NO_MEMORY, or SQLite's error. */
struct calls *calls_create(struct inserter *inserter, const int scratch[CALLS_SCRATCHES],
			   const struct trace_bases *bases, struct pt_error *e);
void calls_destroy(struct calls *c); /* NULL is fine */
/* The next run and its tsc: a call whose times are those of its branches' runs need not store them. */
void calls_run(struct calls *c, uint64_t number, uint64_t tsc);
/* The next call. The database is not touched. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_IO. */
int calls_add(struct calls *c, const struct ptr_call *call, struct pt_error *e);
/* After the last call: shapes and call paths get their numbers and rows. 0, or -1. */
int calls_rank(struct calls *c, struct pt_error *e);
/* Then makes the rows of calls, and uses nothing but what is its own. */
struct row_maker calls_maker(struct calls *c);

#endif
