/* apply.c - a sideband record whose time has come: what it changes. See internal.h. */
#include <stdio.h>

#include "decode/session/internal.h"
#include "decode/sideband/apply.h"

/* ---- Code ------------------------------------------------------------------------------------------- */

/* Whether the flow may be in code of the machine's process (PTC_ANY_PID: its kernel), or come back to it,
 * as a guest to the host's kernel. */
static bool may_be_in(const struct stream *st, const struct pt_machine *m, int32_t pid)
{
	if (st->cpu_context->machine != m)
		return pid == PTC_ANY_PID && st->cpu.machine == m;
	return pid == PTC_ANY_PID ||
	       (pt_flow_user_code(st->flow) && st->cpu_context->task && st->cpu_context->task->pid == pid);
}

/* Whether the flow follows user code of the machine without its process being known. */
static bool is_in_unknown_process(const struct stream *st, const struct pt_machine *m)
{
	return m->unknown_process.code && pt_flow_user_code(st->flow) == m->unknown_process.code;
}

/* The code of the machine's process (PTC_ANY_PID: of its kernel) as it is mapped now: for flows that are in
 * it, and for those that will come to it, also when none is in it now (a process forks, and its child runs
 * later). */
static void refresh_code(struct session *s, const struct pt_machine *m, int32_t pid)
{
	const struct pt_process *process = pid == PTC_ANY_PID ? NULL : pt_tasks_find_process(m->tasks, pid);
	struct pt_code *code = process ? process->code : m->code;

	if (code && (process || pid == PTC_ANY_PID))
		pt_code_refresh(&s->graph, code);
}

static void resume_flows(struct session *s, const struct pt_machine *m, int32_t pid)
{
	for (struct stream *st = s->streams; st; st = st->next)
		if (may_be_in(st, m, pid))
			pt_flow_resume(st->flow);
}

/* Any record may map code that all processes of a guest share (code/unknown_process.h). */
static int apply_to_tasks(struct session *s, const struct pt_sideband_record *record, struct pt_error *e)
{
	struct pt_machine *m = record->machine;
	int r;

	for (struct stream *st = s->streams; st; st = st->next)
		if (is_in_unknown_process(st, m))
			pt_flow_pause(st->flow, false);
	r = pt_sideband_apply(record, e);
	for (struct stream *st = s->streams; st; st = st->next) {
		if (!is_in_unknown_process(st, m))
			continue;
		pt_code_refresh(&s->graph, m->unknown_process.code);
		pt_flow_resume(st->flow);
	}
	return r;
}

/* How many mappings the process has; 0: there is no such process. */
static size_t code_count(const struct pt_machine *m, int32_t pid)
{
	const struct pt_process *process = pid == PTC_ANY_PID ? NULL : pt_tasks_find_process(m->tasks, pid);

	return process ? img_space_count(&process->space) : 0;
}

/* A guest's records have no time: that is said once; not where nothing has, nor where an option's clock was
 * found wrong, which was said. */
static void note_timeless(struct session *s, const struct pt_sideband_record *record)
{
	struct pt_machine *m = record->machine;
	char text[200];

	m->timeless = m->pid && pt_session_is_timeless(s, m);
	if (!m->timeless || s->timeless || m->contradicted || m->timeless_said || record->memory)
		return;
	m->timeless_said = true;
	snprintf(text, sizeof text,
		 "the recording of %.40s does not say how its clock follows from the TSC: "
		 "it is not known which of its processes run, nor when",
		 m->name);
	pt_emit_error(&s->emit, 0, -1, PTR_NO_TSC, "clock", text);
}

static int apply_code(struct session *s, const struct pt_sideband_record *record, struct pt_error *e)
{
	struct pt_machine *m = record->machine;
	int32_t pid = pt_sideband_pid(record);
	bool disturbs = pt_sideband_disturbs(record);
	/* It may have given a process's threads other names, and a slice has one. */
	bool end_slice = !record->memory && pid != PTC_ANY_PID;
	bool had_code = code_count(m, pid) > 0;
	int r;

	for (struct stream *st = s->streams; st && disturbs; st = st->next)
		if (may_be_in(st, m, pid))
			pt_flow_pause(st->flow, end_slice);
	note_timeless(s, record);
	r = apply_to_tasks(s, record, e);
	s->code_begins += !had_code && code_count(m, pid) > 0;
	refresh_code(s, m, pid);
	if (disturbs)
		resume_flows(s, m, pid);
	/* This may have been the first code of a kernel. */
	for (struct stream *st = s->streams; st; st = st->next)
		if (st->cpu_context->machine == m && !pt_flow_kernel_code(st->flow))
			pt_session_update_context(st);
	return r;
}

/* ---- Switches --------------------------------------------------------------------------------------- */

/* Reports to the VMs that a thread of the host came onto a CPU or left it, in streams that are a thread's. */
static int report_move(struct session *s, const struct pt_sideband_record *record, struct pt_error *e)
{
	const struct pt_vm_events *vm = s->emit.vm;
	const struct pt_task *task;
	bool left;

	if (record->machine->pid || !vm || !vm->moved || !pt_sideband_moved(record, &left))
		return 0;
	task = pt_tasks_get(record->machine->tasks, record->pid, record->tid);
	if (!task)
		return pt_fail_no_memory(e, NULL);
	for (struct stream *st = s->streams; st; st = st->next)
		if (pt_session_is_of_stream(record, st))
			vm->moved(s->emit.vm_arg, &st->out, st->flow, task, left,
				  record->tsc ? record->tsc : PTR_NO_TSC);
	return 0;
}

