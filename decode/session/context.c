/*
 * context.c - who runs where: the threads of the host's CPUs and the guests' vCPUs, by switch records, and
 * the code that follows from it.
 *
 * A switch record has a time, but a stream's time is exact at timing packets only. So a switch takes effect
 * when the flow reaches the place where the kernel switches threads (__switch_to). Where that place is not
 * known, it does at its time, but not while the flow is in user space or in a guest.
 */
#include "decode/session/internal.h"

bool pt_session_has_user_code(const struct pt_task *task)
{
	return task && img_space_count(&task->process->space);
}

bool pt_session_is_of_stream(const struct pt_sideband_record *record, const struct stream *st)
{
	return st->info.tid > 0 ? st->info.tid == record->tid : st->info.cpu == record->cpu;
}

struct pt_cpu_context *pt_session_context_of(struct session *s, const struct pt_sideband_record *record)
{
	if (record->machine->pid)
		return pt_machine_cpu_context(record->machine, record->cpu);
	for (struct stream *st = s->streams; st; st = st->next)
		if (st->info.tid == -1 && st->info.cpu == record->cpu)
			return &st->cpu;
	return NULL;
}

bool pt_session_is_unknown_nested(const struct pt_cpu_context *cpu_context)
{
	return cpu_context->nested && img_space_count(&cpu_context->machine->space);
}

/* ---- Code ------------------------------------------------------------------------------------------- */

/* A guest's code. Where the process is not known, or has no code, code may still be known: of all processes
 * together, or of memory's images (a boot loader's code). */
static void set_guest_code(struct stream *st)
{
	const struct pt_machine *m = st->cpu_context->machine;
	const struct pt_task *task = st->cpu_context->task;
	struct pt_code *user = task ? task->process->code : NULL;

	if (pt_session_is_unknown_nested(st->cpu_context)) {
		pt_flow_set_code(st->flow, m->nested_code, m->nested_code);
		return;
	}
	if (st->session->options->guest_code && !img_space_count(&m->space) && !user && st->cpu.task) {
		pt_flow_set_code(st->flow, st->cpu.task->process->code, NULL);
		return;
	}
	if (!user)
		user = m->unknown_process.code ? m->unknown_process.code : m->code;
	pt_flow_set_code(st->flow, user, m->code);
}

void pt_session_host_code(const struct stream *st, struct pt_code **ret_user, struct pt_code **ret_kernel)
{
	const struct pt_machine *m = st->cpu.machine;

	*ret_user = st->cpu.task ? st->cpu.task->process->code : NULL;
	*ret_kernel = st->session->kernel_traced || img_space_count(&m->space) ? m->code : NULL;
}

void pt_session_update_context(struct stream *st)
{
	struct pt_cpu_context *cpu_context = st->cpu_context;
	bool guest = cpu_context != &st->cpu;

	st->out.machine = cpu_context->machine;
	st->out.task = cpu_context->task;
	st->out.host_task = st->cpu.task;
	st->out.vcpu = guest ? cpu_context->index : -1;
	pt_emit_who(&st->out);
	pt_session_select_detail(st);
	if (!pt_flow_follows(st->flow)) {
		pt_flow_set_code(st->flow, NULL, NULL);
	} else if (guest) {
		if (!cpu_context->task)
			st->out.task = &cpu_context->unknown;
		set_guest_code(st);
	} else {
		struct pt_code *user, *kernel;

		pt_session_host_code(st, &user, &kernel);
		pt_flow_set_code(st->flow, user, kernel);
	}
}

/* ---- Switches --------------------------------------------------------------------------------------- */

/* Whether the flow has yet to reach the place where the switch takes effect. The host's CPU waits while the
 * flow is in a guest. */
static bool must_wait(const struct stream *st, const struct pt_cpu_context *cpu_context)
{
	const struct pt_code *kernel = pt_flow_kernel_code(st->flow);

	if (!cpu_context->task || pt_flow_state(st->flow) < PT_FLOW_NO_IMAGE)
		return false;
	if (st->cpu_context != cpu_context)
		return true;
	if (!kernel || pt_flow_state(st->flow) != PT_FLOW_RUNNING)
		return false;
	/* It is behind that place already where the thread's event is turned on, for the event of the one
	 * before was turned off: the trace has begun anew. */
	if (cpu_context->ended_tsc && pt_flow_tsc(st->flow) != PT_CLOCK_UNKNOWN &&
	    pt_flow_tsc(st->flow) > cpu_context->ended_tsc)
		return false;
	return cpu_context->machine->code->switch_ip || pt_flow_code(st->flow) != kernel;
}

