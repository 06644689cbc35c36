/*
 * segment.h - a part of a stream that another thread decodes ahead, and the flow takes over when it comes
 * there.
 *
 * After a PSB+ little is left of what was before it: the CPU has cleared its return stack, and the PSB+
 * says time, mode, CR3 and IP (SDM vol. 3, "Packet Stream Boundary (PSB) Packet"). So what follows can be
 * decoded without what is before it, as long as the flow's environment is not needed:
 *
 *     packets       ... | PSB ... PSBEND |  TNT TIP ...  | PSB ... PSBEND |  TNT TIP ...
 *     the flow      ----------------------> takes over --------------------> takes over ->
 *     other threads                      |---- segment --|                |---- segment --
 *
 * A segment is made under assumptions: whose code runs, that the flow comes to the PSBEND running and
 * without anything that waits. It holds what was reported (log) and, at its end and at some places in it,
 * all of the flow's state (checkpoints). The flow takes it over, from checkpoint to checkpoint, if the
 * assumptions were right; then what it reports, and what it is afterwards, is the same as if it had decoded
 * the bytes itself. If they were not, it decodes these bytes.
 *
 * Where the flow would need the environment (another thread, a VM entry or exit, code that is not there, an
 * error) a segment ends, and another one begins a few packets later, with what the environment is expected
 * to have answered. The packets in between are the flow's own:
 *
 *     packets       PSB ... PSBEND |  TNT TIP TNT  |  PIP  TIP  |  TNT TNT TIP ...
 *     the flow      ---------------> takes over    -> decodes   -> takes over, if it is then as expected
 *     other thread                 |-- segment 1 --|            |-- segment 2 --
 *
 * Where tracing is off at a PSB, as where it is switched on for a thread, the TIP.PGE after it is the flow's
 * own, too, and the first segment begins after that.
 *
 * At a PSB in a guest the packets say the guest's time only, and the host's is one more expectation (struct
 * pt_segment_vmcs). Where a segment's flow comes to such a PSB, another segment begins after it.
 *
 * All of the flow's state is compared at a segment's begin. So an expectation may be wrong: that costs time,
 * and nothing else.
 *
 * A decoder has a graph of its own, whose paths and positions are translated into the flow's as they are
 * taken over: the flow's thread reads the decoder's graph for that, in which nothing that it reads changes
 * any more.
 */
#ifndef DECODE_FLOW_SEGMENT_H
#define DECODE_FLOW_SEGMENT_H

#include "decode/flow/flow.h"

/* ---- Decoding: any thread --------------------------------------------------------------------------- */

/* Decodes segments, one after the other, in one thread. */
struct pt_segment_decoder;

/* no_tnt: as in struct pt_flow_config. store: of the code. graph_bytes: for its graph (pt_graph_limit()). */
struct pt_segment_config {
	bool no_tnt;
	bool stats; /* the flows' graph counts branches (pt_graph_count_stats()) */
	bool sums;  /* runs are summed up by pt_segment_encode(), and not encoded */
	struct img_store *store;
	size_t graph_bytes; /* 0: the default, and more where it must (pt_graph_may_grow()) */
	unsigned graphs;    /* that there may be */
	/* Called when there is code at an address of the space that the store's thread has to read first
	 * (image.h): has it do so. False: it does not. */
	bool (*read_code)(void *arg, struct img_space *space, uint64_t ip);
	void *arg;
};

/* NULL: no memory. */
struct pt_segment_decoder *pt_segment_decoder_create(const struct pt_segment_config *config);
void pt_segment_decoder_destroy(struct pt_segment_decoder *d); /* NULL is fine */

/* True when the decoder's graph is to be emptied before the next segment, by pt_segment_decoder_empty().
 * All segments that it has made must have been taken over, or given up, before. */
bool pt_segment_decoder_is_full(const struct pt_segment_decoder *d);
void pt_segment_decoder_empty(struct pt_segment_decoder *d);
/* Code that it had forgotten came back, so that it gets more memory from now on (pt_graph_may_grow()). */
bool pt_segment_decoder_grows(const struct pt_segment_decoder *d);

/* Times (TSC) at which a flow may be asked to stop, in order. */
struct pt_segment_stops {
	uint64_t *tsc;
	size_t count;
};

/* ---- What is expected ------------------------------------------------------------------------------- */

/* The host or a guest: whose code runs there. Threads only read it. */
struct pt_segment_machine {
	struct img_space *kernel;
	uint64_t switch_ip;	 /* of the kernel's code */
	struct img_space *other; /* code of processes whose CR3 is not known; NULL: none */
	struct pt_segment_process {
		uint64_t page_tables; /* CR3 without the PCID */
		struct img_space *space;
	} * processes; /* by page_tables */
	size_t process_count;
};

