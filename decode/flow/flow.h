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

#include "decode/packet/clock.h"
#include "decode/packet/errata.h"
#include "decode/code/graph.h"
#include "decode/packet/packet.h"

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
	bool no_image;	     /* only the code is missing: packets still tell of VM entries and exits */
};

struct pt_flow_run {
	uint32_t path, repeats;
	uint64_t tsc;	    /* PT_CLOCK_UNKNOWN */
	uint32_t timing;    /* enum ptr_timing */
	uint64_t cyc_count; /* PTR_UNKNOWN; else as in struct ptr_run */
	uint64_t insn_count;
};
/* So many are told of at once: their paths are far apart in memory, and then all are fetched at the same time. */
#define PT_FLOW_RUNS 32

struct pt_flow;
struct pt_vm_transition; /* vm_transition.h */

/* What a flow tells. All are called with the flow; a sink that fails remembers it and ignores the rest. */
struct pt_flow_sink {
	/* Execution (re)starts here and goes on without gap until end(). */
	void (*begin)(void *arg, struct pt_flow *f, uint64_t tsc);
	/* n > 0 runs, in order; some at a time, but before anything else is told that comes behind them. */
	void (*runs)(void *arg, struct pt_flow *f, const struct pt_flow_run *runs, uint32_t n);
	void (*end)(void *arg, struct pt_flow *f, uint64_t tsc, uint64_t insn_count, uint64_t cyc_count);
	/* An error comes after the end() of what it ended, and before the begin() behind it. */
	void (*error)(void *arg, struct pt_flow *f, const struct pt_flow_error *error);
	/* There is no code at ip. True when there is now: the sink has brought its sideband up to date (with
	 * pt_flow_pause() and pt_flow_resume()), and the flow tries again. */
	bool (*missing)(void *arg, struct pt_flow *f, uint64_t ip);
	/* The flow is about to come to user space (from the kernel, or anew): last chance to say whose, by setting
	 * f->user, within pt_flow_pause() and pt_flow_resume() when the thread is another. May be NULL. */
	void (*user)(void *arg, struct pt_flow *f);
	/* The flow stands where its kernel switches threads (pt_code's switch_ip): what comes is the next thread's. May be
	 * NULL. */
	void (*switching)(void *arg, struct pt_flow *f);
	/* The flow has changed sides (f->nr, cr3, vmcs tell), out of any slice: set f->user and f->kernel. t is NULL
	 * when the VM entry or exit itself was not seen. May be NULL: one code for all. */
	void (*side)(void *arg, struct pt_flow *f, const struct pt_vm_transition *t);
	/* The host TSC of a TSC packet in a guest, PT_CLOCK_UNKNOWN: ignore the packet. NULL: as it is. */
	uint64_t (*guest_tsc)(void *arg, struct pt_flow *f, uint64_t guest_tsc);
	/* Code at ip is outside of the recording's address filters. NULL: there are none. Asked with PT_SKL014 only. */
	bool (*shut_out)(void *arg, struct pt_flow *f, uint64_t ip);
	/* fields: a JSON object's inside, may be "". */
	void (*event)(void *arg, struct pt_flow *f, const char *name, uint64_t ip, const char *fields);
	/* A CFE (is_cfe: its type and vector) or EVD packet (its type and payload); also told as an event. May be NULL. */
	void (*event_trace)(void *arg, struct pt_flow *f, bool is_cfe, uint32_t type, uint64_t value);
};

enum pt_flow_state {
	PT_FLOW_UNSYNCED, /* until the next PSB */
	PT_FLOW_LOSING,	  /* AUX data was lost: until the next PSB, or TIP.PGE with its whole IP */
	PT_FLOW_DISABLED, /* in sync, PacketEn = 0 */
	PT_FLOW_NO_IMAGE, /* in sync, PacketEn = 1, but the code is missing */
	PT_FLOW_RUNNING
};

