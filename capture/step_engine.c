/* step_engine.c - ptrace: threads stop, step, fork, exec, get signals and exit. See step_engine.h. */
#include "capture/step_engine.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/step_internal.h"

#define QUANTUM	  4000		      /* steps of one thread before another's turn */
#define AUX_BYTES ((size_t)256 << 10) /* a piece is written when it holds so many */

static cpu_set_t cpus_before; /* given back to a program that goes on without us */

static int sys_error(struct step *s, const char *what)
{
	if (!s->failed)
		pt_fail_errno(s->e, "%s", what);
	s->failed = true;
	return -1;
}

/* ---- Threads ---------------------------------------------------------------------------------------- */

static struct step_process *process_add(struct step *s, pid_t pid)
{
	struct step_process *p = calloc(1, sizeof *p);

	if (!p || !(p->cache = calloc(STEP_CACHE, sizeof *p->cache))) {
		free(p);
		errno = ENOMEM;
		sys_error(s, "cannot follow another process");
		return NULL;
	}
	p->pid = pid;
	p->next = s->processes;
	s->processes = p;
	return p;
}

static struct step_process *process_find(struct step *s, pid_t pid)
{
	struct step_process *p;

	for (p = s->processes; p && p->pid != pid; p = p->next)
		;
	return p;
}

static void process_drop(struct step *s, struct step_process *p)
{
	struct step_process **at = &s->processes;

	while (*at && *at != p)
		at = &(*at)->next;
	if (*at)
		*at = p->next;
	step_maps_forget(p);
	free(p->cache);
	free(p);
}

static struct step_thread *thread_find(struct step *s, pid_t tid)
{
	struct step_thread *t;

	for (t = s->threads; t && t->tid != tid; t = t->next)
		;
	return t;
}

static struct step_thread *thread_add(struct step *s, pid_t tid, struct step_process *p)
{
	struct step_thread *t = calloc(1, sizeof *t), **at = &s->threads;

	if (!t) {
		errno = ENOMEM;
		sys_error(s, "cannot follow another thread");
		return NULL;
	}
	while (*at)
		at = &(*at)->next;
	*at = t;
	t->tid = tid;
	t->process = p;
	t->in_kernel = true; /* it begins in the clone() that made it */
	t->want_psb = true;
	p->threads++;
	s->result->threads++;
	pt_encode_init(&t->encoder, &s->options->encode, &s->model);
	return t;
}

/* The thread is gone; its trace ends where it was. */
static void thread_end(struct step *s, struct step_thread *t)
{
	struct step_thread **at = &s->threads;

	if (!t->in_kernel)
		step_async_end(s, t);
	pt_encode_flush(&t->encoder);
	if (t->traced)
		step_exit(s, t);
	step_put_aux(s, t);
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	if (s->current == t)
		s->current = NULL;
	if (--t->process->threads == 0)
		process_drop(s, t->process);
	pt_encode_deinit(&t->encoder);
	free(t);
}

static pid_t tgid_of(pid_t tid)
{
	char path[64], line[128];
	int pid = tid;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "Tgid: %d", &pid) == 1)
			break;
	if (f)
		fclose(f);
	return pid;
}

/* Is sig handled by a function of the program? */
static bool is_caught(pid_t tid, int sig)
{
	char path[64], line[256];
	unsigned long long caught = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "SigCgt: %llx", &caught) == 1)
			break;
	if (f)
		fclose(f);
	return sig > 0 && sig <= 64 && (caught >> (sig - 1) & 1);
}

/* ---- Events ----------------------------------------------------------------------------------------- */

static uint64_t peek(pid_t tid, size_t offset)
{
	return (uint64_t)ptrace(PTRACE_PEEKUSER, tid, offset, 0);
}

/* What ran so far ran with the mappings so far: where nothing has a time, the container's order tells so. */
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
	struct step_thread *t = thread_find(s, tid);
	pid_t pid = tgid_of(tid);
	struct step_process *p = process_find(s, pid);

	if (!p) {
		p = process_add(s, pid);
		if (!p)
			return;
	}
	if (p != parent->process && !p->map_count)
		step_maps_copy(s, p, parent->process);
	if (!t)
		t = thread_add(s, tid, p);
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

	/* The other threads are gone, and t has the first one's number, whichever of them called exec. Their exits were or
	 * will be reported, but for the one that is t now. */
	ptrace(PTRACE_GETEVENTMSG, t->tid, 0, &former);
	if (former && (pid_t)former != t->tid) {
		struct step_thread *old = thread_find(s, (pid_t)former);

		if (old)
			thread_end(s, old);
		if (!t->in_kernel)
			step_async_end(s, t);
	}
	t->preempted = false;
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
}

