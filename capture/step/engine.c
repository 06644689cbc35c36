/* engine.c - ptrace: threads stop, step, fork, exec, get signals and exit. See engine.h. */
#include "capture/step/engine.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/step/internal.h"

#define QUANTUM	      4000		  /* steps of one thread before another's turn */
#define AUX_BYTES     ((size_t)256 << 10) /* of a thread: written when it holds that many */
#define TRAP_FLAG     0x100u		  /* RFLAGS.TF: the CPU traps after each instruction */
#define VSYSCALL_PAGE 0xffffffffff600000u
#define CS_32	      0x23 /* Linux's code segment of 32-bit programs */

/*
 * A register of a stopped thread. False when it cannot be read, and *ret is as it was: the thread is
 * being killed, so it counts as running until waitpid() reports its end.
 */
static bool peek(struct step_thread *t, size_t offset, uint64_t *ret)
{
	long value;

	errno = 0;
	value = ptrace(PTRACE_PEEKUSER, t->tid, offset, 0);
	if (value == -1 && errno) {
		t->state = STEP_RUNNING;
		return false;
	}
	*ret = (uint64_t)value;
	return true;
}
#define PEEK(t, reg, ret) peek((t), offsetof(struct user_regs_struct, reg), (ret))

/* ---- Events ----------------------------------------------------------------------------------------- */

/* What ran so far ran with the mappings so far. Without time the container's order is the only sign of it. */
static void put_all(struct step *s)
{
	for (struct step_thread *t = s->threads; t; t = t->next) {
		pt_encode_flush(&t->encoder);
		step_put_aux(s, t);
	}
}

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
	put_all(s);
	s->model.cycles += 300;
	step_fork(s, t, parent->process->pid, parent->tid);
	step_itrace_start(s, t);
	s->model.cycles += 300;
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
	t->preempted = t->from_syscall = false;
	step_maps_forget(t->process);
	put_all(s);
	s->model.cycles += 300;
	step_comm(s, t, true);
	step_maps_update(s, t, false);
	if (!t->traced) {
		t->traced = true;
		step_itrace_start(s, t);
	}
	s->model.cycles += 300;
	t->want_psb = true;
	t->process->untraced = PEEK(t, cs, &cs) && cs == CS_32;
	t->process->read_implies_exec = step_read_implies_exec(t->process->pid);
	s->result->untraced += t->process->untraced;
}

/* A system call that a signal interrupted, and that is called again unless the signal has a handler. */
static bool to_be_restarted(struct step_thread *t)
{
	uint64_t rax, number;

	if (!PEEK(t, rax, &rax))
		return false;
	switch ((int64_t)rax) {
	case -512: /* ERESTARTSYS and its kin, which only a tracer sees */
	case -513:
	case -514:
	case -516: return PEEK(t, orig_rax, &number) && (int64_t)number >= 0;
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
	 * nobody gets to know of it.)
	 */
	if (ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info) < 0)
		return false;
	t->far_trap = false;
	if (info.si_code <= 0)
		return true;
	return t->in_kernel && far_trap && info.si_code != TRAP_TRACE && info.si_code != TRAP_HWBKPT;
}

