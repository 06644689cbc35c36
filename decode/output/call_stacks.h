/*
 * call_stacks.h - call stacks of threads from their branches, and the calls they make: perf's thread-stack,
 * kept by return address.
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
 * Steps come in the order of the record stream, and calls go out in that order, too. All that a step needs
 * of code and sideband is in it, or in its edges (call_roles.h), and does not change any more; so the stacks
 * may be another thread's than what flows report (calls.h). And they may be several threads': a thread's stack
 * is of one shard, and so are those that it has to do with (call_threads.h).
 */
#ifndef DECODE_OUTPUT_CALL_STACKS_H
#define DECODE_OUTPUT_CALL_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/output/call_paths.h"
#include "decode/output/call_sums.h"
#include "decode/sideband/machines.h"

struct pt_call_stack;

/* number: as in struct ptr_call. NULL: no memory. */
struct pt_call_stack *pt_call_stack_create(const struct pt_task *task, uint32_t number);
void pt_call_stack_destroy(struct pt_call_stack *stack); /* NULL is fine */

/* Who runs: as in struct pt_emit_stream. Of host_task the address is read. */
struct pt_call_who {
	struct pt_call_stack *stack;	  /* NULL: nobody known */
	struct pt_call_stack *host_stack; /* a guest's: of the host's thread; NULL unknown */
	const struct pt_task *host_task;
	uint32_t execs;	 /* of the task's process, so far */
	uint32_t thread; /* the task's record number */
};

/* What is called. */
struct pt_call_target {
	uint64_t ip;	/* 0: nothing */
	uint32_t place; /* as in struct pt_callee */
	bool named;
};

/* One thing that a stream does. There are millions of them. */
struct pt_call_step {
	enum __attribute__((packed)) {
		PT_CALL_WHO,   /* what follows is of another thread, or stream */
		PT_CALL_BEGIN, /* it (re)starts, at the target */
		PT_CALL_RUN,   /* paths were run, the last of which may call and return */
		PT_CALL_RUNS,  /* runs of paths, each of which may call and return */
		PT_CALL_END,   /* it does not run any more */
		/* Until PT_CALL_BEGIN something was missed: of any thread of its CPU, and of guests that it
		 * entered; or only of this thread, which ran code that is not known. */
		PT_CALL_GAP,
		PT_CALL_GAP_OF_THREAD
	} type;
	bool has_cyc;	 /* there are cycles */
	uint8_t count;	 /* RUN: edges of the last path */
	uint32_t inner;	 /* RUN: of the last path, as in struct pt_path */
	uint64_t tsc;	 /* PTR_NO_TSC: of a gap, unknown. RUN: of the last path */
	uint64_t cycles; /* of the stream, so far, without the last path's (RUNS: without theirs) */
	union {
		struct pt_call_who who;
		struct pt_call_target begin;
		struct {
			uint32_t insns_before,
			    branches_before; /* of paths before the last one, without calls */
			uint64_t branch;     /* the id of the last one's first branch, 0 none */
			/* Of the last one. calls to insns: as in struct pt_path; no calls: it is among those
			 * before, too. */
			uint32_t calls, first, insns, repeats;
		} run;
		struct {
			const struct pt_flow_run *runs; /* valid as long as the step */
			const uint32_t *paths;		/* parallel: theirs */
			uint32_t count;
			uint64_t first; /* number of the first one; 0: no records */
		} runs;
	};
};

/* What steps make: call paths without numbers that they ask for, and calls that have returned, which may be of
 * these: then their ids (call_paths.h) stand for the numbers. */
struct pt_call_records {
	struct pt_new_call_paths paths;
	struct ptr_calls calls;
};
/* Nothing is in it any more. */
void pt_call_records_empty(struct pt_call_records *r);
void pt_call_records_deinit(struct pt_call_records *r);

/* A shard of the stacks. One thread at a time. */
struct pt_call_stacks;

struct pt_call_stacks_config {
	const struct pt_graph *graph; /* its path_edges, path_until and edges are read */
	struct pt_call_paths *paths;  /* of all shards */
	struct pt_call_sums *sums;    /* where calls are added that are no records; NULL: all are */
};
struct pt_call_stacks *
pt_call_stacks_create(const struct pt_call_stacks_config *config); /* NULL: no memory */
void pt_call_stacks_destroy(struct pt_call_stacks *c);		   /* but for its stacks; NULL is fine */
/* With sums: calls that return from from_tsc on, and before until_tsc, are records. At first none are. */
void pt_call_stacks_keep(struct pt_call_stacks *c, uint64_t from_tsc, uint64_t until_tsc);
/* From now on the graph's edges and paths may have other numbers; call paths other ids. */
void pt_call_stacks_forget_paths(struct pt_call_stacks *c);
void pt_call_stacks_forget_call_paths(struct pt_call_stacks *c);
/* Adds to *records what `count` steps make. False: no memory, then and ever after. */
bool pt_call_stacks_run(struct pt_call_stacks *c, const struct pt_call_step *steps, size_t count,
			struct pt_call_records *records);
/* The stack is `to`'s from now on. */
void pt_call_stacks_move(struct pt_call_stacks *from, struct pt_call_stacks *to, struct pt_call_stack *stack);
/* The trace is over: the calls of this stack that are open have no return. As pt_call_stacks_run(). */
bool pt_call_stacks_finish(struct pt_call_stacks *c, struct pt_call_stack *stack,
			   struct pt_call_records *records);

#endif
