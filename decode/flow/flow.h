/*
 * flow.h - one stream's packets and the code graph to runs of branches.
 *
 * A flow takes PT bytes in pieces and tells its sink what was executed (runs of paths, code/graph.h), what happened
 * (events) and what could not be known (errors). It follows the SDM's rules for what binds to what; where the
 * packets and the code disagree it says so and starts again at the next PSB, never guessing.
 *
 * Time: a run's tsc is that of the last timing packet before its first branch: no branch of the run is older and, but
 * for its last direct branches, none is younger than the next run's tsc. A timing packet comes before the packet that
 * it times, and times the first branch of a TNT (SDM, "Cycle Packet Semantics"); TNT bits are sent before an MTC or
 * TSC. So a run begins with the branch whose packet follows a timing packet. Direct branches, which have no packet,
 * belong to the run before. Encoders that put a TNT's last time into the CYC are recognized (cyc_binding.h): there a run
 * that begins with a TNT has the time before.
 *
 * Sides: a flow is in the host or in a guest (PIP's NR bit). A VM entry or exit ends the slice with an edge to 0 and
 * begins another with an edge from 0, for the two ends are of different machines; the sink chooses whose code it is.
 *
 * Missing code: the flow says so once and goes on blind, taking no branch from TNT bits, until an IP packet says where
 * it is and there is code: in the same code the next TIP, else the transition to the kernel, host or guest.
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

enum pt_flow_error_kind {
	PT_FLOW_BAD_PACKET,
	PT_FLOW_NO_CODE,
	PT_FLOW_BAD_INSN,
	PT_FLOW_MISMATCH, /* trace and code disagree */
	PT_FLOW_OVERFLOW, /* OVF */
	PT_FLOW_LOST,	  /* AUX data is missing */
	PT_FLOW_CUT,	  /* the stream ends inside a packet, or without its end */
	PT_FLOW_FULL	  /* out of memory */
};
const char *pt_flow_error_name(enum pt_flow_error_kind kind);

struct pt_flow_error {
	enum pt_flow_error_kind kind;
	uint64_t ip; /* 0 unknown */
	uint64_t aux_offset;
	uint64_t tsc;	     /* when it was known last */
	const char *message; /* static: it outlives the flow */
	bool no_image;	     /* only the code is missing: packets still show VM entries and exits */
};

struct pt_flow_run {
	uint32_t path, repeats;
	uint64_t tsc;	    /* PT_CLOCK_UNKNOWN */
	uint32_t timing;    /* enum ptr_timing */
	uint64_t cyc_count; /* PTR_UNKNOWN; else as in struct ptr_run */
	uint64_t insn_count;
};
/* That many are reported at once: their paths are far apart in memory, and then all are fetched at the same time. */
#define PT_FLOW_RUNS 32

struct pt_flow;
struct pt_vm_transition; /* vm_transition.h */

/*
 * What a flow asks while it goes on. Each is called with env_arg of the flow's config and with the flow, and may read it
 * (the accessors below); what it may do beyond that is said at each. All but missing may be NULL.
 *
 * A callback that changes which code runs, or what the code is, calls pt_flow_pause() before and pt_flow_resume() after
 * the change. A callback that fails remembers that, and its owner stops feeding.
 */
struct pt_flow_env {
	/* The graph has no code at ip. May bring the sideband up to date, between pt_flow_pause() and pt_flow_resume().
	 * True when there may be code now: the flow looks again. */
	bool (*missing)(void *arg, struct pt_flow *f, uint64_t ip);
	/* The flow is about to reach user space, from its kernel or from where it was not followed: the last chance to say
	 * which process it is. May call pt_flow_set_user_code(); pt_flow_pause() and pt_flow_resume() when the thread is
	 * another one. */
	void (*user)(void *arg, struct pt_flow *f);
	/* The flow is where its kernel switches threads (pt_code's switch_ip): what comes is the next thread's. May change the
	 * code, as for missing. */
	void (*switching)(void *arg, struct pt_flow *f);
	/* The flow has entered or left a guest (pt_flow_in_guest(), pt_flow_cr3(), pt_flow_vmcs()), and is in no slice: is to call
	 * pt_flow_set_code(). transition: NULL when the VM entry or exit itself was not seen. NULL: one code for all. */
	void (*side)(void *arg, struct pt_flow *f, const struct pt_vm_transition *transition);
	/* The host's TSC of a TSC packet in a guest; PT_CLOCK_UNKNOWN: the packet is ignored. The flow's clock is that before the
	 * packet. May call pt_flow_set_stop(). NULL: guest and host have one TSC. */
	uint64_t (*guest_tsc)(void *arg, struct pt_flow *f, const struct pt_tsc_packet *packet);
	/* True when the code at ip, of pt_flow_code(), is outside of the recording's address filters. Asked with PT_SKL014 only. NULL:
	 * there are none. */
	bool (*filtered)(void *arg, struct pt_flow *f, uint64_t ip);
};

