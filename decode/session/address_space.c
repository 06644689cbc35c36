/*
 * address_space.c - the flow is about to reach user space: which process's code comes?
 *
 * The sideband says which thread runs, but the time of the switch and the stream's are not exact. PIP
 * packets say the CR3, which is only a number until the process that has it is learnt: a CR3 is a process's
 * if the sideband said so when it was first seen. Where the two agree, all is well. Where they do not, the
 * switch that makes them agree is applied ahead of its time (ahead.c); if there is none, the code is not
 * known.
 */
#include "decode/session/internal.h"

/* A CR3 that one process had becomes another's when the sideband says so this many times in a row. */
#define DOUBTS_MAX 4
/* Processes that share the address space of one another's parent, at most. */
#define SHARED_DEPTH_MAX 8

/*
 * May this process run in the address space of `known`? A new process does so until its exec or exit when
 * it was made by vfork(), posix_spawn() or clone(CLONE_VM); its parent may share its own parent's. FORK
 * records do not say how it was made: as long as no CR3 of its own was seen (fresh), it may.
 */
static bool may_share(const struct pt_machine *m, const struct pt_process *process,
		      const struct pt_process *known)
{
	for (int depth = 0; process && known && depth < SHARED_DEPTH_MAX; depth++) {
		if (!process->fresh || process->parent < 0)
			return false;
		if (process->parent == known->pid)
			return true;
		process = pt_tasks_process(m->tasks, process->parent);
	}
	return false;
}

/* process NULL: not known, for sideband and CR3 contradict each other. */
static void set_user_code(struct stream *st, const struct pt_process *process)
{
	if (pt_flow_follows(st->flow))
		pt_flow_set_user_code(st->flow, process ? process->code : NULL);
}

static void remember_cr3(struct pt_cpu_context *cpu_context, uint64_t cr3)
{
	cpu_context->user_cr3 = cr3;
	cpu_context->switches = 0;
}

/* Looks for a switch that makes sideband and CR3 agree. known: the process that has the CR3, NULL none. */
static void look_ahead(struct stream *st, const struct pt_process *known)
{
	struct pt_cpu_context *cpu_context = st->cpu_context;
	const struct pt_task *task = cpu_context->task;
	/* Its CR3 has changed while it ran. */
	bool execed = task && !task->process->fresh && !cpu_context->switches;
	/* The exec of a process that begins is still to come, for it is made from user space. */
	bool begins = task && task->process->begins;

	if (known) {
		/* (A new process that was just switched to may have got the page tables of one that is
		 * gone.) */
		if (!(task && task->process->fresh && cpu_context->switches))
			pt_session_ahead_to_process(st, cpu_context, known);
	} else if (pt_session_sees_switches(st)) {
		/* It is this task, also where its code is not known. */
		if (execed)
			pt_session_ahead_to_exec(st, cpu_context);
	} else if (execed || (!pt_session_has_user_code(task) && !begins)) {
		pt_session_ahead_to_user_code(st, cpu_context);
	}
}

/* Sideband and CR3 do not agree yet: either may be late, or the CR3 is new. known: as for look_ahead(). */
static void reconcile(struct stream *st, uint64_t cr3, const struct pt_process *known)
{
	struct pt_cpu_context *cpu_context = st->cpu_context;
	struct pt_machine *m = cpu_context->machine;
	struct pt_process *process;
	bool again;

	look_ahead(st, known);
	/* Without a switch since it was here last, it is the same doubt as then. */
	again = !cpu_context->switches && cpu_context->user_cr3 == cr3;
	remember_cr3(cpu_context, cr3);
	if (!pt_session_has_user_code(cpu_context->task)) {
		/* So that the next exec is seen by its CR3. */
		if (!known && cpu_context->task &&
		    (pt_session_sees_switches(st) || cpu_context->task->process->begins))
			pt_machine_learn(m, cr3, cpu_context->task->process);
		if (known)
			set_user_code(st, known);
		return;
	}
	process = cpu_context->task->process;
	known = pt_machine_process(m, cr3); /* what was applied ahead may have changed it */
	if (known == process || may_share(m, process, known)) {
		process->begins = false;
		set_user_code(st, process);
		return;
	}
	if (!process->gone &&
	    ((!known && process->fresh) || pt_machine_doubt(m, cr3, process, again) >= DOUBTS_MAX))
		pt_machine_learn(m, cr3, process);
	else
		process = NULL;
	set_user_code(st, process);
}

/* The first of the cases of pt_session_on_user(), where nothing was to be switched. */
bool pt_session_user_stays(void *arg, const struct pt_flow *f, uint64_t cr3)
{
	const struct stream *st = arg;
	const struct pt_cpu_context *cpu_context = st->cpu_context;
	const struct pt_process *known, *runs = cpu_context->task ? cpu_context->task->process : NULL;

	if (cpu_context->late)
		return false;
	if (pt_session_is_unknown_nested(cpu_context))
		return true;
	if (!pt_session_page_tables(cr3))
		return true;
	known = pt_machine_process(cpu_context->machine, pt_session_page_tables(cr3));
	return known && runs == known && pt_flow_user_code(f) == known->code;
}

/* No record has said yet who runs: the first one that will says who ran until then. */
static void begin_with_first_switch(struct stream *st)
{
	struct pt_cpu_context *cpu_context = st->cpu_context;
	const struct pt_task *task = pt_session_ran_before(st, cpu_context);
	struct pt_error e;

	if (!task)
		return;
	if (pt_session_switch(st->session, cpu_context, task->pid, task->tid, PTR_NO_TSC, &e) < 0)
		pt_session_fail(st->session, &e);
	pt_session_switch_seen(st, cpu_context, true);
}

void pt_session_on_user(void *arg, struct pt_flow *f)
{
	struct stream *st = arg;
	struct pt_cpu_context *cpu_context = st->cpu_context;
	struct pt_machine *m = cpu_context->machine;
	uint64_t cr3 = pt_session_page_tables(pt_flow_cr3(f));
	struct pt_process *known, *runs, *before;

	pt_session_switch_late(st, cpu_context);
	if (st->session->failed || pt_session_is_unknown_nested(cpu_context))
		return;
	if (!cr3) { /* nothing contradicts the sideband */
		remember_cr3(cpu_context, 0);
		return;
	}
	if (!cpu_context->task)
		begin_with_first_switch(st);
	known = pt_machine_process(m, cr3);
	runs = cpu_context->task ? cpu_context->task->process : NULL;
	before = cpu_context->before ? cpu_context->before->process : NULL;
	if (known && runs == known) {
		remember_cr3(cpu_context, cr3);
		pt_machine_doubt(m, cr3, NULL, false);
		set_user_code(st, known);
	} else if (known && runs && may_share(m, runs, known)) {
		/* The CR3 fits both; no switch that is to come is taken for having happened. */
		remember_cr3(cpu_context, cr3);
		runs->begins = false;
		set_user_code(st, runs);
	} else if (known && before == known && cpu_context->user_cr3 == cr3 &&
		   !pt_session_ahead_to_process(st, cpu_context, known)) {
		/* The time of the switch away from it has come, but the flow has not reached the switch. */
		set_user_code(st, known);
	} else {
		reconcile(st, cr3, known);
	}
}
