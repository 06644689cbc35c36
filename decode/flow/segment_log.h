/*
 * segment_log.h - what a segment is made of. Private to the files segment*.c of this folder; segment.h is
 * the contract.
 */
#ifndef DECODE_FLOW_SEGMENT_LOG_H
#define DECODE_FLOW_SEGMENT_LOG_H

#include "decode/flow/internal.h"
#include "decode/flow/segment.h"

/* Runs that follow each other in a slice, and that are encoded. */
struct segment_span {
	size_t first;	  /* run of the segment */
	size_t path_sums; /* the first one in struct pt_kept_runs */
	struct pt_flow_encoded_runs encoded;
};

#define SEGMENT_CODES 2

/* A segment's runs as records: segment_runs.c. */
struct pt_kept_runs {
	unsigned users;
	struct pt_flow_run *runs;
	uint32_t *paths;  /* parallel, in the flow's graph; 0 unknown */
	uint64_t *cycles; /* parallel, as in struct pt_flow_encoded_runs; NULL: there are no CYC packets */
	struct ptr_runs records;
	struct segment_span *spans;
	size_t span_count, span_room;
	struct pt_flow_path_sum *path_sums; /* of all spans */
	size_t path_sum_count, path_sum_room;
	/* For which paths and records hold: of the numbers; the lowest number of a path; ids of the flow's
	 * codes, UINT32_MAX none. */
	uint64_t generation;
	uint32_t lowest_number;
	uint32_t codes[SEGMENT_CODES];
};

/* What is reported or asked between runs. */
struct segment_entry {
	enum {
		SEGMENT_BEGIN,
		SEGMENT_END,
		SEGMENT_EVENT,
		SEGMENT_CFE,
		SEGMENT_EVD,
		SEGMENT_USER,
		SEGMENT_HOST_TSC
	} type;
	size_t runs;	  /* that come before it */
	uint64_t tsc, ip; /* BEGIN, END, HOST_TSC: as reported. EVENT: the clock's, ip */
	uint64_t clock_tsc;
	uint64_t insns, cyc; /* END */
	uint64_t cr3;	     /* USER: the flow's */
	bool kernel;	     /* BEGIN: in the kernel's code */
	uint32_t event;	     /* CFE, EVD: type */
	uint64_t value;
	const char *name; /* EVENT; static */
	char fields[96];
};

/* The flow at a place to which it can be taken over. */
struct segment_checkpoint {
	const uint8_t *at;    /* the first byte that was not taken */
	uint64_t stop_tsc;    /* it was made because the clock reached this; UINT64_MAX: for another reason */
	size_t runs, entries; /* of the log, up to here */
	bool begun, cyc_run;  /* a slice has begun; a run in the slice of its begin has known cycles */
	bool user_entered;    /* there is a USER entry */
	struct pt_flow flow;
};

struct pt_segment {
	struct pt_segment *next;
	const struct pt_graph *graph; /* the decoder's */
	const uint8_t *begin_at;
	bool after_psb; /* it begins with a PSBEND: nothing of what was before matters */
	/* The user's code matters only from the first USER entry on. */
	bool in_kernel;
	struct img_space *user, *kernel;
	uint32_t user_generation, kernel_generation;
	uint32_t user_code, kernel_code; /* ids of their codes in the decoder's graph; UINT32_MAX: none */
	uint32_t user_uid, kernel_uid;
	struct pt_flow begin;	  /* the flow that is assumed at `begin` */
	struct pt_flow_run *runs; /* paths: of the decoder's graph */
	size_t run_count, run_room;
	struct pt_kept_runs *encoded; /* whose the runs are; NULL: the segment's, and none is encoded */
	struct segment_entry *entries;
	size_t entry_count, entry_room;
	struct segment_checkpoint *checkpoints;
	size_t checkpoint_count, checkpoint_room;
	/* Taking over. */
	size_t taken;	  /* checkpoints */
	size_t spans;	  /* of encoded: that were passed */
	uint32_t touched; /* the flow's, after the last of them */
	/* The flow's state at `begin`, where it differs from what is assumed and that does not matter. To be
	 * added to the decoder's: */
	struct segment_offsets {
		uint64_t insns, packets, psbs, kernel_skips, cyc;
		uint64_t cyc_since, insns_since; /* since the last run with cycles */
		uint64_t slice_insns, slice_cyc; /* since the slice began */
		uint64_t tnt_tsc;
		uint32_t stack_top;
		bool begun,
		    counted; /* a slice has begun since; a run has got what cyc_since, insns_since say */
	} offsets;
	uint32_t begin_stack[PT_STACK]; /* the flow's at `begin` */
};

