/*
 * events.h - samples and context switches of the sideband as EVENT records; KVM's tracepoints for vm/vm.h.
 *
 * A sample is "SYSTEM:NAME" of its tracepoint (PTC_FORMAT) with the tracepoint's fields; of another event, the event's name
 * with what the sample has of "period" and "addr". A context switch is "context_switch" with "out" (true: the
 * thread leaves its CPU), "preempt" when it was told, and the other thread's "pid" and "tid" when it was told.
 * Times are the host's TSC, of guests' events, too.
 */
#ifndef DECODE_SESSION_EVENTS_H
#define DECODE_SESSION_EVENTS_H

#include "decode/sideband/machines.h"
#include "decode/sideband/record.h"
#include "decode/sideband/tasks.h"
#include "decode/vm/vm.h"
#include "schema/container.h"

struct pt_session_events;

struct pt_session_events *pt_session_events_create(void);     /* NULL: no memory */
void pt_session_events_destroy(struct pt_session_events *ev); /* NULL is fine */

/* What PTC_ATTR and PTC_FORMAT say. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT. */
int pt_session_events_attr(struct pt_session_events *ev, const struct ptc_attr *attr, struct pt_error *e);
int pt_session_events_format(struct pt_session_events *ev, const struct ptc_tracepoint *t,
			     struct pt_error *e);

/* A sample of a chunk of attr `attr`: *ret_side waits for its time (side->event is set), or is NULL when nothing is known of its
 * event. machine is left to the caller. 0, or -1: PT_ERR_NO_MEMORY. */
int pt_session_events_sample(struct pt_session_events *ev, uint32_t attr, const uint8_t *record,
			     uint32_t size, struct pt_sideband_record **ret_side, struct pt_error *e);

/* The time of a sample or switch has come: writes its EVENT, and tells vm of KVM's. slice: of the stream that is on its CPU, 0
 * none. Failures are emit's. */
void pt_session_events_put(struct pt_session_events *ev, const struct pt_sideband_record *side,
			   struct pt_emit *emit, struct pt_vm *vm, uint32_t slice);

#endif
