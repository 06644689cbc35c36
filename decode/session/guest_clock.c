/*
 * guest_clock.c - looks for a guest's clock in AUX data before that is decoded; and for when a stream
 * began that begins in a guest, as snapshots do.
 *
 * A guest's sideband has the guest's time. If the recording does not say how that relates to the host's,
 * TSC packets in the guest do. But what the guest mapped must be known when its code is reached. So AUX
 * data is scanned first (vm/scan.h), and decoding waits until the clocks are settled, for HELD_BYTES_MAX at
 * most. Whether the container is a file or a pipe makes no difference.
 */
#include <inttypes.h>
#include <stdio.h>

#include "decode/session/internal.h"
#include "schema/array.h"

#define HELD_BYTES_MAX ((uint64_t)64 << 20)

/* ---- VMCS and VM process ---------------------------------------------------------------------------- */

/*
 * The pid that runs on the host's CPU at all times from one TSC to another, by the sideband that was not
 * applied yet; -1 unknown.
 */
static int32_t pid_between(const struct session *s, int32_t cpu, uint64_t lo, uint64_t hi)
{
	const struct record_queue *q = &s->queue;
	int32_t found = -1, pid, tid;

	for (size_t i = q->first; i < q->end && q->records[i]->tsc <= hi; i++) {
		const struct pt_sideband_record *record = q->records[i];

		if (record->machine != s->host || record->cpu != cpu || record->memory ||
		    !(pt_sideband_effect(record) & PT_SIDEBAND_SWITCH) ||
		    !pt_sideband_switched(record, &pid, &tid))
			continue;
		if (record->tsc > lo && pid != found)
			return -1;
		found = pid;
	}
	return found;
}

/* The i-th VMCS of the scan (from 0) and the pid of its VM process, -1 unknown. False: there is no i-th. */
static bool vmcs_at(struct session *s, size_t i, uint64_t *ret_vmcs, int32_t *ret_pid)
{
	const struct stream *st;
	struct pt_vm_first first;

	if (!pt_vm_scan_first(s->guest_clock.scan, i, &first))
		return false;
	*ret_vmcs = first.vmcs;
	st = pt_session_stream(s, first.stream);
	*ret_pid = !st		      ? -1
		   : st->info.tid > 0 ? st->info.pid
				      : pid_between(s, st->info.cpu, first.host_lo, first.host_hi);
	return true;
}

static void bind_vmcs_to_vms(struct session *s)
{
	uint64_t vmcs;
	int32_t pid;

	for (size_t i = 0; vmcs_at(s, i, &vmcs, &pid); i++)
		if (pid > 0)
			pt_vm_bind(s->vm, vmcs, pid);
}

static bool has_vmcs(struct session *s, int32_t pid)
{
	uint64_t vmcs;
	int32_t owner;

	for (size_t i = 0; vmcs_at(s, i, &vmcs, &owner); i++)
		if (owner == pid)
			return true;
	return false;
}

/* Whether each VM of which there is a guest's sideband has been seen running. */
static bool all_vms_ran(struct session *s)
{
	for (size_t i = 0; i < s->attr_count; i++)
		if (s->attr_machines[i]->pid > 0 && !has_vmcs(s, s->attr_machines[i]->pid))
			return false;
	return true;
}

/* ---- The scan --------------------------------------------------------------------------------------- */

/* Reports each --tsc-offset that is not the guest's clock. The guest's sideband is then used without its
 * times. */
static void check_offsets(struct session *s)
{
	for (struct pt_machine *m = pt_machines_first(s->machines); m; m = m->next) {
		uint64_t off_tsc = m->pid > 0 ? pt_vm_contradicted(s->vm, m) : 0;
		char text[160];

		if (!off_tsc)
			continue;
		m->contradicted = true;
		snprintf(text, sizeof text,
			 "--tsc-offset is off by %" PRIu64
			 " ticks or more: it is not known which processes of %.40s run, nor when",
			 off_tsc, m->name);
		pt_emit_error(&s->emit, 0, -1, PTR_NO_TSC, "clock", text);
	}
}

