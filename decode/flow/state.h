/*
 * state.h - struct pt_flow, part by part. Private to this folder; flow.h is the contract.
 *
 * The parts stand in the order in which the fast loops use them.
 */
#ifndef DECODE_FLOW_STATE_H
#define DECODE_FLOW_STATE_H

#include "decode/flow/cyc_binding.h"
#include "decode/flow/flow.h"

/* Where the flow is: at a position of the graph, in a code. A MODE.Exec packet sets next_mode, which becomes
 * the mode with the IP packet after it. */
struct flow_location {
	enum insn_mode mode, next_mode;
	uint32_t position;    /* 0: nowhere */
	unsigned decision;    /* of position; PT_D_UNRESOLVED: ask pt_graph_decision() */
	struct pt_code *code; /* of position */
};

/*
 * Return addresses, as positions, like those that the CPU keeps for RET compression (SDM, "Indirect Transfer
 * Compression for Returns"): the newest PT_STACK_HW. They are the entries [bottom, top) of a ring, which is
 * larger, so that an entry may be written before the oldest one is given up:
 *
 *      bottom                 top
 *         v                    v
 *     [ . a b c d e f g h i j k . . . ]      k is where a compressed return goes next
 *
 * user: top and bottom when user space entered the kernel. They are restored when what the kernel called and
 * returned from was not all seen. unseen: in a flow that began at a PSB to decode ahead, they are still those
 * of the flow that will take it over.
 */
#define PT_STACK    128
#define PT_STACK_HW 64
struct flow_return_stack {
	uint32_t entries[PT_STACK], top, bottom;
	struct {
		uint32_t top, bottom;
		bool known, unseen;
	} user;
};

/*
 * The model of the CPU's return stack can differ from the CPU's in two ways. After code without an image was
 * passed, the model may lack entries or have extra ones (unsure). After an error, the CPU may still have
 * entries that the model has lost (stale_hw). In either state a compressed return without a caller that is
 * certain is no contradiction: it leads to where there is no image. So it does after something was left out
 * by wish (skipped), but then without an error.
 *
 * What was not seen wholly since it was entered may have called and returned as it liked: the kernel
 * (kernel_unseen) or the guest (guest_unseen). When a guest has been left so (guest_lost), the model has none
 * of the entries that it will return to; what lies below guest_floor when it is entered again is the host's,
 * and no caller of the guest's (has_floor).
 */
struct flow_stack_state {
	bool unsure, stale_hw, skipped;
	bool kernel_unseen, guest_unseen, guest_lost, has_floor;
	uint32_t guest_floor;
	/* Entries below may be of another process's code than the user's, which has changed since. */
	uint32_t others_top;
};

/* The path that is being gathered: the taken branches since start_ip. Its code and mode are the
 * location's. */
#define PT_FLOW_GATHERED (PTR_PATH_EDGES + 32) /* an arc stores four at once */
struct flow_path {
	uint32_t edges[PT_FLOW_GATHERED];
	uint32_t len;
	uint64_t start_ip; /* 0: the first edge comes from nowhere */
	uint32_t last;	   /* the path that was ended last, 0 none */
	uint32_t ended;	   /* how many paths were */
};

/* The run that is held back, because it may be repeated: `repeats` times `path`, 0: none. tsc and timing are
 * those of the branches that come, whether or not they are in it. (tsc stands between path and repeats
 * because compilers would load these as one word that was stored as two.) */
struct flow_run {
	uint32_t path;
	uint64_t tsc;
	uint32_t repeats;
	uint8_t timing; /* enum ptr_timing */
};

/* Runs that are complete, but not reported yet. */
struct flow_undelivered {
	struct pt_flow_run runs[PT_FLOW_RUNS];
	uint32_t count;
};

/* How timing packets and branches go together. (The times stand before the flags because compilers would load
 * now_tsc together with flags that have just been stored.) */