/*
 * A switch to a process without code, on a machine without a kernel's code. Recordings of some tasks have
 * the switches to all others, too. Without time it is not known what ran before the switch and what after
 * it, but that process was not traced.
 */
static bool is_to_untraced(const struct pt_sideband_record *record)
{
	struct pt_process *process;
	int32_t pid, tid;

	if (img_space_count(&record->machine->space) || !pt_sideband_switched(record, &pid, &tid))
		return false;
	process = pt_tasks_process(record->machine->tasks, pid);
	return !process || !img_space_count(&process->space);
}

/*
 * A thread that has events of its own leaves a CPU: they are turned off, and the record of AUX data follows
 * that of the switch. (Two threads that have inherited them may exchange them; then there is none, and the
 * trace goes on through the switch.) When it exits they are off before the record of that.
 */
static void note_end(struct pt_cpu_context *cpu_context, const struct pt_sideband_record *record)
{
	bool left;

	if (pt_sideband_moved(record, &left)) {
		cpu_context->own_events = true;
		cpu_context->left = left;
		cpu_context->ended_tsc = left ? 0 : cpu_context->ended_tsc;
	} else if (cpu_context->left && pt_sideband_ends_aux(record)) {
		cpu_context->ended_tsc = record->tsc;
	}
}

static void apply_exit(struct session *s, const struct pt_sideband_record *record)
{
	struct pt_cpu_context *cpu_context = pt_session_context_of(s, record);

	pt_sideband_exit(record);
	if (cpu_context && cpu_context->own_events && cpu_context->task &&
	    cpu_context->task->tid == record->tid)
		cpu_context->ended_tsc = record->tsc;
}

static int apply_switch(struct session *s, const struct pt_sideband_record *record, struct pt_error *e)
{
	struct pt_cpu_context *cpu_context;
	int32_t pid, tid;

	/* Without time it is not known which process of a guest runs. */
	if (pt_session_is_timeless(s, record->machine) && (record->machine->pid || is_to_untraced(record)))
		return 0;
	if (report_move(s, record, e) < 0)
		return -1;
	cpu_context = pt_session_context_of(s, record);
	if (!cpu_context)
		return 0;
	if (!record->machine->pid)
		note_end(cpu_context, record);
	if (!pt_sideband_switched(record, &pid, &tid))
		return 0;
	if (pt_session_switch(s, cpu_context, pid, tid, record->tsc ? record->tsc : PTR_NO_TSC, e) < 0)
		return -1;
	cpu_context->switching = pt_sideband_begins_switch(record);
	if (!cpu_context->switching)
		pt_session_switch_over(s, cpu_context);
	return 0;
}

/* ---- All records ------------------------------------------------------------------------------------ */

static void apply_mark(struct session *s, const struct pt_sideband_record *mark)
{
	pt_session_select_mark(s, mark);
	for (struct stream *st = s->streams; st; st = st->next) {
		pt_flow_pause(st->flow, true);
		pt_session_update_context(st);
		pt_flow_resume(st->flow);
	}
}

/* The number of the slice that runs where the record was written; 0 none. */
static uint32_t slice_of(const struct session *s, const struct pt_sideband_record *record)
{
	for (const struct stream *st = s->streams; st; st = st->next)
		if (record->machine == s->host && pt_flow_in_slice(st->flow) &&
		    pt_session_is_of_stream(record, st))
			return st->out.slice;
	return 0;
}

static int apply(struct session *s, const struct pt_sideband_record *record, struct pt_error *e)
{
	unsigned effect = pt_sideband_effect(record);
	struct pt_cpu_context *vcpu;

	if (effect & PT_SIDEBAND_MARK) {
		apply_mark(s, record);
		return 0;
	}
	if (record->machine->pid && record->cpu >= 0 && record->tsc &&
	    (vcpu = pt_machine_cpu_context(record->machine, record->cpu)))
		vcpu->applied_tsc = record->tsc;
	/* (What a kernel changed in its code may be recorded before all else: capture/record/own_pokes.h.) */
	record->machine->recorded |= record->tsc && pt_sideband_pid(record) != PTC_ANY_PID;
	if ((effect & PT_SIDEBAND_EVENT) && pt_session_selects_event(s, record))
		pt_session_events_put(s->events, record, &s->emit, s->vm, slice_of(s, record));
	if (effect & PT_SIDEBAND_CODE)
		return apply_code(s, record, e);
	if (effect & PT_SIDEBAND_SWITCH)
		return apply_switch(s, record, e);
	if (effect & PT_SIDEBAND_EXIT)
		apply_exit(s, record);
	if (effect & PT_SIDEBAND_LOST)
		pt_emit_error(&s->emit, 0, record->cpu, record->tsc ? record->tsc : PTR_NO_TSC,
			      "lost sideband", "the kernel lost sideband records: mappings may be missing");
	return 0;
}

int pt_session_apply(struct session *s, const struct pt_sideband_record *record, struct pt_error *e)
{
	int r;

	/* Other threads read the code that is mapped. */
	img_store_change_begin(s->store);
	r = apply(s, record, e);
	img_store_change_end(s->store);
	return r;
}
