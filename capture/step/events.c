/* events.c - what a thread's stop means: fork, exec, a signal, a step's end, its own end. See internal.h. */
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "capture/step/internal.h"

#define CS_32 0x23 /* Linux's code segment of 32-bit programs */

/* Another thread, or process, of the tree: parent made it. */
static void born(struct step *s, struct step_thread *parent, pid_t tid)
{
	struct step_thread *t = step_thread_find(s, tid);
	pid_t pid = step_tgid_of(tid);
	struct step_process *p = step_process_find(s, pid);

	if (!p) {
		p = step_process_add(s, pid);
		if (!p)
			return;
	}
	if (p != parent->process && !p->map_count) {
		step_maps_copy(s, p, parent->process);
		p->untraced = parent->process->untraced;
		p->read_implies_exec = parent->process->read_implies_exec;
	}
	if (!t)
		t = step_thread_add(s, tid, p);
	if (!t)
		return;
	t->traced = true;
	t->chose_cpus = parent->chose_cpus;
	step_put_all(s);
	s->model.cycles += 300;
	step_fork(s, t, parent->process->pid, parent->tid);
	step_itrace_start(s, t);
	s->model.cycles += 300;
}

/* What t was in the middle of as another thread called exec is not done any more: not in the new program. */
static void forget_step(struct step_thread *t)
{
	t->far_trap = t->from_syscall = t->preempted = t->single = t->known = t->jumped = false;
	t->maps_changed = t->protects = t->pokes = t->renames = false;
	t->shadow = t->emulating = t->straight_end = t->sigset = t->cpus_at = 0;
	t->chooses_cpus_of = 0;
}

static void execed(struct step *s, struct step_thread *t)
{
	unsigned long former = 0;
	uint64_t cs;

	/* The other threads are gone, and t has the first one's number, whichever of them called
	 * exec. Their exits were or will be reported, but for the one that is t now. */
	ptrace(PTRACE_GETEVENTMSG, t->tid, 0, &former);
	if (former && (pid_t)former != t->tid) {
		struct step_thread *old = step_thread_find(s, (pid_t)former);

		if (old)
			step_thread_end(s, old);
		if (!t->in_kernel)
			step_async_end(s, t);
	}
	forget_step(t);
	step_maps_forget(t->process);
	step_put_all(s);
	s->model.cycles += 300;
	step_comm(s, t, true);
	step_maps_update(s, t, false);
	if (!t->traced) {
		t->traced = true;
		step_itrace_start(s, t);
	}
	s->model.cycles += 300;
	t->want_psb = true;
	t->process->untraced = STEP_PEEK(t, cs, &cs) && cs == CS_32;
	t->process->read_implies_exec = step_read_implies_exec(t->process->pid);
	s->result->untraced += t->process->untraced;
}

/* A system call that a signal interrupted, and that is called again unless the signal has a handler. */
static bool to_be_restarted(struct step_thread *t)
{
	uint64_t rax, number;

	if (!STEP_PEEK(t, rax, &rax))
		return false;
	switch ((int64_t)rax) {
	case -512: /* ERESTARTSYS and its kin, which only a tracer sees */
	case -513:
	case -514:
	case -516: return STEP_PEEK(t, orig_rax, &number) && (int64_t)number >= 0;
	default: return false;
	}
}

/* Is this SIGTRAP one that the program gets, from itself or another, not the end of the step? */
static bool own_trap(struct step_thread *t)
{
	bool far_trap = t->far_trap;
	siginfo_t info;

	/*
	 * One that was sent to this very thread as it ran takes the place of the step's: the kernel
	 * keeps the first of two. (Sent between the step's trap and its stop, it is the second:
	 * it is never seen.)
	 */
	if (ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info) < 0)
		return false;
	t->far_trap = false;
	if (info.si_code <= 0)
		return true;
	return t->in_kernel && far_trap && info.si_code != TRAP_TRACE && info.si_code != TRAP_HWBKPT;
}

void step_stopped(struct step *s, struct step_thread *t, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;
	unsigned long message = 0;

	t->state = STEP_STOPPED;
	t->event = true;
	t->forks = false;
	t->signal = 0;
	if (event == PTRACE_EVENT_EXEC) {
		step_straight_left(s, t);
		execed(s, t);
		return;
	}
	step_straight_stopped(s, t);
	step_sigmask_set(t);
	switch (event) {
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		/* Fails when t is being killed; the child then comes without its parent's event. */
		if (ptrace(PTRACE_GETEVENTMSG, t->tid, 0, &message) == 0)
			born(s, t, (pid_t)message);
		return;
	case PTRACE_EVENT_STOP:
		/* A new thread's first stop; or a group stop, which lasts until SIGCONT. */
		t->group_stop = sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
		return;
	default: break;
	}
	if (event)
		return;
	if (t->process->untraced || sig != SIGTRAP || own_trap(t))
		t->signal = sig;
	else if (!t->in_kernel || !to_be_restarted(t))
		t->event = false;
}

void step_listen(struct step_thread *t)
{
	if (!t->group_stop || t->state != STEP_STOPPED)
		return;
	t->group_stop = false;
	t->state = STEP_RUNNING;
	ptrace(PTRACE_LISTEN, t->tid, 0, 0);
}

void step_reap(struct step *s, pid_t tid, int status)
{
	struct step_thread *t = step_thread_find(s, tid);

	if (WIFEXITED(status) || WIFSIGNALED(status)) {
		if (t) {
			if (tid == s->first)
				s->result->status =
				    WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
			step_thread_end(s, t);
		}
		return;
	}
	if (!WIFSTOPPED(status))
		return;
	if (!t) {
		/* A child that came before its parent's event. */
		pid_t pid = step_tgid_of(tid);
		struct step_process *p = step_process_find(s, pid);

		if (!p)
			p = step_process_add(s, pid);
		t = p ? step_thread_add(s, tid, p) : NULL;
		if (!t)
			return;
	}
	step_stopped(s, t, status);
}
