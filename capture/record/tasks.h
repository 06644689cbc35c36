/*
 * tasks.h - the tasks that ran before the capture: their records go into the container when a task is first
 * seen.
 *
 * A system has hundreds of processes with thousands of mapped files, and most of them sleep through a
 * capture. So their records are made at the start, and put, after the images that they need, when the first
 * record of the process comes.
 */
#ifndef CAPTURE_RECORD_TASKS_H
#define CAPTURE_RECORD_TASKS_H

#include "capture/record/images.h"
#include "capture/record/list.h"
#include "capture/record/sideband_state.h"
#include "capture/record/task_records.h"

struct hw_tasks {
	/* Set by the owner: where records and images go. */
	struct ptc_writer *w;
	struct hw_images *images;
	uint32_t attr;		/* of the records, PTC_SIDEBAND's */
	struct hw_state *state; /* gets what is put; NULL: nothing does */

	struct hw_task *tasks; /* sorted by pid */
	size_t count;
	uint64_t time_ns; /* when they were read, perf's clock */
};

/*
 * Reads the records of all processes (pids NULL), or of those. between() is called after each, as it may take
 * long. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_REFUSED (no /proc).
 */
int hw_tasks_read(struct hw_tasks *t, const struct hw_list *pids, const struct hw_record_origin *origin,
		  void (*between)(void *arg), void *arg, struct pt_error *e);
void hw_tasks_deinit(struct hw_tasks *t);

/*
 * Puts what was read of a process, the first time; its records' times become not_before_ns at least. 0, or
 * -1: the writer's errors.
 */
int hw_tasks_put(struct hw_tasks *t, int32_t pid, uint64_t not_before_ns, struct pt_error *e);

/* Puts what was read of all processes. 0, or -1: the writer's errors. */
int hw_tasks_put_all(struct hw_tasks *t, struct pt_error *e);

#endif