/* A stop that waitpid() reported. Afterwards the thread may be stepped, unless it is gone. */
static void stopped(struct step *s, struct step_thread *t, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;
	unsigned long message = 0;

	t->state = STEP_STOPPED;
	t->event = true;
	t->signal = 0;
	step_sigmask_set(t);
	switch (event) {
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		/* Fails when t is being killed; the child then comes without its parent's event. */
		if (ptrace(PTRACE_GETEVENTMSG, t->tid, 0, &message) == 0)
			born(s, t, (pid_t)message);
		return;
	case PTRACE_EVENT_EXEC: execed(s, t); return;
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

/* Before a step with a signal: when a handler will run, the instruction at hand does not. */
static void deliver(struct step *s, struct step_thread *t)
{
	if (!t->in_kernel && step_is_caught(t->tid, t->signal))
		step_async_end(s, t);
}

/* ---- Stepping --------------------------------------------------------------------------------------- */

/* Does [start, start + bytes) overlap an executable mapping? */
static bool overlaps_code(const struct step_process *p, uint64_t start, uint64_t bytes)
{
	for (size_t i = 0; i < p->map_count; i++)
		if (start < p->maps[i].end &&
		    (bytes > UINT64_MAX - start || start + bytes > p->maps[i].start))
			return true;
	return false;
}

/*
 * May the system call change the executable mappings? To look at them costs a read of /proc/PID/maps,
 * so calls that only concern data are recognised by their arguments. False also when these cannot be
 * read: the thread is being killed.
 */
static bool changes_maps(struct step_thread *t, uint64_t number)
{
	struct step_process *p = t->process;
	uint64_t start, bytes, prot;

	switch (number) {
	case SYS_mmap:
	case SYS_mprotect:
	case SYS_pkey_mprotect:
	case SYS_munmap:
		if (!PEEK(t, rdi, &start) || !PEEK(t, rsi, &bytes) || !PEEK(t, rdx, &prot))
			return false;
		return p->read_implies_exec || overlaps_code(p, start, bytes) ||
		       (number != SYS_munmap && (prot & PROT_EXEC));
	case SYS_personality: p->read_implies_exec = true; return false; /* it may be, from now on */
	case SYS_mremap:
	case SYS_shmat:
	case SYS_shmdt:
	case SYS_remap_file_pages: return true;
	default: return false;
	}
}

/* Does the call write to a process's memory by its file, /proc/PID/mem, which mappings' protection
 * does not keep it from? */
static bool writes_memory(struct step_thread *t, uint64_t number)
{
	char path[64], to[64];
	uint64_t fd;
	ssize_t n;

	if (number != SYS_write && number != SYS_pwrite64 && number != SYS_writev && number != SYS_pwritev &&
	    number != SYS_pwritev2)
		return false;
	if (!PEEK(t, rdi, &fd))
		return false;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", t->tid, (int)fd);
	n = readlink(path, to, sizeof to);
	return n > 10 && n < (ssize_t)sizeof to && !memcmp(to, "/proc/", 6) && !memcmp(to + n - 4, "/mem", 4);
}

static void switch_to(struct step *s, struct step_thread *t)
{
	if (s->current == t)
		return;
	if (s->current && !s->current->in_kernel) {
		step_async_end(s, s->current);
		s->current->preempted = s->current->want_psb = true;
	}
	if (s->current && s->current->traced)
		step_switch(s, s->current, true);
	s->model.cycles += 300;
	if (t->traced)
		step_switch(s, t, false);
	s->current = t;
}

/* SYSCALL leaves RFLAGS in R11: without the flag that is ours. */
static void hide_trap_flag_of_syscall(struct step_thread *t)
{
	uint64_t r11;

	if (PEEK(t, r11, &r11) && r11 & TRAP_FLAG)
		ptrace(PTRACE_POKEUSER, t->tid, offsetof(struct user_regs_struct, r11),
		       r11 & ~(uint64_t)TRAP_FLAG);
}

/* PUSHF has pushed RFLAGS: without the flag that is ours. It is bit 0 of the second byte. */
static void hide_trap_flag_of_pushf(struct step_thread *t)
{
	struct iovec local, remote;
	uint64_t rsp;
	uint8_t byte;

	if (!PEEK(t, rsp, &rsp))
		return;
	local = (struct iovec){&byte, 1};
	remote = (struct iovec){(void *)(uintptr_t)(rsp + 1), 1};
	if (process_vm_readv(t->tid, &local, 1, &remote, 1, 0) == 1 && byte & TRAP_FLAG >> 8) {
		byte &= (uint8_t) ~(TRAP_FLAG >> 8);
		process_vm_writev(t->tid, &local, 1, &remote, 1, 0);
	}
}

/* Where the thread is now, at the end of a step, is where user code goes on. */
static void arrived(struct step *s, struct step_thread *t, uint64_t ip)
{
	if (t->from_syscall)
		hide_trap_flag_of_syscall(t);
	t->from_syscall = false;
	if (t->signalled)
		step_unblock_trap(t);
	t->signalled = false;
	if (t->maps_changed) {
		put_all(s);
		step_maps_update(s, t, t->protects);
		t->maps_changed = t->protects = false;
	}
	if (t->pokes) {
		step_maps_written(s);
		t->pokes = false;
	}
	if (t->renames) {
		step_comm(s, t, false);
		t->renames = false;
	}
	if (t->want_psb)
		step_put_aux(s, t);
	s->model.cycles += 3000;
	if (t->emulating) {
		/* The kernel did what the call asks for and returned from it; no trap stops it before
		 * the next instruction. */
		step_begin(s, t, t->emulating);
		t->emulating = 0;
		if (ip != t->ip && step_insn(s, t, &t->insn))
			step_executed(s, t, &t->insn.insn, ip);
		return;
	}
	step_begin(s, t, ip);
}

/* Sets t->jumped: was the instruction, a conditional branch to the next one, taken? False as peek(). */
static bool ask_condition(struct step_thread *t)
{
	uint64_t flags, rcx;

	t->jumped = false;
	if (!t->insn.condition)
		return true;
	if (!PEEK(t, eflags, &flags) || !PEEK(t, rcx, &rcx))
		return false;
	t->jumped = step_condition(t->insn.condition, flags, rcx);
	return true;
}

/* The step ended. */
static void stepped(struct step *s, struct step_thread *t)
{
	unsigned cls = t->insn.insn.cls;
	uint64_t now;

	t->shadow = 0;
	if (!PEEK(t, rip, &now))
		return;
	if (t->in_kernel) {
		arrived(s, t, now);
		return;
	}
	if (!t->known) {
		t->ip = now; /* it could not be read, and yet it ran: the decoder will say so */
		return;
	}
	if (t->insn.quirk == STEP_PUSHF)
		hide_trap_flag_of_pushf(t);
	if (!ask_condition(t))
		return;
	if (now != t->ip || cls == INSN_JMP || cls == INSN_JCC || cls == INSN_JMP_IND || cls == INSN_CALL ||
	    cls == INSN_CALL_IND || cls == INSN_RET)
		step_executed(s, t, &t->insn.insn, now); /* else a string instruction in its middle */
}

/* The step did not end: a signal came first (t->signal), or a clone, exec, ... */
static void interrupted(struct step *s, struct step_thread *t)
{
	uint64_t now;

	if (t->in_kernel)
		return;
	if (!PEEK(t, rip, &now))
		return;
	if (t->shadow && now == t->shadow) {
		t->ip = now; /* the MOV SS itself was not executed */
	} else if (now != t->ip && t->known) {
		if (!ask_condition(t))
			return;
		step_executed(s, t, &t->insn.insn, now);
	}
	t->shadow = 0;
}

/* A thread in a group stop waits for SIGCONT, and is no longer stopped for ptrace: its registers must
 * have been read before. */
static void listen_in_group_stop(struct step_thread *t)
{
	if (!t->group_stop || t->state != STEP_STOPPED)
		return;
	t->group_stop = false;
	t->state = STEP_RUNNING;
	ptrace(PTRACE_LISTEN, t->tid, 0, 0);
}

static void reap(struct step *s, pid_t tid, int status)
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
		/* A child whose parent's event has not come yet. */
		pid_t pid = step_tgid_of(tid);
		struct step_process *p = step_process_find(s, pid);

		if (!p)
			p = step_process_add(s, pid);
		t = p ? step_thread_add(s, tid, p) : NULL;
		if (!t)
			return;
	}
	stopped(s, t, status);
}

