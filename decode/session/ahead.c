/*
 * ahead.c - sideband records that are applied ahead of their time.
 *
 * Between two timing packets a stream's time stands still, so the trace may already show what a record,
 * whose time is exact, reports a little later: a switch to the process whose CR3 the flow has just seen, or to
 * one that has code where the flow is, or the mapping of that code. Such a record is looked for up to
 * window_tsc ahead. It is applied together with those of the same context, or process, that come before it.
 *
 * But where the flow has come past the kernel's own switch to what runs, no other one has been made; nor an
 * exec, as long as the CR3 is that of before.
 */
#include "decode/session/internal.h"

/* A flow reaches the kernel's switch at nearly its right time: the window is smaller by this. */
#define SWITCH_WINDOW_DIVISOR 50

static uint64_t limit_tsc(const struct stream *st, uint64_t window_tsc)
{
	uint64_t tsc = pt_flow_tsc(st->flow);

	return tsc == PT_CLOCK_UNKNOWN || window_tsc > UINT64_MAX - tsc ? UINT64_MAX : tsc + window_tsc;
}

/* True if there was a record for the filter and it, with those before it, could be applied. */
static bool apply_until(struct session *s, uint64_t limit, const struct record_filter *filter)
{
	struct pt_sideband_record *record, *rest;
	struct pt_error e;

	if (s->failed)
		return false;
	rest = pt_session_queue_take_until(s, limit, filter);
	if (!rest)
		return false;
	while ((record = rest)) {
		rest = record->next;
		if (!s->failed && pt_session_apply(s, record, &e) < 0)
			pt_session_fail(s, &e);
		pt_session_record_free(s, record);
	}
	return !s->failed;
}

/* ---- Switches --------------------------------------------------------------------------------------- */

/* A switch in the context, to what. */
struct wanted_switch {
	struct session *session;
	const struct pt_cpu_context *cpu_context;
	enum { TO_PROCESS = 1, TO_TASK, TO_USER_CODE, TO_ANOTHER, TO_CODE_AT, TO_EXEC, FROM_ANY } to;
	const struct pt_process *process; /* TO_PROCESS */
	const struct pt_task *task;	  /* TO_TASK */
	uint64_t ip;			  /* TO_CODE_AT */
};

/* An exec of what runs in the context will do. */
static bool may_be_exec(const struct wanted_switch *w)
{
	return (w->to == TO_USER_CODE || w->to == TO_EXEC) && w->cpu_context->task;
}

static bool is_of_context(const struct pt_sideband_record *record, const void *arg)
{
	const struct wanted_switch *w = arg;
	const struct pt_cpu_context *cpu_context = w->cpu_context;

	if (record->machine != cpu_context->machine)
		return false;
	if (may_be_exec(w) && (pt_sideband_effect(record) & PT_SIDEBAND_CODE))
		return pt_sideband_pid(record) == cpu_context->task->pid;
	return w->to != TO_EXEC && (pt_sideband_effect(record) & PT_SIDEBAND_SWITCH) &&
	       pt_session_context_of(w->session, record) == cpu_context;
}

static bool has_code_at(struct pt_task *task, uint64_t ip)
{
	return task && img_space_find(&task->process->space, ip);
}

static bool is_wanted_switch(const struct pt_sideband_record *record, const void *arg)
{
	const struct wanted_switch *w = arg;
	struct pt_tasks *tasks = record->machine->tasks;
	int32_t pid, tid;

	if (may_be_exec(w) && pt_sideband_execs(record, w->cpu_context->task->pid))
		return true;
	if (!pt_sideband_switched(record, &pid, &tid))
		return false;
	switch (w->to) {
	case TO_PROCESS: return pid == w->process->pid;
	case TO_TASK: return tid == w->task->tid;
	case TO_USER_CODE: return pt_session_has_user_code(pt_tasks_get(tasks, pid, tid));
	case TO_CODE_AT: return has_code_at(pt_tasks_get(tasks, pid, tid), w->ip);
	default: return pt_tasks_get(tasks, pid, tid) != w->cpu_context->task;
	}
}

