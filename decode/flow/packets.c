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
		f->cut = true;
}

/* In a guest the packet has the guest's TSC; TMA, MTC and CYC are the host's always (SDM, "VMX TSC Manipulation"). */
static void tsc(struct pt_flow *f, uint64_t payload)
{
	uint64_t before = f->clock.tsc;

	f->tsc_ignored = false;
	if (f->nr && f->sink->guest_tsc) {
		pt_flow_deliver(f);
		payload = f->sink->guest_tsc(f->arg, f, payload);
		f->tsc_ignored = payload == PT_CLOCK_UNKNOWN;
	}
	if (!f->tsc_ignored)
		pt_clock_tsc(&f->clock, payload);
	clock_moved(f, before);
}

static void tma(struct pt_flow *f, uint32_t ctc, uint32_t fast)
{
	if (!f->tsc_ignored)
		pt_clock_tma(&f->clock, ctc, fast);
}

/* The TSC packet that waits, and the TMA behind it: whose they are is known, and they are complete. */
static void settle_tsc(struct pt_flow *f)
{
	if (f->tsc_waits)
		tsc(f, f->tsc_payload);
	if (f->tma_waits)
		tma(f, f->tma_ctc, f->tma_fast);
	f->tsc_waits = f->tma_waits = false;
}

/* ---- PSB+ ------------------------------------------------------------------------------------------- */

static void psb(struct pt_flow *f)
{
	f->psbs++;
	f->in_psb = true;
	f->psb_fup = f->psb_pip = f->psb_vmcs = f->psb_sided = false;
	f->tsc_waits = f->tma_waits = false;
	f->last_ip = 0;
	f->bip_bytes = 0;
	f->fup = false;
}

/* What PSB+ says of host and guest. */
static void psb_side(struct pt_flow *f)
{
	bool other = f->psb_pip && f->psb_nr != f->nr;

	if (f->psb_sided)
		return;
	f->psb_sided = true;
	if (other || (f->psb_vmcs && f->nr)) {
		if (f->state >= PT_FLOW_NO_IMAGE)
			pt_flow_err(f, PT_FLOW_MISMATCH, pt_flow_here(f),
				    "a PSB says that another guest or host runs, "
				    "without a VM entry or exit before");
		if (f->state >= PT_FLOW_DISABLED)
			f->state = PT_FLOW_DISABLED;
		pt_flow_end_slice(f);
		pt_flow_set_side(f, f->psb_pip ? f->psb_nr : f->nr, f->psb_pip ? f->psb_cr3 : f->cr3);
	} else if (f->psb_pip) {
		f->cr3 = f->psb_cr3;
	}
	f->side_changes = false;
	settle_tsc(f);
}

/* The CPU has cleared its stack of returns, the host's part and the guest's. */
static void clear_stack(struct pt_flow *f)
{
	f->bottom = f->top;
	f->host_stack.bottom = f->host_stack.top;
	f->unsure = f->forgot = f->guest_lost = f->floored = false;
	f->guest_no_image = f->state == PT_FLOW_NO_IMAGE;
}

static bool psbend(struct pt_flow *f)
{
	enum pt_flow_error_kind why = PT_FLOW_MISMATCH;
	uint64_t where = 0;

	if (!f->in_psb)
		return true;
	f->in_psb = false;
	f->ever = true;
	psb_side(f);
	if (f->state == PT_FLOW_RUNNING && !f->overflow) {
		if (!f->psb_fup) {
			pt_flow_err(f, PT_FLOW_MISMATCH, pt_flow_here(f),
				    "a PSB says that tracing is disabled, without a TIP.PGD before");
			f->state = PT_FLOW_DISABLED;
			return true;
		}
		bool there = !f->tnt_n && pt_flow_walk_to(f, f->psb_ip, &why, &where);

		clear_stack(f); /* SDM: only calls since the last PSB */
		if (!there && f->no_tnt && f->state == PT_FLOW_RUNNING) {
			pt_flow_flush_tail(f, pt_flow_here(f));
			pt_flow_end_slice(f);
			return pt_flow_sync_at(f, f->psb_ip);
		}
		if (!there) {
			if (f->state == PT_FLOW_RUNNING)
				pt_flow_err(f, why, where ? where : f->psb_ip,
					    "the code does not lead to the PSB's IP");
			clear_stack(f);
			return pt_flow_sync_at(f, f->psb_ip);
		}
		/* A run ends at a PSB, so that the segments between PSBs can be decoded apart. */
		pt_flow_flush_tail(f, f->psb_ip);
		f->cyc_fresh = false;
		pt_flow_cut(f, 0);
		return true;
	}
	clear_stack(f);
	f->overflow_fup = f->overflow && f->psb_fup;
	f->overflow_insns = f->insns;
	f->overflow = f->overflow && !f->psb_fup; /* its FUP or TIP.PGE may come behind the PSB+ */
	if (f->psb_fup && f->state == PT_FLOW_NO_IMAGE) {
		f->no_image_hard = false;
		return pt_flow_see(f, f->psb_ip);
	}
	if (f->psb_fup) {
		f->psb_only = true;
		return pt_flow_sync_at(f, f->psb_ip);
	}
	f->state = PT_FLOW_DISABLED;
	return true;
}

