/*
 * affinity.c - what the program sees are the CPUs that it had before. All of it runs on one, the tracer's
 * (start.c), but for threads that choose others by themselves.
 */
#include <sched.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "capture/step/internal.h"

void step_affinity_called(struct step *s, struct step_thread *t, uint64_t number)
{
	struct step_thread *of;
	uint64_t tid, set;

	if (number != SYS_sched_getaffinity && number != SYS_sched_setaffinity)
		return;
	if (!STEP_PEEK(t, rdi, &tid) || !STEP_PEEK(t, rdx, &set))
		return;
	of = tid ? step_thread_find(s, (pid_t)tid) : t;
	if (!of)
		return;
	if (number == SYS_sched_setaffinity)
		t->chooses_cpus_of = of->tid;
	else if (!of->chose_cpus)
		t->cpus_at = set;
}

static void put_cpus(struct step *s, struct step_thread *t, uint64_t bytes)
{
	struct iovec local = {&s->cpus_before, bytes < sizeof s->cpus_before ? bytes : sizeof s->cpus_before},
		     remote = {(void *)(uintptr_t)t->cpus_at, local.iov_len};

	process_vm_writev(t->tid, &local, 1, &remote, 1, 0);
}

void step_affinity_returned(struct step *s, struct step_thread *t)
{
	struct step_thread *of = t->chooses_cpus_of ? step_thread_find(s, t->chooses_cpus_of) : NULL;
	uint64_t rax;

	if ((of || t->cpus_at) && STEP_PEEK(t, rax, &rax)) {
		if (of && rax == 0)
			of->chose_cpus = true;
		if (t->cpus_at && (int64_t)rax > 0)
			put_cpus(s, t, rax);
	}
	t->chooses_cpus_of = 0;
	t->cpus_at = 0;
}
