/* packets.c - what each packet does, but for the fast loops' (fast.c); see internal.h. */
#include "decode/flow/internal.h"
#include "decode/flow/vm_transition.h"

#include <inttypes.h>

/* ---- Branches --------------------------------------------------------------------------------------- */

static uint64_t take_ip(struct pt_flow *f, const struct pt_packet *k)
{
	uint64_t ip = 0;

	if (k->n)
		ip = f->packet.last_ip = pt_ip(f->packet.last_ip, k->n, k->a);
	pt_flow_address_event(f, (enum pt_type)k->type, ip);
	return ip;
}

static bool on_fup(struct pt_flow *f, const struct pt_packet *k)
{
	uint64_t ip = take_ip(f, k);
	bool holds = f->held.name && !f->psb.open, ok;

	/* STI, CLI, POPF have a MODE.Exec and a FUP, and no TIP. A CYC before them times no branch. */
	if (f->counts.packets == f->packet.mode_exec + 1 && !f->overflow.pending && !f->psb.open) {
		f->fup.binds = true;
		f->timing.cyc_fresh = false;
	}
	ok = pt_flow_on_fup(f, ip);
	if (holds)
		pt_flow_report_held(f, ip);
	return ok;
}

static bool on_tip(struct pt_flow *f, const struct pt_packet *k)
{
	uint64_t ip = take_ip(f, k);

	pt_flow_report_held(f, pt_flow_here(f));
	if (f->state <= PT_FLOW_DATA_LOST)
		return true;
	f->psb.alone = false;
	return pt_flow_on_tip(f, ip);
}

static bool on_tip_pgd(struct pt_flow *f, const struct pt_packet *k)
{
	uint64_t ip = take_ip(f, k);

	pt_flow_report_held(f, pt_flow_here(f));
	if (f->state <= PT_FLOW_DATA_LOST)
		return true;
	f->psb.alone = false;
	return pt_flow_on_tip_pgd(f, ip);
}

static bool on_tip_pge(struct pt_flow *f, const struct pt_packet *k)
{
	uint64_t ip = take_ip(f, k);

	pt_flow_report_held(f, pt_flow_here(f));
	if (f->state == PT_FLOW_DATA_LOST && (k->n == 3 || k->n == 6)) {
		/* Who stops and starts tracing is the host. */
		if (f->side.nr)
			pt_flow_set_side(f, 0, 0);
		f->state = PT_FLOW_DISABLED;
	}
	return f->state <= PT_FLOW_DATA_LOST || pt_flow_on_tip_pge(f, ip);
}

static bool on_tnt(struct pt_flow *f, const struct pt_packet *k)
{
	pt_flow_report_held(f, pt_flow_here(f));
	return pt_flow_on_tnt(f, k->a, k->n);
}

/* ---- Time ------------------------------------------------------------------------------------------- */

static bool on_tsc(struct pt_flow *f, const struct pt_packet *k)
{
	/* Outside of PSB+ one is sent where TraceEn is set again (SDM, "Enabling and Disabling Packet
	 * Generation with TraceEn"), or the CPU has slept: VMPTRLD and MOV CR3 may have had no packets. */
	if (f->snapshot && f->state == PT_FLOW_DISABLED && !f->psb.open) {
		f->side.vmcs = FLOW_VMCS_MISSED;
		f->side.cr3 = 0;
	}
	pt_flow_on_tsc(f, k->a);
	return true;
}

static bool on_tma(struct pt_flow *f, const struct pt_packet *k)
{
	pt_flow_on_tma(f, (uint32_t)k->a, k->b);
	return true;
}

static bool on_mtc(struct pt_flow *f, const struct pt_packet *k)
{
	pt_flow_on_mtc(f, (uint32_t)k->a);
	return true;
}

static bool on_cyc(struct pt_flow *f, const struct pt_packet *k)
{
	pt_flow_on_cyc(f, k->a);
	return true;
}