/* Before an instruction that leaves user space: tracing ends with it. */
static void leave(struct step *s, struct step_thread *t)
{
	if (t->insn.insn.cls == INSN_SYSCALL) {
		uint64_t number, first;

		if (!PEEK(t, rax, &number) || !PEEK(t, rdi, &first))
			return;
		t->maps_changed = changes_maps(t, number);
		t->protects = number == SYS_mprotect || number == SYS_pkey_mprotect;
		t->pokes = writes_memory(t, number);
		t->renames = number == SYS_prctl && first == PR_SET_NAME;
		t->from_syscall = number != SYS_rt_sigreturn; /* which brings back all registers */
		if (number == SYS_rt_sigprocmask)
			step_keep_trap_unblocked(t);
		step_end(s, t, t->ip);
		return;
	}
	t->far_trap = t->insn.quirk == STEP_TRAP;
	t->maps_changed = t->protects = t->insn.quirk == STEP_INT80;
	step_async_end(s, t);
}

/* What the next step of a thread in user code will execute. */
static void prepare(struct step *s, struct step_thread *t)
{
	t->known = step_insn(s, t, &t->insn);
	if (t->known && t->insn.quirk == STEP_MOV_SS) {
		t->shadow = t->ip;
		step_executed(s, t, &t->insn.insn, t->ip + t->insn.insn.len);
		s->result->steps++;
		t->known = step_insn(s, t, &t->insn);
	}
	if (t->known && (t->insn.insn.cls == INSN_SYSCALL || t->insn.insn.cls == INSN_INT)) {
		leave(s, t);
	} else if (!t->known && (t->ip & ~(uint64_t)4095) == VSYSCALL_PAGE) {
		struct iovec local = {&t->emulating, 8}, remote;
		uint64_t rsp;

		if (!PEEK(t, rsp, &rsp))
			return;
		remote = (struct iovec){(void *)(uintptr_t)rsp, 8};
		if (process_vm_readv(t->tid, &local, 1, &remote, 1, 0) != 8)
			t->emulating = 0;
		step_async_end(s, t);
	}
}

