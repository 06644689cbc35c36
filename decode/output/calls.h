/*
 * calls.h - call stacks of threads from their branches, and the calls they make: perf's thread-stack, kept by
 * return address.
 *
 * A thread's stack continues in the kernel. A guest thread's stack has as its base the stack of the
 * host's thread that runs it when its bottom is first seen; it keeps that base when another vCPU
 * continues it, because a call's path is its caller's path and one more. Counts are the thread's own:
 * what others executed on its CPU in between is not in them.
 *
 * A call pushes, and so does a system call, interrupt or exception; a return pops to the frame it
 * returns to. Frames that are skipped (longjmp, exceptions) end without return. A jump to another
 * function's first instruction is a tail call. A signal handler is a frame above what it interrupted.
 * At a gap all frames end of the threads that may have run in it; what runs after it is the bottom of
 * a new stack.
 *
 * emit->call_paths call paths are remembered (call_paths.h).
 */
#ifndef DECODE_OUTPUT_CALLS_H
#define DECODE_OUTPUT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/output/definitions.h"

struct pt_calls *pt_calls_create(struct pt_emit *emit);
void pt_calls_destroy(struct pt_calls *c);

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
/* Whether the path calls or returns: whether pt_calls_run() does more than count. */
bool pt_calls_changes(struct pt_calls *c, struct pt_path *path);
void pt_calls_finish(struct pt_calls *c);

#endif