static bool on_cbr(struct pt_flow *f, const struct pt_packet *k)
{
	pt_clock_cbr(&f->clock, (uint32_t)k->a);
	if (f->cbr.ratio != k->a && f->slice.open) {
		pt_flow_event(f, false, "cbr", "\"cbr\":%" PRIu64, k->a);
		f->cbr.reported = (uint32_t)k->a;
	}
	f->cbr.ratio = (uint32_t)k->a;
	return true;
}

/* ---- State ------------------------------------------------------------------------------------------ */

static bool on_pad(struct pt_flow *f, const struct pt_packet *k)
{
	(void)f;
	(void)k;
	return true;
}

static bool on_psb(struct pt_flow *f, const struct pt_packet *k)
{
	(void)k;
	pt_flow_on_psb(f);
	return true;
}

static bool on_psbend(struct pt_flow *f, const struct pt_packet *k)
{
	(void)k;
	return pt_flow_on_psbend(f);
}

static bool on_ovf(struct pt_flow *f, const struct pt_packet *k)
{
	(void)k;
	pt_flow_on_overflow(f);
	return true;
}

/* It takes effect with the IP packet that follows; in PSB+ it has the mode at the FUP. */
static bool on_mode_exec(struct pt_flow *f, const struct pt_packet *k)
{
	if ((f->packet.exec ^ k->n) & PT_EXEC_IF && f->psb.ever && !f->psb.open)
		pt_flow_event(f, true, "interrupts", "\"enabled\":%d", !!(k->n & PT_EXEC_IF));
	f->packet.mode_exec = f->counts.packets;
	f->packet.exec = k->n;
	f->at.next_mode = k->n & PT_EXEC_CSL ? INSN_64 : k->n & PT_EXEC_CSD ? INSN_32 : INSN_16;
	return true;
}

static bool on_mode_tsx(struct pt_flow *f, const struct pt_packet *k)
{
	bool fup = f->state >= PT_FLOW_NO_IMAGE; /* PacketEn = 1 */

	if (f->psb.open)
		return true;
	f->fup.binds = fup;
	f->fup.tsx_abort = fup && k->n & PT_TSX_ABORT;
	pt_flow_event(f, fup, "tsx", "\"intx\":%d,\"abort\":%d", !!(k->n & PT_TSX_INTX),
		      !!(k->n & PT_TSX_ABORT));
	return true;
}

static bool on_pip(struct pt_flow *f, const struct pt_packet *k)
{
	if (f->psb.open) {
		f->psb.pip = true;
		f->psb.cr3 = k->a;
		f->psb.nr = k->b;
		return true;
	}
	f->pips.count = f->pips.insns == f->counts.insns ? f->pips.count + 1 : 1;
	f->pips.insns = f->counts.insns;
	if (k->b == f->side.nr) {
		f->side.cr3 = k->a;
		f->timing.cyc_fresh = false; /* of a MOV to CR3 */
	} else if (f->state >= PT_FLOW_DISABLED) {
		f->side.changes = true;
		f->side.to_cr3 = k->a;
		f->side.to_nr = k->b;
	}
	return true;
}

static bool on_vmcs(struct pt_flow *f, const struct pt_packet *k)
{
	if (f->psb.open && pt_flow_vmcs(f) != PT_VMCS_UNKNOWN && f->side.vmcs != k->a)
		f->psb.vmcs = true;
	if (!f->side.changes)
		f->timing.cyc_fresh = false; /* of a VMPTRLD */
	f->side.vmcs = k->a;
	return true;
}

/* ---- Events ----------------------------------------------------------------------------------------- */

static bool on_stop(struct pt_flow *f, const struct pt_packet *k)
{
	(void)k;
	pt_flow_event(f, false, "tracestop", "%s", "");
	return true;
}

