/*
 * internal.h - what the flow's files share: flow.c (runs and slices), walk.c (positions, TNT), host_guest.c
 * (host and guest, missing code), ip.c (TIP, FUP), packets.c (PSB+, all other packets, feeding), and the fast loops:
 * fast.c, fast_cyc.c (with CYCs) and fast_count.c (branches are only counted). Private to them; flow.h is the contract.
 *
 * Functions that return bool return false after they have told of an error and lost the flow.
 */
#ifndef DECODE_FLOW_INTERNAL_H
#define DECODE_FLOW_INTERNAL_H

#include <string.h>

#include "decode/flow/flow.h"
#include "decode/packet/packet.h"

#define CUT_EDGES  12 /* a backward branch ends a path that holds so many */
#define FULL_EDGES 29 /* no room for another arc */
#define LEAD_EDGES                                                                                           \
	(CUT_EDGES - 4) /* in a path that holds so many the direct branches before a timed one have no room */

/* ---- The state of a flow ---------------------------------------------------------------------------- */

/* Where the flow is: a position of the graph, in a code. mode is the execution mode there; a MODE.Exec packet sets next_mode,
 * which becomes the mode with the next IP packet. */
struct flow_location {
	enum insn_mode mode, next_mode;
	uint32_t position;
	unsigned decision;    /* of position; PT_D_UNRESOLVED: ask pt_graph_decision() */
	struct pt_code *code; /* of position */
};

/*
 * Return addresses as the CPU keeps them for RET compression (SDM, "Indirect Transfer Compression for Returns"), as positions.
 * It keeps 64; the ring is larger, so that entries may be written before it is known whether they are kept. The entries are
 * [bottom, top), modulo PT_STACK. user: the stack when the kernel was entered from user space, to return to when what the kernel did
 * was not seen.
 */
#define PT_STACK 128
struct flow_return_stack {
	uint32_t entries[PT_STACK], top, bottom;
	struct {
		uint32_t top, bottom;
		bool known;
	} user;
};

/*
 * The model of the hardware's return stack can differ from the hardware's in two ways. After code without an image was
 * passed, our stack may lack entries or have extra ones (unsure). After an error, the hardware may still hold entries that we
 * lost (stale_hw). A compressed return whose caller is not certain is no mismatch then, but a caller that is not known.
 *
 * What has not been seen wholly since it was entered may have called and returned: the kernel (kernel_unseen), the guest
 * (guest_unseen; guest_lost: at a VM exit since the last entry), or code that was left out by wish (skipped). Entries of a
 * guest that was not seen wholly are below a floor: what lies below guest_floor is no call of the guest (has_floor).
 */
struct flow_stack_state {
	bool unsure, stale_hw;
	bool skipped, kernel_unseen, guest_unseen, guest_lost, has_floor;
	uint32_t guest_floor;
};

/* The path that is being gathered: its edges so far, from start_ip on. */
struct flow_path {
	uint32_t edges[PTR_PATH_EDGES + 32]; /* arcs store four at once */
	uint32_t len;
	uint64_t start_ip;
	uint32_t last;	  /* the path before */
	uint32_t flushes; /* paths so far */
};

/* The run of the last path, which is held back while its repeats may grow; tsc and timing are those of the branches that
 * come. tsc stands between path and repeats, for these are loaded as one otherwise. */
struct flow_run {
	uint32_t path;
	uint64_t tsc;
	uint32_t repeats; /* 0: none is held */
	uint8_t timing;	  /* enum ptr_timing */
};

/* Runs that are complete and not reported yet: pt_flow_deliver(). */
struct flow_undelivered {
	struct pt_flow_run runs[PT_FLOW_RUNS];
	uint32_t count;
};

/* How the clock and the branches go together. */
struct flow_timing {
	bool clock_moved; /* end the run after the next branch packet */
	bool cyc_fresh;	  /* the last packet was a CYC: it times the next one */
	bool has_cyc;	  /* there have been CYC packets */
	/* executed up to the first branch of the TNT at hand, when it was timed; 0 else */
	uint64_t first_insns;
	uint64_t now_tsc, before_tsc; /* when the run was ended, and the time before */
	uint64_t cyc_insns, cyc_cyc;  /* instructions and cycles at the last CYC that was counted */
};

/* Since when execution is seen without a gap. */
struct flow_slice {
	bool open;
	uint64_t insns, cyc; /* at its start */
};

