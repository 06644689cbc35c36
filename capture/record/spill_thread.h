/*
 * spill_thread.h - a thread that looks after the rings while the capture's own thread is at something that takes long: images, symbols,
 * compressing. What is in a ring that fills up meanwhile is set aside (hw_drain_stash()).
 *
 * It sleeps while the capture waits for its rings, and takes no signals. It has the capabilities that its creator has then.
 */
#ifndef CAPTURE_RECORD_SPILL_THREAD_H
#define CAPTURE_RECORD_SPILL_THREAD_H

#include <stdbool.h>

#include "capture/record/drain.h"

struct hw_spill_thread;

/* It begins busy. NULL: PT_ERR_NO_MEMORY. */
struct hw_spill_thread *hw_spill_thread_create(struct hw_drain *d, struct pt_error *e);
void hw_spill_thread_destroy(struct hw_spill_thread *g); /* before d's rings; NULL is fine */
/* Whether the capture is at work, and does not just wait. */
void hw_spill_thread_busy(struct hw_spill_thread *g, bool busy);

#endif
