/*
 * tasks.h - tasks that ran before the capture: their records go into the container when a task is first heard of.
 *
 * A system has hundreds of processes with thousands of mapped files, and most of them sleep through a capture. So their
 * records are read at the start, and put, with the images that they need, when the first record of the process comes.
 */
#ifndef CAPTURE_RECORD_TASKS_H
#define CAPTURE_RECORD_TASKS_H

#include "capture/record/images.h"
#include "capture/record/proc.h"

struct hw_tasks {
	struct hw_task *tasks; /* sorted by pid */
	size_t count;
	uint64_t time_ns, id; /* of the records */
};

/* Reads all processes (pids NULL) or those; between() is called after each, as there may be many. 0, or -1: PT_ERR_NO_MEMORY. */
int hw_tasks_read(struct hw_tasks *t, const struct hw_list *pids, uint64_t time_ns, uint64_t id,
		  void (*between)(void *arg), void *arg, struct pt_error *e);
void hw_tasks_deinit(struct hw_tasks *t);

/* Puts what is known of pid, once; not older than not_before_ns. 0, or -1: the writer's errors. */
int hw_tasks_put(struct hw_tasks *t, int32_t pid, uint64_t not_before_ns, struct hw_images *images,
		 struct ptc_writer *w, uint32_t attr, struct pt_error *e);
/* The same for all. */
int hw_tasks_put_all(struct hw_tasks *t, struct hw_images *images, struct ptc_writer *w, uint32_t attr,
		     struct pt_error *e);

#endif
