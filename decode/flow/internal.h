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

#define CUT_EDGES  12 /* a backward branch ends a path that holds so many */
#define FULL_EDGES 29 /* no room for another arc */
#define LEAD_EDGES                                                                                           \
	(CUT_EDGES - 4) /* in a path that holds so many the direct branches before a timed one have no room */

void pt_flow_flush(struct pt_flow *f);
/* The sink is told of the runs that have been put: before it is told of anything else, and before others go on with it. */
void pt_flow_deliver_runs(struct pt_flow *f);
static inline void pt_flow_deliver(struct pt_flow *f)
{
	if (f->run_count)
		pt_flow_deliver_runs(f);
}
/* Puts the run that is held, f->run_path, run_repeats. */
static inline void pt_flow_put_run(struct pt_flow *f, uint64_t cyc, uint64_t insns)
{
	f->runs[f->run_count++] = (struct pt_flow_run){.path = f->run_path,
						       .repeats = f->run_repeats,
						       .tsc = f->run_tsc,
						       .timing = f->run_timing,
						       .cyc_count = cyc,
						       .insn_count = insns};
	f->run_repeats = 0;
	f->run_timing = PTR_TIME_BEFORE;
	if (f->run_count == PT_FLOW_RUNS)
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
	f->before_tsc = f->now_tsc;
	f->now_tsc = f->run_tsc = f->clock.tsc;
	f->run_timing = !cyc					  ? PTR_TIME_BEFORE
			: branch && pt_clock_cyc_exact(&f->clock) ? PTR_TIME_EXACT
								  : PTR_TIME_CYC;
}
/* They begin with a TNT, and its CYC times its last branch: all but that may be older. What a TNT before was timed with is the
 * time of the last branch before them. */
static inline void pt_flow_bind_cyc_to_last(struct pt_flow *f)
{
	if (__builtin_expect(f->late.late, 0)) {
		bool cyc = f->run_timing != PTR_TIME_BEFORE;

		f->run_timing = f->before_tsc == f->late.tnt_tsc ? PTR_TIME_AFTER : PTR_TIME_BEFORE;
		if (cyc)
			f->late.tnt_tsc = f->now_tsc;
		if (f->before_tsc < f->run_tsc)
			f->run_tsc = f->before_tsc;
	}
}
/* Another slice of the same flow, where the one before was ended. */
void pt_flow_resume_slice(struct pt_flow *f);
/* A CYC packet before an IP packet with which the slice begins is of that. */
static inline void pt_flow_time_begin(struct pt_flow *f)
{
	f->run_timing = !f->cyc_fresh			? PTR_TIME_BEFORE
			: pt_clock_cyc_exact(&f->clock) ? PTR_TIME_EXACT
							: PTR_TIME_CYC;
	f->cyc_fresh = false;
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
	return f->sink->missing(f->arg, f, ip);
}
/* Before the flow comes from the kernel, or from nowhere, to ip: lets the sink say whose user space it is. */
static inline void pt_flow_approach(struct pt_flow *f, uint64_t ip)
{
	if (!(ip >> 63) && f->kernel && f->sink->user &&
	    (f->state != PT_FLOW_RUNNING || f->code == f->kernel)) {
		pt_flow_deliver(f);
		f->sink->user(f->arg, f);
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
/* Before f->tnt, when the clock has moved: ends the run before its first branch, which may be taken for that. PT_RAN_ALL:
 * what is left of f->tnt is to be run. */
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
	return !f->kernel && !f->unsure && !f->side_changes && !f->overflow && f->mode == f->next_mode;
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
	f->last_ip = pt_ip(f->last_ip, ipbytes, v);
	return p + 1 + 2 * ipbytes;
}

/* An MTC packet. False when the clock has reached stop_tsc. */
#define PT_MTC_BYTE 0x59
static inline bool pt_flow_take_mtc(struct pt_flow *f, const uint8_t *p)
{
	uint64_t before = f->clock.tsc;

	pt_clock_mtc(&f->clock, p[1], f->cyc_fresh);
	if (f->clock.tsc != before)
		f->cut = true;
	f->cyc_fresh = false;
	f->packets++;
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
	f->packets++;
	pt_clock_cyc(&f->clock, cycles);
	f->cut = f->cyc_fresh = true;
	return !(b & 4) || f->clock.tsc < f->stop_tsc;
}

/* The stack has grown up to here. */
static inline void pt_flow_risen(struct pt_flow *f)
{
	if (f->top - f->bottom > 64)
		f->bottom = f->top - 64;
	if ((int32_t)(f->top - f->trail.peak) > 0)
		f->trail.peak = f->top;
}

/* The stack is not empty. */
static inline uint32_t pt_flow_pop(struct pt_flow *f)
{
	uint32_t to = f->stack[--f->top % PT_STACK];

	if ((int32_t)(f->top - f->trail.low) < 0) {
		f->trail.low = f->top;
		f->trail.popped[f->trail.pops++ % PT_PATH_MEMO_STACK] = to;
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
	if (f->len >= FULL_EDGES)
		pt_flow_flush(f);
}

/* Takes what leads from the flow's position along arc[0]: branches, the call that may be among them and instructions. */
static inline void take(struct pt_flow *f)
{
	const struct pt_arc *arc = &f->graph->positions[f->position].arc[0];

	pt_flow_keep_room(f);
	memcpy(f->edges + f->len, f->graph->edge_lists[f->position].prefix,
	       sizeof f->graph->edge_lists->prefix);
	f->len += arc->n_edges;
	if (arc->rise)
		pt_flow_push(f, arc->push);
	f->insns += arc->insns;
}

#endif
