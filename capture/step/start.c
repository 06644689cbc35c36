/* start.c - the program's start under ptrace, and the end of tracing. See internal.h. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/step/internal.h"

static void child(char **argv, const struct step_options *o, const int ready[2], int failed)
{
	ssize_t got;
	char c;
	int err;

	close(ready[1]); /* or it would wait for itself */
	if (o->stdout_to_stderr)
		dup2(2, 1);
	signal(SIGPIPE, SIG_DFL);
	got = read(ready[0], &c, 1);
	if (got == 1)
		execvp(argv[0], argv);
	err = got ? errno : 0;
	if (write(failed, &err, sizeof err) < 0)
		_exit(127);
	_exit(127);
}

/*
 * Tracer and program take turns, so one CPU is enough for both, and handing over is five times faster
 * when no other CPU has to be woken.
 */
static void one_cpu(struct step *s)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	sched_getaffinity(0, sizeof s->cpus_before, &s->cpus_before);
	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
}

/* Kills and reaps a child that cannot be traced, and says so. */
static int refuse(struct step *s, pid_t pid, int err)
{
	pid_t tracer = step_tracer_of(pid);
	int status;

	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	s->failed = true;
	if (tracer)
		return pt_fail(
		    s->e, PT_ERR_REFUSED, PT_NO_OFFSET,
		    "cannot trace the program: process %d traces it already, and a program has one tracer "
		    "only",
		    (int)tracer);
	return pt_fail(
	    s->e, PT_ERR_REFUSED, PT_NO_OFFSET,
	    "cannot trace a program here: %s; ptrace may be forbidden (a container without SYS_PTRACE, "
	    "or kernel.yama.ptrace_scope)",
	    strerror(err));
}

int step_start(struct step *s, char **argv, int *ret_status)
{
	const long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			     PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	int ready[2], failed[2], err = 0, status, unsent;
	struct step_process *p;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(failed, O_CLOEXEC) < 0)
		return step_error(s, "cannot make a pipe");
	one_cpu(s);
	pid = fork();
	if (pid < 0)
		return step_error(s, "cannot fork");
	if (pid == 0)
		child(argv, s->options, ready, failed[1]);
	close(ready[0]);
	close(failed[1]);
	if (ptrace(PTRACE_SEIZE, pid, 0, options) < 0) {
		/* The child waits until the pipe is closed: while it is there, its tracer is, too. */
		int ret = refuse(s, pid, errno);

		close(ready[1]);
		close(failed[0]);
		return ret;
	}
	/* Either exec stops it, or it writes why there was none. If this cannot be written (EPIPE: it has
	 * ended), there is none either. */
	unsent = write(ready[1], "x", 1) == 1 ? 0 : errno;
	close(ready[1]);
	for (;;) {
		if (waitpid(pid, &status, __WALL) < 0) {
			if (errno == EINTR)
				continue;
			return step_error(s, "cannot wait for the program");
		}
		if (!WIFSTOPPED(status) || status >> 16 == PTRACE_EVENT_EXEC)
			break;
		ptrace(PTRACE_CONT, pid, 0, status >> 16 ? 0 : WSTOPSIG(status));
	}
	if (!WIFSTOPPED(status)) {
		s->failed = true;
		if (read(failed[0], &err, sizeof err) != sizeof err)
			err = 0;
		if (!err && unsent != EPIPE)
			err = unsent;
		close(failed[0]);
		return pt_fail(s->e, PT_ERR_REFUSED, PT_NO_OFFSET, "cannot run %s: %s", argv[0],
			       err ? strerror(err) : "it was killed before it began");
	}
	close(failed[0]);
	s->first = pid;
	p = step_process_add(s, pid);
	*ret_status = status;
	return p && step_thread_add(s, pid, p) ? 0 : -1;
}

void step_detach(struct step *s)
{
	for (struct step_thread *t = s->threads, *next; t; t = next) {
		pid_t tid = t->tid;
		int status;

		next = t->next;
		if (t->state != STEP_STOPPED) {
			ptrace(PTRACE_INTERRUPT, tid, 0, 0);
			waitpid(tid, &status, __WALL);
		}
		sched_setaffinity(tid, sizeof s->cpus_before, &s->cpus_before);
		ptrace(PTRACE_DETACH, tid, 0, (long)t->signal);
		t->state = STEP_STOPPED;
	}
	while (s->threads)
		step_thread_end(s, s->threads);
}

void step_kill_all(struct step *s)
{
	int status;

	for (struct step_thread *t = s->threads; t; t = t->next)
		kill(t->process->pid, SIGKILL);
	while (s->threads) {
		pid_t got = waitpid(-1, &status, __WALL);
		struct step_thread *t;

		if (got < 0 && errno != EINTR)
			break;
		if (got > 0 && !WIFSTOPPED(status) && (t = step_thread_find(s, got)))
			step_thread_end(s, t);
	}
	while (s->threads)
		step_thread_end(s, s->threads);
}
