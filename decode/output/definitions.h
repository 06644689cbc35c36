/*
 * definitions.h - the emitter's state, and the definitions of the record stream: machines, threads,
 * files, symbols, edges, paths, each written once, before its first use.
 *
 * Below emit.h, which takes what flows report, and calls.h, which keeps call stacks: both write by this.
 */
#ifndef DECODE_OUTPUT_DEFINITIONS_H
#define DECODE_OUTPUT_DEFINITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/code/emulated_ptwrite.h"
#include "decode/code/address_filter.h"
#include "decode/flow/flow.h"
#include "decode/flow/vm_transition.h"
#include "decode/output/kept_numbers.h"
#include "decode/output/vm_events.h"
#include "decode/sideband/machines.h"
#include "decode/sideband/text_buffer.h"
#include "schema/records.h"

struct pt_calls;
struct pt_text_runs;
struct pt_executed;
struct pt_sums;
struct pt_stretch;

#define PT_CALL_PATHS (1u << 20) /* 32 bytes each */

/* One line of --text per branch, and one per error. */
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
	const struct pt_task *task; /* NULL: of none, or unknown */
	int32_t cpu;		    /* -1: of none */
	uint64_t ip;		    /* 0 unknown */
	uint64_t aux_offset;	    /* PTR_UNKNOWN: of no stream */
	const char *kind, *message;
};

/* One line of --insns: an instruction that was executed. */
struct pt_insn_line {
	const struct pt_task *task;
	int32_t cpu;
	uint64_t tsc;	  /* the best estimate. PT_CLOCK_UNKNOWN */
	const char *text; /* as pt_text's describe has written it */
	uint32_t bytes;	  /* of text */
};

/* What of an instruction is the same each time it runs. */
struct pt_insn_description {
	struct img_space *space;
	uint64_t ip;
	const uint8_t *bytes; /* len of them */
	uint32_t len;
	enum insn_mode mode;
};

/* A line for each branch (branch), or for each instruction (describe, insn). */
struct pt_text {
	void *arg;
	void (*branch)(void *arg, const struct pt_branch_line *line); /* NULL: instructions */
	/* Adds to *to what insn will need of an instruction: called once for each version of it. */
	void (*describe)(void *arg, const struct pt_insn_description *d, struct pt_text_buffer *to);
	void (*insn)(void *arg, const struct pt_insn_line *line);
	void (*error)(void *arg, const struct pt_error_line *line);
};

/* What is written, and not only summed up (schema/records.h): of runs and calls from from_tsc to
 * until_tsc all. */
struct pt_emit_detail {
	enum ptr_detail base;
	uint64_t from_tsc, until_tsc; /* half-open; equal: of no part */
};

/* The emitter: where all streams' records go. Its first failure is kept, and ends the writing. */
struct pt_emit {
	struct ptr_writer *writer;
	struct pt_graph *graph;
	const struct pt_text *text;	/* NULL: no text */
	struct pt_text_runs *text_runs; /* with text, from the first run on */
	bool calls;			/* build call stacks */
	uint32_t call_paths;		/* remembered, at most (at first PT_CALL_PATHS) */
	struct pt_emit_detail detail;
	struct pt_sums *sums; /* NULL: all is written */
	bool definitions;     /* false: count only, name nothing (pt-decode --null) */
	bool failed;
	struct pt_error error; /* why, when failed */
	uint64_t errors, branches, runs;
	uint64_t encoded_runs; /* of runs */
	uint64_t left_out_branches, left_out_insns;
	struct pt_names *names;	     /* symbols and files that have numbers */
	struct pt_place *places;     /* of symbols, by numbers */
	struct pt_kept_numbers kept; /* of edges and paths that the graph has forgotten */
	uint32_t defined;	     /* edges and paths, since their numbers were forgotten last */
	/* That many, at first, now, and at most, before they are forgotten. */
	uint32_t defined_first, defined_most, defined_limit;
	uint32_t defined_held;	      /* for so many kept's memory is the graph's no more */
	uint64_t runs_before;	      /* runs, when they were forgotten last */
	uint32_t last_path;	      /* the last one's number */
	struct pt_executed *executed; /* NULL: no path was defined yet */
	struct pt_calls *stacks;
	struct pt_filter filter;       /* the recording's */
	const struct pt_vm_events *vm; /* what keeps VM entries and exits; NULL: nothing */
	void *vm_arg;
};