/*
 * What a flow reports, in order. Each is called with output_arg of the flow's config and with the flow, to read only. A
 * callback that fails remembers that and ignores the rest.
 */
struct pt_flow_output {
	/* A slice begins: execution is seen from ip in code on, without a gap, until end(). */
	void (*begin)(void *arg, const struct pt_flow *f, uint64_t tsc, struct pt_code *code, uint64_t ip);
	/* n > 0 runs of the slice. They are collected, and delivered before anything is reported or asked that comes after. */
	void (*runs)(void *arg, const struct pt_flow *f, const struct pt_flow_run *runs, uint32_t n);
	/* The slice ends. insn_count, cyc_count: of the slice; cyc_count is PTR_UNKNOWN without CYC packets. */
	void (*end)(void *arg, const struct pt_flow *f, uint64_t tsc, uint64_t insn_count,
		    uint64_t cyc_count);
	/* An error: after the end() of the slice that it ended, before the begin() after it. */
	void (*error)(void *arg, const struct pt_flow *f, const struct pt_flow_error *error);
	/* A packet that is an event. ip: 0 none. fields: the members of a JSON object, without braces; may be "". */
	void (*event)(void *arg, const struct pt_flow *f, const char *name, uint64_t ip, const char *fields);
	/* A CFE (is_cfe: its type and vector) or EVD packet (its type and payload); an event is reported too. May be NULL. */
	void (*event_trace)(void *arg, const struct pt_flow *f, bool is_cfe, uint32_t type, uint64_t value);
	/* A VM entry or exit, between slices: an entry after env's side(), an exit before it, so that what that has set is the
	 * guest's both times. May be NULL. */
	void (*transition)(void *arg, const struct pt_flow *f, const struct pt_vm_transition *transition);
};

enum pt_flow_state {
	PT_FLOW_UNSYNCED,  /* until the next PSB */
	PT_FLOW_DATA_LOST, /* AUX data was lost: until the next PSB, or TIP.PGE with its whole IP */
	PT_FLOW_DISABLED,  /* in sync, PacketEn = 0 */
	PT_FLOW_NO_IMAGE,  /* in sync, PacketEn = 1, but the code is missing */
	PT_FLOW_RUNNING
};

/* How closely the flow looks. In all but the first it follows no code, and reports VM transitions and errors only. */
enum pt_flow_detail {
	PT_FLOW_FOLLOW,		 /* code, runs, everything */
	PT_FLOW_ADDRESSES,	 /* and the address in each packet, as an event */
	PT_FLOW_PSB_ADDRESSES,	 /* and the address in each PSB+, as an event */
	PT_FLOW_TRANSITIONS_ONLY /* what runs now is not wanted */
};

/* Copied. graph, env and output must outlive the flow. */
struct pt_flow_config {
	struct pt_graph *graph;
	struct pt_clock_config clock;
	const struct pt_flow_env *env;
	void *env_arg;
	const struct pt_flow_output *output;
	void *output_arg;
	uint32_t errata; /* the CPU's, enum pt_erratum */
	/* TNT packets are disabled (IA32_RTIT_CTL.DisTNT): the flow ends at conditional branches, and begins at the next IP
	 * packet. */
	bool no_tnt;
};

