/*
 * events.h - the perf events of a capture, and their ring buffers.
 *
 * A CPU (or, with per_thread, a thread) has one ring; all events of it write there. Kinds of events:
 *   PT        intel_pt, one per target and CPU; the ring's AUX area is its own
 *   SIDE      a dummy event beside each: mappings, names, tasks, context switches of the target
 *   ELSEWHERE the same but switches on the CPUs that are not traced: what is started there, or patched, may come to those that are
 *   KERNEL    a dummy event for the whole of each CPU, where the target is tasks: kernel symbols, BPF programs, text pokes, whoever
 *             makes them, if the kernel is traced; and all context switches, which tell who runs in the target's place (as perf
 *             does it; sched:sched_switch only if it is asked for). And where the kernel is traced, the tracepoint module:module_load
 *   TRACE     tracepoints
 *   GROUP     members of a PT event's group, which the kernel wants for what an event does to the trace: the sampled events of AUX
 *             sampling (PERF_SAMPLE_AUX), and those that pause and resume it (attr.aux_pause, aux_resume)
 * All have the sample_type HW_SAMPLE_TYPE (tracepoints: and RAW; sampled ones: and IP, AUX), so every record ends alike.
 *
 * A command: events count from its exec on (enable_on_exec) and are inherited by what it starts. Processes: each thread
 * that is there now on each CPU; new threads inherit. per_thread: rings belong to threads, nothing is inherited (the
 * kernel refuses to inherit into such rings).
 */
#ifndef CAPTURE_RECORD_EVENTS_H
#define CAPTURE_RECORD_EVENTS_H

#include <linux/perf_event.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/record/drain.h"
#include "schema/container.h"

enum hw_event_kind {
	HW_EVENT_PT,
	HW_EVENT_SIDEBAND,
	HW_EVENT_ELSEWHERE,
	HW_EVENT_KERNEL,
	HW_EVENT_TRACE,
	HW_EVENT_GROUP
};

/* The kernel's perf_event.h since Linux 6.13: bits of the 32-bit word behind aux_sample_size in struct perf_event_attr. */
enum hw_aux_action { HW_AUX_START_PAUSED = 1, HW_AUX_PAUSE = 2, HW_AUX_RESUME = 4 };

/* An event in the PT event's group. */
struct hw_group_event {
	char name[80];	       /* "cycles", "cpu-clock", "r1c0", "SYSTEM:NAME" */
	uint32_t sample_bytes; /* of AUX data in each sample; 0: not sampled */
	uint64_t period;       /* a sample each so many; 0: frequency */
	uint64_t frequency;    /* samples a second */
	unsigned action;       /* HW_AUX_PAUSE or HW_AUX_RESUME, 0: neither */
};

struct hw_event {
	int fd;
	enum hw_event_kind kind;
	uint32_t attr; /* index in hw_events.attrs */
	uint64_t id;
	size_t ring;
	int32_t tid, cpu; /* as opened: -1 all, any */
};

struct hw_event_attr {
	char name[96]; /* as in PTC_ATTR */
	struct perf_event_attr attr;
	enum hw_event_kind kind;
};

/* The system calls below, each as the kernel has it: result, or -1 and errno. */
struct hw_perf_calls {
	int (*open)(struct perf_event_attr *a, int32_t tid, int32_t cpu, int group_fd);
	int (*ioctl)(int fd, unsigned long request, void *arg);
};

struct hw_events {
	const struct hw_perf_calls *calls;
	struct hw_event *events;
	size_t count, room;
	struct hw_event_attr attrs[HW_DRAIN_ATTRS];
	uint32_t attr_count;
	struct hw_drain_ring *rings;
	size_t ring_count, ring_room;
	uint64_t data_bytes, aux_bytes; /* of a ring; aux_bytes 0: no PT event */
	bool overwrite;			/* the AUX area is a ring that is overwritten */
	bool sampled;			/* it is read by samples */
	uint64_t read_format;		/* of all events */
	bool no_privilege;    /* opening something failed for want of privilege: what is below was left out */
	struct pollfd *polls; /* of all events; fd -1: gone */
};

struct hw_events_options {
	const int32_t *tids; /* of the target; NULL: all tasks */
	size_t tid_count;
	const int32_t *cpus; /* to be traced */
	size_t cpu_count;
	const int32_t *online; /* all CPUs that are online */
	size_t online_count;
	uint32_t pt_type; /* perf_event_attr.type */
	uint64_t config;
	unsigned levels; /* HW_USER, HW_KERNEL */
	bool pt;	 /* false: sideband only */
	bool per_thread, inherit, enable_on_exec, overwrite;
	bool kernel_side;  /* KERNEL events of the kernel's code wanted */
	bool all_switches; /* and of other tasks' switches; without per_thread only */
	uint64_t data_bytes, aux_bytes;
	const char *const *tracepoints; /* "kvm:kvm_exit"; those that cannot be opened are left out */
	size_t tracepoint_count;
	const struct hw_group_event *group; /* these have to be opened */
	size_t group_count;
	bool start_paused;		   /* nothing is traced before a HW_AUX_RESUME */
	const struct hw_perf_calls *calls; /* NULL: the kernel's; a test's double */
};

/* Opens and maps everything; nothing counts yet but SIDE and KERNEL events without enable_on_exec. A thread that
 * has gone meanwhile is left out. 0, or -1 with a message that says what to do: PT_ERR_REFUSED, PT_ERR_IO,
 * PT_ERR_NO_MEMORY. hw_events_close() in any case. */
int hw_events_open(struct hw_events *ev, const struct hw_events_options *o, struct pt_error *e);
void hw_events_close(struct hw_events *ev);

/* Only what is at these addresses is traced: the kernel's syntax, see PERF_EVENT_IOC_SET_FILTER and perf_event_set_addr_filter(). Before
 * events start. 0, or -1 with PT_ERR_REFUSED. */
int hw_events_filter(struct hw_events *ev, const char *filter, struct pt_error *e);

/* The enum hw_aux_action bits of an attr. */
unsigned hw_aux_action(const struct perf_event_attr *a);

/* Records of a ring that the kernel dropped, by PERF_FORMAT_LOST (Linux 6.0): also those after which nothing was written that could have
 * told of them. 0 where it does not count. *ret_id: of the event that lost most. */
uint64_t hw_events_lost(const struct hw_events *ev, size_t ring, uint64_t *ret_id);

/* Starts PT and TRACE events (those of a group with their PT event). */
void hw_events_start(struct hw_events *ev);
/* Starts, stops the PT events (of all rings, or of one). The kernel publishes all AUX data when they stop. */
void hw_events_enable(struct hw_events *ev);
void hw_events_disable(struct hw_events *ev);
void hw_events_enable_ring(struct hw_events *ev, size_t ring, bool enable);

/* Waits for any ring, at most so long. */
void hw_events_wait(struct hw_events *ev, int timeout_ms);

/* Writes the attrs and streams to the container and fills d's rings, ids and attrs. 0, or -1: the writer's errors. */
int hw_events_declare(struct hw_events *ev, struct ptc_writer *w, struct hw_drain *d, struct pt_error *e);

#endif
