/*
 * drain_threads.h - threads that read AUX rings at the same time, each with an AUX writer of the container
 * (ptc_aux_writer): what is slow about reading is compressing.
 *
 * They live as long as the capture and sleep between rounds. They block all signals, and have the
 * capabilities that their creator has when it creates them.
 */
#ifndef CAPTURE_RECORD_DRAIN_THREADS_H
#define CAPTURE_RECORD_DRAIN_THREADS_H

#include <stddef.h>

#include "schema/container.h"

struct hw_drain_threads;

/*
 * Makes count of them; the caller of hw_drain_threads_run() is one. Fewer where the system has no more, but
 * one at least. NULL: PT_ERR_NO_MEMORY.
 */
struct hw_drain_threads *hw_drain_threads_create(struct ptc_writer *w, unsigned count, struct pt_error *e);
void hw_drain_threads_destroy(struct hw_drain_threads *t); /* before the writer; NULL is fine */

typedef int hw_drain_thread_fn(void *arg, size_t job, struct ptc_aux_writer *aux_writer, struct pt_error *e);

/*
 * Calls fn for each job below `jobs`, once, in any order, and returns when all have ended. 0; or -1 and one
 * of the errors, and the jobs that had not begun are left out.
 */
int hw_drain_threads_run(struct hw_drain_threads *t, size_t jobs, hw_drain_thread_fn *fn, void *arg,
			 struct pt_error *e);

#endif
