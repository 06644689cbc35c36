/* psb.c - PSB+ and OVF: where a flow comes into sync, or learns where it is; see internal.h. */
#include "decode/flow/internal.h"

void pt_flow_on_psb(struct pt_flow *f)
{
	f->counts.psbs++;
	f->evds = 0;
	f->psb.open = true;
	f->psb.fup = f->psb.pip = f->psb.vmcs = f->psb.side_known = f->psb.ask_side = false;
	f->tsc.waits = f->tsc.tma_waits = f->tsc.ignored = false;
	f->packet.last_ip = 0;
	f->packet.bip_bytes = 0;
	f->fup.pending = false;
}

void pt_flow_psb_side(struct pt_flow *f)
{
	const struct flow_psb *psb = &f->psb;

	if (psb->side_known)
		return;
	f->psb.side_known = true;
	/* Where the flow was not in sync, another thread may be in the guest of before, too. */
	if ((psb->pip && psb->nr != f->side.nr) ||
	    ((psb->vmcs || f->state < PT_FLOW_DISABLED) && f->side.nr)) {
		if (f->state >= PT_FLOW_NO_IMAGE)
			pt_flow_end_with_error(f, PT_FLOW_MISMATCH, pt_flow_here(f),
					       "a PSB says that another guest or host runs, "
					       "without a VM entry or exit before");
		if (f->state >= PT_FLOW_DISABLED)
			f->state = PT_FLOW_DISABLED;
		pt_flow_end_slice(f);
		pt_flow_set_side(f, psb->pip ? psb->nr : f->side.nr, psb->pip ? psb->cr3 : f->side.cr3);
		f->psb.ask_side = f->side.nr && f->tsc.waits;
	} else if (psb->pip) {
		f->side.cr3 = psb->cr3;
	}
	f->side.changes = false;
	pt_flow_settle_tsc(f);
}

/* In sync and running: the PSB's IP is where the flow comes to by direct branches, and nothing ends but the
 * run. */
static bool psbend_running(struct pt_flow *f)
{
	struct flow_obstacle why = {.kind = PT_FLOW_MISMATCH};
	bool there;

	if (!f->psb.fup && f->psb.alone) { /* errata BDM70, APL12: it was not enabled before, either */
		f->state = PT_FLOW_DISABLED;
		f->at.position = 0;
		f->path.len = 0;
		return true;
	}
	if (!f->psb.fup) {
		pt_flow_end_with_error(f, PT_FLOW_MISMATCH, pt_flow_here(f),
				       "a PSB says that tracing is disabled, without a TIP.PGD before");
		f->state = PT_FLOW_DISABLED;
		return true;
	}
	there = !f->tnt.n && pt_flow_walk_to(f, f->psb.ip, &why);
	if (f->graph->full)
		return pt_flow_desync(f, PT_FLOW_FULL, f->psb.ip, "");
	/* Only calls since the last PSB are compressed (SDM, "Indirect Transfer Compression for Returns"). */
	pt_flow_stack_clear(f);
	if (!there && f->no_tnt && f->state == PT_FLOW_RUNNING) {
		pt_flow_end_path_at(f, pt_flow_here(f));
		pt_flow_end_slice(f);
		return pt_flow_sync_at(f, f->psb.ip);
	}
	if (!there) {
		if (f->state == PT_FLOW_RUNNING)
			pt_flow_end_with_error(f, why.kind, why.ip ? why.ip : f->psb.ip,
					       "the code does not lead to the PSB's IP");
		pt_flow_stack_clear(f);
		return pt_flow_sync_at(f, f->psb.ip);
	}
	/* A run ends at a PSB, so that the segments between PSBs can be decoded apart. */
	pt_flow_end_path_at(f, f->psb.ip);
	f->timing.cyc_fresh = false;
	pt_flow_end_run(f, 0);
	return true;
}

/*
 * Execution begins here, in a guest, and the PSB+ has the guest's time only, whose relation to the
 * host's is not known. So it is not known which thread runs, nor which version of the kernel's code:
 * it changes its code while it runs. The flow waits for a PSB of which the time is known.
 */
static bool wait_for_time(struct pt_flow *f)
{
	bool reported = f->psb.no_time;

	f->psb.no_time = f->state < PT_FLOW_DISABLED && f->tsc.ignored;
	if (!f->psb.no_time)
		return false;
	if (!reported)
		pt_flow_end_with_error(
		    f, PT_FLOW_NO_TIME, f->psb.fup ? f->psb.ip : 0,
		    "the trace begins in a guest whose clock is not known: what runs up to the next "
		    "PSB with a known time is not decoded");
	f->state = PT_FLOW_UNSYNCED;
	return true;
}

bool pt_flow_on_psbend(struct pt_flow *f)
{
	if (!f->psb.open)
		return true;
	f->psb.open = false;
	f->psb.ever = true;
	pt_flow_psb_side(f);
	if (wait_for_time(f))
		return true;
	if (f->psb.ask_side && f->state < PT_FLOW_NO_IMAGE)
		pt_flow_set_side(f, f->side.nr, f->side.cr3);
	if (f->state == PT_FLOW_RUNNING && !f->overflow.pending)
		return psbend_running(f);
	pt_flow_stack_clear(f);
	/* After an OVF its FUP or TIP.PGE may come after the PSB+. */
	f->overflow.psb_fup = f->overflow.pending && f->psb.fup;
	f->overflow.insns = f->counts.insns;
	f->overflow.pending = f->overflow.pending && !f->psb.fup;
	if (f->psb.fup && f->state == PT_FLOW_NO_IMAGE) {
		bool left;

		f->no_image.wrong = false;
		left = pt_flow_leave_no_image(f, f->psb.ip);
		/* What is called without code is in the CPU's stack, not in the model's. */
		f->stack_state.stale_hw |= f->state == PT_FLOW_NO_IMAGE;
		return left;
	}
	if (f->psb.fup) {
		f->psb.alone = true;
		return pt_flow_sync_at(f, f->psb.ip);
	}
	f->state = PT_FLOW_DISABLED;
	return true;
}

void pt_flow_on_overflow(struct pt_flow *f)
{
	bool synced = f->state > PT_FLOW_DATA_LOST || f->psb.open;

	f->psb.open = f->tsc.waits = f->tsc.tma_waits = false;
	f->evds = 0;
	f->packet.bip_bytes = 0;
	pt_flow_report_held(f, 0);
	pt_flow_end_with_error(f, PT_FLOW_OVERFLOW, pt_flow_here(f), "the CPU's trace buffer overflowed");
	pt_flow_stack_clear(f);
	f->stack_state.guest_unseen = false;
	pt_clock_lost(&f->clock);
	f->packet.last_ip = 0;
	f->side.cr3 = 0; /* a PIP may be among what was lost */
	if ((synced || f->psb.ever) && !f->psb.no_time) {
		f->state = PT_FLOW_DISABLED; /* until FUP (enabled) or TIP.PGE */
		f->overflow.pending = true;
	}
}
