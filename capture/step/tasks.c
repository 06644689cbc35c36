/* tasks.c - the processes and threads that are stepped, and what /proc says of them. See internal.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>

#include "capture/step/internal.h"

int step_error(struct step *s, const char *what)
{
	if (!s->failed)
		pt_fail_errno(s->e, "%s", what);
	s->failed = true;
	return -1;
}

struct step_process *step_process_add(struct step *s, pid_t pid)
{
	struct step_process *p = calloc(1, sizeof *p);

	if (!p || !(p->cache = calloc(STEP_CACHE, sizeof *p->cache))) {
		free(p);
		errno = ENOMEM;
		step_error(s, "cannot follow another process");
		return NULL;
	}
	p->pid = pid;
	p->memory = -1;
	p->next = s->processes;
	s->processes = p;
	return p;
}

struct step_process *step_process_find(struct step *s, pid_t pid)
{
	struct step_process *p;

	for (p = s->processes; p && p->pid != pid; p = p->next)
		;
	return p;
}

void step_process_drop(struct step *s, struct step_process *p)
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

struct step_thread *step_thread_find(struct step *s, pid_t tid)
{
	struct step_thread *t;

	for (t = s->threads; t && t->tid != tid; t = t->next)
		;
	return t;
}

struct step_thread *step_thread_add(struct step *s, pid_t tid, struct step_process *p)
{
	struct step_thread *t = calloc(1, sizeof *t), **at = &s->threads;

	if (!t) {
		errno = ENOMEM;
		step_error(s, "cannot follow another thread");
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

void step_thread_end(struct step *s, struct step_thread *t)
{
	struct step_thread **at = &s->threads;

	step_straight_left(s, t);
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
		step_process_drop(s, t->process);
	pt_encode_deinit(&t->encoder);
	free(t);
}

void step_thread_last(struct step *s, struct step_thread *t)
{
	struct step_thread **at = &s->threads;

	while (*at && *at != t)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = t->next;
	t->next = NULL;
	for (at = &s->threads; *at; at = &(*at)->next)
		;
	*at = t;
}

/* A number in /proc/TID/status, by a scanf format of its line. */
static unsigned long long status_of(pid_t tid, const char *format, unsigned long long otherwise)
{
	unsigned long long value = otherwise;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, format, &value) == 1)
			break;
	if (f)
		fclose(f);
	return value;
}

bool step_read_implies_exec(pid_t pid)
{
	unsigned long value = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/personality", pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%lx", &value) != 1)
		value = READ_IMPLIES_EXEC;
	if (f)
		fclose(f);
	return !f || value & READ_IMPLIES_EXEC;
}

pid_t step_tgid_of(pid_t tid)
{
	return (pid_t)status_of(tid, "Tgid: %llu", (unsigned long long)tid);
}

pid_t step_tracer_of(pid_t tid)
{
	return (pid_t)status_of(tid, "TracerPid: %llu", 0);
}

/* As in /proc/TID/status: R, S, D, Z...; 0: it is not known. */
static char state_of(pid_t tid)
{
	char path[64], line[256], state = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", tid);
	f = fopen(path, "re");
	while (f && !state && fgets(line, sizeof line, f))
		if (sscanf(line, "State: %c", &state) != 1)
			state = 0;
	if (f)
		fclose(f);
	return state;
}

bool step_waits(pid_t tid)
{
	char state = state_of(tid);

	return state == 'S' || state == 'D' || state == 'Z' || state == 'X';
}

bool step_ended(pid_t tid)
{
	char state = state_of(tid);

	return !state || state == 'Z' || state == 'X';
}

bool step_is_caught(pid_t tid, int sig)
{
	return sig > 0 && sig <= 64 && (status_of(tid, "SigCgt: %llx", 0) >> (sig - 1) & 1);
}

bool step_peek(struct step_thread *t, size_t offset, uint64_t *ret)
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
