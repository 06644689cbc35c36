/*
 * calls.h - calls of what flows report: their steps go to the call stacks (call_stacks.h), a batch at a time,
 * and the calls that these make go to the record stream.
 *
 *     steps    |  batch n-7  |  ...  |  batch n    |     filled by the session's thread
 *     stacks                 |  batch n-7  |  ...  |     each shard takes its threads' steps, in any thread
 *     records                                      |  batch n-7  |     put, all at once, when batch n is full
 *
 * So a call's record comes up to eight batches, 16,384 runs, after that of the run in which it returns, whether
 * or not there is a thread.
 */
#ifndef DECODE_OUTPUT_CALLS_H
#define DECODE_OUTPUT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/output/definitions.h"
#include "schema/thread_pool.h"

/* emit->call_paths is read when the first step comes. NULL: no memory. */
struct pt_calls *pt_calls_create(struct pt_emit *emit);
void pt_calls_destroy(struct pt_calls *c); /* NULL is fine */
/* From now on threads of the pool keep the stacks, so many with the session's: pt_calls_work() becomes one of
 * its sources. Before the first step. */
void pt_calls_use_pool(struct pt_calls *c, struct pt_thread_pool *pool, unsigned threads);
/* Takes a batch's steps of some traced threads, in any thread, if some wait that no one is at
 * (schema/thread_pool.h); calls is a struct pt_calls. */
bool pt_calls_work(void *calls, unsigned thread);
/* The same in the session's thread, in place of waiting. And how much CPU time that took. */
bool pt_calls_help(void *calls, unsigned thread);
uint64_t pt_calls_helped_ns(const struct pt_calls *c);

/* The stream's thread (re)starts at ip. */
void pt_calls_begin(struct pt_calls *c, struct pt_emit_stream *s, struct pt_code *code, uint64_t ip,
		    uint64_t tsc);
/*
 * Something was missed of the stream's thread, from tsc (PTR_NO_TSC: unknown) until pt_calls_begin().
 * Also to be called for the threads that its CPU is switched to meanwhile. no_image: only code is
 * missing, so only this thread is concerned; else the CPU may have entered and left guests, and run
 * any of their threads.
 */
void pt_calls_gap(struct pt_calls *c, struct pt_emit_stream *s, uint64_t tsc, bool no_image);
/* The stream's thread does not run any more. */
void pt_calls_end(struct pt_calls *c, struct pt_emit_stream *s);
/* A run of a path, which has that record number (0: it is none). The stream's cycles are those before it. */
void pt_calls_run(struct pt_calls *c, struct pt_emit_stream *s, struct pt_path *path,
		  const struct pt_flow_run *run, uint64_t number);
/* The same, after another one of the same stream. */
void pt_calls_next_run(struct pt_calls *c, const struct pt_emit_stream *s, struct pt_path *path,
		       const struct pt_flow_run *run, uint64_t number);
/* So many more runs can be added before calls are put: 0 or more. */
uint32_t pt_calls_room(const struct pt_calls *c);
/* Runs [from, to) of encoded ones, the first of which has that record number (0: they are no records): as
 * pt_calls_run() of each, after that of another one of the same slice. There is room for them. */
void pt_calls_runs(struct pt_calls *c, const struct pt_emit_stream *s,
		   const struct pt_flow_encoded_runs *runs, uint32_t from, uint32_t to, uint64_t number);
/* Whether the path calls or returns: whether pt_calls_run() does more than count. */
bool pt_calls_changes(struct pt_calls *c, struct pt_path *path);
/* The graph is about to be recycled: no step that waits needs it any more, nor is anything remembered of it. */
void pt_calls_recycle(struct pt_calls *c);
/* The trace is over: all records are put. */
void pt_calls_finish(struct pt_calls *c);
/* After that: the sums of calls that are no records are. */
void pt_calls_put_sums(const struct pt_calls *c);

#endif