/* A stream's: the output_arg of its flow. */
struct pt_emit_stream {
	struct pt_emit *emit;
	struct pt_machine *machine; /* that runs now */
	struct pt_task *task;	    /* that runs now, in the host or in the guest; NULL unknown */
	struct pt_task *host_task;  /* the host's thread: a guest's vCPU thread; NULL unknown */
	int32_t vcpu;		    /* -1: in the host, or unknown */
	uint32_t thread, slice;	    /* record numbers, 0 none */
	uint32_t stream;
	int32_t cpu;
	bool of_thread;			    /* all of it is of host_task, not of a CPU */
	uint64_t cycles;		    /* of the stream up to the run at hand, for call counts */
	uint64_t last_branch;		    /* the id of the last branch, 0 none */
	bool runs_wanted;		    /* vm->runs() is to be called (vm_events.h) */
	uint64_t not_taken, slice_branches; /* of the slice */
	struct pt_stretch *stretch;	    /* of cycles that are summed up (sums.h, which owns it) */
	bool has_cyc;
	struct pt_emulated emulated;
	enum { PT_SEEN, PT_MISSED_CODE, PT_MISSED } missed; /* since its last slice */
	const struct pt_machine *missed_machine;	    /* PT_MISSED_CODE: of this machine */
	uint32_t kernel_gaps;		/* errors so far, but for code that is missing in user space */
	bool left_out;			/* slices from the next one on are counted, and not written */
	bool skipped;			/* the slice at hand is one of these */
	bool muted;			/* what is decoded is another container's: nothing is reported */
	bool unwanted;			/* not even VM entries and exits are reported */
	struct pt_vm_stream *vm_stream; /* what decode/vm/ knows of it and owns; NULL: nothing yet */
	struct ptr_error pending;	/* held until it is known when execution is seen again */
	bool has_pending;
};

/* To a sum of those that are known, which is PTR_UNKNOWN while there is none. */
static inline void pt_add_known(uint64_t *sum, uint64_t n)
{
	*sum = *sum == PTR_UNKNOWN ? n : *sum + n;
}

/* Whether what the level has, and happens at tsc, is written. */
static inline bool pt_emit_writes(const struct pt_emit *m, enum ptr_detail level, uint64_t tsc)
{
	return m->detail.base <= level || (tsc >= m->detail.from_tsc && tsc < m->detail.until_tsc);
}

/*
 * The record numbers of definitions, each of which is written when it is first asked for. All return
 * 0 when it is unknown, and after a failure, which is kept in m->failed and m->error.
 */
uint32_t pt_emit_machine(struct pt_emit *m, struct pt_machine *machine);
/* A task gets another THREAD when its name has changed. */
uint32_t pt_emit_thread(struct pt_emit *m, struct pt_task *task);
/* The symbol at ip in space. */
uint32_t pt_emit_symbol(struct pt_emit *m, struct img_space *space, uint64_t ip);
/* The same; where no symbol covers ip, the code without symbols of what is mapped there (ptr_symbol). */
uint32_t pt_emit_place(struct pt_emit *m, struct img_space *space, uint64_t ip);
/* The same; up to *ret_until (exclusive) it is the same, as long as the space does not change. */
uint32_t pt_emit_place_until(struct pt_emit *m, struct img_space *space, uint64_t ip, uint64_t *ret_until);
/* The file, or the kernel's module, that is mapped at ip in space. */
uint32_t pt_emit_dso(struct pt_emit *m, struct img_space *space, uint64_t ip);
/*
 * Numbers of edges and paths are limited by what the graph is, which is bytes of memory: once so many have been
 * defined all of them are forgotten, and what is executed again is defined again, whether or not the graph has
 * it. With 160 MB that are 1.27 million, for which kept_numbers.h takes 32 MB at most. It may be four times as
 * many, where --memory does not limit it, when most had been forgotten before, and were hardly run in between.
 */
#define PT_EMIT_GRAPH_BYTES_A_NUMBER 132
/* The numbers of the graph's paths, and of its edges, are kept: it is about to forget them. */
void pt_emit_keep_numbers(struct pt_emit *m, bool edges);
uint32_t pt_emit_path(struct pt_emit *m, struct pt_path *path);

/* Keeps the failure of a ptr_put_...(). Returns the record's number, or 0. */
uint32_t pt_emit_put(struct pt_emit *m, int64_t number);
/* Keeps "out of memory for WHAT". */
void pt_emit_no_memory(struct pt_emit *m, const char *what);

/* An error row that is of no flow: a damaged container, a lost record. */
void pt_emit_error(struct pt_emit *m, uint32_t stream, int32_t cpu, uint64_t tsc, const char *kind,
		   const char *message);
/* The error's line of --text, if there is text. */
void pt_emit_text_error(struct pt_emit *m, const struct pt_error_line *line);
/* True when --text takes runs, in m->text_runs. */
bool pt_emit_has_text(struct pt_emit *m);

/* For pt_emit_init(): no symbol and file has a number. 0, or -1 (PT_ERR_NO_MEMORY). */
int pt_emit_names_init(struct pt_emit *m, struct pt_error *e);
void pt_emit_names_deinit(struct pt_emit *m);

#endif
