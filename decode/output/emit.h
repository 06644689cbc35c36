/*
 * emit.h - what flows tell, as records: definitions before first use, then runs, calls, events, errors.
 *
 * One emitter for all streams of a trace; one context for each. It takes what flows report (pt_flow_output, flow/flow.h), feeds the
 * call stacks (calls.h), and writes a record stream (records.h) or lines of text.
 */
#ifndef DECODE_OUTPUT_EMIT_H
#define DECODE_OUTPUT_EMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/code/emulated_ptwrite.h"
#include "decode/code/address_filter.h"
#include "decode/flow/flow.h"
#include "decode/flow/vm_transition.h"
#include "decode/output/vm_events.h"
#include "decode/sideband/machines.h"
#include "schema/records.h"

struct pt_calls;
struct pt_text_runs;

#define PT_CALL_PATHS (1u << 20) /* some 50 bytes each */

/* A line a branch, for people and tests; and one an error. */
struct pt_branch_line {
	const struct pt_task *task;
	int32_t cpu;
	uint64_t tsc;		 /* the best estimate. PT_CLOCK_UNKNOWN */
	uint64_t tsc_lo, tsc_hi; /* between these, inclusive. PT_CLOCK_UNKNOWN */
	bool exact;		 /* tsc is that of a timing packet of this very branch */
	const struct pt_edge *edge;
	uint32_t insns; /* up to it */
};

struct pt_error_line {
	const struct pt_task *task; /* NULL: nobody's, or unknown */
	int32_t cpu;		    /* -1: of none */
	uint64_t ip;		    /* 0 unknown */
	uint64_t aux_offset;	    /* PTR_UNKNOWN: of no stream */
	const char *kind, *message;
};

struct pt_text {
	void *arg;
	void (*branch)(void *arg, const struct pt_branch_line *line);
	void (*error)(void *arg, const struct pt_error_line *line);
};

struct pt_emit {
	struct ptr_writer *writer;
	struct pt_graph *graph;
	const struct pt_text *text;	/* NULL: no text */
	struct pt_text_runs *text_runs; /* with text, from the first run on */
	bool calls;			/* build call stacks */
	uint32_t call_paths;		/* of them, at most (at first PT_CALL_PATHS) */
	bool definitions;		/* false: count only, name nothing (pt-decode --null) */
	bool failed;
	struct pt_error error; /* why, when failed */
	uint64_t errors, branches;
	struct pt_names *names; /* symbols and files that have numbers */
	struct pt_calls *stacks;
	struct pt_filter filter;       /* the recording's */
	const struct pt_vm_events *vm; /* who is told of VM entries and exits; NULL: nobody */
	void *vm_arg;
};

/* A stream's: the output_arg of its flow. */
struct pt_emit_stream {
	struct pt_emit *emit;
	struct pt_machine *machine; /* whose code runs now */
	struct pt_task *task;	    /* who runs now, in the host or in the guest; NULL unknown */
	struct pt_task *host_task;  /* the host's thread: a guest's vCPU thread; NULL unknown */
	int32_t vcpu;		    /* -1: in the host, or unknown */
	uint32_t thread, slice;	    /* record numbers, 0 none */
	uint32_t stream;
	int32_t cpu;
	uint64_t insns, branches, cycles; /* of the stream up to the run at hand, for call counts */
	uint64_t not_taken;		  /* of the slice */
	bool has_cyc;
	struct pt_emulated emulated;
	enum { PT_SEEN, PT_MISSED_CODE, PT_MISSED } missed; /* since its last slice */
	const struct pt_machine *missed_machine;	    /* PT_MISSED_CODE: whose */
	bool unwanted;					    /* not even VM entries and exits are told of */
	struct ptr_error pending; /* held until it is known when execution is seen again */
	bool has_pending;
};

extern const struct pt_flow_output pt_emit_output; /* arg: struct pt_emit_stream */

int pt_emit_init(struct pt_emit *m, struct ptr_writer *w, struct pt_graph *graph, struct pt_error *e);
void pt_emit_deinit(struct pt_emit *m);
/* The record numbers; MACHINE and THREAD are written when they are new or the task has another name. 0 unknown. */
uint32_t pt_emit_machine(struct pt_emit *m, struct pt_machine *machine);
uint32_t pt_emit_thread(struct pt_emit *m, struct pt_task *task);
/* The symbol's record number at ip in space, 0 none. */
uint32_t pt_emit_symbol(struct pt_emit *m, struct img_space *space, uint64_t ip);
/* An error row of no flow: a damaged container, a lost record. */
void pt_emit_error(struct pt_emit *m, uint32_t stream, int32_t cpu, uint64_t tsc, const char *kind,
		   const char *message);
/* machine, task or host_task of the stream have changed. */
void pt_emit_who(struct pt_emit_stream *s);
/* The stream is over: what was held is written. */
void pt_emit_stream_end(struct pt_emit_stream *s);
/* The graph is about to be recycled: what is held of its paths is told. */
void pt_emit_recycle(struct pt_emit *m);
/* All calls that are still open end, unreturned; text that is held is printed. */
void pt_emit_finish(struct pt_emit *m);

#endif
