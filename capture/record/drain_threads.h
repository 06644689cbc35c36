/*
 * drain_threads.h - threads that read AUX rings side by side, each with a lane of the container's writer: what is slow about reading is
 * compressing.
 *
 * They live as long as the capture and sleep between rounds. They take no signals, and have the capabilities that their creator has then.
 */
#ifndef CAPTURE_RECORD_DRAIN_THREADS_H
#define CAPTURE_RECORD_DRAIN_THREADS_H

#include <stddef.h>

#include "schema/container.h"

struct hw_drain_threads;

/* count of them, the caller of hw_drain_threads_run() being one. NULL: PT_ERR_NO_MEMORY. */
struct hw_drain_threads *hw_drain_threads_create(struct ptc_writer *w, unsigned count, struct pt_error *e);
void hw_drain_threads_destroy(struct hw_drain_threads *r); /* before the writer; NULL is fine */

typedef int hw_drain_thread_fn(void *arg, size_t job, struct ptc_aux_writer *aux_writer, struct pt_error *e);
/* Calls fn for each job below `jobs`, once, in any order, and returns when all have ended. 0, or -1 and one of the errors; the jobs that
 * had not begun then are left out. */
int hw_drain_threads_run(struct hw_drain_threads *r, size_t jobs, hw_drain_thread_fn *fn, void *arg,
			 struct pt_error *e);

#endif
