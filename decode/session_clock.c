/*
 * session_clock.c - a session with a guest's sideband whose clock was not told: the guest's TSC is looked for in the AUX data
 * before that is decoded. See session.h.
 */
#include "decode/session_internal.h"

#define HOLD_BYTES_MAX ((uint64_t)64 << 20) /* of AUX data, kept until a guest's clock is settled */

/* Who runs on the CPU at a host TSC, by the sideband that waits: its pid, or -1. */
static int32_t who_at(const struct session *s, int32_t cpu, uint64_t tsc)
{
	int32_t who = -1, pid, tid;

	for (size_t i = s->queue_at; i < s->queue_count && s->queue[i]->tsc <= tsc; i++) {
		const struct pt_side *side = s->queue[i];

		if (side->machine == s->host && side->cpu == cpu && !side->memory &&
		    (pt_side_effect(side) & PT_SIDE_SWITCH) && pt_side_switched(side, &pid, &tid))
			who = pid;
	}
	return who;
}

static void bind(struct session *s)
{
	uint64_t vmcs, tsc;
	uint32_t id;

	for (size_t i = 0; pt_vm_scan_first(s->scan, i, &vmcs, &id, &tsc); i++) {
		const struct stream *st = pt_session_stream(s, id);
		int32_t pid = st ? st->info.tid > 0 ? st->info.pid : who_at(s, st->info.cpu, tsc) : -1;

		if (pid > 0)
			pt_vm_bind(s->vm, vmcs, pid);
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
		return pt_session_no_memory(e);
	s->held_bytes += aux->size;
	return 1;
}

int pt_session_release(struct session *s, bool last, struct pt_error *e)
{
	if (!s->scan)
		return 0;
	if (pt_vm_scan_flush(s->scan) < 0)
		return pt_session_no_memory(e);
	if (!last && s->held_bytes < HOLD_BYTES_MAX && !pt_vm_clocks_settled(pt_vm_clocks_of(s->vm)))
		return 1;
	bind(s);
	pt_vm_clocks_recount(pt_vm_clocks_of(s->vm));
	pt_vm_scan_destroy(s->scan);
	s->scan = NULL;
	s->clocks_known = true;
	return pt_session_queue_waiting(s, false, e);
}
