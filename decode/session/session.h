/*
 * session.h - a whole decode: container in, records out.
 *
 * Reads chunks, keeps sideband records until their time has come, gives each stream's AUX data to its flow,
 * and applies what changes code or threads when all streams have reached its time. Memory holds the AUX
 * data of about two rounds (container.h, PTC_ROUND).
 */
#ifndef DECODE_SESSION_SESSION_H
#define DECODE_SESSION_SESSION_H

#include "decode/flow/segment.h"
#include "decode/output/emit.h"
#include "schema/container.h"

struct pt_selection;
struct pt_vm_options;

/* Zeroed but for what is wanted. What pointers point at is the caller's and must live until the end of
 * pt_session_run(). */
struct pt_session_options {
	/* What is decoded. */
	const struct pt_selection *selection; /* NULL: all */
	unsigned quick; /* 1: no code, but the addresses in packets, as events; 2: in PSB+ only */
	/* Branches of pt-capture itself, where it has recorded whole CPUs (META recorder.PID), are
	 * not left out. */
	bool include_self;
	/* With a selected time: decode from the last PSB before it, and write what comes of that, so
	 * that all of the time is as in a whole decode. Of a container that is a file, AUX data before
	 * and after it is not read. */
	bool from_psb;
	bool guest_code; /* VMs without a kernel in the container run code of their own process */
	const struct pt_vm_options *tsc_offsets; /* --tsc-offset; NULL: none */

	const char *container_path; /* for META decode.container_path; NULL: it is no file, or unknown */

	/* What is written. */
	enum ptr_detail detail;			/* of records: all, or what of them is summed up */
	const struct pt_selection *detail_time; /* of its from and to: there all is written; NULL: nowhere */
	bool calls;				/* build call stacks */
	bool definitions;			/* names, edges, paths; false for --null */
	bool stats;				/* count branches by kind, and hash them */
	const struct pt_text *text;		/* lines instead of records; NULL: records */
	FILE *used_code; /* lists the code that was read, at the end (code/image_used.h); NULL: no */

	/*
	 * Memory, in bytes. graph_bytes: for decoded code and paths (pt_graph_limit()), and call paths in
	 * proportion; 0: PT_GRAPH_BYTES, and more where that is too little (pt_graph_may_grow()). held_bytes:
	 * for sideband and AUX data whose time has not come, and as much for code and symbols; 0: three
	 * quarters of the machine's memory.
	 */
	size_t graph_bytes;
	uint64_t held_bytes;

	/* How many threads decode; 0 and 1: the caller's alone. With more, each has a graph of
	 * graph_bytes. */
	unsigned threads;
	/* About how many bytes another thread decodes at a time; 0: as many as is good. */
	unsigned segment_bytes;
	/* For all that is given to them: what they have decoded does not depend on time. For tests. */
	bool segments_wait;
};

struct pt_session_result {
	uint64_t aux_bytes, packets, psbs, insns, branches, errors, runs;
	uint64_t not_taken;	     /* conditional branches */
	uint64_t by_kind[PTR_KINDS]; /* branches; with stats only */
	uint64_t hash;		     /* of all branches, as ../shared/bench defines it; with stats only */
	uint64_t stop_ip;	     /* where the last stream was when tracing stopped */
	uint64_t self_branches;	     /* not among branches: pt-capture's own, which were left out */
	/* Of the VM exit after which it took longest to the next entry; both 0: of none is that known. */
	uint64_t slowest_exit_tsc, slowest_entry_tsc;
	struct pt_segment_counts segments; /* what other threads have decoded ahead */
	uint64_t encoded_runs;		   /* whose records they have encoded */
	uint64_t helped_ns; /* CPU time of the caller's thread for call stacks, which others do, too */
	bool incomplete;    /* the container was cut or damaged, or something was not seen: exit status 3 */
	char damage[256];   /* how it was cut or damaged, "" when it was whole */
};

/*
 * Decodes all of r into w; ptr_writer_finish() is left to the caller. Of a container that is cut or damaged
 * all before that place is decoded; then result->incomplete is set, and there is an error record. Returns
 * 0; or -1: PT_ERR_IO, PT_ERR_CLOSED, PT_ERR_USAGE (the selection does not fit the recording),
 * PT_ERR_NO_MEMORY (or more than held_bytes, as a small compressed container may make it), PT_ERR_BAD_INPUT
 * or PT_ERR_TRUNCATED (nothing could be decoded).
 */
int pt_session_run(struct ptc_reader *r, struct ptr_writer *w, const struct pt_session_options *options,
		   struct pt_session_result *result, struct pt_error *e);

#endif