static bool says_who_ran(const struct pt_sideband_record *record, const void *arg)
{
	int32_t pid, tid;

	(void)arg;
	return pt_sideband_ran_before(record, &pid, &tid);
}

static bool says_who_runs_next(const struct pt_sideband_record *record, const void *arg)
{
	int32_t pid, tid;

	(void)arg;
	return !pt_sideband_ran_before(record, &pid, &tid) && pt_sideband_switched(record, &pid, &tid);
}

static bool apply_switch(struct stream *st, const struct wanted_switch *wanted, uint64_t window_tsc)
{
	const void *to = wanted->to == TO_PROCESS ? (const void *)wanted->process
			 : wanted->to == TO_TASK  ? (const void *)wanted->task
						  : (const void *)wanted->cpu_context->task;
	/* Which threads have user code changes. */
	uint64_t code = wanted->to == TO_USER_CODE ? wanted->session->code_begins : 0;
	const struct record_filter filter = {
	    .key = {(uintptr_t)wanted->cpu_context, code << 3 | wanted->to,
		    wanted->to == TO_CODE_AT ? wanted->ip : (uintptr_t)to},
	    .matches = is_of_context,
	    .is_last = is_wanted_switch,
	    /* What runs until the first switch is who it is from. */
	    .ends = wanted->to == TO_USER_CODE && !wanted->cpu_context->task ? says_who_ran : NULL,
	    .arg = wanted};

	return apply_until(st->session, limit_tsc(st, window_tsc), &filter);
}

/* The flow shows that the switch has happened, so it does not wait. */
static bool ahead_to(struct stream *st, struct pt_cpu_context *cpu_context,
		     const struct wanted_switch *wanted)
{
	bool found = apply_switch(st, wanted, st->session->window_tsc);

	if (found)
		pt_session_switch_late(st, cpu_context);
	return found;
}

bool pt_session_ahead_to_process(struct stream *st, struct pt_cpu_context *cpu_context,
				 const struct pt_process *process)
{
	const struct wanted_switch wanted = {
	    .session = st->session, .cpu_context = cpu_context, .to = TO_PROCESS, .process = process};

	return ahead_to(st, cpu_context, &wanted);
}

bool pt_session_ahead_to_task(struct stream *st, struct pt_cpu_context *cpu_context,
			      const struct pt_task *task)
{
	const struct wanted_switch wanted = {
	    .session = st->session, .cpu_context = cpu_context, .to = TO_TASK, .task = task};

	return ahead_to(st, cpu_context, &wanted);
}

bool pt_session_ahead_to_user_code(struct stream *st, struct pt_cpu_context *cpu_context)
{
	const struct wanted_switch wanted = {
	    .session = st->session, .cpu_context = cpu_context, .to = TO_USER_CODE};

	return ahead_to(st, cpu_context, &wanted);
}

bool pt_session_ahead_to_exec(struct stream *st, struct pt_cpu_context *cpu_context)
{
	const struct wanted_switch wanted = {
	    .session = st->session, .cpu_context = cpu_context, .to = TO_EXEC};

	return apply_switch(st, &wanted, st->session->window_tsc);
}

const struct pt_task *pt_session_ran_before(struct stream *st, const struct pt_cpu_context *cpu_context)
{
	const struct wanted_switch wanted = {
	    .session = st->session, .cpu_context = cpu_context, .to = FROM_ANY};
	const struct record_filter filter = {.key = {(uintptr_t)cpu_context, FROM_ANY},
					     .matches = is_of_context,
					     .is_last = says_who_ran,
					     .ends = says_who_runs_next,
					     .arg = &wanted};
	struct pt_machine *m = cpu_context->machine;
	const struct pt_sideband_record *record;
	int32_t pid, tid;

	/* A host's events count before its trace begins; a guest's begin some time in it. */
	if (m->pid && !m->recorded)
		return NULL;
	record = pt_session_queue_find(st->session, limit_tsc(st, st->session->window_tsc), &filter);
	return record && pt_sideband_ran_before(record, &pid, &tid) ? pt_tasks_get(m->tasks, pid, tid) : NULL;
}