/* Unsynced, without code, following. NULL: no memory. */
struct pt_flow *pt_flow_create(const struct pt_flow_config *config);
void pt_flow_destroy(struct pt_flow *f);

/* Whose code runs now, by the half of the address; a code that is NULL is not known. Before the first pt_flow_feed(), in
 * env's callbacks, or between pt_flow_pause() and pt_flow_resume(). */
void pt_flow_set_code(struct pt_flow *f, struct pt_code *user, struct pt_code *kernel);
void pt_flow_set_user_code(struct pt_flow *f, struct pt_code *user);
/* Takes effect at once where nothing is followed, else with pt_flow_resume(). */
void pt_flow_set_detail(struct pt_flow *f, enum pt_flow_detail detail);
/* pt_flow_feed() returns when the clock reaches tsc; at first UINT64_MAX. */
void pt_flow_set_stop(struct pt_flow *f, uint64_t tsc);

enum pt_flow_state pt_flow_state(const struct pt_flow *f);
bool pt_flow_follows(const struct pt_flow *f); /* PT_FLOW_FOLLOW */
bool pt_flow_in_slice(const struct pt_flow *f);
struct pt_code *pt_flow_user_code(const struct pt_flow *f); /* as it was set */
struct pt_code *pt_flow_kernel_code(const struct pt_flow *f);
struct pt_code *pt_flow_code(const struct pt_flow *f); /* the one where the flow is, while it is running */
const struct pt_clock *pt_flow_clock(const struct pt_flow *f);
uint64_t pt_flow_tsc(const struct pt_flow *f); /* the clock's; PT_CLOCK_UNKNOWN */
/* What PIP and VMCS packets say: VMX non-root operation; CR3, 0 unknown; the VMCS's address, PT_VMCS_UNKNOWN. */
bool pt_flow_in_guest(const struct pt_flow *f);
uint64_t pt_flow_cr3(const struct pt_flow *f);
uint64_t pt_flow_vmcs(const struct pt_flow *f);
bool pt_flow_has_cyc(const struct pt_flow *f); /* there have been CYC packets; their sum is the clock's cyc */
uint64_t pt_flow_stop_ip(const struct pt_flow *f); /* of the last branch when tracing stopped last, 0 none */
/* Since the flow was created. */
struct pt_flow_counts {
	uint64_t insns, packets, psbs;
};
const struct pt_flow_counts *pt_flow_counts(const struct pt_flow *f);

enum pt_flow_feed { PT_FEED_MORE, PT_FEED_TIME, PT_FEED_CACHE_FULL };

/*
 * Takes the bytes [p, end), whose first is at aux_offset. Returns PT_FEED_MORE when all that is complete was
 * taken, or PT_FEED_TIME when the clock has reached stop_tsc; *ret is the first byte not taken (fewer than
 * PT_PACKET_MAX remain with PT_FEED_MORE: give them again before what follows). last: nothing follows.
 * PT_FEED_CACHE_FULL: the graph is crowded, recycle it before going on.
 */
enum pt_flow_feed pt_flow_feed(struct pt_flow *f, const uint8_t *p, const uint8_t *end, uint64_t aux_offset,
			       bool last, const uint8_t **ret);

/* AUX data is missing here. whole: what follows begins with a whole packet. */
void pt_flow_lost(struct pt_flow *f, uint64_t aux_offset, bool whole, const char *message);
/* Bytes were left out: it begins anew at the next PSB, without an error. */
void pt_flow_restart(struct pt_flow *f);
/* The stream is over. */
void pt_flow_finish(struct pt_flow *f);
/* Another thread, or other code: call before and after changing user or kernel, or refreshing them. */
void pt_flow_pause(struct pt_flow *f, bool end_slice);
void pt_flow_resume(struct pt_flow *f);

/* Before and after pt_graph_recycle(), for each flow of the graph. Branches up to here have been reported when it returns.
 * 0, or -1 and *e (PT_ERR_NO_MEMORY): the flow goes on as if it had not been called. */
int pt_flow_detach(struct pt_flow *f, struct pt_error *e);
void pt_flow_reattach(struct pt_flow *f);

#endif
