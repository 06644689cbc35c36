/* engine.c - gives the threads their turns to step, and waits for them. See engine.h. */
#include "capture/step/engine.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "capture/step/internal.h"

#define QUANTUM	  4000		      /* steps of one thread before another's turn */
#define AUX_BYTES ((size_t)256 << 10) /* of a thread: written when it holds that many */

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

/* Lets a thread run one instruction, or straight code. False when it is not possible. */
static bool step(struct step *s, struct step_thread *t)
{
	bool straight = step_straight_begin(s, t);

	t->state = STEP_RUNNING;
	t->signalled |= t->signal != 0;
	if (ptrace(straight ? PTRACE_CONT : PTRACE_SINGLESTEP, t->tid, 0, (long)t->signal) == 0) {
		t->signal = 0;
		return true;
	}
	return false; /* it is being killed: waitpid() will report that */
}

/* As waitpid(), when the stop comes soon; 0 else. */
static pid_t wait_shortly(const struct step_thread *t, int *status)
{
	pid_t got = waitpid(t->tid, status, __WALL | WNOHANG);

	for (int spin = 0; got == 0 && spin < 20; spin++) {
		sched_yield();
		got = waitpid(t->tid, status, __WALL | WNOHANG);
	}
	return got;
}

/* The thread's next stop; 0 when it sleeps in the kernel, maybe until another thread does something.
 * -1: ask later. */
static pid_t wait_for(const struct step *s, struct step_thread *t, int *status)
{
	pid_t got;

	if (t->in_kernel) {
		got = wait_shortly(t, status);
		/* No other thread's breakpoint is to be in memory that is being copied. */
		while (got == 0 && t->forks && !s->single && !step_ended(t->tid) && !*s->options->stop)
			got = wait_shortly(t, status);
		return got;
	}
	/* In a page fault, too, it may sleep until another thread has served that (userfaultfd(2)). */
	for (int asked = 0; s->threads->next && asked < 2; asked += step_waits(t->tid)) {
		got = wait_shortly(t, status);
		if (got)
			return got;
	}
	if (s->threads->next) {
		step_straight_sleeps(t);
		return 0;
	}
	do
		got = waitpid(t->tid, status, __WALL);
	while (got < 0 && errno == EINTR && !*s->options->stop);
	return got;
}

/* Tracing that ended as another thread had its turn begins again. */
static void go_on(struct step *s, struct step_thread *t)
{
	if (!t->preempted)
		return;
	t->preempted = false;
	step_put_aux(s, t);
	step_begin(s, t, t->ip);
}

/* A turn for one stopped thread: until its quantum is over, or it is somewhere in the kernel. */
static void turn(struct step *s, struct step_thread *t)
{
	const struct step_options *o = s->options;
	const uint64_t end = s->result->steps + QUANTUM;

	switch_to(s, t);
	while (s->result->steps < end && !s->failed) {
		int status;

		go_on(s, t);
		if (t->signal)
			step_deliver(s, t);
		if (!t->in_kernel)
			step_prepare(s, t);
		if (t->state != STEP_STOPPED || !step(s, t) || wait_for(s, t, &status) <= 0)
			return;
		if (!WIFSTOPPED(status)) {
			step_reap(s, t->tid, status);
			return;
		}
		s->result->steps++;
		step_stopped(s, t, status);
		if (!t->event) {
			step_stepped(s, t);
			if (t->state != STEP_STOPPED)
				return;
		} else {
			bool in_user = !t->in_kernel;

			step_interrupted(s, t);
			step_listen(t);
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
	step_put_all(s);
	step_put_sideband(s);
	if (!s->failed && ptc_put_round(s->w, step_now_ns(s), s->e) < 0)
		step_fail(s);
	if (s->options->progress)
		s->options->progress(s->result->steps);
}

/* A stop that was not waited for: the end of a step that slept in the kernel. */
static void woke(struct step *s, struct step_thread *t)
{
	if (t->state != STEP_STOPPED)
		return;
	if (t->preempted) { /* it slept in a page fault */
		switch_to(s, t);
		go_on(s, t);
	}
	if (t->process->untraced) {
		step_listen(t);
	} else if (!t->event) {
		switch_to(s, t);
		step_stepped(s, t);
	} else {
		step_interrupted(s, t);
		step_listen(t);
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

			step_reap(s, got, status);
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
	struct step s = {.options = options, .single = options->single, .w = w, .result = result, .e = e};
	int status;

	memset(result, 0, sizeof *result);
	s.model.cycles = 1500000;
	s.images = image_set_create();
	if (!s.images)
		return pt_fail_no_memory(e, NULL);
	image_set_ask_servers(s.images); /* the program waits, and its time does not go on */
	if (step_attrs(&s, argv[0]) < 0) {
		s.failed = true;
	} else if (step_start(&s, argv, &status) == 0) {
		if (options->started)
			options->started(options->started_arg);
		step_stopped(&s, s.threads, status);
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