static bool on_ptw(struct pt_flow *f, const struct pt_packet *k)
{
	f->fup.binds = k->ip;
	pt_flow_event(f, k->ip, "ptwrite", "\"payload\":%" PRId64 ",\"bytes\":%u", (int64_t)k->a, k->n);
	return true;
}

static bool on_exstop(struct pt_flow *f, const struct pt_packet *k)
{
	f->fup.binds = k->ip;
	pt_flow_event(f, k->ip, "exstop", "\"ip\":%d", k->ip);
	return true;
}

static bool on_mwait(struct pt_flow *f, const struct pt_packet *k)
{
	pt_flow_event(f, false, "mwait", "\"hints\":%" PRIu64 ",\"extensions\":%u", k->a, k->b);
	return true;
}

static bool on_pwre(struct pt_flow *f, const struct pt_packet *k)
{
	pt_flow_event(f, false, "pwre", "\"cstate\":%u,\"subcstate\":%u,\"hw\":%u", (unsigned)k->a >> 12 & 15,
		      (unsigned)k->a >> 8 & 15, (unsigned)k->a >> 7 & 1);
	return true;
}

static bool on_pwrx(struct pt_flow *f, const struct pt_packet *k)
{
	pt_flow_event(f, false, "pwrx", "\"last_cstate\":%u,\"deepest_cstate\":%u,\"wake_reason\":%u",
		      (unsigned)k->a >> 4 & 15, (unsigned)k->a & 15, (unsigned)k->a >> 8 & 15);
	return true;
}

/* SDM vol. 3, "Control Flow Event (CFE) Packet", "Event Data (EVD) Packet". */
enum { CFE_INTR = 1, CFE_VMEXIT = 8, CFE_VMEXIT_INTR = 9 };

/*
 * EVD packets come before the CFE that they belong to: a page fault's CR2 before an INTR, a VM exit's
 * reason and qualification, each once, before a VMEXIT. Others, libipt (pte_bad_context) takes for an
 * error as well.
 */
static bool evd_has_cfe(uint32_t evds, unsigned cfe)
{
	return !evds ||
	       (evds == FLOW_EVD_CR2 ? cfe == CFE_INTR : cfe == CFE_VMEXIT || cfe == CFE_VMEXIT_INTR);
}

static bool evd_may_come(uint32_t evds, uint32_t evd)
{
	return !(evds & evd) && (evd == FLOW_EVD_CR2 ? !evds : !(evds & FLOW_EVD_CR2));
}

static bool bad_event(struct pt_flow *f)
{
	f->evds = 0;
	return pt_flow_desync(f, PT_FLOW_BAD_PACKET, pt_flow_here(f),
			      "an EVD packet that is not of the CFE packet after it");
}

/* With the IP bit the FUP after it is bound to it (SDM, "CFE"): an IRET or UIRET that ran has its TIP
 * besides. Without that bit it is the FUP of the interrupt, which has a TIP too, or there is none. */
static bool on_cfe(struct pt_flow *f, const struct pt_packet *k)
{
	if (f->state > PT_FLOW_DATA_LOST && !evd_has_cfe(f->evds, (unsigned)k->a))
		return bad_event(f);
	f->evds = 0;
	f->fup.binds = k->ip;
	pt_flow_deliver(f);
	if (f->output->event_trace)
		f->output->event_trace(f->output_arg, f, true, (uint32_t)k->a, k->b);
	pt_flow_event(f, true, "cfe", "\"type\":%u,\"vector\":%u", (unsigned)k->a, k->b);
	return true;
}

static bool on_evd(struct pt_flow *f, const struct pt_packet *k)
{
	uint32_t evd = k->b <= 2 ? 1u << k->b : 0; /* others may be new */

	if (f->state > PT_FLOW_DATA_LOST && evd && !evd_may_come(f->evds, evd))
		return bad_event(f);
	f->evds |= f->state > PT_FLOW_DATA_LOST ? evd : 0;
	pt_flow_deliver(f);
	if (f->output->event_trace)
		f->output->event_trace(f->output_arg, f, false, k->b, k->a);
	pt_flow_event(f, false, "evd", "\"type\":%u,\"payload\":%" PRId64, k->b, (int64_t)k->a);
	return true;
}