/* The memoized path (code/graph.h) that is being recorded: from where a path starts to where it ends. */
struct pt_path_memo_recorder {
	struct pt_path_memo *memo; /* NULL: none */
	uint64_t window[4], start_ip, last_ip, insns, packets;
	const uint8_t *from; /* after the window's first byte */
	struct pt_code *code;
	uint32_t position, flushes;
	uint32_t top, low, peak; /* of the stack: at the start, lowest and highest since */
	uint32_t popped[PT_PATH_MEMO_STACK], pops;
	uint8_t ip_bytes; /* of the first TIP / 2, 0 none */
};

/* Which branch of a TNT packet the CYC before it is of; see cyc_binding.h. */
struct pt_cyc_binding {
	uint64_t insn_sum, cyc_sum;	   /* of the samples: the rate */
	uint64_t first, last, cyc, cycles; /* at the sample before; its cyc less that of the one before it */
	uint64_t packet;
	uint64_t tnt_tsc; /* of the last TNT that was timed so, when times_last */
	uint32_t samples, for_first, for_last, in_a_row; /* in_a_row: nothing but CYC and TNT */
	bool times_last;				 /* it is of the last branch */
};

/* TNT bits that wait for a TIP (SDM, "Deferred TIPs"), the oldest highest. */
struct flow_tnt {
	uint64_t bits;
	unsigned n;
};

/* What the reading of a packet depends on. */
struct flow_packet {
	uint64_t last_ip;    /* for IP compression */
	uint64_t aux_offset; /* of the packet at hand */
	unsigned bip_bytes;  /* as pt_packet_decode() wants it */
	uint32_t exec;	     /* bits of the last MODE.Exec */
	uint64_t mode_exec;  /* counts.packets at that: a FUP right after it is bound to it */
};

/* A FUP: where an asynchronous event took place, or whose packet binds it. */
struct flow_fup {
	uint64_t ip;
	bool pending;	/* the next TIP comes from ip, not from a branch */
	bool binds;	/* the next FUP belongs to the packet before it */
	bool tsx_abort; /* it is that of a TSX abort */
};

/* An event that waits for its FUP. */
struct flow_held_event {
	const char *name; /* NULL: none */
	char fields[96];
};

/* PSB+: what it has said so far, and what is known from it. */
struct flow_psb {
	bool open;  /* between PSB and PSBEND */
	bool ever;  /* the flow has been in sync before */
	bool alone; /* that tracing is enabled is known from a PSB+ alone, and nothing has come since */
	bool fup, pip;
	bool vmcs;	 /* a VMCS packet of another VMCS */
	bool side_known; /* what it says of host and guest was taken */
	uint32_t nr;
	uint64_t ip, cr3;
};

/* OVF: pending until FUP or TIP.PGE. psb_fup: a PSB+ came before its FUP, and has shown where; insns: executed then. */
struct flow_overflow {
	bool pending, psb_fup;
	uint64_t insns;
};

/* Host or guest, as PIP and VMCS packets have it. changes: a PIP of the other side has come, and the next TIP, TIP.PGE or TIP.PGD
 * is a VM entry or exit. concealed: the last TIP.PGD was at a VM entry without a PIP. */
struct flow_side {
	uint64_t cr3, vmcs; /* 0 unknown; PT_VMCS_UNKNOWN */
	uint32_t nr;
	uint32_t to_nr;
	uint64_t to_cr3;
	bool changes, concealed;
};

/* PIP packets in a row: how many have come when `insns` were executed. */
struct flow_pips {
	uint64_t insns;
	uint32_t count;
};

/* A TSC packet that waits until its side is known, or for the TMA after it. ignored: the last one was, for it is a guest's. */
struct flow_tsc {
	bool waits, tma_waits, ignored;
	uint64_t payload;
	uint32_t ctc, fast;
};

/* PT_FLOW_NO_IMAGE: the half of the address where the code ended. hard: the code is not what ran, so only another half or side helps. */
struct flow_no_image {
	bool upper, hard;
};

/* The core:bus ratio: reported where it changes, and where execution is first seen with it. */
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

	struct pt_path_memo_recorder recorder;
	struct pt_packet_memo *packet_memo; /* the one that the flow follows (fast_cyc.c); NULL: none */
	struct flow_tnt tnt;
	struct flow_packet packet;
	struct flow_fup fup;
	struct flow_held_event held;
	struct flow_psb psb;
	struct flow_overflow overflow;
	struct flow_side side;
	struct flow_pips pips;
	struct flow_tsc tsc;
	struct flow_no_image no_image;
	struct flow_cbr cbr;
	uint64_t stop_ip; /* of the last branch when tracing stopped last */
	struct flow_stack_state stack_state;
	struct flow_return_stack host_stack; /* at the VM entry */
	struct flow_places *places;	     /* while detached */
};

