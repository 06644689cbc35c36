/*
 * internal.h - what the flow's files share. Private to them; flow.h is the contract.
 *
 * Each file calls only those above it, and none below:
 *
 *     cyc_binding.c   which branch of a TNT a CYC times
 *     runs.c          taken branches become paths, runs, slices
 *     errors.c        how a flow ends with an error, and goes on without code
 *     return_stack.c  the model of the CPU's return stack
 *     walk.c          where the flow is; direct branches
 *     no_image.c      from no code to code
 *     tnt.c           TNT: conditional branches and compressed returns
 *     host_guest.c    VM entries and VM exits
 *     ip.c            TIP, TIP.PGE, TIP.PGD, FUP
 *     timing.c        TSC, TMA, MTC, CYC
 *     events.c        packets that are reported as events
 *     psb.c           PSB+, OVF
 *     packets.c       a function per packet
 *     fast_cyc.c      ... where CYCs time each of them: by memoized packets
 *     fast.c          ... all others: by memoized paths
 *     feed.c          bytes to packets
 *     detach.c        without the graph, while that is recycled
 *     flow.c          all that is not a packet: settings, lost data, pause and resume
 *
 * Functions that return bool return false after an error that they have reported, unless it says otherwise
 * below. The flow's state is set then, and nothing is left to do but to return.
 */
#ifndef DECODE_FLOW_INTERNAL_H
#define DECODE_FLOW_INTERNAL_H

#include <string.h>

#include "decode/flow/state.h"
#include "decode/packet/packet.h"

/* ---- Settings, state -------------------------------------------------------------------------------- */

/* Where the flow is: an IP, 0 unless it is running. */
static inline uint64_t pt_flow_here(const struct pt_flow *f)
{
	return f->state == PT_FLOW_RUNNING && f->at.position ? f->graph->where[f->at.position].ip : 0;
}

/* What comes cannot be memoized: the path that is being recorded, if any, is not kept. */
static inline void pt_flow_stop_recording(struct pt_flow *f)
{
	f->recorder.memo = NULL;
}

/* ---- runs.c ----------------------------------------------------------------------------------------- */

/* A backward branch ends a path that has this many edges. */
#define PATH_BREAK_EDGES 12
/* A path with this many has no room for another arc. */
#define PATH_FULL_EDGES 29
/* Direct branches before a branch that is timed are not in one path with it when the path has this many. */
#define PATH_LEAD_EDGES (PATH_BREAK_EDGES - 4)

/* Reports the runs that are complete: before anything else is reported or asked, and before others use the
 * graph. */
void pt_flow_deliver_runs(struct pt_flow *f);
static inline void pt_flow_deliver(struct pt_flow *f)
{
	if (f->undelivered.count)
		pt_flow_deliver_runs(f);
}

/* The run that is held (f->run) is complete. cyc, insns: as in struct pt_flow_run. */
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

/* The path was run: adds it to the run that is held, or puts that and holds a new one. */
void pt_flow_hold_path(struct pt_flow *f, uint32_t path);

/* The edges that are gathered, if any, become a path. The next path starts where they end. */
void pt_flow_end_path(struct pt_flow *f);
/* As pt_flow_end_path(), with the straight code after the last edge, up to ip: execution is not continued
 * from there. */
void pt_flow_end_path_at(struct pt_flow *f, uint64_t ip);
/* Ends a path without room for another arc. Mostly packets have ended it sooner, but direct branches have
 * none. */
static inline void pt_flow_path_keep_room(struct pt_flow *f)
{
	if (f->path.len >= PATH_FULL_EDGES)
		pt_flow_end_path(f);
}
/* edge: 0 is none (the graph is full). */
void pt_flow_add_edge(struct pt_flow *f, uint32_t edge);

/* The branches that come have the clock's time. cyc: a CYC times what they begin with; branch: that is the
 * first of them. */
static inline void pt_flow_begin_run(struct pt_flow *f, bool cyc, bool branch)
{
	f->timing.before_tsc = f->timing.now_tsc;
	f->timing.now_tsc = f->run.tsc = f->clock.tsc;
	f->run.timing = !cyc					  ? PTR_TIME_BEFORE
			: branch && pt_clock_cyc_exact(&f->clock) ? PTR_TIME_EXACT
								  : PTR_TIME_CYC;
}
/* The clock has moved: ends the run with the branches that are gathered. more_insns: what was executed since
 * them. */
