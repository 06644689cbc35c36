/* packets.c - PSB+, all other packets, and feeding bytes to a flow; see flow.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "decode/flow/internal.h"
#include "decode/flow/vm_transition.h"

/* ---- TSC -------------------------------------------------------------------------------------------- */

static void clock_moved(struct pt_flow *f, uint64_t before)
{
	if (f->clock.tsc != before)
		f->timing.clock_moved = true;
}

/* In a guest the packet has the guest's TSC; TMA, MTC and CYC are the host's always (SDM, "VMX TSC Manipulation"). */
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
	clock_moved(f, before);
}

static void tma(struct pt_flow *f, uint32_t ctc, uint32_t fast)
{
	if (!f->tsc.ignored)
		pt_clock_tma(&f->clock, ctc, fast);
}

/* The TSC packet that waits, and the TMA behind it: whose they are is known, and they are complete. */
static void settle_tsc(struct pt_flow *f)
{
	if (f->tsc.waits)
		tsc(f, f->tsc.payload);
	if (f->tsc.tma_waits)
		tma(f, f->tsc.ctc, f->tsc.fast);
	f->tsc.waits = f->tsc.tma_waits = false;
}

/* ---- PSB+ ------------------------------------------------------------------------------------------- */

static void psb(struct pt_flow *f)
{
	f->counts.psbs++;
	f->psb.open = true;
	f->psb.fup = f->psb.pip = f->psb.vmcs = f->psb.side_known = false;
	f->tsc.waits = f->tsc.tma_waits = false;
	f->packet.last_ip = 0;
	f->packet.bip_bytes = 0;
	f->fup.pending = false;
}

/* What PSB+ says of host and guest. */
static void psb_side(struct pt_flow *f)
{
	bool other = f->psb.pip && f->psb.nr != f->side.nr;

	if (f->psb.side_known)
		return;
	f->psb.side_known = true;
	if (other || (f->psb.vmcs && f->side.nr)) {
		if (f->state >= PT_FLOW_NO_IMAGE)
			pt_flow_err(f, PT_FLOW_MISMATCH, pt_flow_here(f),
				    "a PSB says that another guest or host runs, "
				    "without a VM entry or exit before");
		if (f->state >= PT_FLOW_DISABLED)
			f->state = PT_FLOW_DISABLED;
		pt_flow_end_slice(f);
		pt_flow_set_side(f, f->psb.pip ? f->psb.nr : f->side.nr,
				 f->psb.pip ? f->psb.cr3 : f->side.cr3);
	} else if (f->psb.pip) {
		f->side.cr3 = f->psb.cr3;
	}
	f->side.changes = false;
	settle_tsc(f);
}

/* The CPU has cleared its stack of returns, the host's part and the guest's. */
static void clear_stack(struct pt_flow *f)
{
	f->stack.bottom = f->stack.top;
	f->host_stack.bottom = f->host_stack.top;
	f->stack_state.unsure = f->stack_state.stale_hw = f->stack_state.guest_lost =
	    f->stack_state.has_floor = false;
	f->stack_state.guest_unseen = f->state == PT_FLOW_NO_IMAGE;
}