/* ---- Functions -------------------------------------------------------------------------------------- */

void pt_flow_flush(struct pt_flow *f);
/* The sink is told of the runs that have been put: before it is told of anything else, and before others go on with it. */
void pt_flow_deliver_runs(struct pt_flow *f);
static inline void pt_flow_deliver(struct pt_flow *f)
{
	if (f->undelivered.count)
		pt_flow_deliver_runs(f);
}
/* Puts the run that is held, f->run.path, run_repeats. */
static inline void pt_flow_put_run(struct pt_flow *f, uint64_t cyc, uint64_t insns)
{
	f->undelivered.runs[f->undelivered.count++] = (struct pt_flow_run){.path = f->run.path,
									   .repeats = f->run.repeats,
									   .tsc = f->run.tsc,
									   .timing = f->run.timing,
									   .cyc_count = cyc,
									   .insn_count = insns};
	f->run.repeats = 0;
	f->run.timing = PTR_TIME_BEFORE;
	if (f->undelivered.count == PT_FLOW_RUNS)
		pt_flow_deliver_runs(f);
}
/* The path was run. */
void pt_flow_hold(struct pt_flow *f, uint32_t path);
void pt_flow_flush_tail(struct pt_flow *f, uint64_t ip);
void pt_flow_cut(struct pt_flow *f, uint32_t more_insns);
void pt_flow_cut_after(struct pt_flow *f, bool taken);
void pt_flow_begin_slice(struct pt_flow *f);
/* The branches that come have the clock's time; cyc: a CYC is of what they begin with, branch: of the first of them. */
static inline void pt_flow_run_begins(struct pt_flow *f, bool cyc, bool branch)
{
	f->timing.before_tsc = f->timing.now_tsc;
	f->timing.now_tsc = f->run.tsc = f->clock.tsc;
	f->run.timing = !cyc					  ? PTR_TIME_BEFORE
			: branch && pt_clock_cyc_exact(&f->clock) ? PTR_TIME_EXACT
								  : PTR_TIME_CYC;
}
/* They begin with a TNT, and its CYC times its last branch: all but that may be older. What a TNT before was timed with is the
 * time of the last branch before them. */
static inline void pt_flow_bind_cyc_to_last(struct pt_flow *f)
{
	if (__builtin_expect(f->cyc_binding.times_last, 0)) {
		bool cyc = f->run.timing != PTR_TIME_BEFORE;

		f->run.timing =
		    f->timing.before_tsc == f->cyc_binding.tnt_tsc ? PTR_TIME_AFTER : PTR_TIME_BEFORE;
		if (cyc)
			f->cyc_binding.tnt_tsc = f->timing.now_tsc;
		if (f->timing.before_tsc < f->run.tsc)
			f->run.tsc = f->timing.before_tsc;
	}
}
/* Another slice of the same flow, where the one before was ended. */
void pt_flow_resume_slice(struct pt_flow *f);
/* A CYC packet before an IP packet with which the slice begins is of that. */
static inline void pt_flow_time_begin(struct pt_flow *f)
{
	f->run.timing = !f->timing.cyc_fresh		? PTR_TIME_BEFORE
			: pt_clock_cyc_exact(&f->clock) ? PTR_TIME_EXACT
							: PTR_TIME_CYC;
	f->timing.cyc_fresh = false;
}
void pt_flow_end_slice(struct pt_flow *f);
uint64_t pt_flow_here(const struct pt_flow *f);
/* An error: the slice ends, and where the flow is is not known. blind as in struct pt_flow_error. */
void pt_flow_report_error(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message,
			  bool no_image);
void pt_flow_err(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message);
bool pt_flow_lose(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message);
/* There is no code at ip: says so, once until code is seen again, and goes blind. hard: the code is not what runs, so
 * that another IP in it is worth nothing. Returns false. */
bool pt_flow_lose_image(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message,
			bool hard);