/* Lets a thread run one instruction. False when it is not possible. */
static bool step(struct step_thread *t)
{
	t->state = STEP_RUNNING;
	t->signalled |= t->signal != 0;
	if (ptrace(PTRACE_SINGLESTEP, t->tid, 0, (long)t->signal) == 0) {
		t->signal = 0;
		return true;
	}
	return false; /* it is being killed: waitpid() will report that */
}

/* The thread's next stop; 0 when it sleeps in the kernel, maybe until another thread does something.
 * -1: ask later. */
static pid_t wait_for(const struct step *s, const struct step_thread *t, int *status)
{
	pid_t got;

	if (t->in_kernel) {
		got = waitpid(t->tid, status, __WALL | WNOHANG);
		for (int spin = 0; got == 0 && spin < 20; spin++) {
			sched_yield();
			got = waitpid(t->tid, status, __WALL | WNOHANG);
		}
		return got;
	}
	do
		got = waitpid(t->tid, status, __WALL);
	while (got < 0 && errno == EINTR && !*s->options->stop);
	return got;
}

/* A turn for one stopped thread: until its quantum is over, or it is somewhere in the kernel. */
static void turn(struct step *s, struct step_thread *t)
{
	const struct step_options *o = s->options;

	switch_to(s, t);
	for (int n = 0; n < QUANTUM && !s->failed; n++) {
		int status;

		if (t->preempted) {
			t->preempted = false;
			step_put_aux(s, t);
			step_begin(s, t, t->ip);
		}
		if (t->signal)
			deliver(s, t);
		if (!t->in_kernel)
			prepare(s, t);
		if (t->state != STEP_STOPPED || !step(t) || wait_for(s, t, &status) <= 0)
			return;
		if (!WIFSTOPPED(status)) {
			reap(s, t->tid, status);
			return;
		}
		s->result->steps++;
		stopped(s, t, status);
		if (!t->event) {
			stepped(s, t);
			if (t->state != STEP_STOPPED)
				return;
		} else {
			bool in_user = !t->in_kernel;

			interrupted(s, t);
			listen_in_group_stop(t);
			if (t->state != STEP_STOPPED || t->process->untraced || (in_user && !t->signal))
				return;
		}
		if (t->encoder.size >= AUX_BYTES)
			step_put_aux(s, t);
		if (*o->stop || (o->max_steps && s->result->steps >= o->max_steps))
			return;
	}
}

