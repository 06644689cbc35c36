/* queue.c - a session's sideband: kept until its time has come, then applied. See session.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/session/internal.h"
#include "decode/sideband/apply.h"

/* ---- Time ------------------------------------------------------------------------------------------- */

static uint64_t meta_number(struct session *s, const char *group, int32_t pid, const char *key,
			    uint64_t otherwise)
{
	char name[96];

	snprintf(name, sizeof name, "%s.%" PRId32 ".%s", group, pid, key);
	return ptc_meta_number(s->meta, name, otherwise);
}

/* A guest's record: perf clock of the guest to guest TSC, and that to the host's. False: not known yet. Those of a vCPU
 * are to come in their order, for a TSC that was set back says one time twice. */
bool pt_session_timeless(const struct session *s, const struct pt_machine *m)
{
	return s->timeless || m->contradicted;
}

static bool guest_time(struct session *s, struct pt_sideband_record *side)
{
	struct pt_cpu_context *cpu_context =
	    side->cpu >= 0 ? pt_machine_cpu_context(side->machine, side->cpu) : NULL;
	int32_t pid = side->machine->pid;
	struct pt_conversion c = {.zero = meta_number(s, "machine", pid, "time_zero", 0),
				  .mult = (uint32_t)meta_number(s, "machine", pid, "time_mult", 0),
				  .shift = (uint32_t)meta_number(s, "machine", pid, "time_shift", 0) & 63};
	uint64_t offset, guest = pt_ns_to_tsc(&c, side->time_ns);

	offset = meta_number(s, "machine", pid, "clock_offset_ns", UINT64_MAX);
	if (guest == PTR_NO_TSC && offset != UINT64_MAX) {
		side->tsc = pt_ns_to_tsc(&s->conversion, side->time_ns + offset);
		return true;
	}
	/* An option is not believed before the trace has been asked. */
	if (s->tsc_offsets && s->tsc_offsets->count && !s->clocks_known)
		return false;
	if (!s->emit.vm || !s->emit.vm->host_time(s->emit.vm_arg, side->machine, side->cpu, guest,
						  cpu_context ? cpu_context->queued_tsc : 0, &side->tsc))
		return false;
	if (cpu_context)
		cpu_context->queued_tsc = side->tsc;
	return true;
}

/* Sets side->tsc. Without time, the order of the container is all that is known. */
static bool set_time(struct session *s, struct pt_sideband_record *side)
{
	if (side->mark)
		return true;
	side->tsc = 0;
	if (pt_session_timeless(s, side->machine) || side->time_ns == 0)
		return true;
	if (side->machine->pid)
		return guest_time(s, side);
	side->tsc = pt_ns_to_tsc(&s->conversion, side->time_ns);
	if (side->tsc == PTR_NO_TSC)
		side->tsc = 0;
	return true;
}

/* ---- The queue -------------------------------------------------------------------------------------- */

/* Where it belongs: behind all that are not younger. */
static size_t place_of(const struct session *s, uint64_t tsc)
{
	size_t low = s->queue_at, high = s->queue_count;

	/* Most come in order. */
	if (low == high || s->queue[high - 1]->tsc <= tsc)
		return high;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->queue[middle]->tsc <= tsc)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A guest's records may all be there before the host's first, which then come in front of them: there is room at both
 * ends, and the shorter one moves. */
static int insert(struct session *s, struct pt_sideband_record *side, struct pt_error *e)
{
	size_t i = place_of(s, side->tsc), live = s->queue_count - s->queue_at;
	bool front = i - s->queue_at < s->queue_count - i;

	if (front ? s->queue_at == 0 : s->queue_count == s->queue_room) {
		size_t room = 4 * live + 256, at = (room - live) / 2;
		/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers */
		struct pt_sideband_record **q = malloc(room * sizeof *q);

		if (!q) {
			free(side);
			return pt_fail_no_memory(e, NULL);
		}
		if (live)
			memcpy(q + at, s->queue + s->queue_at, live * sizeof(struct pt_sideband_record *));
		free(s->queue);
		s->queue = q;
		s->queue_room = room;
		i += at - s->queue_at;
		s->queue_at = at;
		s->queue_count = at + live;
	}
	if (front) {
		memmove(s->queue + s->queue_at - 1, s->queue + s->queue_at,
			(i - s->queue_at) * sizeof(struct pt_sideband_record *));
		s->queue_at--;
		i--;
	} else {
		memmove(s->queue + i + 1, s->queue + i,
			(s->queue_count - i) * sizeof(struct pt_sideband_record *));
		s->queue_count++;
	}
	s->queue[i] = side;
	return 0;
}

int pt_session_queue(struct session *s, struct pt_sideband_record *side, struct pt_error *e)
{
	if (pt_session_keep(s, pt_session_sideband_bytes(side), e) < 0) {
		free(side);
		return -1;
	}
	side->order = s->order++;
	if (set_time(s, side))
		return insert(s, side, e);
	side->next = NULL;
	*s->waiting_last = side;
	s->waiting_last = &side->next;
	return 0;
}