void pt_flow_end_run(struct pt_flow *f, uint32_t more_insns);
/* As pt_flow_end_run(), but the last branch is the one that is timed, and begins the next run. Without taken,
 * that branch was one that is not taken. */
void pt_flow_end_run_before_last(struct pt_flow *f, bool taken);
/* To be called when a run has just begun with a TNT. Where CYCs time the last branch of a TNT
 * (cyc_binding.h), its other branches may be earlier: the run gets the time before instead. If that is what
 * the TNT before was timed with, it is the time of the last branch before the run (PTR_TIME_AFTER). */
static inline void pt_flow_bind_cyc_to_last(struct pt_flow *f)
{
	if (__builtin_expect(f->cyc_binding.times_last, 0)) {
		bool cyc = f->run.timing != PTR_TIME_BEFORE;

		f->run.timing = f->timing.before_tsc == f->timing.tnt_tsc ? PTR_TIME_AFTER
				: f->timing.tnt_tsc == FLOW_TNT_UNSEEN	  ? FLOW_TIMING_UNSEEN
									  : PTR_TIME_BEFORE;
		if (cyc)
			f->timing.tnt_tsc = f->timing.now_tsc;
		if (f->timing.before_tsc < f->run.tsc)
			f->run.tsc = f->timing.before_tsc;
	}
}

/* At f->path.start_ip, now. */
void pt_flow_begin_slice(struct pt_flow *f);
/* The slice begins with an IP packet, and a CYC before that times it. */
static inline void pt_flow_time_slice(struct pt_flow *f)
{
	f->run.timing = !f->timing.cyc_fresh		? PTR_TIME_BEFORE
			: pt_clock_cyc_exact(&f->clock) ? PTR_TIME_EXACT
							: PTR_TIME_CYC;
	f->timing.cyc_fresh = false;
}
/* Another slice of the same flow, where the one before was ended. */
void pt_flow_resume_slice(struct pt_flow *f);
void pt_flow_end_slice(struct pt_flow *f);
/* Reports what was executed up to here. end_slice: the slice ends, for what comes is another thread's. */
void pt_flow_interrupt(struct pt_flow *f, bool end_slice);

/* ---- errors.c --------------------------------------------------------------------------------------- */

#define PT_FLOW_BAD_INSN_MESSAGE     "no CPU decodes these bytes as an instruction"
#define PT_FLOW_ENDLESS_LOOP_MESSAGE "an endless loop without a branch that the trace could show"
/* Why there is no code at an address of the code; NULL: there is no code object, either. Static. */
const char *pt_flow_no_code_message(const struct pt_code *code, uint64_t ip);

/* Ends the slice with the error. The flow is nowhere then; the caller sets its state. */
void pt_flow_end_with_error(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip,
			    const char *message);
/* As pt_flow_end_with_error(), and nothing is certain before the next PSB. Where the trace and the code
 * disagree and the kernel is traced, only before the next change between user, kernel, host and guest:
 * pt_flow_enter_no_image(). Returns false. */
bool pt_flow_desync(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message);
/* There is no code at ip: an error, the only one until there is code again. PT_FLOW_NO_IMAGE from now on.
 * wrong_image: there is an image, but not of what runs, so another IP in it is no use. Returns false. */
bool pt_flow_enter_no_image(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message,
			    bool wrong_image);
/* The flow is at a position that is PT_D_DEAD, and what was executed before its end was taken: as
 * pt_flow_enter_no_image(). Returns false. */
bool pt_flow_dead_end(struct pt_flow *f);

/* ---- return_stack.c --------------------------------------------------------------------------------- */

/* The stack has grown up to its top. */
static inline void pt_flow_stack_risen(struct pt_flow *f)
{
	if (f->stack.top - f->stack.bottom > PT_STACK_HW)
		f->stack.bottom = f->stack.top - PT_STACK_HW;
	if ((int32_t)(f->stack.top - f->recorder.peak) > 0)
		f->recorder.peak = f->stack.top;
}
/* A call to which a return leads back to position. */
void pt_flow_stack_push(struct pt_flow *f, uint32_t position);
/* Entries of user space that are deeper down than this may have been overwritten in the ring by the time that
 * they are returned to. */