/* Now and then: what a reader of a pipe waits for, and what a person does. */
static void progress(struct step *s)
{
	if (s->result->steps / 100000 == s->last_round)
		return;
	s->last_round = s->result->steps / 100000;
	put_all(s);
	step_put_sideband(s);
	if (!s->failed && ptc_put_round(s->w, step_now_ns(s), s->e) < 0)
		step_fail(s);
	if (s->options->progress)
		s->options->progress(s->result->steps);
}

/* The stop of a thread that nobody waited for: the end of a step that slept in the kernel. */
static void woke(struct step *s, struct step_thread *t)
{
	if (t->state != STEP_STOPPED)
		return;
	if (t->process->untraced) {
		listen_in_group_stop(t);
	} else if (!t->event) {
		switch_to(s, t);
		stepped(s, t);
	} else {
		interrupted(s, t);
		listen_in_group_stop(t);
	}
}

/* Passes Ctrl-C on to the program: first the signal, then the end. */
static void pass_on_stop(struct step *s, int *sent)
{
	if (*s->options->stop <= *sent)
		return;
	*sent = *s->options->stop;
	if (kill(s->first, *sent == 1 ? (int)*s->options->stop_signal : SIGKILL) < 0 || *sent > 1)
		for (struct step_thread *t = s->threads; t; t = t->next)
			kill(t->process->pid, SIGKILL);
}

static void loop(struct step *s)
{
	int sent = 0;

	while (s->threads && !s->failed) {
		struct step_thread *t, *next;
		bool ran = false;
		int status;
		pid_t got;

		if (s->options->max_steps && s->result->steps >= s->options->max_steps) {
			step_detach(s);
			return;
		}
		pass_on_stop(s, &sent);
		for (t = s->threads; t && !s->failed && !ran; t = next) {
			next = t->next;
			/* A child that came before its parent's event waits for it. */
			if (t->state != STEP_STOPPED || !t->traced)
				continue;
			if (t->process->untraced) {
				t->state = STEP_RUNNING;
				ptrace(PTRACE_CONT, t->tid, 0, (long)t->signal);
				continue;
			}
			ran = true;
			turn(s, t);
		}
		if (ran && s->current)
			step_thread_last(s, s->current);
		progress(s);
		while (s->threads && (got = waitpid(-1, &status, ran ? __WALL | WNOHANG : __WALL)) > 0) {
			struct step_thread *w;

			reap(s, got, status);
			w = step_thread_find(s, got);
			if (w && WIFSTOPPED(status))
				woke(s, w);
			ran = true;
		}
		if (!ran && s->threads && errno == ECHILD)
			break;
	}
}

int step_run(char **argv, const struct step_options *options, struct ptc_writer *w,
	     struct step_result *result, struct pt_error *e)
{
	struct step s = {.options = options, .w = w, .result = result, .e = e};
	int status;

	memset(result, 0, sizeof *result);
	s.model.cycles = 1500000;
	s.images = image_set_create();
	if (!s.images)
		return pt_fail_no_memory(e, NULL);
	if (step_attrs(&s, argv[0]) < 0) {
		s.failed = true;
	} else if (step_start(&s, argv, &status) == 0) {
		stopped(&s, s.threads, status);
		loop(&s);
	}
	step_kill_all(&s);
	step_put_sideband(&s);
	while (s.processes)
		step_process_drop(&s, s.processes);
	image_set_destroy(s.images);
	free(s.sideband);
	return s.failed ? -1 : 0;
}