int pt_session_queue_waiting(struct session *s, bool all, struct pt_error *e)
{
	struct pt_sideband_record *side, *first = s->waiting;

	s->waiting = NULL;
	s->waiting_last = &s->waiting;
	while ((side = first)) {
		first = side->next;
		if (set_time(s, side) || all) {
			if (insert(s, side, e) < 0) {
				*s->waiting_last = first;
				return -1;
			}
			continue;
		}
		side->next = NULL;
		*s->waiting_last = side;
		s->waiting_last = &side->next;
	}
	return 0;
}

static int by_order(const void *a, const void *b)
{
	const struct pt_sideband_record *x = *(struct pt_sideband_record *const *)a,
					*y = *(struct pt_sideband_record *const *)b;

	return x->order < y->order ? -1 : x->order > y->order;
}

int pt_session_retime(struct session *s, struct pt_error *e)
{
	struct pt_sideband_record *first = s->waiting, **sides, *side;
	size_t to = s->queue_at, count = 0;

	/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers */
	sides = malloc((s->queue_count - s->queue_at + 1) * sizeof *sides);
	if (!sides)
		return pt_fail_no_memory(e, NULL);
	for (size_t i = s->queue_at; i < s->queue_count; i++) {
		if (s->queue[i]->machine->pid && s->queue[i]->time_ns)
			sides[count++] = s->queue[i];
		else
			s->queue[to++] = s->queue[i];
	}
	s->queue_count = to;
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers */
	qsort(sides, count, sizeof *sides, by_order);
	/* What waited still came behind them. */
	while (count--) {
		side = sides[count];
		side->next = first;
		if (!first)
			s->waiting_last = &side->next;
		first = side;
	}
	free(sides);
	s->waiting = first;
	for (struct pt_machine *m = pt_machines_first(s->machines); m; m = m->next)
		for (struct pt_cpu_context *cpu_context = m->cpu_contexts; cpu_context;
		     cpu_context = cpu_context->next)
			cpu_context->queued_tsc = cpu_context->applied_tsc;
	return pt_session_queue_waiting(s, false, e);
}

void pt_session_sideband_free(struct session *s)
{
	for (size_t i = s->queue_at; i < s->queue_count; i++)
		free(s->queue[i]);
	free(s->queue);
	while (s->waiting) {
		struct pt_sideband_record *side = s->waiting;

		s->waiting = side->next;
		free(side);
	}
}

bool pt_session_ahead(struct session *s, uint64_t now, uint64_t window_tsc,
		      bool (*matches)(const struct pt_sideband_record *side, void *arg),
		      bool (*wanted)(const struct pt_sideband_record *side, void *arg), void *arg)
{
	struct pt_sideband_record *side, *first = NULL;
	size_t i, k, last = SIZE_MAX;

	if (s->failed)
		return false;
	for (i = s->queue_at; i < s->queue_count; i++) {
		side = s->queue[i];
		if (now != PT_CLOCK_UNKNOWN && side->tsc > now && side->tsc - now > window_tsc)
			break;
		if (matches(side, arg) && wanted(side, arg)) {
			last = i;
			break;
		}
	}
	if (last == SIZE_MAX)
		return false;
	/* What is left moves up to the many behind. */
	for (i = k = last + 1; k-- > s->queue_at;) {
		side = s->queue[k];
		if (matches(side, arg)) {
			side->next = first;
			first = side;
		} else {
			s->queue[--i] = side;
		}
	}
	s->queue_at = i;
	while ((side = first)) {
		first = side->next;
		if (!s->failed && pt_session_apply(s, side, &s->error) < 0)
			s->failed = true;
		s->kept_bytes -= pt_session_sideband_bytes(side);
		free(side);
	}
	return !s->failed;
}

/* ---- Applying --------------------------------------------------------------------------------------- */

/* Streams whose flow may stand in code of the machine's process (PTC_ANY_PID: its kernel), or return to it: a guest to
 * the host's kernel. */
static bool touches(const struct stream *st, const struct pt_machine *m, int32_t pid)
{
	if (st->cpu_context->machine != m)
		return pid == PTC_ANY_PID && st->cpu.machine == m;
	return pid == PTC_ANY_PID ||
	       (st->flow.user && st->cpu_context->task && st->cpu_context->task->pid == pid);
}

static void resume(struct session *s, struct pt_machine *m, int32_t pid)
{
	for (struct stream *st = s->streams; st; st = st->next) {
		if (!touches(st, m, pid))
			continue;
		if (pid == PTC_ANY_PID)
			pt_code_refresh(&s->graph, m->code);
		else
			pt_code_refresh(&s->graph, st->cpu_context->task->process->code);
		pt_flow_resume(&st->flow);
	}
}

/* It stands in user code of nobody knows whom. */
static bool runs_unknown_process(const struct stream *st, const struct pt_machine *m)
{
	return m->unknown_process.code && st->flow.user == m->unknown_process.code;
}