#define FLOW_USER_ENTRIES_KEPT 32

/* Where the entries begin, up to stack->user.top, that user space has when it goes on. */
static inline uint32_t pt_flow_user_bottom(const struct flow_return_stack *stack)
{
	return stack->user.top - stack->user.bottom > FLOW_USER_ENTRIES_KEPT
		   ? stack->user.top - FLOW_USER_ENTRIES_KEPT
		   : stack->user.bottom;
}

/* The stack is not empty. */
static inline uint32_t pt_flow_stack_pop(struct pt_flow *f)
{
	uint32_t to = f->stack.entries[--f->stack.top % PT_STACK];

	if ((int32_t)(f->stack.top - f->recorder.low) < 0) {
		f->recorder.low = f->stack.top;
		f->recorder.popped[f->recorder.pops++ % PT_PATH_MEMO_STACK] = to;
	}
	return to;
}
/* A return that was not compressed went to ip. */
void pt_flow_stack_return_to(struct pt_flow *f, uint64_t ip);
/* At PSB and OVF: the CPU has cleared its stack, the host's part and the guest's. */
void pt_flow_stack_clear(struct pt_flow *f);
/* The side has changed, and it was not seen how. */
void pt_flow_stack_forget(struct pt_flow *f);
/* The flow goes from f->at.code to another code. At the entry to the kernel the user space's part of the
 * stack is remembered, and restored at the return from it, unless all was seen in between. */
void pt_flow_stack_cross(struct pt_flow *f, const struct pt_code *to);
/* At VM entry and VM exit. guest_unseen: not all of what the guest did was seen. */
void pt_flow_stack_enter_guest(struct pt_flow *f);
void pt_flow_stack_leave_guest(struct pt_flow *f, bool guest_unseen);

/* ---- walk.c ----------------------------------------------------------------------------------------- */

/* There is no code at ip. True when there is now. */
static inline bool pt_flow_ask_missing(struct pt_flow *f, uint64_t ip)
{
	pt_flow_deliver(f);
	return f->env->missing(f->env_arg, f, ip);
}
/* Before the flow comes from the kernel, or from nowhere, to ip: env may say whose user space it is. */
static inline void pt_flow_ask_user(struct pt_flow *f, uint64_t ip)
{
	if (!(ip >> 63) && f->kernel && f->env->user &&
	    (f->state != PT_FLOW_RUNNING || f->at.code == f->kernel)) {
		pt_flow_deliver(f);
		f->env->user(f->env_arg, f);
	}
}

/* The edge's number, in the code that has both its ends; 0: the graph is full. */
uint32_t pt_flow_edge(struct pt_flow *f, uint64_t from, uint64_t to, enum ptr_kind kind);
/* The same of an edge with which tracing stops. to: 0 not seen. */
uint32_t pt_flow_end_edge(struct pt_flow *f, uint64_t from, uint64_t to, enum ptr_kind kind);
struct pt_code *pt_flow_code_at(const struct pt_flow *f, uint64_t ip);
/* The flow has come to ip, by the edges that are gathered (or by none: then f->path.start_ip must be set). */
bool pt_flow_arrive(struct pt_flow *f, uint64_t ip);
/* The flow begins to run at ip; pt_flow_arrive() is to follow. */
bool pt_flow_begin_at(struct pt_flow *f, uint64_t ip);
/* The flow is at ip, whatever was before: begins a slice unless one is open. */
bool pt_flow_sync_at(struct pt_flow *f, uint64_t ip);
/* The VM entry at which the flow is has failed, and ip is after it. */
bool pt_flow_fall_through(struct pt_flow *f, uint64_t ip);

/* Takes what leads from the position along arc[0]: branches, the call that may be among them, and
 * instructions. */