/* As blindness, for what is not wanted: no error. */
void pt_flow_stop_seeing(struct pt_flow *f);
/* Blind, and the flow is at ip: true when there is code, and the flow stands there. */
bool pt_flow_see(struct pt_flow *f, uint64_t ip);
/* The flow goes from code to another: keeps the return stack of who enters the kernel, and gives it back. */
void pt_flow_cross(struct pt_flow *f, struct pt_code *to);
/* A return that was not compressed went to ip. */
void pt_flow_popped(struct pt_flow *f, uint64_t ip);
/* The VM entry or exit that a PIP has told of leads to ip (0: not traced). */
bool pt_flow_change_side(struct pt_flow *f, uint64_t ip);
/* A VM entry that no PIP tells of has ended tracing: its guest is concealed; until tracing begins at ip, in the host. */
void pt_flow_conceal(struct pt_flow *f, uint64_t vmentry_ip);
void pt_flow_reveal(struct pt_flow *f, uint64_t ip);
/* The same without the transition seen. */
void pt_flow_set_side(struct pt_flow *f, uint32_t nr, uint64_t cr3);
/* The position says that code is missing or bad. */
bool pt_flow_lose_dead(struct pt_flow *f);
/* What to say of an address where this has no code. */
const char *pt_flow_no_code(const struct pt_code *code);
/* There is no code at ip: true when there is now. */
static inline bool pt_flow_missing(struct pt_flow *f, uint64_t ip)
{
	pt_flow_deliver(f);
	return f->env->missing(f->env_arg, f, ip);
}
/* Before the flow comes from the kernel, or from nowhere, to ip: lets the sink say whose user space it is. */
static inline void pt_flow_approach(struct pt_flow *f, uint64_t ip)
{
	if (!(ip >> 63) && f->kernel && f->env->user &&
	    (f->state != PT_FLOW_RUNNING || f->at.code == f->kernel)) {
		pt_flow_deliver(f);
		f->env->user(f->env_arg, f);
	}
}
struct pt_code *pt_flow_code_at(struct pt_flow *f, uint64_t ip);
bool pt_flow_stand(struct pt_flow *f, uint64_t ip);
bool pt_flow_fall_through(struct pt_flow *f, uint64_t ip);
/* The edge, in the code that knows both its ends. */
uint32_t pt_flow_edge(struct pt_flow *f, uint64_t from, uint64_t to, enum ptr_kind kind);
void pt_flow_add_edge(struct pt_flow *f, uint32_t edge);
void pt_flow_push(struct pt_flow *f, uint32_t position);
/* Follows what needs no packet: the decision, or PT_D_DEAD after an error was told. */
unsigned pt_flow_settle(struct pt_flow *f);
bool pt_flow_walk_to(struct pt_flow *f, uint64_t ip, enum pt_flow_error_kind *why, uint64_t *where);
bool pt_flow_run_tnt(struct pt_flow *f);
enum pt_flow_ran {
	PT_RAN_LOST,
	PT_RAN_ALL,
	PT_RAN_FLUSHED, /* a path has ended, tnt_n bits are left */
	PT_RAN_DEFERRED /* tnt_n bits wait for a TIP */
};
/* Before f->tnt.bits, when the clock has moved: ends the run before its first branch, which may be taken for that. PT_RAN_ALL:
 * what is left of f->tnt.bits is to be run. */
enum pt_flow_ran pt_flow_time_tnt(struct pt_flow *f);
/* As pt_flow_run_tnt(), but stops where a path ends. */
enum pt_flow_ran pt_flow_run_tnt_to_flush(struct pt_flow *f);
bool pt_flow_on_tnt(struct pt_flow *f, uint64_t bits, unsigned n);
bool pt_flow_on_tip(struct pt_flow *f, uint64_t ip);
bool pt_flow_on_tip_pgd(struct pt_flow *f, uint64_t ip);
bool pt_flow_on_tip_pge(struct pt_flow *f, uint64_t ip);
bool pt_flow_sync_at(struct pt_flow *f, uint64_t ip);
bool pt_flow_on_fup(struct pt_flow *f, uint64_t ip);

/*
 * Takes TNT, TIP, CYC and MTC packets from p on, as long as they are what running code's usual packets are; returns
 * the first byte not taken. Reads up to PT_FAST_BYTES from each packet's beginning on, so end is that far before the
 * piece's end. The flow is running, no TNT bits wait. aux_offset: of p.
 */
#define PT_FAST_BYTES 40
const uint8_t *pt_flow_fast(struct pt_flow *f, const uint8_t *p, const uint8_t *end, uint64_t aux_offset);
/* The same where there are CYCs. */
const uint8_t *pt_flow_timed(struct pt_flow *f, const uint8_t *p, const uint8_t *end, uint64_t aux_offset);

/*
 * The same of an unnumbered graph, for a flow that is countable: nobody asks which branches are run, only how many and when.
 * A run is a path of one branch, as often as there were any.
 */
