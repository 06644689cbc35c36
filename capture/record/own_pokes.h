/*
 * own_pokes.h - what opening the capture's events changes in the kernel's code.
 *
 * The first event that wants context switches turns a static key on (kernel/events/core.c, account_event():
 * perf_sched_events), so the scheduler's code is patched before that event can report it. Where this is a
 * guest, whose host's trace has begun before, the trace shows the code as it was. So on each CPU an event that
 * only reports patches, and turns no key on, is opened before all others.
 */
#ifndef CAPTURE_RECORD_OWN_POKES_H
#define CAPTURE_RECORD_OWN_POKES_H

#include "capture/record/byte_buffer.h"
#include "capture/record/list.h"

struct hw_own_pokes;

/* From now on patches are reported. raw_clock: as in hw_events_options. NULL: the kernel does not permit it, or
 * does not know it (before Linux 5.9), or there is no memory; then what is changed is not known. */
struct hw_own_pokes *hw_own_pokes_open(const struct hw_list *cpus, bool raw_clock);
void hw_own_pokes_close(struct hw_own_pokes *p); /* NULL is fine */

/*
 * Takes the TEXT_POKE records that have come, as records of the event with that id. *ret is the pokes'
 * own, until they are closed.
 * 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (as hw_ring_records()).
 */
int hw_own_pokes_take(struct hw_own_pokes *p, uint64_t id, const struct hw_bytes **ret, struct pt_error *e);

/* Makes n bytes of the kernel's code at an address what they were before the records that were taken. */
void hw_own_pokes_undo(const struct hw_own_pokes *p, uint64_t address, uint8_t *bytes, size_t n);

#endif