static bool psbend(struct pt_flow *f)
{
	enum pt_flow_error_kind why = PT_FLOW_MISMATCH;
	uint64_t where = 0;

	if (!f->psb.open)
		return true;
	f->psb.open = false;
	f->psb.ever = true;
	psb_side(f);
	if (f->state == PT_FLOW_RUNNING && !f->overflow.pending) {
		if (!f->psb.fup) {
			pt_flow_err(f, PT_FLOW_MISMATCH, pt_flow_here(f),
				    "a PSB says that tracing is disabled, without a TIP.PGD before");
			f->state = PT_FLOW_DISABLED;
			return true;
		}
		bool there = !f->tnt.n && pt_flow_walk_to(f, f->psb.ip, &why, &where);

		clear_stack(f); /* SDM: only calls since the last PSB */
		if (!there && f->no_tnt && f->state == PT_FLOW_RUNNING) {
			pt_flow_flush_tail(f, pt_flow_here(f));
			pt_flow_end_slice(f);
			return pt_flow_sync_at(f, f->psb.ip);
		}
		if (!there) {
			if (f->state == PT_FLOW_RUNNING)
				pt_flow_err(f, why, where ? where : f->psb.ip,
					    "the code does not lead to the PSB's IP");
			clear_stack(f);
			return pt_flow_sync_at(f, f->psb.ip);
		}
		/* A run ends at a PSB, so that the segments between PSBs can be decoded apart. */
		pt_flow_flush_tail(f, f->psb.ip);
		f->timing.cyc_fresh = false;
		pt_flow_cut(f, 0);
		return true;
	}
	clear_stack(f);
	f->overflow.psb_fup = f->overflow.pending && f->psb.fup;
	f->overflow.insns = f->counts.insns;
	f->overflow.pending =
	    f->overflow.pending && !f->psb.fup; /* its FUP or TIP.PGE may come behind the PSB+ */
	if (f->psb.fup && f->state == PT_FLOW_NO_IMAGE) {
		f->no_image.hard = false;
		return pt_flow_see(f, f->psb.ip);
	}
	if (f->psb.fup) {
		f->psb.alone = true;
		return pt_flow_sync_at(f, f->psb.ip);
	}
	f->state = PT_FLOW_DISABLED;
	return true;
}

/* An event that waited for its FUP: ip is the FUP's. */
static void report_held(struct pt_flow *f, uint64_t ip)
{
	const char *name = f->held.name;

	f->held.name = NULL;
	pt_flow_deliver(f);
	if (name)
		f->output->event(f->output_arg, f, name, ip, f->held.fields);
}

static void overflow(struct pt_flow *f)
{
	bool synced = f->state > PT_FLOW_LOSING || f->psb.open;

	f->psb.open = f->tsc.waits = f->tsc.tma_waits = false;
	f->packet.bip_bytes = 0;
	report_held(f, 0);
	pt_flow_err(f, PT_FLOW_OVERFLOW, pt_flow_here(f), "the CPU's trace buffer overflowed");
	clear_stack(f);
	f->stack_state.guest_unseen = false;
	pt_clock_lost(&f->clock);
	f->packet.last_ip = 0;
	f->side.cr3 = 0; /* a PIP may be among what was lost */
	if (synced || f->psb.ever) {
		f->state = PT_FLOW_DISABLED; /* until FUP (enabled) or TIP.PGE */
		f->overflow.pending = true;
	}
}

/* ---- Packets ---------------------------------------------------------------------------------------- */