struct flow_timing {
	uint64_t before_tsc;	     /* when the run before the present one began: read as a run begins, and
				      * never later */
	uint64_t now_tsc;	     /* the clock when the run began */
	bool clock_moved;	     /* since then: the next branch packet begins another one */
	bool cyc_fresh;		     /* the last packet was a CYC, which times the next one */
	uint64_t cyc_insns, cyc_cyc; /* instructions and cycles at the last CYC that was counted in a run */
	uint64_t tnt_tsc;	     /* of the last TNT that was timed by its last branch (cyc_binding.h) */
};
/* tnt_tsc: that TNT was before a segment, which does not know it (segment.h); a run's timing then, in a
 * segment's log: PTR_TIME_AFTER if the TNT was timed with the run's tsc, else PTR_TIME_BEFORE. */
#define FLOW_TNT_UNSEEN	   (UINT64_MAX - 1)
#define FLOW_TIMING_UNSEEN PTR_TIMINGS

/* Execution that is seen without a gap. */
struct flow_slice {
	bool open;
	uint64_t insns, cyc; /* at its beginning */
};

/* A memoized path that is being recorded (fast.c): the flow where the path starts, and what has been used of
 * the stack since. (Of that, fast_cyc.c makes use for packets.) */
struct flow_recorder {
	struct pt_path_memo *memo; /* to be filled; NULL: nothing is recorded */
	uint64_t window[4], start_ip, last_ip, insns, packets;
	const uint8_t *from; /* after the window's first byte */
	struct pt_code *code;
	uint32_t position, paths_ended;
	uint32_t top, low, peak; /* of the stack: at the start, the lowest and the highest since */
	uint32_t popped[PT_PATH_MEMO_STACK], pops;
	uint8_t ip_bytes; /* of the first TIP / 2, 0 none */
};

/* TNT bits that are not run yet: bit n-1 is the next one. Between packets: they wait for a TIP (SDM,
 * "Deferred TIPs"). */
struct flow_tnt {
	uint64_t bits;
	unsigned n;
};

/* EVD packets that have come since the last CFE, whose data they are: bits of enum flow_evd. */
enum flow_evd { FLOW_EVD_CR2 = 1, FLOW_EVD_QUALIFICATION = 2, FLOW_EVD_REASON = 4 };

/* What the meaning of a packet's bytes depends on. */
struct flow_packet {
	uint64_t last_ip;    /* for IP compression */
	uint64_t aux_offset; /* of the packet at hand */
	unsigned bip_bytes;  /* as pt_packet_decode() takes it */
	uint32_t exec;	     /* the bits of the last MODE.Exec */
	uint64_t mode_exec;  /* that was packet number ...: a FUP right after it is bound to it */
};

/* FUP packets. One that is bound to a packet before it (binds: that is to come) says where that event was.
 * Any other is the source of the TIP that follows (pending: it has come, from ip). */
struct flow_fup {
	uint64_t ip;
	bool pending, binds;
	bool tsx_abort; /* that is to come: bound to a MODE.TSX, and yet the source of a TIP */
};

/* An event that waits for its FUP. */
struct flow_held_event {
	const char *name; /* NULL: none */
	char fields[96];
};

/* PSB+: what it has said so far, to take effect with PSBEND. */
struct flow_psb {
	bool open;	 /* between PSB and PSBEND */
	bool ever;	 /* there has been a whole one: the flow was in sync */
	bool alone;	 /* since the last one no packet has confirmed that tracing is enabled */
	bool side_known; /* what it says of host and guest has taken effect */
	bool fup, pip;	 /* it has one: ip; nr, cr3 */
	bool vmcs;	 /* it has another VMCS than was known */
	bool ask_side;	 /* env was asked whose code runs at the time before: it is to be asked again */
	bool no_time;	 /* it was reported that execution begins at an unknown time */
	uint32_t nr;
	uint64_t ip, cr3;
};

