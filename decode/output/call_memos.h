/*
 * call_memos.h - inner calls (inner_calls.h) as they were encoded last, from the same edges and call path: they
 * are added again without a look at what the edges do, and at the call paths.
 *
 * That changes nothing but the time it takes. What is remembered may be forgotten at any time, and has to be
 * when numbers of edges or ids of call paths become others'.
 */
#ifndef DECODE_OUTPUT_CALL_MEMOS_H
#define DECODE_OUTPUT_CALL_MEMOS_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/output/call_frames.h"
#include "decode/output/inner_calls.h"

struct pt_call_memos;

struct pt_call_memos *pt_call_memos_create(void);    /* NULL: no memory */
void pt_call_memos_destroy(struct pt_call_memos *m); /* NULL is fine */
void pt_call_memos_forget(struct pt_call_memos *m);

/* A path that is run. */
struct pt_inner_run {
	uint32_t thread, stack; /* as in struct ptr_call */
	uint32_t parent, depth; /* the calls': their caller's call path (its id), and their depth */
	uint64_t tsc, branch;	/* of the path's first branch; 0 without an id */
	bool has_cyc;
	struct pt_inner_at at;
};

/* Whether it pays to remember calls: mostly they are the same. Asked once a run. */
bool pt_call_memos_pay(struct pt_call_memos *m);
/* Adds the calls; to->sums is NULL. False: no memory. */
bool pt_call_memos_run(struct pt_call_memos *m, const struct pt_inner_run *run, const struct pt_call_sink *to,
		       const struct pt_graph *graph);

#endif