struct pt_segment_world {
	struct pt_segment_machine *machines; /* the host is the first */
	size_t machine_count;
	struct pt_segment_vmcs {
		uint64_t vmcs;
		size_t machine;
		uint64_t tsc_ratio; /* as in struct pt_vm_span; 0: its clock is not known */
		int64_t tsc_offset;
	} * vmcses;
	size_t vmcs_count;
	/* The host's TSC at the VMCS's guest's, of which a packet has 56 bits: the one near about_tsc. */
	uint64_t (*host_tsc)(const struct pt_segment_vmcs *vmcs, uint64_t guest_tsc, uint64_t about_tsc);
};

/* Puts the processes in order. */
void pt_segment_sort_processes(struct pt_segment_machine *m);
/* The code of the process with that CR3; other when it is not known. */
struct img_space *pt_segment_process_space(const struct pt_segment_machine *m, uint64_t cr3);

/* What a PSB+ says of whose code runs. */
struct pt_segment_psb {
	uint64_t cr3; /* 0 unknown */
	bool in_guest;
};
/* After the PSB+ that begins at psb; NULL: it does not end before `end`. */
const uint8_t *pt_segment_after_psb(const uint8_t *psb, const uint8_t *end, struct pt_segment_psb *ret);

/* What is to be decoded, under which assumptions. */
struct pt_segment_task {
	const uint8_t *psb, *begin, *end; /* PSB; after its PSBEND; where it ends */
	bool in_guest;			  /* at `begin` */
	uint64_t aux_offset;		  /* of psb */
	struct img_space *user, *kernel;  /* whose code runs in the host (pt_flow_set_code()) */
	uint64_t switch_ip;		  /* of the kernel's code */
	struct pt_clock_config clock;	  /* of the stream's CPU, and so errata */
	uint32_t errata;
	bool snapshot; /* as in pt_flow_config */
	bool has_cyc,
	    times_last; /* there have been CYC packets; they time a TNT's last branch (cyc_binding.h) */
	const struct pt_segment_stops *stops; /* NULL: none */
	const struct pt_segment_world *world; /* NULL: nothing is expected */
	size_t guest; /* world's machine that is entered, where the VMCS does not say; 0: not known */
	/* The flow's when the task was made: for the host's time at a guest's PSB. */
	struct pt_clock now;
	uint64_t vmcs;
	bool kernel_unseen; /* its kernel was not seen wholly (state.h) */
};

/* What the flow is now is what the task assumes. In the flow's thread. */
void pt_segment_assume(struct pt_segment_task *task, const struct pt_flow *f);
/* What the flow will follow then, where it is in a guest now. */
void pt_segment_assume_code(struct pt_segment_task *task, const struct pt_code *user,
			    const struct pt_code *kernel);

struct pt_segment; /* the caller's, once made, with those after it */

/* The task's segments, in order, linked. NULL: nothing could be decoded under the assumptions, or no
 * memory. */
struct pt_segment *pt_segment_decode(struct pt_segment_decoder *d, const struct pt_segment_task *task);
void pt_segment_destroy(struct pt_segment *segment); /* and those after it; NULL is fine */

struct pt_segment *pt_segment_next(const struct pt_segment *segment); /* NULL: it is the task's last */
const uint8_t *pt_segment_begin(const struct pt_segment *segment);

/* ---- Taking over: the flow's thread ----------------------------------------------------------------- */

/* The numbers in the flow's graph of what a decoder has numbered. Valid until one of the two graphs is
 * recycled. */
struct pt_segment_numbers;
struct pt_segment_numbers *
pt_segment_numbers_create(const struct pt_segment_decoder *d); /* NULL: no memory */
void pt_segment_numbers_destroy(struct pt_segment_numbers *n); /* NULL is fine */
void pt_segment_numbers_forget(struct pt_segment_numbers *n);

/* Encodes runs of the segments, or sums them up, made by the numbers' decoder: of paths that the flow's thread
 * has said record numbers of by then. In the decoder's thread, at any time. */
void pt_segment_encode(struct pt_segment *segment, struct pt_segment_numbers *numbers);

enum pt_segment_taken {
	PT_SEGMENT_ENDS, /* no more of it, or it cannot be: what follows *at is the flow's to decode */
	PT_SEGMENT_TIME	 /* up to where the flow was to stop; there is more */
};

/*
 * Takes over what the segment has up to where the flow is to stop (pt_flow_set_stop()). *at: the first byte
 * that was not taken. The flow must be as the segment assumes, or as it was left by the call before; if it
 * has been changed since, nothing is taken.
 */
enum pt_segment_taken pt_segment_take(struct pt_flow *f, struct pt_segment *segment,
				      struct pt_segment_numbers *numbers, const uint8_t **at);

/* How the work was divided, for --stats. */
struct pt_segment_counts {
	uint64_t segments, fitting, bytes; /* made; of these, taken over at least in part; bytes that were */
};

#endif