/* OVF. pending: until the FUP or TIP.PGE that says where tracing goes on. When a PSB+ has said that before
 * (psb_fup, when that many instructions were executed), the FUP says it again. */
struct flow_overflow {
	bool pending, psb_fup;
	uint64_t insns;
};

/* Tracing was off, and no VMCS packet has come since: another VMCS may have been loaded. (In a segment
 * PT_VMCS_UNKNOWN stands for what is known before it.) */
#define FLOW_VMCS_MISSED (PT_VMCS_UNKNOWN - 1)

/* Host or guest, as PIP and VMCS packets have it. vmcs: or FLOW_VMCS_MISSED. changes: a PIP of the other
 * side has come, so that the next TIP, TIP.PGE or TIP.PGD is a VM entry or exit. concealed: tracing has ended
 * with a VM entry without a PIP. */
struct flow_side {
	uint64_t cr3, vmcs; /* 0 unknown; PT_VMCS_UNKNOWN */
	uint64_t to_cr3;
	uint32_t nr, to_nr; /* 0 host, 1 guest */
	bool changes, concealed;
};

/* PIP packets in a row: how many have come since that many instructions were executed. */
struct flow_pips {
	uint64_t insns;
	uint32_t count;
};

/* A TSC packet that waits: in a PSB+ until its side is known, in a guest for the TMA after it. ignored: the
 * last one was not taken, so its TMA is not, either. */
struct flow_tsc {
	bool waits, tma_waits, ignored;
	uint64_t payload;
	uint32_t ctc, fast;
};

/* PT_FLOW_NO_IMAGE: in which half of the addresses the image ended. wrong: there is one, but not of what
 * runs, so that only the other half or the other side can help. */
struct flow_no_image {
	bool upper, wrong;
};

/* The core:bus ratio of the last CBR. It is reported where it changes, and where execution is first seen with
 * it. */
struct flow_cbr {
	uint32_t ratio, reported;
};

struct pt_flow {
	struct pt_graph *graph;
	struct pt_code *user, *kernel; /* whose code runs now, by the half of the address; NULL: not known */
	const struct pt_flow_env *env;
	void *env_arg;
	const struct pt_flow_output *output;
	void *output_arg;
	struct pt_clock clock;
	enum pt_flow_detail detail;
	bool no_tnt;
	uint32_t errata;
	bool snapshot;
	uint64_t stop_tsc; /* pt_flow_feed() returns when the clock reaches it */

	enum pt_flow_state state;
	struct flow_location at;
	struct flow_return_stack stack;
	struct flow_path path;
	struct flow_run run;
	struct flow_undelivered undelivered;
	struct flow_timing timing;
	struct pt_cyc_binding cyc_binding;
	struct flow_slice slice;
	struct pt_flow_counts counts;
	struct flow_recorder recorder;
	struct pt_packet_memo *packet_memo; /* the one that is followed (fast_cyc.c); NULL: none */

	struct flow_tnt tnt;
	struct flow_packet packet;
	struct flow_fup fup;
	struct flow_held_event held;
	uint32_t evds; /* enum flow_evd */
	struct flow_psb psb;
	struct flow_overflow overflow;
	struct flow_side side;
	struct flow_pips pips;
	struct flow_tsc tsc;
	struct flow_no_image no_image;
	struct flow_cbr cbr;
	uint64_t stop_ip;   /* of the last branch when tracing stopped last */
	bool full_reported; /* that the graph is full: nothing is decoded any more */
	struct flow_stack_state stack_state;
	struct flow_return_stack host_stack; /* the stack at the VM entry */
	struct flow_places *places;	     /* while detached (detach.c) */
	uint32_t touched; /* how often it was changed by something else than packets (segment.h) */
	/* For segment.c: an edge from the kernel's code was in the user's, or would have been; stack.user was
	 * to be read, and is unseen. */
	bool user_wanted, unseen_wanted;
};

#endif