static inline void pt_flow_take_prefix(struct pt_flow *f)
{
	const struct pt_arc *arc = &f->graph->positions[f->at.position].arc[0];

	pt_flow_path_keep_room(f);
	memcpy(f->path.edges + f->path.len, f->graph->edge_lists[f->at.position].edges,
	       sizeof f->graph->edge_lists->edges);
	f->path.len += arc->n_edges;
	if (arc->rise)
		pt_flow_stack_push(f, arc->push);
	f->counts.insns += arc->insns;
}
/* From a position that is PT_D_CONT: direct branches lead to a decision, and not round and round (Brent's
 * algorithm). */
bool pt_flow_leads_on(const struct pt_flow *f);
/*
 * Takes the arc of a position that is PT_D_CONT. env is asked when it leads to where the kernel switches
 * threads. False when the flow is not running any more: what comes is not wanted, or an error was reported.
 */
bool pt_flow_go_on(struct pt_flow *f);
/* Takes all that needs no packet. Returns the decision: PT_D_DEAD when the flow is not running any more. */
unsigned pt_flow_reach_decision(struct pt_flow *f);

/* The block at the flow's position. NULL: the flow is not running, or the graph is full. */
struct pt_block *pt_flow_block_here(struct pt_flow *f);
/* The block after b, by direct branches only; NULL when a decision is in the way, or the graph is full. */
struct pt_block *pt_flow_direct_next(struct pt_flow *f, struct pt_block *b);
/* Takes the blocks from here up to `last`, without that one. Direct branches lead there. */
void pt_flow_pass_blocks(struct pt_flow *f, const struct pt_block *last);
/* As pt_flow_pass_blocks(), and what can be decoded of b, which is dead: all of that was executed. Ends the
 * path there. The flow is nowhere then; an error is to follow. */
void pt_flow_pass_to_dead(struct pt_flow *f, const struct pt_block *b);

/* Why direct branches do not lead to an address. */
struct flow_obstacle {
	enum pt_flow_error_kind kind;
	uint64_t ip; /* where, 0 unknown */
	/* The dead one that was certainly run into. NULL: none; also before what is no instruction,
	 * for then the bytes may be others than those that ran. */
	struct pt_block *block;
};
/*
 * Takes direct branches, block by block, up to ip, where a FUP or a PSB says that the flow is. False
 * when they do not lead there, and why in *ret_why: then all up to a dead block was taken as
 * pt_flow_pass_to_dead() says, and else nothing. Or when the flow is not running any more, after an
 * error.
 */
bool pt_flow_walk_to(struct pt_flow *f, uint64_t ip, struct flow_obstacle *ret_why);

/* The slot of the jump cache for the branch of a position to `to`. */
static inline struct pt_jump *pt_flow_jump_slot(struct pt_graph *g, uint32_t position, uint64_t to)
{
	uint64_t x = (to ^ (uint64_t)position << 32) * 0x9e3779b97f4a7c15u;

	return &g->jumps[x >> 50];
}

/* ---- no_image.c ------------------------------------------------------------------------------------- */

/* Whether there is code at ip, where the flow may be; if the environment finds it now, then, too. */
bool pt_flow_has_code(struct pt_flow *f, uint64_t ip);
/* PT_FLOW_NO_IMAGE, by wish: what runs is not wanted, or comes after what was not. No error. */
void pt_flow_skip_code(struct pt_flow *f);
/* In PT_FLOW_NO_IMAGE the flow is at ip. True when there is code: then the flow runs there. */
bool pt_flow_leave_no_image(struct pt_flow *f, uint64_t ip);

/* ---- tnt.c ------------------------------------------------------------------------------------------ */

enum pt_flow_tnt_result {
	PT_TNT_ERROR, /* reported */
	PT_TNT_DONE,
	PT_TNT_PATH_ENDED, /* f->tnt.n bits are left */
	PT_TNT_DEFERRED	   /* f->tnt.n bits wait for a TIP (SDM, "Deferred TIPs") */
};
/* Runs f->tnt. */
bool pt_flow_run_tnt(struct pt_flow *f);
/* As pt_flow_run_tnt(), but stops where a path ends; the clock has not moved. */
enum pt_flow_tnt_result pt_flow_run_tnt_to_path_end(struct pt_flow *f);
/* Before f->tnt is run, when the clock has moved: ends the run before its first branch, which may be taken
 * for that. PT_TNT_DONE: what is left of f->tnt is to be run. */
