/* tasks.c - see tasks.h. */
#include "decode/sideband/tasks.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

struct pt_tasks {
	struct pt_graph *graph;
	struct pt_machine *machine;
	struct img_space *kernel;
	struct pt_process *processes;
	/* tsearch()'s trees. The last one has the newest task of each tid. */
	void *process_by_pid, *task_by_tid_pid, *task_by_tid;
};

struct pt_tasks *pt_tasks_create(struct pt_graph *graph, struct pt_machine *machine, struct img_space *kernel)
{
	struct pt_tasks *t = calloc(1, sizeof *t);

	if (t) {
		t->graph = graph;
		t->machine = machine;
		t->kernel = kernel;
	}
	return t;
}

static int by_pid(const void *a, const void *b)
{
	const struct pt_process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int by_tid(const void *a, const void *b)
{
	const struct pt_task *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int by_tid_pid(const void *a, const void *b)
{
	const struct pt_task *x = a, *y = b;

	return x->tid != y->tid ? by_tid(a, b) : (x->pid > y->pid) - (x->pid < y->pid);
}

/* For tdestroy(): the processes' list frees what the trees hold. */
static void keep(void *node)
{
	(void)node;
}

void pt_tasks_destroy(struct pt_tasks *t)
{
	if (!t)
		return;
	tdestroy(t->task_by_tid, keep);
	tdestroy(t->task_by_tid_pid, keep);
	tdestroy(t->process_by_pid, keep);
	while (t->processes) {
		struct pt_process *p = t->processes;

		t->processes = p->next;
		while (p->tasks) {
			struct pt_task *task = p->tasks;

			p->tasks = task->next;
			free(task);
		}
		img_space_deinit(&p->space);
		free(p);
	}
	free(t);
}

struct pt_process *pt_tasks_find_process(const struct pt_tasks *t, int32_t pid)
{
	const struct pt_process key = {.pid = pid};
	struct pt_process *const *found = tfind(&key, &t->process_by_pid, by_pid);

	return found ? *found : NULL;
}

struct pt_process *pt_tasks_process(struct pt_tasks *t, int32_t pid)
{
	struct pt_process *p = pt_tasks_find_process(t, pid);

	if (p)
		return p;
	p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->pid = pid;
	p->fresh = true;
	p->parent = -1;
	img_space_init(&p->space);
	img_space_of(&p->space, t->kernel->store, t->kernel->machine_pid, pid);
	p->space.upper = t->kernel;
	p->code = pt_graph_code(t->graph, &p->space);
	if (!p->code) {
		free(p);
		return NULL;
	}
	p->next = t->processes;
	t->processes = p;
	/* (Without memory it will be made again.) */
	return tsearch(p, &t->process_by_pid, by_pid) ? p : NULL;
}

/* pid -1: the newest of that tid. */
static struct pt_task *find_task(const struct pt_tasks *t, int32_t pid, int32_t tid)
{
	const struct pt_task key = {.pid = pid, .tid = tid};
	struct pt_task *const *found =
	    pid == -1 ? tfind(&key, &t->task_by_tid, by_tid) : tfind(&key, &t->task_by_tid_pid, by_tid_pid);

	return found ? *found : NULL;
}

struct pt_task *pt_tasks_get(struct pt_tasks *t, int32_t pid, int32_t tid)
{
	struct pt_task *task = find_task(t, pid, tid), **node;

	if (task)
		return task;
	task = calloc(1, sizeof *task);
	if (!task)
		return NULL;
	task->pid = pid == -1 ? tid : pid;
	task->tid = tid;
	if (tid == 0) /* the idle task, which no record names */
		memcpy(task->comm, "swapper", sizeof "swapper");
	task->machine = t->machine;
	task->process = pt_tasks_process(t, task->pid);
	if (!task->process) {
		free(task);
		return NULL;
	}
	task->next = task->process->tasks;
	task->process->tasks = task;
	node = tsearch(task, &t->task_by_tid, by_tid);
	if (!node || !tsearch(task, &t->task_by_tid_pid, by_tid_pid))
		return NULL;
	*node = task;
	return task;
}