/* The decoder's graph. */
const struct pt_graph *pt_segment_decoder_graph(const struct pt_segment_decoder *d);
/* As its config says. */
bool pt_segment_decoder_sums(const struct pt_segment_decoder *d);

/* ---- Numbers: segment_numbers.c --------------------------------------------------------------------- */

/* Who takes what over. */
struct segment_taking {
	struct pt_flow *f;
	struct pt_segment *segment;
	struct pt_segment_numbers *numbers;
};

/* The number in the flow's graph of what has a number in the decoder's: an edge or a path of the segment's
 * codes, a position in one. 0: the flow's graph is full; for position 0, too. */
uint32_t pt_segment_edge(const struct segment_taking *t, uint32_t local);
uint32_t pt_segment_find_path(const struct segment_taking *t, uint32_t local);
uint32_t pt_segment_position(const struct segment_taking *t, uint32_t local);

struct pt_segment_numbers {
	const struct pt_graph *from; /* the decoder's graph */
	/* By its numbers; 0: not asked for yet. A path's is twice that in the flow's graph, and 1 more if it
	 * is of the kernel's code: so the decoder's graph need not be read for that, which is far away. */
	uint32_t *paths, *edges;
	/* For the decoder's thread, of paths that have record numbers: segment_runs.c. */
	struct segment_known_path *known;
	/* That thread's: where a path's sum may be in pt_kept_runs, of the span at hand (segment_sums.c); NULL:
	 * nothing is summed up. */
	uint32_t *sum_at;
	_Atomic uint64_t generation; /* how often all was forgotten */
};

/* ---- Encoded runs: segment_runs.c ------------------------------------------------------------------- */

/*
 * What the flow's thread says of a path, and the decoder's reads at any time. It changes where the code has a
 * new version: then `path` is 0 meanwhile, so that who finds the same before and after has both of one time.
 */
struct segment_known_path {
	_Atomic uint64_t path; /* the flow's number << 32 | the record's; 0 unknown */
	_Atomic uint64_t what; /* id of the flow's code << 32 | conditional branches not taken << 8 | edges */
};

/* The flow's thread has taken over a run of the path, which is its graph's `path`. */
void pt_segment_know_path(struct pt_segment_numbers *numbers, uint32_t local, const struct pt_graph *graph,
			  uint32_t path);
/* The record numbers of their paths are still those. */
static inline bool pt_segment_numbers_hold(const struct pt_flow *f, const struct pt_kept_runs *kept)
{
	return kept->lowest_number > f->graph->numbers_after;
}
/* The next span in [from, to), whose runs the flow would take over now as they were encoded; NULL: there is
 * none. */
const struct segment_span *pt_segment_next_span(const struct segment_taking *t, size_t from, size_t to);

/* Sums up the runs of a span that has ended. False: no memory. */
bool pt_segment_sum_span(const struct pt_segment *segment, struct pt_segment_numbers *numbers,
			 struct segment_span *span);

/* The flow's code, by its id in the decoder's graph. */
static inline struct pt_code *pt_segment_code(const struct segment_taking *t, uint32_t id)
{
	return id == t->segment->kernel_code ? t->f->kernel : t->f->user;
}

/* known: what pt_segment_numbers has of it. */
static inline uint32_t pt_segment_known_path(const struct segment_taking *t, uint32_t known, uint32_t local)
{
	const struct pt_code *code = known & 1 ? t->f->kernel : t->f->user;

	/* In another version of the code it is another path. */
	if (known && t->f->graph->paths[known >> 1].code == code->id)
		return known >> 1;
	return pt_segment_find_path(t, local);
}

static inline uint32_t pt_segment_path(const struct segment_taking *t, uint32_t local)
{
	return pt_segment_known_path(t, t->numbers->paths[local], local);
}

/* ---- Assumptions: segment_fits.c -------------------------------------------------------------------- */

/* True when the flow, which stands at the segment's begin, is as it assumes. */
bool pt_segment_fits(const struct segment_taking *t);
/* True when the flow has the code that the segment assumes, in the same version. */
bool pt_segment_same_kernel(const struct pt_flow *f, const struct pt_segment *s);
bool pt_segment_same_user(const struct pt_flow *f, const struct pt_segment *s);
/* A segment can begin where the flow is: it runs, and nothing waits for a packet. */
bool pt_segment_may_begin(const struct pt_flow *f);
/* A run's timing; tnt_tsc: the flow's at the segment's begin (FLOW_TIMING_UNSEEN). */
static inline uint32_t pt_segment_timing(uint64_t tnt_tsc, uint32_t timing, uint64_t tsc)
{
	return timing != FLOW_TIMING_UNSEEN ? timing : tnt_tsc == tsc ? PTR_TIME_AFTER : PTR_TIME_BEFORE;
}

#endif
