/* tasks.c - see tasks.h. */
#include "capture/record/tasks.h"
#include "capture/record/mapping_records.h"
#include "capture/record/proc.h"
#include "capture/record/sample_id.h"
#include "schema/bytes.h"

#include <stdlib.h>
#include <string.h>

struct hw_task {
	int32_t pid;
	struct hw_bytes records;
};

static int by_pid(const void *a, const void *b)
{
	const struct hw_task *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

int hw_tasks_read(struct hw_tasks *t, const struct hw_list *pids, const struct hw_record_origin *origin,
		  void (*between)(void *arg), void *arg, struct pt_error *e)
{
	struct hw_list all = {0};
	int ret = -1;

	t->time_ns = origin->time_ns;
	if (!pids) {
		if (hw_proc_threads(&all, 0, e))
			goto out;
		pids = &all;
	}
	/* cppcheck-suppress nullPointerRedundantCheck ; a failed hw_proc_threads() does not get here */
	t->tasks = calloc(pids->count + 1, sizeof *t->tasks);
	if (!t->tasks) {
		pt_fail_no_memory(e, "the running tasks");
		goto out;
	}
	for (size_t i = 0; i < pids->count; i++) {
		t->tasks[t->count].pid = pids->at[i];
		if (hw_task_records(&t->tasks[t->count++].records, pids->at[i], origin, e))
			goto out;
		between(arg);
	}
	qsort(t->tasks, t->count, sizeof *t->tasks, by_pid);
	ret = 0;
out:
	hw_list_deinit(&all);
	return ret;
}

void hw_tasks_deinit(struct hw_tasks *t)
{
	for (size_t i = 0; i < t->count; i++)
		hw_bytes_deinit(&t->tasks[i].records);
	free(t->tasks);
}

static int put(struct hw_tasks *t, struct hw_task *task, uint64_t time_ns, struct pt_error *e)
{
	struct hw_bytes *b = &task->records;
	struct perf_event_header h;

	for (size_t i = 0; i < b->count; i += h.size) {
		uint8_t *p = b->bytes + i;

		memcpy(&h, p, sizeof h);
		memcpy(p + h.size - sizeof(struct hw_sample_id) + offsetof(struct hw_sample_id, time_ns),
		       &time_ns, sizeof time_ns);
		if (t->state && hw_state_record(t->state, p, e))
			return -1;
	}
	if (hw_mapping_records_put(
		t->images,
		&(struct hw_mapping_records){
		    .w = t->w, .attr = t->attr, .bytes = b->bytes, .count = b->count, .time_ns = time_ns},
		e))
		return -1;
	hw_bytes_deinit(b);
	return 0;
}

int hw_tasks_put(struct hw_tasks *t, int32_t pid, uint64_t not_before_ns, struct pt_error *e)
{
	struct hw_task key = {.pid = pid},
		       *task = t->count ? bsearch(&key, t->tasks, t->count, sizeof key, by_pid) : NULL;

	if (!task || !task->records.count)
		return 0;
	return put(t, task, t->time_ns > not_before_ns ? t->time_ns : not_before_ns, e);
}

int hw_tasks_put_all(struct hw_tasks *t, struct pt_error *e)
{
	for (size_t i = 0; i < t->count; i++)
		if (put(t, &t->tasks[i], t->time_ns, e))
			return -1;
	return 0;
}