/* An event that waited for its FUP: ip is the FUP's. */
static void report_held(struct pt_flow *f, uint64_t ip)
{
	const char *name = f->held;

	f->held = NULL;
	pt_flow_deliver(f);
	if (name)
		f->sink->event(f->arg, f, name, ip, f->held_fields);
}

static void overflow(struct pt_flow *f)
{
	bool synced = f->state > PT_FLOW_LOSING || f->in_psb;

	f->in_psb = f->tsc_waits = f->tma_waits = false;
	f->bip_bytes = 0;
	report_held(f, 0);
	pt_flow_err(f, PT_FLOW_OVERFLOW, pt_flow_here(f), "the CPU's trace buffer overflowed");
	clear_stack(f);
	f->guest_no_image = false;
	pt_clock_lost(&f->clock);
	f->last_ip = 0;
	f->cr3 = 0; /* a PIP may be among what was lost */
	if (synced || f->ever) {
		f->state = PT_FLOW_DISABLED; /* until FUP (enabled) or TIP.PGE */
		f->overflow = true;
	}
}

/* ---- Packets ---------------------------------------------------------------------------------------- */

/* fup: a FUP follows, with the IP that the event is of. Else it is told with where the flow is. */
static void event(struct pt_flow *f, bool fup, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void event(struct pt_flow *f, bool fup, const char *name, const char *format, ...)
{
	va_list ap;

	if (f->state <= PT_FLOW_LOSING || f->skip)
		return;
	report_held(f, pt_flow_here(f));
	va_start(ap, format);
	vsnprintf(f->held_fields, sizeof f->held_fields, format, ap);
	va_end(ap);
	f->held = name;
	if (!fup)
		report_held(f, pt_flow_here(f));
}

/* It takes effect with the IP packet that follows; in PSB+ it tells of the mode at the FUP. */
static void mode_exec(struct pt_flow *f, unsigned bits)
{
	if ((f->exec ^ bits) & PT_EXEC_IF && f->ever && !f->in_psb)
		event(f, true, "interrupts", "\"enabled\":%d", !!(bits & PT_EXEC_IF));
	f->mode_packet = f->packets;
	f->exec = bits;
	f->next_mode = bits & PT_EXEC_CSL ? INSN_64 : bits & PT_EXEC_CSD ? INSN_32 : INSN_16;
}

static void quick_event(struct pt_flow *f, unsigned type, uint64_t ip)
{
	pt_flow_deliver(f);
	if (f->in_psb)
		f->sink->event(f->arg, f, "psb", ip, "");
	else if (f->quick == 1 && f->state > PT_FLOW_LOSING)
		f->sink->event(f->arg, f, pt_type_name(type), ip, "");
}

static bool handle(struct pt_flow *f, const struct pt_packet *k)
{
	uint64_t ip = 0, before;
	bool timed;

	if (f->tsc_waits && !f->in_psb && k->type != PT_TMA)
		settle_tsc(f);
	before = f->clock.tsc;
	switch ((enum pt_type)k->type) {
	case PT_FUP:
	case PT_TIP:
	case PT_TIP_PGE:
	case PT_TIP_PGD:
		if (k->n)
			ip = f->last_ip = pt_ip(f->last_ip, k->n, k->a);
		if (f->quick && ip)
			quick_event(f, k->type, ip);
		if (k->type == PT_FUP) {
			bool ok = f->held && !f->in_psb;

			if (f->packets == f->mode_packet + 1 && !f->overflow &&
			    !f->in_psb) /* STI, CLI, POPF: no TIP follows */
				f->fup_binds = true;
			if (!ok)
				return pt_flow_on_fup(f, ip);
			ok = pt_flow_on_fup(f, ip);
			report_held(f, ip);
			return ok;
		}
		report_held(f, pt_flow_here(f));
		if (f->state == PT_FLOW_LOSING && k->type == PT_TIP_PGE && (k->n == 3 || k->n == 6)) {
			/* Who stops and starts tracing is the host. */
			if (f->nr)
				pt_flow_set_side(f, 0, 0);
			f->state = PT_FLOW_DISABLED;
		}
		if (f->state <= PT_FLOW_LOSING)
			return true;
		if (k->type == PT_TIP_PGE)
			return pt_flow_on_tip_pge(f, ip);
		f->psb_only = false;
		return k->type == PT_TIP ? pt_flow_on_tip(f, ip) : pt_flow_on_tip_pgd(f, ip);
	case PT_TNT_8:
	case PT_TNT_64: report_held(f, pt_flow_here(f)); return pt_flow_on_tnt(f, k->a, k->n);
	case PT_CYC:
		f->has_cyc = true;
		pt_clock_cyc(&f->clock, k->a);
		f->cut = f->cyc_fresh = true;
		return true;
	case PT_PAD: return true;
	default: break;
	}
	timed = f->cyc_fresh;
	f->cyc_fresh = false;
	switch ((enum pt_type)k->type) {
	case PT_MTC:
		pt_clock_mtc(&f->clock, (uint32_t)k->a, timed);
		clock_moved(f, before);
		return true;
	case PT_TSC:
		/* In PSB+ the PIP behind it tells whose it is; a guest's is told by the TMA behind it. */
		f->tsc_waits = f->in_psb || f->nr;
		f->tsc_payload = k->a;
		if (!f->tsc_waits)
			tsc(f, k->a);
		return true;
	case PT_TMA:
		f->tma_ctc = (uint32_t)k->a;
		f->tma_fast = k->b;
		f->tma_waits = f->tsc_waits;
		if (!f->tsc_waits)
			tma(f, f->tma_ctc, f->tma_fast);
		else if (!f->in_psb)
			settle_tsc(f);
		return true;
	case PT_CBR:
		pt_clock_cbr(&f->clock, (uint32_t)k->a);
		if (f->cbr != k->a && f->in_slice) {
			event(f, false, "cbr", "\"cbr\":%" PRIu64, k->a);
			f->cbr_reported = (uint32_t)k->a;
		}
		f->cbr = (uint32_t)k->a;
		return true;
	case PT_PSB: psb(f); return true;
	case PT_PSBEND: return psbend(f);
	case PT_OVF: overflow(f); return true;
	case PT_MODE_EXEC: mode_exec(f, k->n); return true;
	case PT_MODE_TSX:
		if (!f->in_psb) {
			bool fup = f->state >= PT_FLOW_NO_IMAGE; /* PacketEn = 1 */

			f->fup_binds = fup;
			f->tsx_abort = fup && k->n & PT_TSX_ABORT;
			event(f, fup, "tsx", "\"intx\":%d,\"abort\":%d", !!(k->n & PT_TSX_INTX),
			      !!(k->n & PT_TSX_ABORT));
		}
		return true;
	case PT_PIP:
		if (!f->in_psb) {
			f->pips = f->pip_insns == f->insns ? f->pips + 1 : 1;
			f->pip_insns = f->insns;
		}
		if (f->in_psb) {
			f->psb_pip = true;
			f->psb_cr3 = k->a;
			f->psb_nr = k->b;
		} else if (k->b != f->nr && f->state >= PT_FLOW_DISABLED) {
			f->side_changes = true;
			f->to_cr3 = k->a;
			f->to_nr = k->b;
		} else if (k->b == f->nr) {
			f->cr3 = k->a;
		}
		return true;
	case PT_VMCS:
		if (f->in_psb && f->vmcs != PT_VMCS_UNKNOWN && f->vmcs != k->a)
			f->psb_vmcs = true;
		f->vmcs = k->a;
		return true;
	case PT_STOP: event(f, false, "tracestop", "%s", ""); return true;
	case PT_PTW:
		f->fup_binds = k->ip;
		event(f, k->ip, "ptwrite", "\"payload\":%" PRId64 ",\"bytes\":%u", (int64_t)k->a, k->n);
		return true;
	case PT_EXSTOP:
		f->fup_binds = k->ip;
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
		if (f->sink->event_trace)
			f->sink->event_trace(f->arg, f, true, (uint32_t)k->a, k->b);
		/* Without the IP bit the FUP may be the branch's own, which an interrupt has anyway. */
		event(f, true, "cfe", "\"type\":%u,\"vector\":%u", (unsigned)k->a, k->b);
		return true;
	case PT_EVD:
		pt_flow_deliver(f);
		if (f->sink->event_trace)
			f->sink->event_trace(f->arg, f, false, k->b, k->a);
		event(f, false, "evd", "\"type\":%u,\"payload\":%" PRId64, k->b, (int64_t)k->a);
		return true;
	case PT_TRIG:
		f->fup_binds = k->ip;
		event(f, k->ip, "trig", "\"trbv\":%u,\"mult\":%d,\"icnt\":%" PRIu64, k->b,
		      !!(k->n & PT_TRIG_MULT), k->a);
		return true;
	case PT_MNT: event(f, false, "mnt", "\"payload\":%" PRId64, (int64_t)k->a); return true;
	case PT_BBP: f->bip_bytes = k->n; return true;
	case PT_BIP:
		event(f, false, "bip", "\"id\":%u,\"payload\":%" PRId64, k->b, (int64_t)k->a);
		return true;
	case PT_BEP:
		f->bip_bytes = 0;
		f->fup_binds = k->ip;
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

		if (f->state == PT_FLOW_UNSYNCED && !f->in_psb) {
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
		if (__builtin_expect(f->state == PT_FLOW_RUNNING && !f->bip_bytes && !f->tnt_n &&
					 !f->in_psb && !f->psb_only && !f->tsc_waits && !f->held,
				     1)) {
			if (end - p > PT_FAST_BYTES)
				p = pt_flow_fast(f, p, end - PT_FAST_BYTES,
						 aux_offset + (uint64_t)(p - begin));
			if (f->state != PT_FLOW_RUNNING)
				continue;
			if (f->clock.tsc >= f->stop_tsc && f->clock.tsc != PT_CLOCK_UNKNOWN && !f->tnt_n) {
				*ret = p;
				return PT_FEED_TIME;
			}
			if (p >= end)
				break;
		}
		n = pt_packet_decode(p, end, f->bip_bytes, &k);
		f->aux_offset = aux_offset + (uint64_t)(p - begin);
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
		if (k.type == PT_PSBEND && f->in_psb && !f->psb_sided) {
			/* Time may have jumped: who runs now must be known before the flow begins at the PSB's IP. */
			psb_side(f);
			if (f->clock.tsc >= f->stop_tsc && f->clock.tsc != PT_CLOCK_UNKNOWN && !f->tnt_n) {
				*ret = p;
				return PT_FEED_TIME;
			}
		}
		p += n;
		f->packets++;
		handle(f, &k);
		if (f->clock.tsc >= f->stop_tsc && f->clock.tsc != PT_CLOCK_UNKNOWN && !f->tnt_n) {
			*ret = p;
			return PT_FEED_TIME;
		}
		if (f->graph->cache_full && !f->tnt_n && !f->in_psb && !f->fup) {
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
	f->aux_offset = aux_offset;
	pt_flow_lose(f, PT_FLOW_LOST, pt_flow_here(f), message);
	if (whole && f->ever)
		f->state = PT_FLOW_LOSING;
	pt_clock_lost(&f->clock);
	f->last_ip = 0;
	f->cr3 = 0;
	f->tsc_waits = f->tma_waits = false;
	pt_flow_deliver(f);
}

void pt_flow_restart(struct pt_flow *f)
{
	pt_flow_pause(f, true);
	f->state = PT_FLOW_UNSYNCED;
	f->position = 0;
	f->tnt_n = 0;
	f->bip_bytes = 0;
	f->last_ip = 0;
	f->in_psb = f->fup = f->fup_binds = f->overflow = f->tsx_abort = false;
	f->side_changes = f->concealed = f->tsc_waits = f->tma_waits = false;
	f->guest_no_image = true;
	f->bottom = f->top;
	f->len = 0;
	f->cr3 = 0;
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
	f->trail.to = NULL;
	if (f->state == PT_FLOW_RUNNING)
		pt_flow_flush_tail(f, pt_flow_here(f));
	if (end) {
		pt_flow_end_slice(f);
		f->user_known = false;
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
	look_up_again(f->graph, f->stack, f->bottom, f->top);
	look_up_again(f->graph, f->host_stack.stack, f->host_stack.bottom, f->host_stack.top);
	if (f->state != PT_FLOW_RUNNING)
		return;
	if (f->skip) {
		pt_flow_stop_seeing(f);
		return;
	}
	if (!f->in_slice)
		pt_flow_resume_slice(f);
	f->start_ip = pt_flow_here(f);
	f->code = NULL;
	pt_flow_stand(f, f->start_ip);
}
