/*
 * session.h - a whole decode: container in, records out.
 *
 * Reads chunks, keeps sideband until its time has come, gives each stream's bytes to its flow, and applies what
 * changes code or threads when all streams have reached its time. Memory holds the AUX data of about two rounds
 * (container.h, PTC_ROUND). A container that makes it hold more than there is (a small one can, compressed) is refused.
 */
#ifndef DECODE_SESSION_SESSION_H
#define DECODE_SESSION_SESSION_H

#include "decode/output/emit.h"
#include "schema/container.h"

struct pt_selection;
struct pt_vm_options;

struct pt_session_options {
	bool calls;	  /* build call stacks */
	bool definitions; /* write names, edges, paths (not for --null) */
	/* VMs without a kernel in the container run code of their own process (KVM selftests) */
	bool guest_code;
	bool stats; /* hash and counts by kind, as ../shared/bench has them */
	size_t
	    graph_bytes; /* for decoded code and paths (pt_graph_limit()); 0: PT_GRAPH_BYTES. Call paths in proportion */
	/* for what is held of the container: sideband and AUX data whose time has not come, code, symbols; 0: three quarters of the
	 * machine's memory */
	uint64_t held_bytes;
	const struct pt_text *text;
	FILE *used_code; /* list the code that was read there at the end (code/image_used.h); NULL: do not */
	/* 1: no code, but the addresses that packets have, as events; 2: those of PSBs only; 0: no */
	unsigned quick;
	const struct pt_selection *selection; /* what is wanted; NULL: all */
	const struct pt_vm_options *tsc_offsets; /* --tsc-offset; NULL: none */
};

struct pt_session_result {
	uint64_t aux_bytes, packets, psbs, insns, branches, errors, runs, not_taken;
	uint64_t by_kind[PTR_KINDS];
	uint64_t hash;	  /* stats only */
	uint64_t stop_ip; /* of the last stream: where it was when tracing stopped */
	bool incomplete;  /* the container was cut or damaged, or something was not seen: exit status 3 */
	char damage[256]; /* how, "" when it was whole */
};

/*
 * Decodes all of r into w (ptr_writer_finish() is the caller's). Returns 0; or -1: PT_ERR_IO, PT_ERR_CLOSED,
 * PT_ERR_NO_MEMORY (of held_bytes, too), PT_ERR_BAD_INPUT (nothing could be decoded). A container that is cut or damaged gives 0 and
 * result->incomplete, with an error record.
 */
int pt_session_run(struct ptc_reader *r, struct ptr_writer *w, const struct pt_session_options *options,
		   struct pt_session_result *result, struct pt_error *e);

#endif
