/*
 * flow.h - what a stream's packets say was executed: packets and code to runs of branches.
 *
 * A flow takes the bytes of one Intel PT stream, in pieces, and walks through the code by them. It reports
 * runs (paths of taken branches), events, VM entries and exits, and errors, to struct pt_flow_output. What it
 * cannot know from packets and code - which process runs, which machine - it asks of struct pt_flow_env. It
 * follows the SDM's rules (vol. 3, "Intel Processor Trace"). Where packets and code contradict each other it
 * reports that, and starts again at the next PSB; it never guesses.
 *
 *     flow = pt_flow_create(&config);
 *     pt_flow_set_code(flow, user, kernel);
 *     while (bytes are there)
 *             pt_flow_feed(flow, ...);
 *     pt_flow_finish(flow);
 *     pt_flow_destroy(flow);
 *
 * Slices and runs. A slice is execution that is seen without a gap. It is a sequence of runs; a run is a
 * path, once or several times in a row. Numbers of paths and edges are the graph's (code/graph.h).
 *
 * Time. A timing packet (TSC, MTC, CYC) comes before the branch packet that it times, and times its first
 * branch (SDM, "Cycle Packet Semantics"). The CPU sends the TNT bits that it has gathered before an MTC or
 * TSC. So where the clock has moved, a run ends, and the next one begins with the first branch of the next
 * branch packet:
 *
 *     packets       TNT 11     CYC    TNT 101         MTC    TIP
 *     branches      a  b   d          e  -  f                g          d: a direct jump; -: not taken
 *     runs         [a  b   d]        [e     f]              [g]
 *     tsc           t0                t1                     t2
 *
 * A run's tsc is that of the last timing packet before its first branch. No branch of the run is earlier.
 * None is later than the next run's tsc, except for direct branches at its end: they have no packet, and
 * belong to the run before. (enum ptr_timing in schema/records.h says which of these are certain.) Some
 * encoders let a CYC time the last branch of a TNT: these are recognized (cyc_binding.h), and there a run
 * that begins with a TNT has the time before.
 *
 * Host and guest. A flow is in VMX root operation (the host) or in VMX non-root operation (a guest), by PIP's
 * NR bit. A VM entry or VM exit ends the slice with an edge to address 0, and begins another one with an edge
 * from 0, since the two addresses are of different machines. In between env says whose code comes. Where the
 * transition was not seen there are no such edges.
 *
 * No image. Where there is no code for an address, or the code is not what ran, the flow reports one error
 * and goes on in PT_FLOW_NO_IMAGE: it follows VM entries and exits, but takes no branches from TNT bits. It
 * runs again when an IP packet leads to where there is code. If the code was missing, that may be any; if it
 * was wrong, only one in the other half of the addresses (from kernel to user space, or back), or on the
 * other side of a VM entry or exit, or at a PSB.
 */
#ifndef DECODE_FLOW_FLOW_H
#define DECODE_FLOW_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/code/graph.h"
#include "decode/packet/clock.h"
#include "decode/packet/errata.h"
#include "schema/error.h"
#include "schema/records.h"

/* ---- What is reported ------------------------------------------------------------------------------- */

enum pt_flow_error_kind {
	PT_FLOW_BAD_PACKET, /* bytes that are no packet, or a packet that may not come there */
	PT_FLOW_NO_CODE,    /* there are no bytes at an address that was executed */
	PT_FLOW_BAD_INSN,   /* there are, but no instruction */
	PT_FLOW_MISMATCH,   /* packets and code contradict each other */
	PT_FLOW_OVERFLOW,   /* OVF: the CPU has lost packets */
	PT_FLOW_LOST,	    /* AUX data is missing: pt_flow_lost() */
	PT_FLOW_CUT,	    /* the stream ends inside a packet */
	PT_FLOW_NO_TIME,    /* execution begins in a guest at a time that is not known */
	PT_FLOW_FULL	    /* out of memory for code: the last error, nothing is decoded any more */
};
/* In the words of the record stream. */
const char *pt_flow_error_name(enum pt_flow_error_kind kind);

struct pt_flow_error {
	enum pt_flow_error_kind kind;
	uint64_t ip;	     /* what it is about, 0 unknown */
	uint64_t aux_offset; /* of the packet at hand */
	uint64_t tsc;	     /* the clock's; PT_CLOCK_UNKNOWN */
	const char *message; /* static: it outlives the flow */
	bool no_image;	     /* PT_FLOW_NO_IMAGE comes: packets still show VM entries and exits */
};