/* A stop that waitpid() told of. Afterwards the thread may be stepped, unless it is gone. */
static void stopped(struct step *s, struct step_thread *t, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;
	unsigned long message = 0;

	t->state = STEP_STOPPED;
	t->event = true;
	t->signal = 0;
	switch (event) {
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		ptrace(PTRACE_GETEVENTMSG, t->tid, 0, &message);
		born(s, t, (pid_t)message);
		return;
	case PTRACE_EVENT_EXEC: execed(s, t); return;
	case PTRACE_EVENT_STOP:
		/* A new thread's first stop; or a group stop, which lasts until SIGCONT. */
		if (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU) {
			ptrace(PTRACE_LISTEN, t->tid, 0, 0);
			t->state = STEP_RUNNING;
		}
		return;
	default: break;
	}
	if (event)
		return;
	if (sig == SIGTRAP) {
		siginfo_t info;

		/* Behind INT3 it is the program's own; so is one that somebody sent. */
		if (!t->far_trap && !t->in_kernel) {
			t->event = false;
			return;
		}
		if (ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info) == 0 && info.si_code != TRAP_TRACE &&
		    info.si_code != TRAP_HWBKPT && (t->far_trap || info.si_code <= 0)) {
			t->far_trap = false;
			t->signal = sig;
			return;
		}
		t->far_trap = false;
		t->event = false;
		return;
	}
	t->signal = sig;
}

/* Before a step with a signal: when a handler will run, the instruction at hand does not. */
static void deliver(struct step *s, struct step_thread *t)
{
	if (!t->in_kernel && is_caught(t->tid, t->signal))
		step_async_end(s, t);
}

/* ---- Stepping --------------------------------------------------------------------------------------- */