static int apply_code(struct session *s, const struct pt_sideband_record *side, struct pt_error *e)
{
	int32_t pid = pt_sideband_pid(side);
	bool disturbs = pt_sideband_disturbs(side);
	/* A new name makes a new thread of it: its slices end here. */
	bool rename = !side->memory && disturbs && pid != PTC_ANY_PID;
	int r;

	for (struct stream *st = s->streams; st && disturbs; st = st->next)
		if (touches(st, side->machine, pid))
			pt_flow_pause(&st->flow, rename);
	side->machine->timeless = side->machine->pid && pt_session_timeless(s, side->machine);
	for (struct stream *st = s->streams; st; st = st->next)
		if (runs_unknown_process(st, side->machine))
			pt_flow_pause(&st->flow, false);
	r = pt_sideband_apply(side, e);
	for (struct stream *st = s->streams; st; st = st->next) {
		if (!runs_unknown_process(st, side->machine))
			continue;
		pt_code_refresh(&s->graph, side->machine->unknown_process.code);
		pt_flow_resume(&st->flow);
	}
	if (disturbs)
		resume(s, side->machine, pid);
	/* A kernel whose first code comes now. */
	for (struct stream *st = s->streams; st; st = st->next)
		if (st->cpu_context->machine == side->machine && !st->flow.kernel)
			pt_session_codes(st);
	return r;
}

/* The slice that runs where the record was written. */
static uint32_t slice_of(const struct session *s, const struct pt_sideband_record *side)
{
	for (const struct stream *st = s->streams; st; st = st->next)
		if (side->machine == s->host && st->flow.in_slice &&
		    (st->info.tid > 0 ? st->info.tid == side->tid : st->info.cpu == side->cpu))
			return st->out.slice;
	return 0;
}

/* A switch to somebody of whom no code is known, nor of the kernel: without time nobody knows what ran before it and
 * what behind, but he has not been traced. (Captures of some tasks have the switches to all others, too.) */
static bool codeless(const struct pt_sideband_record *side)
{
	struct pt_process *process;
	int32_t pid, tid;

	if (side->machine->space.count || !pt_sideband_switched(side, &pid, &tid))
		return false;
	process = pt_tasks_process(side->machine->tasks, pid);
	return !process || !process->space.count;
}

int pt_session_apply(struct session *s, const struct pt_sideband_record *side, struct pt_error *e)
{
	unsigned effect = pt_sideband_effect(side);
	struct pt_cpu_context *cpu_context;
	int32_t pid, tid;

	if (effect & PT_SIDEBAND_MARK) {
		pt_session_mark(s, side);
		return 0;
	}
	if (side->machine->pid && side->cpu >= 0 && side->tsc &&
	    (cpu_context = pt_machine_cpu_context(side->machine, side->cpu)))
		cpu_context->applied_tsc = side->tsc;
	if ((effect & PT_SIDEBAND_EVENT) && pt_session_wants_event(s, side))
		pt_session_events_put(s->events, side, &s->emit, s->vm, slice_of(s, side));
	if (effect & PT_SIDEBAND_CODE)
		return apply_code(s, side, e);
	if (effect & PT_SIDEBAND_SWITCH) {
		/* Without time nobody knows who of a guest runs. */
		if (side->machine->pid && pt_session_timeless(s, side->machine))
			return 0;
		if (pt_session_timeless(s, side->machine) && codeless(side))
			return 0;
		if (pt_session_moved(s, side, e) < 0)
			return -1;
		cpu_context = pt_sideband_switched(side, &pid, &tid) ? pt_session_cpu_context(s, side) : NULL;
		return cpu_context ? pt_session_switch(s, cpu_context, pid, tid, e) : 0;
	}
	if (effect & PT_SIDEBAND_EXIT)
		pt_sideband_exit(side);
	if (effect & PT_SIDEBAND_LOST)
		pt_emit_error(&s->emit, 0, side->cpu, side->tsc ? side->tsc : PTR_NO_TSC, "lost sideband",
			      "the kernel lost sideband records: mappings may be missing");
	return 0;
}

/* ---- Missing code ----------------------------------------------------------------------------------- */

struct wanted {
	const struct pt_machine *machine;
	int32_t pid;
	uint64_t ip;
};

static bool of_process(const struct pt_sideband_record *side, void *arg)
{
	const struct wanted *w = arg;

	return side->machine == w->machine && (pt_sideband_effect(side) & PT_SIDEBAND_CODE) &&
	       pt_sideband_pid(side) == w->pid;
}

static bool maps(const struct pt_sideband_record *side, void *arg)
{
	const struct wanted *w = arg;

	return pt_sideband_maps(side, w->pid, w->ip);
}

/* A stream has come to code that is not there. Time between its timing packets is uncertain: what is about to be
 * mapped may be there already. */
bool pt_session_missing(void *arg, struct pt_emit_stream *out, uint64_t ip)
{
	struct stream *st = arg;
	struct wanted w = {.machine = st->cpu_context->machine, .pid = PTC_ANY_PID, .ip = ip};

	(void)out;
	if (!(ip >> 63 && st->flow.kernel)) {
		if (!st->cpu_context->task)
			return false;
		w.pid = st->cpu_context->task->pid;
	}
	return pt_session_ahead(st->session, st->flow.clock.tsc, st->session->window_tsc, of_process, maps,
				&w);
}