/* A path that was run `repeats` times in a row. */
struct pt_flow_run {
	uint32_t path, repeats;
	uint64_t tsc;	    /* PT_CLOCK_UNKNOWN before the first TSC packet */
	uint32_t timing;    /* enum ptr_timing */
	uint64_t cyc_count; /* with insn_count as in struct ptr_run; PTR_UNKNOWN */
	uint64_t insn_count;
};
/* At most that many are reported at once. Their paths are far apart in memory: whoever reads them can fetch
 * all at the same time. */
#define PT_FLOW_RUNS 32

/* Of a path, in several runs. */
struct pt_flow_path_sum {
	uint32_t path; /* the flow's graph's */
	uint32_t runs;
	uint64_t repeats;
	/* Of those runs whose cycles were shared out (stretch.h). */
	uint64_t insn_timed, cycles; /* cycles in PT_CYCLE_SHARES parts */
};

/* Runs of a slice whose records another thread has encoded, or which it has summed up (pt_segment_encode()). */
struct pt_flow_encoded_runs {
	const struct pt_flow_run *runs; /* `count` of them; their path is another graph's */
	const uint32_t *paths;		/* parallel: the flow's graph's */
	uint32_t count;
	uint32_t last_taken;		/* the last one that has a branch; `count`: none has */
	const struct ptr_runs *records; /* NULL: they are summed up */
	uint32_t records_from;		/* runs[0]'s */
	/* Of all runs but runs[0]. The cycles of [timed_from, timed_to) are shared out in them; none of the
	 * runs before timed_from - 1 and none from timed_to on has cycles. */
	const struct pt_flow_path_sum *path_sums;
	uint32_t path_sum_count, timed_from, timed_to;
	bool has_cyc;
	const uint64_t *cycles;	   /* with has_cyc, parallel: known cycles up to this run's end */
	struct pt_graph_sums sums; /* hash, by_kind: where the graph has path_stats */
	struct pt_kept_runs *kept; /* what runs and paths are in */
};
/* What is to remain after the report is to be kept, and released after use: in the flow's thread. */
struct pt_kept_runs;
void pt_runs_keep(struct pt_kept_runs *kept);
void pt_runs_release(struct pt_kept_runs *kept); /* NULL is fine */

struct pt_flow;
struct pt_vm_transition; /* vm_transition.h */

/*
 * What a flow asks. Each callback gets env_arg of the config, and the flow, which it may read (the accessors
 * below). What it may do beyond that is said at each. All but missing may be NULL.
 *
 * Where a callback may change the code, it calls pt_flow_pause() before and pt_flow_resume() after it changes
 * whose code runs or what is mapped; also of other flows, if they see that code. A callback that fails
 * remembers that; whoever feeds asks it afterwards.
 */
struct pt_flow_env {
	/* There is no code at ip. May change the code: the sideband may not be up to date. True when there
	 * may be code now; the flow looks again. False: it goes on without. */
	bool (*missing)(void *arg, struct pt_flow *f, uint64_t ip);
	/* The flow is about to enter user space, from its kernel or from where it was not followed: the last
	 * chance to say whose it is. May call pt_flow_set_user_code(); may change the code, when another
	 * thread runs. */
	void (*user)(void *arg, struct pt_flow *f);
	/* True when user() would change nothing of the flow's code, were the flow's CR3 this. Reads
	 * only. NULL: never. */
	bool (*user_stays)(void *arg, const struct pt_flow *f, uint64_t cr3);
	/* The flow is where its kernel switches threads (switch_ip of struct pt_code): what comes is the next
	 * thread's. May change the code. */
	void (*switching)(void *arg, struct pt_flow *f);
	/* The flow has changed sides (pt_flow_in_guest(), pt_flow_cr3(), pt_flow_vmcs()), and is in no slice.
	 * Is to call pt_flow_set_code(). transition: NULL when the VM entry or exit itself was not seen.
	 * NULL: host and guest have one code. */
	void (*side)(void *arg, struct pt_flow *f, const struct pt_vm_transition *transition);
	/* The host's TSC at a TSC packet in a guest; PT_CLOCK_UNKNOWN: the packet is ignored. The flow's
	 * clock is that before the packet. May call pt_flow_set_stop(). NULL: guest and host have one TSC. */
	uint64_t (*guest_tsc)(void *arg, struct pt_flow *f, const struct pt_tsc_packet *packet);
	/* A TSC packet in the host: `tsc` is what the clock makes of it, 64 bits. May be NULL. */
	void (*host_tsc)(void *arg, struct pt_flow *f, uint64_t tsc);
	/* True when ip, in pt_flow_code(), is outside of the recording's address filters. Asked with
	 * PT_SKL014 only. NULL: there are none. */
	bool (*filtered)(void *arg, struct pt_flow *f, uint64_t ip);
};

