/*
 * segment_log.h - what a segment is made of. Private to segment.c, which makes it, and segment_take.c;
 * segment.h is the contract.
 */
#ifndef DECODE_FLOW_SEGMENT_LOG_H
#define DECODE_FLOW_SEGMENT_LOG_H

#include "decode/flow/internal.h"
#include "decode/flow/segment.h"

/* What is reported or asked between runs. */
struct segment_entry {
	enum { SEGMENT_BEGIN, SEGMENT_END, SEGMENT_EVENT, SEGMENT_USER, SEGMENT_HOST_TSC } type;
	size_t runs;	  /* that come before it */
	uint64_t tsc, ip; /* BEGIN, END, HOST_TSC: as reported. EVENT: the clock's, ip */
	uint64_t clock_tsc;
	uint64_t insns, cyc; /* END */
	uint64_t cr3;	     /* USER: the flow's */
	bool kernel;	     /* BEGIN: in the kernel's code */
	const char *name;    /* EVENT; static */
	char fields[96];
};

/* The flow at a place to which it can be taken over. */
struct segment_checkpoint {
	const uint8_t *at;    /* the first byte that was not taken */
	uint64_t stop_tsc;    /* it was made because the clock reached this; UINT64_MAX: for another reason */
	size_t runs, entries; /* of the log, up to here */
	bool begun,
	    cyc_run; /* a slice has begun; a run in the slice of the segment's begin has known cycles */
	struct pt_flow flow;
};

struct pt_segment {
	const struct pt_segment_decoder *decoder;
	const struct pt_graph *graph; /* the decoder's */
	struct img_space *user, *kernel;
	uint32_t user_generation, kernel_generation;
	uint32_t user_code, kernel_code; /* ids of their codes in the decoder's graph; UINT32_MAX: none */
	uint32_t user_uid, kernel_uid;
	struct pt_flow begin;	  /* the flow that is assumed at `begin` */
	struct pt_flow_run *runs; /* paths: of the decoder's graph */
	size_t run_count, run_room;
	struct segment_entry *entries;
	size_t entry_count, entry_room;
	struct segment_checkpoint *checkpoints;
	size_t checkpoint_count, checkpoint_room;
	/* Taking over. */
	size_t taken;	  /* checkpoints */
	uint32_t touched; /* the flow's, after the last of them */
	/* The flow's state at `begin`, where it differs from what is assumed and that does not matter. */
	struct segment_offsets {
		uint64_t insns, packets, psbs, cyc; /* to be added to the decoder's */
		uint64_t cyc_since, insns_since;    /* since the last run with cycles */
		uint64_t slice_insns, slice_cyc;    /* since the slice began */
		uint64_t tnt_tsc;
		uint32_t stack_top;
		bool begun,
		    counted; /* a slice has begun since; a run has got what cyc_since, insns_since say */
	} offsets;
};

/* The decoder's graph. */
const struct pt_graph *pt_segment_decoder_graph(const struct pt_segment_decoder *d);

#endif
