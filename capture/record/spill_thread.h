/*
 * spill_thread.h - a thread that empties the rings (hw_drain_spill()) while the capture's own thread does
 * something that takes long: images, symbols, compressing.
 *
 * It sleeps while the capture waits for its rings. It blocks all signals, and has the capabilities that its
 * creator has when it creates it.
 */
#ifndef CAPTURE_RECORD_SPILL_THREAD_H
#define CAPTURE_RECORD_SPILL_THREAD_H

#include <stdbool.h>

#include "capture/record/drain.h"

struct hw_spill_thread;

/* It begins busy. NULL: PT_ERR_NO_MEMORY. */
struct hw_spill_thread *hw_spill_thread_create(struct hw_drain *d, struct pt_error *e);
void hw_spill_thread_destroy(struct hw_spill_thread *t); /* before d's rings; NULL is fine */

/* busy: the capture is at work, and does not just wait for its rings. */
void hw_spill_thread_busy(struct hw_spill_thread *t, bool busy);

#endif