/* Return addresses as the hardware keeps them, positions. */
#define PT_STACK 128 /* ring for the 64 that it keeps */
struct pt_return_stack {
	uint32_t stack[PT_STACK], top, bottom;
	uint32_t user_top, user_bottom; /* when the kernel was entered from user space, if user_known */
	bool user_known;
};

/* A trail (code/graph.h) that is being recorded: from where a path starts to where it ends. */
struct pt_path_memo_recorder {
	struct pt_path_memo *to; /* NULL: none */
	uint64_t window[4], start_ip, last_ip, insns, packets;
	const uint8_t *from; /* behind the window's first byte */
	struct pt_code *code;
	uint32_t position, flushes;
	uint32_t top, low, peak; /* of the stack: at the start, lowest and highest since */
	uint32_t popped[PT_PATH_MEMO_STACK], pops;
	uint8_t ip_bytes; /* of the first TIP / 2, 0 none */
};

/* What tells which branch of a TNT packet the CYC before it is of; see cyc_binding.h. */
struct pt_cyc_binding {
	uint64_t insn_sum, cyc_sum;	   /* of the samples: the pace */
	uint64_t first, last, cyc, cycles; /* at the sample before; its cyc less that of the one before it */
	uint64_t packet;
	uint64_t tnt_tsc;				 /* of the last TNT that was timed so, when late */
	uint32_t samples, for_first, for_last, in_a_row; /* in_a_row: nothing but CYC and TNT */
	bool late;					 /* it is the last */
};

struct pt_flow {
	struct pt_graph *graph;
	struct pt_code *user,
	    *kernel; /* whose code runs now, by the half of the address; NULL: nobody knows */
	const struct pt_flow_sink *sink;
	void *arg;
	struct pt_clock clock;
	unsigned quick; /* tell of addresses in packets as events: 1 of all, 2 of PSBs' only; with skip */
	bool skip; /* what runs now is not wanted: no code is followed, and nothing told but VM transitions */
	/* TNT is disabled (DisTNT): the flow ends at conditional branches, and begins at the next IP packet */
	bool no_tnt;
	uint32_t errata;   /* of the CPU, enum pt_erratum: the caller's to set behind pt_flow_init() */
	uint64_t stop_tsc; /* pt_flow_feed() returns when the clock reaches it */

	enum pt_flow_state state;
	enum insn_mode mode, next_mode; /* now; from the next IP packet on */
	uint32_t position;
	unsigned decision;    /* of position; PT_D_UNRESOLVED: ask pt_graph_decision() */
	struct pt_code *code; /* of position */
	uint32_t stack[PT_STACK], top, bottom;
	uint32_t edges[PTR_PATH_EDGES + 32]; /* the path so far; arcs store four at once */
	uint32_t len;
	uint64_t start_ip;
	uint32_t run_path; /* held back: its repeats may grow */
	/* of the branches that come; between the two for they are loaded as one otherwise */
	uint64_t run_tsc;
	uint32_t run_repeats;
	uint8_t run_timing;		       /* enum ptr_timing: of the branches that come */
	uint32_t last_path;		       /* the last one flushed */
	struct pt_flow_run runs[PT_FLOW_RUNS]; /* not told of yet: pt_flow_deliver() */
	uint32_t run_count;
	bool cut;	/* the clock has moved: end the run behind the next branch packet */
	bool cyc_fresh; /* the last packet was a CYC: it times the next one */
	struct pt_cyc_binding late;
	/* executed up to the first branch of the TNT at hand, when it was timed; 0 else */
	uint64_t first_insns;
	uint64_t now_tsc, before_tsc; /* when the run was cut, and the time before */
	bool in_slice, has_cyc;
	uint64_t insns, slice_insns,
	    cyc_insns; /* executed so far; at the slice's start; at the last counted CYC */
	uint64_t slice_cyc, cyc_cyc;

