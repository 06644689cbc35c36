/*
 * call_paths.h - call paths with sums of their calls: tables call_path and thread_path_group. They are in a
 * scratch file but for those used last, so memory is bounded however many there are.
 */
#ifndef EXPORT_CALL_PATHS_H
#define EXPORT_CALL_PATHS_H

#include <stdint.h>

#include "export/bases.h"
#include "schema/records.h"

struct inserter;

enum { CALL_PATHS_SCRATCHES = 2 };

struct call_paths;

/* scratch: files of the caller's. bases are copied. NULL: PT_ERR_NO_MEMORY, or SQLite's error. */
struct call_paths *call_paths_create(struct inserter *inserter, const int scratch[CALL_PATHS_SCRATCHES],
				     const struct trace_bases *bases, struct pt_error *e);
void call_paths_destroy(struct call_paths *c); /* NULL is fine */
/* The next symbol's first address. 0, or -1: PT_ERR_NO_MEMORY. */
int call_paths_symbol(struct call_paths *c, uint64_t start, struct pt_error *e);
/* The next call path. 0, or -1: PT_ERR_IO, PT_ERR_REFUSED (more than a database can hold). */
int call_paths_add(struct call_paths *c, const struct ptr_call_path *path, struct pt_error *e);
/* A call of the thread and the path (0: unknown) will come soon: its sums are fetched into the caches. */
void call_paths_fetch(struct call_paths *c, uint32_t thread, uint32_t path);
/* Adds a call to the sums of its path, if it has one. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_IO. */
int call_paths_sum(struct call_paths *c, const struct ptr_call *call, struct pt_error *e);
/* Adds the sums of calls. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_IO. */
int call_paths_add_sum(struct call_paths *c, const struct ptr_call_sum *sum, struct pt_error *e);
/* The sums of one call. */
static inline struct ptr_call_sum call_paths_sum_of(const struct ptr_call *call)
{
	const bool timed = call->call_tsc != PTR_NO_TSC && call->return_tsc != PTR_NO_TSC;

	return (struct ptr_call_sum){.thread = call->thread,
				     .call_path = call->call_path,
				     .calls = 1,
				     .branch_count = call->branch_count,
				     .insn_count = call->insn_count,
				     .cyc_count = call->cyc_count,
				     .elapsed_tsc = timed ? call->return_tsc - call->call_tsc : PTR_UNKNOWN};
}
/* After the last call: fills the tables. 0, or -1: PT_ERR_IO, SQLite's error. */
int call_paths_finish(struct call_paths *c, struct pt_error *e);

#endif
