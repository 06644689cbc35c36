/* tasks.c - see tasks.h. */
#include "capture/record/tasks.h"

#include <linux/perf_event.h>
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

int hw_tasks_read(struct hw_tasks *t, const struct hw_list *pids, uint64_t time_ns, uint64_t id,
		  void (*between)(void *arg), void *arg, struct pt_error *e)
{
	struct hw_list all = {0};
	int ret = -1;

	*t = (struct hw_tasks){.time_ns = time_ns, .id = id};
	if (!pids) {
		if (hw_threads(&all, 0, e))
			goto out;
		pids = &all;
	}
	/* cppcheck-suppress nullPointerRedundantCheck ; hw_threads() is not a way past the assignment */
	t->tasks = calloc(pids->count + 1, sizeof *t->tasks);
	if (!t->tasks) {
		pt_fail_no_memory(e, "the running tasks");
		goto out;
	}
	for (size_t i = 0; i < pids->count; i++) {
		t->tasks[t->count].pid = pids->at[i];
		if (hw_proc_records(&t->tasks[t->count++].records, pids->at[i], time_ns, id, NULL, e))
			goto out;
		between(arg);
	}
	qsort(t->tasks, t->count, sizeof *t->tasks, by_pid);
	ret = 0;
out:
	free(all.at);
	return ret;
}

void hw_tasks_deinit(struct hw_tasks *t)
{
	for (size_t i = 0; i < t->count; i++)
		free(t->tasks[i].records.bytes);
	free(t->tasks);
}

static int put(struct hw_task *task, uint64_t time_ns, struct hw_images *images, struct ptc_writer *w,
	       uint32_t attr, struct pt_error *e)
{
	struct hw_bytes *b = &task->records;
	int ret;

	for (size_t i = 0; i < b->count;) {
		uint8_t *p = b->bytes + i;
		struct perf_event_header h;
		uint64_t start, bytes, inode;

		memcpy(&h, p, sizeof h);
		memcpy(p + h.size - 24, &time_ns,
		       sizeof time_ns); /* of the trailer {pid, tid, time, cpu, 0, id} */
		if (h.type == PERF_RECORD_MMAP2) {
			memcpy(&start, p + 16, 8);
			memcpy(&bytes, p + 24, 8);
			memcpy(&inode, p + 48, 8);
			if (hw_images_mapping(images, task->pid, (char *)p + 72, start, bytes, inode, e))
				return -1;
		}
		i += h.size;
	}
	ret = b->count ? ptc_put_sideband(w, attr, b->bytes, b->count, e) : 0;
	free(b->bytes);
	*b = (struct hw_bytes){0};
	return ret;
}

int hw_tasks_put(struct hw_tasks *t, int32_t pid, uint64_t not_before_ns, struct hw_images *images,
		 struct ptc_writer *w, uint32_t attr, struct pt_error *e)
{
	struct hw_task key = {.pid = pid},
		       *task = t->count ? bsearch(&key, t->tasks, t->count, sizeof key, by_pid) : NULL;

	if (!task || !task->records.count)
		return 0;
	return put(task, t->time_ns > not_before_ns ? t->time_ns : not_before_ns, images, w, attr, e);
}

int hw_tasks_put_all(struct hw_tasks *t, struct hw_images *images, struct ptc_writer *w, uint32_t attr,
		     struct pt_error *e)
{
	for (size_t i = 0; i < t->count; i++)
		if (put(&t->tasks[i], t->time_ns, images, w, attr, e))
			return -1;
	return 0;
}