static bool on_trig(struct pt_flow *f, const struct pt_packet *k)
{
	f->fup.binds = k->ip;
	pt_flow_event(f, k->ip, "trig", "\"trbv\":%u,\"mult\":%d,\"icnt\":%" PRIu64, k->b,
		      !!(k->n & PT_TRIG_MULT), k->a);
	return true;
}

static bool on_mnt(struct pt_flow *f, const struct pt_packet *k)
{
	pt_flow_event(f, false, "mnt", "\"payload\":%" PRId64, (int64_t)k->a);
	return true;
}

static bool on_bbp(struct pt_flow *f, const struct pt_packet *k)
{
	f->packet.bip_bytes = k->n;
	return true;
}

static bool on_bip(struct pt_flow *f, const struct pt_packet *k)
{
	pt_flow_event(f, false, "bip", "\"id\":%u,\"payload\":%" PRId64, k->b, (int64_t)k->a);
	return true;
}

static bool on_bep(struct pt_flow *f, const struct pt_packet *k)
{
	f->packet.bip_bytes = 0;
	f->fup.binds = k->ip;
	return true;
}

/* ---- All of them ------------------------------------------------------------------------------------ */

static const struct {
	bool (*take)(struct pt_flow *f, const struct pt_packet *k);
	/* A CYC before it times it, or the TIP that follows it: MODE.Exec, PIP and VMCS can be in the middle
	 * of a compound packet event, which happens in one cycle (SDM, "Compound Packet Event Summary"). */
	bool keeps_cyc;
} packets[PT_TYPES] = {
    [PT_PAD] = {on_pad, true},
    [PT_PSB] = {on_psb, false},
    [PT_PSBEND] = {on_psbend, false},
    [PT_FUP] = {on_fup, true},
    [PT_TIP] = {on_tip, true},
    [PT_TIP_PGE] = {on_tip_pge, true},
    [PT_TIP_PGD] = {on_tip_pgd, true},
    [PT_TNT_8] = {on_tnt, true},
    [PT_TNT_64] = {on_tnt, true},
    [PT_MODE_EXEC] = {on_mode_exec, true},
    [PT_MODE_TSX] = {on_mode_tsx, false},
    [PT_PIP] = {on_pip, true},
    [PT_VMCS] = {on_vmcs, true},
    [PT_CBR] = {on_cbr, false},
    [PT_TSC] = {on_tsc, false},
    [PT_TMA] = {on_tma, false},
    [PT_MTC] = {on_mtc, true},
    [PT_CYC] = {on_cyc, true},
    [PT_STOP] = {on_stop, false},
    [PT_OVF] = {on_ovf, false},
    [PT_MNT] = {on_mnt, false},
    [PT_EXSTOP] = {on_exstop, false},
    [PT_MWAIT] = {on_mwait, false},
    [PT_PWRE] = {on_pwre, false},
    [PT_PWRX] = {on_pwrx, false},
    [PT_PTW] = {on_ptw, false},
    [PT_BBP] = {on_bbp, false},
    [PT_BIP] = {on_bip, false},
    [PT_BEP] = {on_bep, false},
    [PT_CFE] = {on_cfe, false},
    [PT_EVD] = {on_evd, false},
    [PT_TRIG] = {on_trig, false},
};

bool pt_flow_on_packet(struct pt_flow *f, const struct pt_packet *k)
{
	/* A TSC packet of a guest waits for its TMA only. */
	if (f->tsc.waits && !f->psb.open && k->type != PT_TMA)
		pt_flow_settle_tsc(f);
	if (!packets[k->type].keeps_cyc)
		f->timing.cyc_fresh = false;
	return packets[k->type].take(f, k);
}
