/*
 * capture.h - a capture with Processor Trace: opens the events of a target, drains their rings into a
 * container until it ends, and stops cleanly.
 *
 * The order is: everything is opened (events, kcore, kallsyms); capabilities are dropped but those that
 * reading other processes' files takes; the images of what runs already are put; tracing starts; rounds
 * (drain.h); tracing stops, the last rounds.
 *
 * Memory: the rings (their sizes are -m's), 4 MB of the compressor's for each CPU that is traced, and the
 * records of one round: at most the rings' data areas, HW_SPILL_AUX_MAX and three times HW_SPILL_RECORDS_MAX.
 *
 * The prefix hw_ of this folder's names is for the hardware engine; the step engine's (capture/step/) is
 * step_.
 */
#ifndef CAPTURE_RECORD_CAPTURE_H
#define CAPTURE_RECORD_CAPTURE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/code/guest_kernel.h"
#include "capture/record/control.h"
#include "capture/record/drain.h"
#include "capture/record/events.h"
#include "capture/record/group.h"
#include "capture/record/list.h"
#include "capture/record/pmu.h"
#include "capture/record/rotation.h"
#include "capture/record/trigger.h"
#include "capture/record/vm_find.h"

/*
 * What is traced: one of program, pids and tids, system_wide; or a program besides, for as long as it runs.
 */
struct hw_target {
	char **program; /* NULL: none */
	struct hw_list pids, tids;
	bool system_wide;
	char *cgroup;	     /* with system_wide: its tasks only; NULL: all */
	struct hw_list cpus; /* empty: all that are online */
	bool per_thread;
	bool no_inherit; /* what the traced tasks start is not traced */
	bool sideband_only;
};

/* Which events, and their buffers. */
struct hw_event_choice {
	unsigned levels;	      /* HW_USER, HW_KERNEL; 0: what is permitted */
	uint64_t config;	      /* of the PT event */
	const char *filter;	      /* of addresses, in the kernel's syntax; NULL: none */
	const struct hw_group *group; /* AUX sampling, pause and resume; finished */
	struct hw_tracepoints tracepoints, breakpoints;
	uint64_t data_bytes, aux_bytes; /* of each buffer; 0: buffer_size.h's */
	/* AUX buffers are overwritten; taken on *want_snapshot, by control, by trigger, at the end */
	bool snapshot;
	bool cgroups; /* samples have their thread's control group, and those that are there are recorded */
};

/* What steers it while it runs. The counters are a signal handler's. */
struct hw_steering {
	double seconds;		      /* the capture's; 0: no limit */
	long long delay_ms;	      /* before tracing begins; -1: until control enables it; 0: none */
	uint64_t max_bytes;	      /* of all containers, then it ends; 0: no limit */
	struct hw_control *control;   /* NULL: none */
	int *ready_fd;		      /* hw_ready_put() when recording has begun; -1: none */
	struct hw_rotation *rotation; /* the container that is written is its; NULL: it is the only one */
	struct hw_trigger *trigger;   /* NULL: none */
	volatile sig_atomic_t *want_snapshot; /* counted up */
	volatile sig_atomic_t *stop;	      /* 1: end the program, then the capture; 2: end at once */
	volatile sig_atomic_t *stop_signal;   /* what the program is sent; 0: it has got that, too */
};

struct hw_guests {
	const struct guest_kernels *kernels; /* their pids resolved; NULL: none */
	const struct vms *vms;		     /* the VMs of which the clocks are recorded; NULL: none */
};

struct hw_options {
	struct hw_target target;
	struct hw_event_choice events;
	struct hw_steering steering;
	struct hw_guests guests;
	struct hw_list affinity; /* CPUs that the capture itself runs on; empty: all */
	int realtime;		 /* its priority as SCHED_FIFO; 0: none */
	int level;		 /* zstd's */
	bool jit;		 /* code that is made at run time is read */
	bool stdout_to_stderr;	 /* the program's standard output is the container's */
	bool quiet, verbose;
};

struct hw_result {
	bool have_status;
	int status;	      /* of the program: 0..255, or 128 + signal */
	int32_t left_running; /* the program's process, which the capture did not outlast; 0: it has ended */
	struct hw_losses losses;
	uint64_t aux_bytes, container_bytes;
	unsigned containers;
	uint64_t missing_images; /* mappings of which the code could not be read */
	char missing_why[256];	 /* the first one's */
	uint64_t jit_bytes;	 /* of code that was made at run time, with repeats */
	unsigned jit_processes;
	unsigned rings, snapshots;
	unsigned triggered;		 /* of the snapshots those that the trigger took */
	unsigned trigger_missed;	 /* it fired, and has none: --switch-output completed a container */
	unsigned shared_requests;	 /* signals that asked for a snapshot and have none of their own */
	uint64_t samples, empty_samples; /* of AUX sampling; those without AUX data */
	size_t clocks;			 /* guests' TSC offsets that KVM's debugfs showed */
};

/*
 * Captures into fd, a whole container. pmu: NULL with sideband_only. notice(): says something to the user.
 * Returns 0, also when data was lost (result->losses); or -1: PT_ERR_REFUSED (what cannot be traced, and what
 * to do), PT_ERR_USAGE (a CPU that is not online), PT_ERR_IO, PT_ERR_CLOSED, PT_ERR_NO_MEMORY,
 * PT_ERR_BAD_INPUT (a ring that makes no sense). A program that was started runs on then.
 */
int hw_capture(const struct hw_options *o, const struct hw_pmu *pmu, int fd, void (*notice)(const char *text),
	       struct hw_result *result, struct pt_error *e);

#endif