void pt_session_on_switching(void *arg, struct pt_flow *f)
{
	struct stream *st = arg;
	const struct wanted_switch wanted = {
	    .session = st->session, .cpu_context = st->cpu_context, .to = TO_ANOTHER};
	uint64_t window_tsc = st->session->window_tsc;
	bool found;

	(void)f;
	/* Where the flow came into sync between the record of a switch and the switch, that was made then. */
	found = st->cpu_context->late || st->cpu_context->switching ||
		apply_switch(st, &wanted,
			     window_tsc == UINT64_MAX ? window_tsc : window_tsc / SWITCH_WINDOW_DIVISOR);
	pt_session_switch_late(st, st->cpu_context);
	pt_session_switch_seen(st, st->cpu_context, found);
}

/* ---- Mappings --------------------------------------------------------------------------------------- */

/* Code at ip of a process (PTC_ANY_PID: the kernel). */
struct wanted_code {
	const struct pt_machine *machine;
	int32_t pid;
	uint64_t ip;
};

static bool is_of_process(const struct pt_sideband_record *record, const void *arg)
{
	const struct wanted_code *w = arg;

	return record->machine == w->machine && (pt_sideband_effect(record) & PT_SIDEBAND_CODE) &&
	       pt_sideband_pid(record) == w->pid;
}

static bool execs_wanted(const struct pt_sideband_record *record, const void *arg)
{
	const struct wanted_code *w = arg;

	return pt_sideband_execs(record, w->pid);
}

/* The CR3 is the one that the process had before: an exec gives it another one, which is seen where the kernel
 * is. (Where its code is missing meanwhile, packets are not.) */
static bool is_before_exec(const struct stream *st)
{
	const struct pt_cpu_context *cpu_context = st->cpu_context;
	uint64_t cr3 = pt_session_page_tables(pt_flow_cr3(st->flow));

	return cr3 && cpu_context->task && cpu_context->switch_seen &&
	       pt_machine_process(cpu_context->machine, cr3) == cpu_context->task->process;
}

static bool maps_wanted(const struct pt_sideband_record *record, const void *arg)
{
	const struct wanted_code *w = arg;

	return pt_sideband_maps(record, w->pid, w->ip);
}

/*
 * Where user space only is traced nothing shows a switch between two threads whose events stay on, as where
 * both have inherited them, but that the code is another's. Only where time is known well, and where what runs
 * is known and has nothing there: what is not known may have code anywhere.
 */
static bool ahead_to_code_at(struct stream *st, uint64_t ip)
{
	struct pt_task *task = st->cpu_context->task;
	const struct wanted_switch wanted = {
	    .session = st->session, .cpu_context = st->cpu_context, .to = TO_CODE_AT, .ip = ip};

	return st->session->window_tsc != UINT64_MAX && pt_session_has_user_code(task) &&
	       !has_code_at(task, ip) && ahead_to(st, st->cpu_context, &wanted);
}

bool pt_session_on_missing(void *arg, struct pt_flow *f, uint64_t ip)
{
	struct stream *st = arg;
	struct wanted_code wanted = {.machine = st->cpu_context->machine, .pid = PTC_ANY_PID, .ip = ip};
	struct record_filter filter = {.matches = is_of_process, .is_last = maps_wanted, .arg = &wanted};

	(void)f;
	if (pt_session_is_unknown_nested(st->cpu_context))
		return false;
	if (!(ip >> 63 && pt_flow_kernel_code(st->flow))) {
		if (!st->cpu_context->task)
			return false;
		wanted.pid = st->cpu_context->task->pid;
		filter.ends = is_before_exec(st) ? execs_wanted : NULL;
	}
	filter.key[0] = (uintptr_t)wanted.machine;
	filter.key[1] = (uint64_t)(uint32_t)wanted.pid << 3 | (filter.ends ? 7 : 0);
	filter.key[2] = ip;
	return apply_until(st->session, limit_tsc(st, st->session->window_tsc), &filter) ||
	       (wanted.pid != PTC_ANY_PID && !pt_flow_kernel_code(st->flow) && ahead_to_code_at(st, ip));
}
