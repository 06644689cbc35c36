/* timing.c - the packets that move the clock; see internal.h. */
#include "decode/flow/internal.h"

static void clock_moved(struct pt_flow *f, uint64_t before)
{
	if (f->clock.tsc != before)
		f->timing.clock_moved = true;
}

/* ---- TSC, TMA --------------------------------------------------------------------------------------- */

/* In a guest the packet has the guest's TSC; TMA, MTC and CYC are the host's always (SDM, "VMX TSC
 * Manipulation"). */
static void tsc(struct pt_flow *f, uint64_t payload)
{
	uint64_t before = f->clock.tsc;

	f->tsc.ignored = false;
	if (f->side.nr && f->env->guest_tsc) {
		pt_flow_deliver(f);
		payload = f->env->guest_tsc(
		    f->env_arg, f,
		    &(struct pt_tsc_packet){
			.tsc = payload, .has_tma = f->tsc.tma_waits, .ctc = f->tsc.ctc, .fast = f->tsc.fast});
		f->tsc.ignored = payload == PT_CLOCK_UNKNOWN;
	}
	if (!f->tsc.ignored)
		pt_clock_tsc(&f->clock, payload);
	if (!f->side.nr && f->env->host_tsc)
		f->env->host_tsc(f->env_arg, f, f->clock.anchor_tsc);
	clock_moved(f, before);
}

static void tma(struct pt_flow *f)
{
	if (!f->tsc.ignored)
		pt_clock_tma(&f->clock, f->tsc.ctc, f->tsc.fast);
}

void pt_flow_settle_tsc(struct pt_flow *f)
{
	if (f->tsc.waits)
		tsc(f, f->tsc.payload);
	if (f->tsc.tma_waits)
		tma(f);
	f->tsc.waits = f->tsc.tma_waits = false;
}

void pt_flow_on_tsc(struct pt_flow *f, uint64_t payload)
{
	/* In PSB+ the PIP after it shows whose it is; the time of a guest's depends on the TMA after it. */
	f->tsc.waits = f->psb.open || f->side.nr;
	f->tsc.payload = payload;
	if (!f->tsc.waits)
		tsc(f, payload);
}

void pt_flow_on_tma(struct pt_flow *f, uint32_t ctc, uint32_t fast)
{
	f->tsc.ctc = ctc;
	f->tsc.fast = fast;
	f->tsc.tma_waits = f->tsc.waits;
	if (!f->tsc.waits)
		tma(f);
	else if (!f->psb.open)
		pt_flow_settle_tsc(f);
}

/* ---- MTC, CYC --------------------------------------------------------------------------------------- */

void pt_flow_on_mtc(struct pt_flow *f, uint32_t ctc)
{
	uint64_t before = f->clock.tsc;

	pt_clock_mtc(&f->clock, ctc, f->timing.cyc_fresh);
	f->timing.cyc_fresh = false;
	clock_moved(f, before);
}

void pt_flow_on_cyc(struct pt_flow *f, uint64_t cycles)
{
	pt_clock_cyc(&f->clock, cycles);
	if (f->state == PT_FLOW_DISABLED) {
		/* They passed while something ran that is not traced, as the kernel with a filter for
		 * user space. Time, but none of the cycles of traced instructions. */
		f->timing.cyc_cyc += cycles;
		f->slice.cyc += cycles;
	}
	f->timing.clock_moved = f->timing.cyc_fresh = true;
}