static inline bool pt_flow_countable(const struct pt_flow *f)
{
	return !f->kernel && !f->stack_state.unsure && !f->side.changes && !f->overflow.pending &&
	       f->at.mode == f->at.next_mode;
}
const uint8_t *pt_flow_counted(struct pt_flow *f, const uint8_t *p, const uint8_t *end, uint64_t aux_offset);

/* What the fast loops share: packets' bytes at p, which PT_FAST_BYTES may be read behind. */

/* A TIP's first byte: with 2, 4 or 6 bytes of IP. */
static inline bool pt_flow_short_tip(unsigned byte)
{
	return (byte & 0x1f) == 0x0d && byte != 0x0d && !(byte & 0x80);
}

/* Its IP becomes the last one; returns what is behind the packet. */
static inline const uint8_t *pt_flow_take_ip(struct pt_flow *f, const uint8_t *p)
{
	unsigned ipbytes = *p >> 5;
	uint64_t v;

	memcpy(&v, p + 1, sizeof v);
	v &= UINT64_MAX >> (64 - 16 * ipbytes);
	f->packet.last_ip = pt_ip(f->packet.last_ip, ipbytes, v);
	return p + 1 + 2 * ipbytes;
}

/* An MTC packet. False when the clock has reached stop_tsc. */
#define PT_MTC_BYTE 0x59
static inline bool pt_flow_take_mtc(struct pt_flow *f, const uint8_t *p)
{
	uint64_t before = f->clock.tsc;

	pt_clock_mtc(&f->clock, p[1], f->timing.cyc_fresh);
	if (f->clock.tsc != before)
		f->timing.clock_moved = true;
	f->timing.cyc_fresh = false;
	f->counts.packets++;
	return f->clock.tsc < f->stop_tsc;
}

/* A CYC packet of a byte or two, *p; behind it then. False where the fast loop ends, behind it or before a longer one. */
static inline bool pt_flow_take_cyc(struct pt_flow *f, const uint8_t **p)
{
	unsigned b = **p;
	uint64_t cycles = b >> 3;

	if (b & 4) {
		/* Three bytes and more are rare. */
		if ((*p)[1] & 1 || f->errata & PT_SKD007 || f->clock.tsc >= f->stop_tsc)
			return false;
		cycles |= (uint64_t)(*++*p >> 1) << 5;
	}
	++*p;
	f->counts.packets++;
	pt_clock_cyc(&f->clock, cycles);
	f->timing.clock_moved = f->timing.cyc_fresh = true;
	return !(b & 4) || f->clock.tsc < f->stop_tsc;
}

/* The stack has grown up to here. */
static inline void pt_flow_risen(struct pt_flow *f)
{
	if (f->stack.top - f->stack.bottom > 64)
		f->stack.bottom = f->stack.top - 64;
	if ((int32_t)(f->stack.top - f->recorder.peak) > 0)
		f->recorder.peak = f->stack.top;
}

/* The stack is not empty. */
static inline uint32_t pt_flow_pop(struct pt_flow *f)
{
	uint32_t to = f->stack.entries[--f->stack.top % PT_STACK];

	if ((int32_t)(f->stack.top - f->recorder.low) < 0) {
		f->recorder.low = f->stack.top;
		f->recorder.popped[f->recorder.pops++ % PT_PATH_MEMO_STACK] = to;
	}
	return to;
}

/* The slot for where the branch of a position goes to. */
static inline struct pt_jump *jump_of(struct pt_graph *g, uint32_t position, uint64_t to)
{
	uint64_t x = (to ^ (uint64_t)position << 32) * 0x9e3779b97f4a7c15u;

	return &g->jumps[x >> 50];
}

/* A path that has no room for another arc ends: packets end it as a rule, but not direct branches without any. */
static inline void pt_flow_keep_room(struct pt_flow *f)
{
	if (f->path.len >= FULL_EDGES)
		pt_flow_flush(f);
}

/* Takes what leads from the flow's position along arc[0]: branches, the call that may be among them and instructions. */
static inline void take(struct pt_flow *f)
{
	const struct pt_arc *arc = &f->graph->positions[f->at.position].arc[0];

	pt_flow_keep_room(f);
	memcpy(f->path.edges + f->path.len, f->graph->edge_lists[f->at.position].prefix,
	       sizeof f->graph->edge_lists->prefix);
	f->path.len += arc->n_edges;
	if (arc->rise)
		pt_flow_push(f, arc->push);
	f->counts.insns += arc->insns;
}

#endif