static void set_task(struct pt_cpu_context *cpu_context, struct pt_task *task)
{
	cpu_context->before = cpu_context->task;
	cpu_context->task = task;
	cpu_context->left = false;
	cpu_context->ended_tsc = 0;
	cpu_context->switches++;
	cpu_context->switch_seen = false;
}

/* Places in kernels from which on the stream's flow has not seen all, with an error or by wish. */
static uint64_t gaps_in(const struct stream *st)
{
	return st->out.kernel_gaps + pt_flow_counts(st->flow)->kernel_skips;
}

/* A vCPU goes from CPU to CPU. */
static uint64_t gaps_of(const struct stream *st, const struct pt_cpu_context *cpu_context)
{
	uint64_t all = 0;

	if (cpu_context == &st->cpu)
		return gaps_in(st);
	for (const struct stream *other = st->session->streams; other; other = other->next)
		all += gaps_in(other);
	return all;
}

void pt_session_switch_seen(const struct stream *st, struct pt_cpu_context *cpu_context, bool found)
{
	cpu_context->switch_seen = found;
	cpu_context->seen_gaps = gaps_of(st, cpu_context);
}

bool pt_session_sees_switches(const struct stream *st)
{
	const struct pt_cpu_context *cpu_context = st->cpu_context;

	return cpu_context->switch_seen && cpu_context->seen_gaps == gaps_of(st, cpu_context);
}

/* The task runs now in a context that the stream's flow is in, or (the host's CPU) comes back to. */
static void switch_now(struct stream *st, struct pt_cpu_context *cpu_context, struct pt_task *task,
		       uint64_t tsc)
{
	const struct pt_emit *emit = &st->session->emit;
	bool here = st->cpu_context == cpu_context;

	if (here)
		pt_flow_pause(st->flow, true);
	set_task(cpu_context, task);
	if (cpu_context == &st->cpu)
		st->switch_vmcs = pt_flow_vmcs(st->flow);
	pt_session_update_context(st);
	if (here)
		pt_flow_resume(st->flow);
	if (cpu_context == &st->cpu && emit->vm && emit->vm->switched)
		emit->vm->switched(emit->vm_arg, &st->out, st->flow, tsc);
}

void pt_session_switch_late(struct stream *st, struct pt_cpu_context *cpu_context)
{
	struct pt_task *task = cpu_context->late;

	cpu_context->switching = false;
	cpu_context->late = NULL;
	if (task && cpu_context->task != task)
		switch_now(st, cpu_context, task, cpu_context->late_tsc);
}

/* A thread comes onto one CPU: it has left the others. Where nothing is traced after it, as of
 * threads that are not selected, the flow will not come to that switch by itself. */
static void leave_other_cpus(struct session *s, const struct pt_cpu_context *cpu_context,
			     const struct pt_task *task)
{
	for (struct stream *st = s->streams; st; st = st->next)
		if (&st->cpu != cpu_context && st->cpu.task == task && st->cpu.late && task->tid > 0 &&
		    pt_flow_state(st->flow) < PT_FLOW_NO_IMAGE)
			pt_session_switch_late(st, &st->cpu);
}

void pt_session_switch_over(struct session *s, struct pt_cpu_context *cpu_context)
{
	for (struct stream *st = s->streams; st; st = st->next)
		if (st->cpu_context == cpu_context && cpu_context->late &&
		    cpu_context->late_gaps != gaps_in(st))
			pt_session_switch_late(st, cpu_context);
}

int pt_session_switch(struct session *s, struct pt_cpu_context *cpu_context, int32_t pid, int32_t tid,
		      uint64_t tsc, struct pt_error *e)
{
	struct pt_task *task = pt_tasks_get(cpu_context->machine->tasks, pid, tid);
	bool in_stream = false;

	if (!task)
		return pt_fail_no_memory(e, NULL);
	leave_other_cpus(s, cpu_context, task);
	for (struct stream *st = s->streams; st; st = st->next) {
		if (st->cpu_context != cpu_context && &st->cpu != cpu_context)
			continue;
		in_stream = true;
		/* A switch may have two records: out of one thread, into the other. */
		if (task == (cpu_context->late ? cpu_context->late : cpu_context->task))
			continue;
		/* The flow has not reached the place where the switch before this one takes effect: it is
		 * made first. */
		pt_session_switch_late(st, cpu_context);
		if (must_wait(st, cpu_context)) {
			cpu_context->late = task;
			cpu_context->late_tsc = tsc;
			cpu_context->late_gaps = gaps_in(st);
		} else {
			switch_now(st, cpu_context, task, tsc);
		}
	}
	if (!in_stream && cpu_context->task != task) { /* a vCPU that is not running */
		set_task(cpu_context, task);
		cpu_context->late = NULL;
	}
	return 0;
}