static bool changes_maps(uint64_t number)
{
	switch (number) {
	case SYS_mmap:
	case SYS_mprotect:
	case SYS_munmap:
	case SYS_mremap:
	case SYS_pkey_mprotect:
	case SYS_shmat:
	case SYS_shmdt:
	case SYS_remap_file_pages: return true;
	default: return false;
	}
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

/* Where the thread is now, at the end of a step, is where user code goes on. */
static void arrived(struct step *s, struct step_thread *t, uint64_t ip)
{
	if (t->maps_changed) {
		put_all(s);
		step_maps_update(s, t, t->protects);
		t->maps_changed = t->protects = false;
	}
	if (t->renames) {
		step_comm(s, t, false);
		t->renames = false;
	}
	if (t->want_psb)
		step_put_aux(s, t);
	s->model.cycles += 3000;
	step_begin(s, t, ip);
}

static void reap(struct step *s, pid_t tid, int status)
{
	struct step_thread *t = thread_find(s, tid);

	if (WIFEXITED(status) || WIFSIGNALED(status)) {
		if (t) {
			if (tid == s->first)
				s->result->status =
				    WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
			thread_end(s, t);
		}
		return;
	}
	if (!WIFSTOPPED(status))
		return;
	if (!t) {
		/* A child whose parent's event has not come yet. */
		pid_t pid = tgid_of(tid);
		struct step_process *p = process_find(s, pid);

		if (!p)
			p = process_add(s, pid);
		t = p ? thread_add(s, tid, p) : NULL;
		if (!t)
			return;
	}
	stopped(s, t, status);
}

/* Lets a thread run one instruction. False when the thread cannot be told to. */
static bool step(struct step_thread *t)
{
	t->state = STEP_RUNNING;
	if (ptrace(PTRACE_SINGLESTEP, t->tid, 0, (long)t->signal) == 0) {
		t->signal = 0;
		return true;
	}
	return false; /* it is being killed: waitpid() will tell */
}

/* A turn for one stopped thread: until its quantum is over, or it is somewhere in the kernel. */
static void turn(struct step *s, struct step_thread *t)
{
	const struct step_options *o = s->options;

	switch_to(s, t);
	for (int n = 0; n < QUANTUM && !s->failed; n++) {
		struct insn in = {0};
		bool far = false, known = false;
		uint64_t ip = t->ip;
		int status;
		pid_t got;

		if (t->preempted) {
			t->preempted = false;
			step_put_aux(s, t);
			step_begin(s, t, t->ip);
		}
		if (t->signal)
			deliver(s, t);
		if (!t->in_kernel) {
			known = step_insn(s, t, &in);
			if (known && (in.cls == INSN_SYSCALL || in.cls == INSN_INT)) {
				far = true;
				if (in.cls == INSN_SYSCALL) {
					uint64_t number =
					    peek(t->tid, offsetof(struct user_regs_struct, rax));

					t->maps_changed = changes_maps(number);
					t->protects = number == SYS_mprotect || number == SYS_pkey_mprotect;
					t->renames = number == SYS_prctl &&
						     peek(t->tid, offsetof(struct user_regs_struct, rdi)) ==
							 PR_SET_NAME;
				}
				t->far_trap = in.cls == INSN_INT;
				step_end(s, t, ip);
			}
		}
		if (!step(t))
			return;
		/* A system call may sleep until another thread does something. */
		if (t->in_kernel || far) {
			got = waitpid(t->tid, &status, __WALL | WNOHANG);
			for (int spin = 0; got == 0 && spin < 20; spin++) {
				sched_yield();
				got = waitpid(t->tid, &status, __WALL | WNOHANG);
			}
			if (got == 0)
				return;
		} else {
			got = waitpid(t->tid, &status, __WALL);
		}
		if (got < 0) {
			if (errno == EINTR && !*o->stop) {
				n--;
				t->state = STEP_RUNNING;
				return;
			}
			return;
		}
		if (!WIFSTOPPED(status)) {
			reap(s, t->tid, status);
			return;
		}
		s->result->steps++;
		stopped(s, t, status);
		if (t->event) {
			/* The step did not end: a signal came first (t->signal), or a clone, exec, ... */
			if (!t->in_kernel && !t->signal)
				return;
			if (!t->in_kernel) {
				uint64_t now = peek(t->tid, offsetof(struct user_regs_struct, rip));

				if (now != ip && known)
					step_executed(s, t, &in, now);
			}
			if (s->failed)
				return;
			continue;
		}
		{
			uint64_t now = peek(t->tid, offsetof(struct user_regs_struct, rip));

			if (t->in_kernel)
				arrived(s, t, now);
			else if (!known)
				t->ip =
				    now; /* it could not be read, and yet it ran: the decoder will say so */
			else if (now != ip || in.cls == INSN_JMP || in.cls == INSN_JCC ||
				 in.cls == INSN_JMP_IND || in.cls == INSN_CALL || in.cls == INSN_CALL_IND ||
				 in.cls == INSN_RET)
				step_executed(s, t, &in, now); /* else a REP in its middle */
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
	step_put_side(s);
	if (!s->failed && ptc_put_round(s->w, step_now_ns(s), s->e) < 0)
		step_fail(s);
	if (s->options->progress)
		s->options->progress(s->result->steps);
}

/* All threads go on without us. */
static void detach(struct step *s)
{
	for (struct step_thread *t = s->threads, *next; t; t = next) {
		pid_t tid = t->tid;
		int status;

		next = t->next;
		if (t->state != STEP_STOPPED) {
			ptrace(PTRACE_INTERRUPT, tid, 0, 0);
			waitpid(tid, &status, __WALL);
		}
		sched_setaffinity(tid, sizeof cpus_before, &cpus_before);
		ptrace(PTRACE_DETACH, tid, 0, (long)t->signal);
		t->state = STEP_STOPPED;
	}
	while (s->threads)
		thread_end(s, s->threads);
}

static void loop(struct step *s)
{
	int told = 0;

	while (s->threads && !s->failed) {
		struct step_thread *t, *next;
		bool ran = false;
		int status;
		pid_t got;

		if (s->options->max_steps && s->result->steps >= s->options->max_steps) {
			detach(s);
			return;
		}
		if (*s->options->stop > told) {
			told = *s->options->stop;
			if (kill(s->first, told == 1 ? (int)*s->options->stop_signal : SIGKILL) < 0 ||
			    told > 1)
				for (t = s->threads; t; t = t->next)
					kill(t->process->pid, SIGKILL);
		}
		for (t = s->threads; t && !s->failed; t = next) {
			next = t->next;
			/* A child that came before its parent's event waits for it. */
			if (t->state != STEP_STOPPED || !t->traced)
				continue;
			ran = true;
			turn(s, t);
			break;
		}
		/* The one that had its turn goes to the end of the line. */
		if (ran && s->threads && s->threads->next) {
			struct step_thread **at = &s->threads, *moved = NULL;

			while (*at && *at != s->current)
				at = &(*at)->next;
			if (*at) {
				moved = *at;
				*at = moved->next;
				moved->next = NULL;
				for (at = &s->threads; *at; at = &(*at)->next)
					;
				*at = moved;
			}
		}
		progress(s);
		while (s->threads && (got = waitpid(-1, &status, ran ? __WALL | WNOHANG : __WALL)) > 0) {
			struct step_thread *w = thread_find(s, got);

			reap(s, got, status);
			/* The end of a step that slept in the kernel. */
			w = thread_find(s, got);
			if (w && WIFSTOPPED(status) && w->state == STEP_STOPPED && !w->event) {
				switch_to(s, w);
				if (w->in_kernel)
					arrived(s, w, peek(w->tid, offsetof(struct user_regs_struct, rip)));
			}
			ran = true;
		}
		if (!ran && s->threads && errno == ECHILD)
			break;
	}
}

/* ---- Starting --------------------------------------------------------------------------------------- */

static void child(char **argv, const struct step_options *o, int ready, int failed)
{
	char c;
	int err;

	if (o->stdout_to_stderr)
		dup2(2, 1);
	signal(SIGPIPE, SIG_DFL);
	if (read(ready, &c, 1) == 1)
		execvp(argv[0], argv);
	err = errno;
	if (write(failed, &err, sizeof err) < 0)
		_exit(127);
	_exit(127);
}

/*
 * Tracer and program take turns, so one CPU is enough for both, and handing over is five times faster when none has to
 * be woken elsewhere. The program is told nothing that is not so: it runs one thread at a time anyway.
 */
static void one_cpu(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	sched_getaffinity(0, sizeof cpus_before, &cpus_before);
	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
}

static int start(struct step *s, char **argv)
{
	const long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			     PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	int ready[2], failed[2], err = 0, status;
	struct step_process *p;
	struct step_thread *t;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(failed, O_CLOEXEC) < 0)
		return sys_error(s, "cannot make a pipe");
	one_cpu();
	pid = fork();
	if (pid < 0)
		return sys_error(s, "cannot fork");
	if (pid == 0)
		child(argv, s->options, ready[0], failed[1]);
	close(ready[0]);
	close(failed[1]);
	if (ptrace(PTRACE_SEIZE, pid, 0, options) < 0) {
		err = errno;
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		s->failed = true;
		return pt_fail(s->e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "cannot trace a program here: %s; ptrace may be forbidden (a container "
			       "without SYS_PTRACE, "
			       "or kernel.yama.ptrace_scope)",
			       strerror(err));
	}
	if (write(ready[1], "x", 1) != 1)
		return sys_error(s, "cannot start the program");
	close(ready[1]);
	/* Either exec stops it, or it tells why there was none. */
	do {
		if (waitpid(pid, &status, __WALL) < 0)
			return sys_error(s, "cannot wait for the program");
		if (WIFSTOPPED(status) && status >> 16 != PTRACE_EVENT_EXEC)
			ptrace(PTRACE_CONT, pid, 0, status >> 16 ? 0 : WSTOPSIG(status));
	} while (WIFSTOPPED(status) && status >> 16 != PTRACE_EVENT_EXEC);
	if (!WIFSTOPPED(status)) {
		s->failed = true;
		if (read(failed[0], &err, sizeof err) != sizeof err)
			err = 0;
		close(failed[0]);
		return pt_fail(s->e, PT_ERR_REFUSED, PT_NO_OFFSET, "cannot run %s: %s", argv[0],
			       err ? strerror(err) : "it was killed before it began");
	}
	close(failed[0]);
	s->first = pid;
	p = process_add(s, pid);
	t = p ? thread_add(s, pid, p) : NULL;
	if (!t)
		return -1;
	stopped(s, t, status);
	return s->failed ? -1 : 0;
}

static void kill_all(struct step *s)
{
	int status;

	for (struct step_thread *t = s->threads; t; t = t->next)
		kill(t->process->pid, SIGKILL);
	while (s->threads) {
		pid_t got = waitpid(-1, &status, __WALL);
		struct step_thread *t;

		if (got < 0 && errno != EINTR)
			break;
		if (got > 0 && !WIFSTOPPED(status) && (t = thread_find(s, got)))
			thread_end(s, t);
	}
	while (s->threads)
		thread_end(s, s->threads);
}

int step_run(char **argv, const struct step_options *options, struct ptc_writer *w,
	     struct step_result *result, struct pt_error *e)
{
	struct step s = {.options = options, .w = w, .result = result, .e = e};

	memset(result, 0, sizeof *result);
	s.model.cycles = 1500000;
	s.images = image_set_create();
	if (!s.images)
		return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory");
	if (step_attrs(&s, argv[0]) < 0)
		s.failed = true;
	else if (start(&s, argv) == 0)
		loop(&s);
	kill_all(&s);
	step_put_side(&s);
	while (s.processes)
		process_drop(&s, s.processes);
	image_set_destroy(s.images);
	free(s.side);
	return s.failed ? -1 : 0;
}