	struct pt_path_memo_recorder trail;
	struct pt_packet_memo *packet_memo; /* that is gone along (fast_cyc.c); NULL: none */
	uint32_t flushes;		    /* paths so far */
	uint64_t tnt;			    /* bits that wait for a deferred TIP */
	unsigned tnt_n;
	uint64_t last_ip; /* for IP compression */
	uint64_t fup_ip;  /* a FUP's, when fup */
	bool fup;	  /* the next TIP comes from fup_ip, not from a branch */
	bool fup_binds;	  /* the next FUP belongs to the packet before it */
	bool in_psb, psb_fup;
	uint64_t pip_insns; /* `insns` at the last PIP packet, and how many came then */
	uint32_t pips;
	bool psb_only; /* that it runs is known from a PSB+ alone, and nothing has come since */
	bool overflow; /* after OVF, until FUP or TIP.PGE */
	bool tsx_abort;
	uint64_t mode_packet; /* `packets` at the last MODE.Exec: a FUP right behind it is bound to it */
	bool overflow_fup;    /* a PSB+ came between OVF and its FUP, and has told where */
	uint64_t overflow_insns;
	const char *held; /* an event that waits for its FUP, NULL none */
	char held_fields[96];
	bool ever; /* has been in sync before */
	unsigned bip_bytes;
	uint64_t psb_ip, stop_ip; /* stop_ip: where it was when tracing stopped last */
	uint64_t cr3, vmcs;	  /* PIP's, 0 unknown; PT_VMCS_UNKNOWN */
	uint32_t nr, cbr, exec;
	/* the core:bus ratio is told of where it changes, and where execution is first seen with it */
	uint32_t cbr_reported;
	/* a PIP of the other side: the next TIP, TIP.PGE or TIP.PGD is a VM entry or exit */
	bool side_changes;
	uint32_t to_nr;
	uint64_t to_cr3;
	bool psb_pip, psb_vmcs; /* PSB+ had a PIP; a VMCS packet that tells of another VMCS */
	uint32_t psb_nr;
	uint64_t psb_cr3;
	bool psb_sided;		   /* what it says of them was taken */
	bool tsc_waits, tma_waits; /* a TSC packet whose side or TMA is not known yet; the TMA behind it */
	bool tsc_ignored;	   /* the last TSC packet was, for it is a guest's */
	uint64_t tsc_payload;
	uint32_t tma_ctc, tma_fast;
	bool concealed; /* the last TIP.PGD was at a VM entry without a PIP */
	bool no_image_upper,
	    no_image_hard; /* where it went blind: the address' half; it takes another half or side to see */
	bool kernel_no_image; /* the kernel was not seen wholly since it was entered */
	bool guest_no_image;  /* the guest was not seen wholly since the VM entry */
	bool skipped;	      /* something was not seen by wish: there may be returns from calls in it */
	bool unsure; /* the stack is what the code has called, not what the hardware has: since blindness */
	bool forgot; /* the hardware has entries that the stack has not: since an error */
	uint32_t user_top, user_bottom; /* as in struct pt_return_stack */
	bool user_known;
	bool guest_lost,
	    floored; /* guest_no_image at a VM exit since the last entry; guest_floor says something */
	uint32_t guest_floor;		   /* what lies below in the stack is no call of the guest */
	struct pt_return_stack host_stack; /* at the VM entry */

	uint64_t base;	     /* aux_offset of the piece's first byte */
	uint64_t aux_offset; /* of the packet at hand */
	uint64_t packets, psbs;
};

/* codes are set by the caller (user, kernel) before feeding. */
void pt_flow_init(struct pt_flow *f, struct pt_graph *graph, const struct pt_clock_config *clock,
		  const struct pt_flow_sink *sink, void *arg);

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

/* Where a flow stands and returns to, without the graph. */
struct pt_flow_place {
	uint64_t ip;
	struct pt_code *code; /* NULL: nowhere */
	uint8_t mode;	      /* enum insn_mode */
};
struct pt_flow_places {
	struct pt_flow_place here, stack[PT_STACK], host_stack[PT_STACK];
};
/* Before and after pt_graph_recycle(), for each flow of the graph. The branches up to here are told. */
void pt_flow_detach(struct pt_flow *f, struct pt_flow_places *ret);
void pt_flow_reattach(struct pt_flow *f, const struct pt_flow_places *places);

#endif
