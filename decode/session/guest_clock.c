/*
 * guest_clock.c - a session with a guest's sideband whose clock was not told: the guest's TSC is looked for in the AUX data
 * before that is decoded. See session.h.
 */
#include <inttypes.h>
#include <stdio.h>

#include "decode/session/internal.h"

#define HOLD_BYTES_MAX ((uint64_t)64 << 20) /* of AUX data, kept until a guest's clock is settled */

/* Who runs on the CPU at a host TSC, by the sideband that waits: its pid, or -1. */
static int32_t who_at(const struct session *s, int32_t cpu, uint64_t tsc)
{
	int32_t who = -1, pid, tid;

	for (size_t i = s->queue_at; i < s->queue_count && s->queue[i]->tsc <= tsc; i++) {
		const struct pt_sideband_record *side = s->queue[i];

		if (side->machine == s->host && side->cpu == cpu && !side->memory &&
		    (pt_sideband_effect(side) & PT_SIDEBAND_SWITCH) && pt_sideband_switched(side, &pid, &tid))
			who = pid;
	}
	return who;
}

/* Whose the i-th VMCS of the scan is: the VM process, -1 unknown. False: there is no i-th. */
static bool owner(struct session *s, size_t i, uint64_t *ret_vmcs, int32_t *ret_pid)
{
	const struct stream *st;
	uint64_t tsc;
	uint32_t id;

	if (!pt_vm_scan_first(s->scan, i, ret_vmcs, &id, &tsc))
		return false;
	st = pt_session_stream(s, id);
	*ret_pid = st ? st->info.tid > 0 ? st->info.pid : who_at(s, st->info.cpu, tsc) : -1;
	return true;
}

static void bind(struct session *s)
{
	uint64_t vmcs;
	int32_t pid;

	for (size_t i = 0; owner(s, i, &vmcs, &pid); i++)
		if (pid > 0)
			pt_vm_bind(s->vm, vmcs, pid);
}

/* Each VM whose guest's sideband there is has run. */
static bool all_seen(struct session *s)
{
	for (uint32_t k = 0; k < s->attr_count; k++) {
		uint64_t vmcs;
		int32_t pid = -1;
		size_t i = 0;

		if (!s->attrs[k] || s->attrs[k]->pid <= 0)
			continue;
		while (owner(s, i, &vmcs, &pid) && pid != s->attrs[k]->pid)
			i++;
		if (pid != s->attrs[k]->pid)
			return false;
	}
	return true;
}

/* What --tsc-offset says and the guest does not. */
static void doubt(struct session *s)
{
	for (struct pt_machine *m = pt_machines_first(s->machines); m; m = m->next) {
		uint64_t off = m->pid > 0 ? pt_vm_contradicted(s->vm, m) : 0;
		char text[160];

		if (!off)
			continue;
		m->contradicted = true;
		snprintf(text, sizeof text,
			 "--tsc-offset is off by %" PRIu64
			 " ticks or more: it is not known which processes of %.40s run, nor when",
			 off, m->name);
		pt_emit_error(&s->emit, 0, -1, PTR_NO_TSC, "clock", text);
	}
}

int pt_session_hold(struct session *s, const struct ptc_aux *aux, uint32_t stream, struct pt_error *e)
{
	if (s->clocks_known || !s->waiting)
		return 0;
	if (!s->scan)
		s->scan = pt_vm_scan_create(&s->clock, pt_vm_clocks_of(s->vm));
	if (!s->scan || pt_vm_scan_feed(s->scan, stream, aux->aux_offset, aux->bytes, aux->size,
					aux->flags & PTC_AUX_TRUNCATED) < 0)
		return pt_fail_no_memory(e, NULL);
	s->held_bytes += aux->size;
	return 1;
}

int pt_session_release(struct session *s, bool last, struct pt_error *e)
{
	if (!s->scan)
		return 0;
	if (pt_vm_scan_flush(s->scan) < 0)
		return pt_fail_no_memory(e, NULL);
	if (!last && s->held_bytes < HOLD_BYTES_MAX &&
	    !(pt_vm_clocks_settled(pt_vm_clocks_of(s->vm)) && pt_vm_clocks_tested(pt_vm_clocks_of(s->vm)) &&
	      all_seen(s)))
		return 1;
	bind(s);
	doubt(s);
	pt_vm_clocks_recount(pt_vm_clocks_of(s->vm));
	pt_vm_scan_destroy(s->scan);
	s->scan = NULL;
	s->clocks_known = true;
	return pt_session_queue_waiting(s, false, e);
}
