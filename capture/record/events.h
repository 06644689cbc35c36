/*
 * events.h - the perf events of a capture, and their ring buffers.
 *
 * A CPU (or, with per_thread, a thread) has one ring; all its events write there. Kinds of events:
 *
 *   PT         intel_pt, one per target and CPU; the ring's AUX area is its own.
 *   SIDEBAND   A dummy event beside each: mappings, names, tasks, context switches of the target.
 *   ELSEWHERE  The same without switches, on the CPUs that are not traced: what is started or patched there
 *              may run on those that are.
 *   KERNEL     A dummy event for the whole of each CPU, where the target is tasks. If the kernel is traced:
 *              kernel symbols, BPF programs, text pokes, of whatever task; and the tracepoint
 *              module:module_load. And all context switches, which say what runs in the target's place (as
 *              perf record does it).
 *   TRACE      Tracepoints.
 *   TRIGGER    Breakpoints, each hit of which wakes the reader.
 *   GROUP      Members of a PT event's group, as the kernel wants it for events that act on the trace: the
 *              sampled events of AUX sampling (PERF_SAMPLE_AUX), and those that pause and resume it
 *              (attr.aux_pause, aux_resume).
 *
 * All have the sample_type HW_SAMPLE_TYPE (tracepoints also RAW; sampled events also IP and AUX; with
 * sample_cgroup TRACE and GROUP also CGROUP): see sample_id.h.
 *
 * The events of a command count from its exec on (enable_on_exec), and what it starts inherits them. Of a
 * process, each thread that is there now has events on each CPU; new threads inherit them. With per_thread,
 * rings belong to threads and nothing is inherited, as the kernel refuses to inherit into such rings.
 */
#ifndef CAPTURE_RECORD_EVENTS_H
#define CAPTURE_RECORD_EVENTS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/record/cpu_types.h"
#include "capture/record/drain.h"
#include "capture/record/list.h"
#include "schema/container.h"

enum hw_event_kind {
	HW_EVENT_PT,
	HW_EVENT_SIDEBAND,
	HW_EVENT_ELSEWHERE,
	HW_EVENT_KERNEL,
	HW_EVENT_TRACE,
	HW_EVENT_TRIGGER,
	HW_EVENT_GROUP
};

/* Linux 6.13's bits of the 32-bit word after aux_sample_size in struct perf_event_attr. */
enum hw_aux_action { HW_AUX_START_PAUSED = 1, HW_AUX_PAUSE = 2, HW_AUX_RESUME = 4 };

/* An event in the PT event's group. */
struct hw_group_event {
	char name[80];	       /* "cycles", "cpu-clock", "r1c0", "SYSTEM:NAME" */
	char pmu[32];	       /* "cpu_core": of this type of CPUs only; "": of all */
	uint32_t sample_bytes; /* of AUX data in each sample; 0: not sampled */
	uint64_t period;       /* events from one sample to the next; 0: by frequency */
	uint64_t frequency;    /* samples a second */
	unsigned action;       /* HW_AUX_PAUSE or HW_AUX_RESUME; 0: neither */
};

struct hw_event {
	int fd;
	enum hw_event_kind kind;
	uint32_t attr; /* index in hw_events.attrs */
	uint64_t id;
	size_t ring;
	int32_t tid, cpu; /* as opened; tid -1: all tasks, cpu -1: any */
};

struct hw_event_attr {
	char name[96]; /* as in PTC_ATTR */
	struct perf_event_attr attr;
	enum hw_event_kind kind;
	bool optional;		    /* left out where it is not permitted */
	const struct hw_list *cpus; /* it is on these CPUs only: those of its PMU; NULL: wherever */
	unsigned left_out;	    /* events of it that were */
	int why;		    /* errno of the last of them */
};

/*
 * The system calls, for a test's double of the kernel. Each returns as the kernel does: a result, or -1 and
 * errno.
 */
struct hw_perf_calls {
	int (*open)(struct perf_event_attr *a, int32_t tid, int32_t cpu, int group_fd);
	int (*ioctl)(int fd, unsigned long request, void *arg);
	/* The tasks of a control group, by a descriptor of it, and of those in it. */
	int (*open_cgroup)(struct perf_event_attr *a, int cgroup_fd, int32_t cpu, int group_fd);
};

/* Names of tracepoints, "kvm:kvm_exit"; the texts are the caller's. */
struct hw_tracepoints {
	const char **at;
	size_t count, room;
	size_t named; /* the first so many were asked for by name, and must open */
};

struct hw_events {
	const struct hw_perf_calls *calls;
	struct hw_event *events;
	size_t count, room;
	struct hw_event_attr attrs[HW_DRAIN_ATTRS];
	uint32_t attr_count;
	uint64_t read_format; /* of all events */
	bool raw_clock;	      /* as in hw_events_options */
	struct hw_drain_ring *rings;
	size_t ring_count, ring_room;
	uint64_t data_bytes, aux_bytes; /* of each ring; aux_bytes 0: no PT event */
	bool overwrite;			/* the AUX area is overwritten */
	bool one_entry;			/* as in hw_events_options */
	int cgroup_fd;			/* likewise */
	int epoll;			/* of one event of each ring; made by hw_events_open() */
	bool opened;			/* by hw_events_open(): epoll is one */
};