/*
 * What a flow reports, in order. Each callback gets output_arg of the config, and the flow, which it may only
 * read. A callback that fails remembers that, and ignores the rest.
 */
struct pt_flow_output {
	/* A slice begins, in code, at ip; 0: with an edge from nowhere. Its branches are not earlier than
	 * tsc. */
	void (*begin)(void *arg, const struct pt_flow *f, uint64_t tsc, struct pt_code *code, uint64_t ip);
	/* n > 0 runs of the slice. They are collected, but reported before anything else is reported or asked
	 * that comes after them. */
	void (*runs)(void *arg, const struct pt_flow *f, const struct pt_flow_run *runs, uint32_t n);
	/* The same of runs that are encoded. False: they are to be reported by runs(), nothing was done. NULL:
	 * always. */
	bool (*encoded_runs)(void *arg, const struct pt_flow *f, const struct pt_flow_encoded_runs *runs);
	/* The slice ends. insn_count, cyc_count: of the slice; cyc_count is PTR_UNKNOWN without CYC
	 * packets. */
	void (*end)(void *arg, const struct pt_flow *f, uint64_t tsc, uint64_t insn_count,
		    uint64_t cyc_count);
	/* An error: after the end() of the slice that it ended, before the begin() after it. */
	void (*error)(void *arg, const struct pt_flow *f, const struct pt_flow_error *error);
	/* A packet that is an event, in a slice or between two. ip: where, 0 unknown. fields: a JSON object's
	 * members, without the braces; may be "". */
	void (*event)(void *arg, const struct pt_flow *f, const char *name, uint64_t ip, const char *fields);
	/* A CFE (is_cfe: its type and vector) or EVD packet (its type and payload); reported as an event,
	 * too. May be NULL. */
	void (*event_trace)(void *arg, const struct pt_flow *f, bool is_cfe, uint32_t type, uint64_t value);
	/* A VM entry or VM exit, between two slices: an entry after env's side(), an exit before it, so that
	 * what that has set is the guest's both times. May be NULL. */
	void (*transition)(void *arg, const struct pt_flow *f, const struct pt_vm_transition *transition);
};

/* ---- A flow ----------------------------------------------------------------------------------------- */

enum pt_flow_state {
	PT_FLOW_UNSYNCED,  /* until the next PSB */
	PT_FLOW_DATA_LOST, /* AUX data was lost: until the next PSB, or a TIP.PGE with a whole IP */
	PT_FLOW_DISABLED,  /* in sync, PacketEn = 0 */
	PT_FLOW_NO_IMAGE,  /* in sync, PacketEn = 1, but there is no code, or none is wanted */
	PT_FLOW_RUNNING	   /* in sync, PacketEn = 1, in the code */
};

/* How closely a flow looks. Only with the first one does it follow code and report runs; always, VM
 * transitions and errors. */
enum pt_flow_detail {
	PT_FLOW_FOLLOW,
	PT_FLOW_ADDRESSES,	 /* the address in each packet, as an event */
	PT_FLOW_PSB_ADDRESSES,	 /* the address in each PSB+, as an event */
	PT_FLOW_TRANSITIONS_ONLY /* nothing: what runs now is not wanted */
};

/* It is copied; what the pointers lead to must outlive the flow. */
struct pt_flow_config {
	struct pt_graph *graph;
	struct pt_clock_config clock;
	const struct pt_flow_env *env;
	void *env_arg;
	const struct pt_flow_output *output;
	void *output_arg;
	uint32_t errata; /* enum pt_erratum: of the CPU that was traced */
	/* AUX data of snapshots: tracing is off meanwhile, and goes on in what then runs on the CPU. */
	bool snapshot;
	/* TNT packets are disabled (IA32_RTIT_CTL.DisTNT): a slice ends at a conditional branch, and the next
	 * one begins with an IP packet. */
	bool no_tnt;
};

/* PT_FLOW_UNSYNCED, with no code, PT_FLOW_FOLLOW. NULL: no memory. */
struct pt_flow *pt_flow_create(const struct pt_flow_config *config);
/* NULL is fine. */
void pt_flow_destroy(struct pt_flow *f);

/* Whose code runs now: user for the lower half of the addresses, kernel for the upper. NULL: not known
 * (user), or not traced apart (kernel): then user is asked for both halves. Before the first pt_flow_feed(),
 * in env's callbacks, or between pt_flow_pause() and pt_flow_resume(). The codes are the graph's. */