/* Whether the AUX data has the stream's first PSB+, or the first after a gap, and that is in a guest. */
static bool begins_in_guest(const struct session *s, struct stream *st, const struct ptc_aux *aux)
{
	uint64_t seen = 0;

	if (s->timeless)
		return false;
	if (st->end_offset == UINT64_MAX || aux->aux_offset > st->end_offset)
		st->first_psb = (struct pt_first_psb){0};
	else
		seen = st->end_offset - aux->aux_offset;
	return seen < aux->size && pt_first_psb_in_guest(&st->first_psb, aux->bytes + seen, aux->size - seen);
}

/* The bytes in which the first PSB+ may begin, where AUX data ended before it was whole. */
static int feed_last(struct pt_vm_scan *scan, const struct stream *st)
{
	const struct ptc_aux last = {.aux_offset = st->end_offset - st->first_psb.count,
				     .bytes = st->first_psb.last,
				     .size = st->first_psb.count};

	return last.size ? pt_vm_scan_feed(scan, st->id, &last) : 0;
}

int pt_session_scan_aux(struct session *s, struct stream *st, const struct ptc_aux *aux, struct pt_error *e)
{
	struct guest_clock_search *g = &s->guest_clock;
	bool begins = begins_in_guest(s, st, aux);

	if (!g->scan && !(s->queue.waiting && !g->done) && !begins)
		return 0;
	if (!g->scan) {
		g->scan = pt_vm_scan_create(&s->clock, pt_vm_clocks_of(s->vm));
		g->scanned_bytes = 0;
	}
	if (!g->scan || (begins && feed_last(g->scan, st) < 0) || pt_vm_scan_feed(g->scan, st->id, aux) < 0)
		return pt_fail_no_memory(e, NULL);
	g->scanned_bytes += aux->size;
	return 0;
}

static int keep_begins(struct session *s, struct pt_error *e)
{
	struct guest_clock_search *g = &s->guest_clock;
	struct pt_vm_begin begin;

	for (size_t i = 0; pt_vm_scan_begin(g->scan, i, &begin); i++) {
		if (pt_array_grow(&g->begins, g->begin_count, &g->begin_room, e) < 0)
			return -1;
		g->begins[g->begin_count++] = begin;
	}
	return 0;
}

uint64_t pt_session_begin_tsc(const struct session *s, const struct stream *st, uint64_t guest_tsc)
{
	const struct guest_clock_search *g = &s->guest_clock;

	for (size_t i = 0; i < g->begin_count; i++)
		if (g->begins[i].stream == st->id && g->begins[i].guest_tsc == guest_tsc)
			return g->begins[i].host_tsc;
	return PT_CLOCK_UNKNOWN;
}

/* Whether more AUX data may help: the scan for a guest's sideband, or for where streams begin. */
static bool goes_on(struct session *s, bool for_sideband)
{
	const struct pt_vm_clocks *clocks = pt_vm_clocks_of(s->vm);

	return pt_vm_scan_waits(s->guest_clock.scan) ||
	       (for_sideband &&
		!(pt_vm_clocks_settled(clocks) && pt_vm_clocks_tested(clocks) && all_vms_ran(s)));
}

int pt_session_scan_end(struct session *s, bool last, struct pt_error *e)
{
	struct guest_clock_search *g = &s->guest_clock;
	bool for_sideband = s->queue.waiting && !g->done;

	if (!g->scan)
		return 0;
	if (pt_vm_scan_flush(g->scan) < 0)
		return pt_fail_no_memory(e, NULL);
	if (!last && g->scanned_bytes < HELD_BYTES_MAX && goes_on(s, for_sideband))
		return 1;
	if (keep_begins(s, e) < 0)
		return -1;
	bind_vmcs_to_vms(s);
	if (for_sideband)
		check_offsets(s);
	pt_vm_clocks_recount(pt_vm_clocks_of(s->vm));
	pt_vm_scan_destroy(g->scan);
	g->scan = NULL;
	g->done |= for_sideband;
	return pt_session_queue_waiting(s, false, e);
}