enum pt_flow_tnt_result pt_flow_time_tnt(struct pt_flow *f);
bool pt_flow_on_tnt(struct pt_flow *f, uint64_t bits, unsigned n);

/* ---- host_guest.c ----------------------------------------------------------------------------------- */

/* The VM entry or exit that a PIP has announced leads to ip (0: not seen). traced: tracing goes on there. */
bool pt_flow_vm_transition(struct pt_flow *f, uint64_t ip, bool traced);
/* The flow is on that side; how it came there was not seen. */
void pt_flow_set_side(struct pt_flow *f, uint32_t nr, uint64_t cr3);
/*
 * "Conceal VM entries from Intel PT", and tracing is off in the guest: the VM entry's list of MSRs has
 * cleared TraceEn, or VM entry has loaded IA32_RTIT_CTL (SDM, "Packet Generation under Different Enable
 * Conditions", VM entry). So no PIP shows the guest: it is entered when tracing ends with a VM entry, and
 * left when tracing begins again, in the host. When the exit was is not known, for software may have waited
 * before it switched tracing on.
 */
void pt_flow_conceal_guest(struct pt_flow *f, uint64_t vmentry_ip);
void pt_flow_reveal_host(struct pt_flow *f, uint64_t ip);

/* ---- ip.c ------------------------------------------------------------------------------------------- */

/* ip: 0 when the packet has none. */
bool pt_flow_on_tip(struct pt_flow *f, uint64_t ip);
bool pt_flow_on_tip_pgd(struct pt_flow *f, uint64_t ip);
bool pt_flow_on_tip_pge(struct pt_flow *f, uint64_t ip);
bool pt_flow_on_fup(struct pt_flow *f, uint64_t ip);

/* ---- timing.c --------------------------------------------------------------------------------------- */

void pt_flow_on_tsc(struct pt_flow *f, uint64_t payload);
void pt_flow_on_tma(struct pt_flow *f, uint32_t ctc, uint32_t fast);
void pt_flow_on_mtc(struct pt_flow *f, uint32_t ctc);
void pt_flow_on_cyc(struct pt_flow *f, uint64_t cycles);
/* The TSC packet that waits, and the TMA after it, move the clock: they are complete, and whose they are is
 * known. */
void pt_flow_settle_tsc(struct pt_flow *f);

/* ---- events.c --------------------------------------------------------------------------------------- */

/* fup: the event's IP is that of the FUP that follows, and is waited for. Else it is where the flow is. */
void pt_flow_event(struct pt_flow *f, bool fup, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The event that waits for its FUP, if any, has that IP. */
void pt_flow_report_held(struct pt_flow *f, uint64_t ip);
/* A packet with an IP, where only these are wanted (pt_flow_set_detail()). ip: 0 none. */
void pt_flow_address_event(struct pt_flow *f, enum pt_type type, uint64_t ip);

/* ---- psb.c ------------------------------------------------------------------------------------------ */

void pt_flow_on_psb(struct pt_flow *f);
bool pt_flow_on_psbend(struct pt_flow *f);
/* What PSB+ says of host and guest takes effect: at its end, or before the clock is asked whether it has
 * reached stop_tsc. */
void pt_flow_psb_side(struct pt_flow *f);
void pt_flow_on_overflow(struct pt_flow *f);

/* ---- packets.c -------------------------------------------------------------------------------------- */

bool pt_flow_on_packet(struct pt_flow *f, const struct pt_packet *k);

/* ---- fast.c ----------------------------------------------------------------------------------------- */

/*
 * Takes TNT, TIP, CYC and MTC packets from p on, as long as they are what running code mostly has; returns
 * the first byte not taken. Reads up to PT_FAST_BYTES from each packet's first byte on, so end is that far
 * before the piece's end. The flow is running, and nothing waits for the next packet. aux_offset: of p.
 */
#define PT_FAST_BYTES 40
const uint8_t *pt_flow_fast(struct pt_flow *f, const uint8_t *p, const uint8_t *end, uint64_t aux_offset);

#endif