void pt_flow_set_code(struct pt_flow *f, struct pt_code *user, struct pt_code *kernel);
void pt_flow_set_user_code(struct pt_flow *f, struct pt_code *user);
/* At the same times as pt_flow_set_code(). */
void pt_flow_set_detail(struct pt_flow *f, enum pt_flow_detail detail);
/* pt_flow_feed() returns when the clock reaches tsc; at first UINT64_MAX. */
void pt_flow_set_stop(struct pt_flow *f, uint64_t tsc);

enum pt_flow_state pt_flow_state(const struct pt_flow *f);
/* PT_FLOW_FOLLOW */
bool pt_flow_follows(const struct pt_flow *f);
bool pt_flow_in_slice(const struct pt_flow *f);
/* As pt_flow_set_code() has set them. */
struct pt_code *pt_flow_user_code(const struct pt_flow *f);
struct pt_code *pt_flow_kernel_code(const struct pt_flow *f);
/* The one of them in which the flow is, or was last. NULL: none yet. */
struct pt_code *pt_flow_code(const struct pt_flow *f);
const struct pt_clock *pt_flow_clock(const struct pt_flow *f);
/* The clock's. PT_CLOCK_UNKNOWN before the first TSC packet. */
uint64_t pt_flow_tsc(const struct pt_flow *f);
/* There have been CYC packets. The clock has their sum. */
bool pt_flow_has_cyc(const struct pt_flow *f);
/* What PIP and VMCS packets have said: VMX non-root operation; CR3, 0 unknown; the VMCS's address,
 * PT_VMCS_UNKNOWN. */
bool pt_flow_in_guest(const struct pt_flow *f);
/* In env's side(): a PSB has shown the side, and the clock is still before the PSB's TSC packet: it is asked
 * again when the clock is there. */
bool pt_flow_time_waits(const struct pt_flow *f);
uint64_t pt_flow_cr3(const struct pt_flow *f);
uint64_t pt_flow_vmcs(const struct pt_flow *f);
/* Of the last branch when tracing stopped last; 0: it did not. */
uint64_t pt_flow_stop_ip(const struct pt_flow *f);
/* Since the flow was created. */
struct pt_flow_counts {
	uint64_t insns, packets, psbs;
	/* Places in a kernel from which on code was left out by wish, without an error. */
	uint64_t kernel_skips;
};
const struct pt_flow_counts *pt_flow_counts(const struct pt_flow *f);

/* ---- Feeding ---------------------------------------------------------------------------------------- */

enum pt_flow_feed {
	PT_FEED_MORE,	   /* all whole packets were taken; fewer than PT_PACKET_MAX bytes may be left */
	PT_FEED_TIME,	   /* the clock has reached what pt_flow_set_stop() says */
	PT_FEED_CACHE_FULL /* pt_graph_recycle() is due, between pt_flow_detach() and pt_flow_reattach() */
};

/*
 * Takes packets from the bytes [p, end), of which the first is at aux_offset of the stream. *ret is the first
 * byte that was not taken: it is to be given again, before those that follow. last: nothing follows.
 */
enum pt_flow_feed pt_flow_feed(struct pt_flow *f, const uint8_t *p, const uint8_t *end, uint64_t aux_offset,
			       bool last, const uint8_t **ret);

/* AUX data is missing at aux_offset: an error with that message, which outlives the flow. whole: what follows
 * begins with a whole packet. */
void pt_flow_lost(struct pt_flow *f, uint64_t aux_offset, bool whole, const char *message);
/* Bytes that are not wanted were left out: the flow begins anew at the next PSB. No error. */
void pt_flow_restart(struct pt_flow *f);
/* The stream is over. Ends the slice. */
void pt_flow_finish(struct pt_flow *f);

/* Before and after a change of whose code runs, or of what is mapped (pt_code_refresh()). Reports what was
 * executed up to here. end_slice: the slice ends, for what comes is another thread's. */
void pt_flow_pause(struct pt_flow *f, bool end_slice);
void pt_flow_resume(struct pt_flow *f);

/* Before and after pt_graph_recycle(), for each flow of the graph: the flow gives up what it has of it, and
 * gets it back. What it reports is the same as without. 0, or -1 and *e (PT_ERR_NO_MEMORY): then the flow is
 * still attached. */
int pt_flow_detach(struct pt_flow *f, struct pt_error *e);
void pt_flow_reattach(struct pt_flow *f);

#endif
