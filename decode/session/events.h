/*
 * events.h - samples and context switches of the sideband as EVENT records; KVM's tracepoints also to
 * vm/vm.h.
 *
 * The name of a tracepoint's sample is "SYSTEM:NAME" (PTC_FORMAT), and its fields are the tracepoint's. The
 * name of another sample is that of its perf event, with the fields "period" and "addr" if it has them.
 * With PERF_SAMPLE_CGROUP both have "cgroup", the path of the thread's control group, or "cgroup_id" where
 * no record says the path. A control group that was made, or that was there when recording began, is
 * "cgroup" with "id" and "path"; a context switch is "context_switch" with
 * "out" (true: the thread leaves its CPU), and "preempt" and the other thread's "pid" and "tid" if the record
 * has them. Times are the host's TSC, also of guests' events.
 */
#ifndef DECODE_SESSION_EVENTS_H
#define DECODE_SESSION_EVENTS_H

#include "decode/sideband/machines.h"
#include "decode/sideband/record.h"
#include "decode/sideband/tasks.h"
#include "decode/vm/vm.h"
#include "schema/container.h"

/* The perf events of a recording. */
struct pt_session_events;

struct pt_session_events *pt_session_events_create(void);     /* NULL: no memory */
void pt_session_events_destroy(struct pt_session_events *ev); /* NULL is fine */

/* Takes a PTC_ATTR or PTC_FORMAT. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (the attr's index was there
 * before). */
int pt_session_events_attr(struct pt_session_events *ev, const struct ptc_attr *attr, struct pt_error *e);
int pt_session_events_format(struct pt_session_events *ev, const struct ptc_tracepoint *t,
			     struct pt_error *e);

/*
 * A sample in a PTC_SIDEBAND of that attr. *ret: a sideband record that waits for its time (its event is
 * set, its machine is left to the caller), to be freed with free(); NULL when its event is not known. 0, or
 * -1: PT_ERR_NO_MEMORY.
 */
int pt_session_events_sample(struct pt_session_events *ev, uint32_t attr, const uint8_t *sample,
			     uint32_t sample_bytes, struct pt_sideband_record **ret, struct pt_error *e);

/*
 * A record of a machine was read: the paths of control groups are known from then on, as samples on another
 * CPU may come before them. 0, or -1: PT_ERR_NO_MEMORY.
 */
int pt_session_events_learn(struct pt_session_events *ev, const struct pt_sideband_record *record,
			    struct pt_error *e);

/*
 * The time of a sample or switch record has come: writes its EVENT, and reports KVM's samples to vm (may be
 * NULL). slice: the number of the slice that runs on its CPU, 0 none. Failures are emit's.
 */
void pt_session_events_put(struct pt_session_events *ev, const struct pt_sideband_record *record,
			   struct pt_emit *emit, struct pt_vm *vm, uint32_t slice);

#endif