/* fup: a FUP follows, with the IP that the event is of. Else it is told with where the flow is. */
static void event(struct pt_flow *f, bool fup, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void event(struct pt_flow *f, bool fup, const char *name, const char *format, ...)
{
	va_list ap;

	if (f->state <= PT_FLOW_LOSING || f->detail != PT_FLOW_FOLLOW)
		return;
	report_held(f, pt_flow_here(f));
	va_start(ap, format);
	vsnprintf(f->held.fields, sizeof f->held.fields, format, ap);
	va_end(ap);
	f->held.name = name;
	if (!fup)
		report_held(f, pt_flow_here(f));
}

/* It takes effect with the IP packet that follows; in PSB+ it tells of the mode at the FUP. */
static void mode_exec(struct pt_flow *f, unsigned bits)
{
	if ((f->packet.exec ^ bits) & PT_EXEC_IF && f->psb.ever && !f->psb.open)
		event(f, true, "interrupts", "\"enabled\":%d", !!(bits & PT_EXEC_IF));
	f->packet.mode_exec = f->counts.packets;
	f->packet.exec = bits;
	f->at.next_mode = bits & PT_EXEC_CSL ? INSN_64 : bits & PT_EXEC_CSD ? INSN_32 : INSN_16;
}

static void quick_event(struct pt_flow *f, unsigned type, uint64_t ip)
{
	pt_flow_deliver(f);
	if (f->psb.open)
		f->output->event(f->output_arg, f, "psb", ip, "");
	else if (f->detail == PT_FLOW_ADDRESSES && f->state > PT_FLOW_LOSING)
		f->output->event(f->output_arg, f, pt_type_name(type), ip, "");
}

static bool handle(struct pt_flow *f, const struct pt_packet *k)
{
	uint64_t ip = 0, before;
	bool timed;

	if (f->tsc.waits && !f->psb.open && k->type != PT_TMA)
		settle_tsc(f);
	before = f->clock.tsc;
	switch ((enum pt_type)k->type) {
	case PT_FUP:
	case PT_TIP:
	case PT_TIP_PGE:
	case PT_TIP_PGD:
		if (k->n)
			ip = f->packet.last_ip = pt_ip(f->packet.last_ip, k->n, k->a);
		if (ip && (f->detail == PT_FLOW_ADDRESSES || f->detail == PT_FLOW_PSB_ADDRESSES))
			quick_event(f, k->type, ip);
		if (k->type == PT_FUP) {
			bool ok = f->held.name && !f->psb.open;

			if (f->counts.packets == f->packet.mode_exec + 1 && !f->overflow.pending &&
			    !f->psb.open) /* STI, CLI, POPF: no TIP follows */
				f->fup.binds = true;
			if (!ok)
				return pt_flow_on_fup(f, ip);
			ok = pt_flow_on_fup(f, ip);
			report_held(f, ip);
			return ok;
		}
		report_held(f, pt_flow_here(f));
		if (f->state == PT_FLOW_LOSING && k->type == PT_TIP_PGE && (k->n == 3 || k->n == 6)) {
			/* Who stops and starts tracing is the host. */
			if (f->side.nr)
				pt_flow_set_side(f, 0, 0);
			f->state = PT_FLOW_DISABLED;
		}
		if (f->state <= PT_FLOW_LOSING)
			return true;
		if (k->type == PT_TIP_PGE)
			return pt_flow_on_tip_pge(f, ip);
		f->psb.alone = false;
		return k->type == PT_TIP ? pt_flow_on_tip(f, ip) : pt_flow_on_tip_pgd(f, ip);
	case PT_TNT_8:
	case PT_TNT_64: report_held(f, pt_flow_here(f)); return pt_flow_on_tnt(f, k->a, k->n);
	case PT_CYC:
		f->timing.has_cyc = true;
		pt_clock_cyc(&f->clock, k->a);
		f->timing.clock_moved = f->timing.cyc_fresh = true;
		return true;
	case PT_PAD: return true;
	default: break;
	}
	timed = f->timing.cyc_fresh;
	f->timing.cyc_fresh = false;
	switch ((enum pt_type)k->type) {
	case PT_MTC:
		pt_clock_mtc(&f->clock, (uint32_t)k->a, timed);
		clock_moved(f, before);
		return true;
	case PT_TSC:
		/* In PSB+ the PIP behind it tells whose it is; a guest's is told by the TMA behind it. */
		f->tsc.waits = f->psb.open || f->side.nr;
		f->tsc.payload = k->a;
		if (!f->tsc.waits)
			tsc(f, k->a);
		return true;
	case PT_TMA:
		f->tsc.ctc = (uint32_t)k->a;
		f->tsc.fast = k->b;
		f->tsc.tma_waits = f->tsc.waits;
		if (!f->tsc.waits)
			tma(f, f->tsc.ctc, f->tsc.fast);
		else if (!f->psb.open)
			settle_tsc(f);
		return true;
	case PT_CBR:
		pt_clock_cbr(&f->clock, (uint32_t)k->a);
		if (f->cbr.ratio != k->a && f->slice.open) {
			event(f, false, "cbr", "\"cbr\":%" PRIu64, k->a);
			f->cbr.reported = (uint32_t)k->a;
		}
		f->cbr.ratio = (uint32_t)k->a;
		return true;
	case PT_PSB: psb(f); return true;
	case PT_PSBEND: return psbend(f);
	case PT_OVF: overflow(f); return true;
	case PT_MODE_EXEC: mode_exec(f, k->n); return true;
	case PT_MODE_TSX:
		if (!f->psb.open) {
			bool fup = f->state >= PT_FLOW_NO_IMAGE; /* PacketEn = 1 */

			f->fup.binds = fup;
			f->fup.tsx_abort = fup && k->n & PT_TSX_ABORT;
			event(f, fup, "tsx", "\"intx\":%d,\"abort\":%d", !!(k->n & PT_TSX_INTX),
			      !!(k->n & PT_TSX_ABORT));
		}
		return true;
	case PT_PIP:
		if (!f->psb.open) {
			f->pips.count = f->pips.insns == f->counts.insns ? f->pips.count + 1 : 1;
			f->pips.insns = f->counts.insns;
		}
		if (f->psb.open) {
			f->psb.pip = true;
			f->psb.cr3 = k->a;
			f->psb.nr = k->b;
		} else if (k->b != f->side.nr && f->state >= PT_FLOW_DISABLED) {
			f->side.changes = true;
			f->side.to_cr3 = k->a;
			f->side.to_nr = k->b;
		} else if (k->b == f->side.nr) {
			f->side.cr3 = k->a;
		}
		return true;
	case PT_VMCS:
		if (f->psb.open && f->side.vmcs != PT_VMCS_UNKNOWN && f->side.vmcs != k->a)
			f->psb.vmcs = true;
		f->side.vmcs = k->a;
		return true;
	case PT_STOP: event(f, false, "tracestop", "%s", ""); return true;
	case PT_PTW:
		f->fup.binds = k->ip;
		event(f, k->ip, "ptwrite", "\"payload\":%" PRId64 ",\"bytes\":%u", (int64_t)k->a, k->n);
		return true;
	case PT_EXSTOP:
		f->fup.binds = k->ip;
		event(f, k->ip, "exstop", "\"ip\":%d", k->ip);
		return true;
	case PT_MWAIT:
		event(f, false, "mwait", "\"hints\":%" PRIu64 ",\"extensions\":%u", k->a, k->b);
		return true;
	case PT_PWRE:
		event(f, false, "pwre", "\"cstate\":%u,\"subcstate\":%u,\"hw\":%u", (unsigned)k->a >> 12 & 15,
		      (unsigned)k->a >> 8 & 15, (unsigned)k->a >> 7 & 1);
		return true;
	case PT_PWRX:
		event(f, false, "pwrx", "\"last_cstate\":%u,\"deepest_cstate\":%u,\"wake_reason\":%u",
		      (unsigned)k->a >> 4 & 15, (unsigned)k->a & 15, (unsigned)k->a >> 8 & 15);
		return true;
	case PT_CFE:
		/* A FUP behind it is an event's source when a TIP follows (SDM, "CFE"). */
		pt_flow_deliver(f);
		if (f->output->event_trace)
			f->output->event_trace(f->output_arg, f, true, (uint32_t)k->a, k->b);
		/* Without the IP bit the FUP may be the branch's own, which an interrupt has anyway. */
		event(f, true, "cfe", "\"type\":%u,\"vector\":%u", (unsigned)k->a, k->b);
		return true;
	case PT_EVD:
		pt_flow_deliver(f);
		if (f->output->event_trace)
			f->output->event_trace(f->output_arg, f, false, k->b, k->a);
		event(f, false, "evd", "\"type\":%u,\"payload\":%" PRId64, k->b, (int64_t)k->a);
		return true;
	case PT_TRIG:
		f->fup.binds = k->ip;
		event(f, k->ip, "trig", "\"trbv\":%u,\"mult\":%d,\"icnt\":%" PRIu64, k->b,
		      !!(k->n & PT_TRIG_MULT), k->a);
		return true;
	case PT_MNT: event(f, false, "mnt", "\"payload\":%" PRId64, (int64_t)k->a); return true;
	case PT_BBP: f->packet.bip_bytes = k->n; return true;
	case PT_BIP:
		event(f, false, "bip", "\"id\":%u,\"payload\":%" PRId64, k->b, (int64_t)k->a);
		return true;
	case PT_BEP:
		f->packet.bip_bytes = 0;
		f->fup.binds = k->ip;
		return true;
	default: return pt_flow_lose(f, PT_FLOW_BAD_PACKET, 0, "a packet that this decoder does not know");
	}
}

/* What is at p, where pt_packet_decode() came to n and *k, on a CPU with errata. */
static int erratum(const struct pt_flow *f, const uint8_t *p, const uint8_t *end, bool last, int n,
		   struct pt_packet *k)
{
	/* A CYC of two bytes and one of one byte, which together are OVF's behind a first byte. No CPU sends two CYC in a
	 * row but when its counter wraps, and those are longer. */
	if (f->errata & PT_SKD007 && n == 2 && k->type == PT_CYC && p[1] == 0x02) {
		if (end - p < 3)
			return last ? n : PT_NEED_MORE_BYTES;
		if (p[2] == 0xf3) {
			pt_packet_decode(p + 1, end, 0, k);
			return 3;
		}
	}
	if (f->errata & PT_SKZ84 && n == PT_BAD_PACKET && end - p >= 2 && p[0] == 0x02 && p[1] == 0x73) {
		if (end - p < 8)
			return last ? n : PT_NEED_MORE_BYTES;
		k->type = PT_PAD; /* nothing in it is true */
		return 8;
	}
	return n;
}

static enum pt_flow_feed feed(struct pt_flow *f, const uint8_t *p, const uint8_t *end, uint64_t aux_offset,
			      bool last, const uint8_t **ret)
{
	const uint8_t *begin = p;
	struct pt_packet k;

	if (f->clock.tsc >= f->stop_tsc && f->clock.tsc != PT_CLOCK_UNKNOWN) {
		*ret = p;
		return PT_FEED_TIME;
	}
	while (p < end) {
		int n;

		if (f->state == PT_FLOW_UNSYNCED && !f->psb.open) {
			const uint8_t *next = pt_find_psb(p, end);

			if (!next) {
				/* Keep what may be the beginning of one. */
				p = !last && end - p >= PT_PACKET_MAX ? end - (PT_PACKET_MAX - 1)
				    : last			      ? end
								      : p;
				break;
			}
			p = next;
		}
		if (__builtin_expect(f->state == PT_FLOW_RUNNING && !f->packet.bip_bytes && !f->tnt.n &&
					 !f->psb.open && !f->psb.alone && !f->tsc.waits && !f->held.name,
				     1)) {
			if (end - p > PT_FAST_BYTES)
				p = pt_flow_fast(f, p, end - PT_FAST_BYTES,
						 aux_offset + (uint64_t)(p - begin));
			if (f->state != PT_FLOW_RUNNING)
				continue;
			if (f->clock.tsc >= f->stop_tsc && f->clock.tsc != PT_CLOCK_UNKNOWN && !f->tnt.n) {
				*ret = p;
				return PT_FEED_TIME;
			}
			if (p >= end)
				break;
		}
		n = pt_packet_decode(p, end, f->packet.bip_bytes, &k);
		f->packet.aux_offset = aux_offset + (uint64_t)(p - begin);
		if (f->errata & (PT_SKD007 | PT_SKZ84))
			n = erratum(f, p, end, last, n, &k);
		if (n == PT_NEED_MORE_BYTES) {
			if (last) {
				pt_flow_lose(f, PT_FLOW_CUT, pt_flow_here(f),
					     "the trace ends inside a packet");
				p = end;
			}
			break;
		}
		if (n < 0) {
			if (f->state == PT_FLOW_LOSING)
				f->state = PT_FLOW_UNSYNCED;
			else
				pt_flow_lose(f, PT_FLOW_BAD_PACKET, pt_flow_here(f),
					     "no packet begins with these bytes");
			p++;
			continue;
		}
		if (k.type == PT_PSBEND && f->psb.open && !f->psb.side_known) {
			/* Time may have jumped: who runs now must be known before the flow begins at the PSB's IP. */
			psb_side(f);
			if (f->clock.tsc >= f->stop_tsc && f->clock.tsc != PT_CLOCK_UNKNOWN && !f->tnt.n) {
				*ret = p;
				return PT_FEED_TIME;
			}
		}
		p += n;
		f->counts.packets++;
		handle(f, &k);
		if (f->clock.tsc >= f->stop_tsc && f->clock.tsc != PT_CLOCK_UNKNOWN && !f->tnt.n) {
			*ret = p;
			return PT_FEED_TIME;
		}
		if (f->graph->cache_full && !f->tnt.n && !f->psb.open && !f->fup.pending) {
			*ret = p;
			return PT_FEED_CACHE_FULL;
		}
	}
	*ret = p;
	return PT_FEED_MORE;
}

enum pt_flow_feed pt_flow_feed(struct pt_flow *f, const uint8_t *p, const uint8_t *end, uint64_t aux_offset,
			       bool last, const uint8_t **ret)
{
	enum pt_flow_feed fed = feed(f, p, end, aux_offset, last, ret);

	pt_flow_deliver(f);
	return fed;
}

void pt_flow_lost(struct pt_flow *f, uint64_t aux_offset, bool whole, const char *message)
{
	report_held(f, pt_flow_here(f));
	f->packet.aux_offset = aux_offset;
	pt_flow_lose(f, PT_FLOW_LOST, pt_flow_here(f), message);
	if (whole && f->psb.ever)
		f->state = PT_FLOW_LOSING;
	pt_clock_lost(&f->clock);
	f->packet.last_ip = 0;
	f->side.cr3 = 0;
	f->tsc.waits = f->tsc.tma_waits = false;
	pt_flow_deliver(f);
}

void pt_flow_restart(struct pt_flow *f)
{
	pt_flow_pause(f, true);
	f->state = PT_FLOW_UNSYNCED;
	f->at.position = 0;
	f->tnt.n = 0;
	f->packet.bip_bytes = 0;
	f->packet.last_ip = 0;
	f->psb.open = f->fup.pending = f->fup.binds = f->overflow.pending = f->fup.tsx_abort = false;
	f->side.changes = f->side.concealed = f->tsc.waits = f->tsc.tma_waits = false;
	f->stack_state.guest_unseen = true;
	f->stack.bottom = f->stack.top;
	f->path.len = 0;
	f->side.cr3 = 0;
	pt_clock_lost(&f->clock);
}

void pt_flow_finish(struct pt_flow *f)
{
	report_held(f, pt_flow_here(f));
	if (f->state == PT_FLOW_RUNNING)
		pt_flow_flush_tail(f, pt_flow_here(f));
	pt_flow_end_slice(f);
	pt_flow_deliver(f);
	f->state = PT_FLOW_UNSYNCED;
}

void pt_flow_pause(struct pt_flow *f, bool end)
{
	f->recorder.memo = NULL;
	if (f->state == PT_FLOW_RUNNING)
		pt_flow_flush_tail(f, pt_flow_here(f));
	if (end) {
		pt_flow_end_slice(f);
		f->stack.user.known = false;
	}
	pt_flow_deliver(f);
}

/* Positions of the code as it is now. */
static void look_up_again(struct pt_graph *g, uint32_t *stack, uint32_t bottom, uint32_t top)
{
	for (uint32_t i = bottom; i != top; i++) {
		const struct pt_where *w = &g->where[stack[i % PT_STACK]];

		stack[i % PT_STACK] = pt_graph_position(g, g->codes[w->code], w->ip, w->mode);
	}
}

void pt_flow_resume(struct pt_flow *f)
{
	look_up_again(f->graph, f->stack.entries, f->stack.bottom, f->stack.top);
	look_up_again(f->graph, f->host_stack.entries, f->host_stack.bottom, f->host_stack.top);
	if (f->state != PT_FLOW_RUNNING)
		return;
	if (f->detail != PT_FLOW_FOLLOW) {
		pt_flow_stop_seeing(f);
		return;
	}
	if (!f->slice.open)
		pt_flow_resume_slice(f);
	f->path.start_ip = pt_flow_here(f);
	f->at.code = NULL;
	pt_flow_stand(f, f->path.start_ip);
}