struct hw_events_options {
	/* The target. */
	const struct hw_list *tids;   /* NULL: all tasks */
	const struct hw_list *cpus;   /* those that are traced */
	const struct hw_list *online; /* all that are online */
	bool per_thread, inherit, enable_on_exec;
	bool raw_clock; /* the events' times are CLOCK_MONOTONIC_RAW's (clock.h), not perf's own clock's */
	/* With all tasks: PT, GROUP and TRACE events count those of this control group only; 0: of all. */
	int cgroup_fd;

	/* The PT event and its group. */
	bool pt;	  /* false: sideband only, and the four below are not used */
	uint32_t pt_type; /* perf_event_attr.type */
	uint64_t config;
	bool start_paused;		    /* nothing is traced before a HW_AUX_RESUME */
	const struct hw_group_event *group; /* each must open */
	/*
	 * Of a hybrid processor: an event that a CPU counts becomes one for each type, of that type's PMU and
	 * on its CPUs, as with perf. With per_thread the kernel chooses. NULL: not hybrid. They stay as long
	 * as hw_events.
	 */
	const struct hw_cpu_types *cpu_types;
	size_t group_count;
	unsigned levels; /* HW_USER, HW_KERNEL */

	/* Events beside it. Those that are not permitted (EACCES, EPERM) are left out and counted. */
	bool kernel_sideband; /* records of the kernel's code */
	bool all_switches;    /* records of other tasks' switches; without per_thread only */
	const struct hw_tracepoints *tracepoints; /* NULL: none */
	bool sample_cgroup; /* samples of TRACE and GROUP events have PERF_SAMPLE_CGROUP */

	/* Breakpoints by event_name.h's names; each must open. NULL: none */
	const struct hw_tracepoints *breakpoints;

	/* The rings. */
	uint64_t data_bytes, aux_bytes;
	bool overwrite;
	bool one_entry; /* this CPU's AUX area is one contiguous piece (cap topa_multiple_entries is 0) */

	const struct hw_perf_calls *calls; /* NULL: the kernel's */
};

/*
 * Opens and maps everything; nothing counts yet but SIDEBAND and KERNEL events without enable_on_exec. A
 * thread that has ended meanwhile is left out. 0, or -1 with a message that says what to do: PT_ERR_REFUSED,
 * PT_ERR_USAGE (an event that does not exist, too many), PT_ERR_IO, PT_ERR_NO_MEMORY. hw_events_close() in
 * any case; *ev must be zeroed.
 */
int hw_events_open(struct hw_events *ev, const struct hw_events_options *o, struct pt_error *e);
void hw_events_close(struct hw_events *ev);

/*
 * With inherit and pt, after hw_events_open() and before hw_events_start(): o->tids are threads that have begun
 * while it opened events, and inherit those that the thread which made them had by then. They get what they
 * lack: PT by the kernel's word; where PT was lacking all others, too, as those were opened later; else
 * SIDEBAND and ELSEWHERE, of which two do no harm. (A tracepoint of a thread that inherits PT and not it is
 * missing.) *ret_opened: how many lacked PT. 0, or -1 as hw_events_open().
 */
int hw_events_open_begun(struct hw_events *ev, const struct hw_events_options *o, size_t *ret_opened,
			 struct pt_error *e);

/*
 * Restricts the PT events to addresses, in the kernel's syntax (PERF_EVENT_IOC_SET_FILTER); before they
 * start. 0, or -1 with PT_ERR_REFUSED.
 */
int hw_events_filter(struct hw_events *ev, const char *filter, struct pt_error *e);

/*
 * Writes the attrs and streams to the container and fills d's rings and events. 0, or -1: the writer's
 * errors, PT_ERR_NO_MEMORY.
 */
int hw_events_declare(struct hw_events *ev, struct ptc_writer *w, struct hw_drain *d, struct pt_error *e);

/* Starts PT, TRACE and TRIGGER events (those of a group with their PT event). */
void hw_events_start(struct hw_events *ev);

/* Starts or stops the PT events, of all rings or of one. The kernel publishes all AUX data when they stop. */
void hw_events_enable(struct hw_events *ev);
void hw_events_disable(struct hw_events *ev);
void hw_events_enable_ring(struct hw_events *ev, size_t ring, bool enable);

/* Waits until a ring has something to read, at most timeout_ms. */
void hw_events_wait(struct hw_events *ev, int timeout_ms);

/*
 * The number of a ring's records that the kernel dropped, by PERF_FORMAT_LOST (Linux 6.0): also those after
 * which no PERF_RECORD_LOST was written. 0 where the kernel does not count. *ret_id: of the event that lost
 * most.
 */
uint64_t hw_events_lost(const struct hw_events *ev, size_t ring, uint64_t *ret_id);

#endif
