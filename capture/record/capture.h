/*
 * capture.h - a capture with Processor Trace: opens the events of a target, drains their rings into a container until it
 * ends, and stops cleanly.
 *
 * Order: everything is opened (events, kcore, kallsyms); capabilities are dropped but those that reading other processes'
 * files needs; images of what runs already; tracing; rounds (drain.h); the last round.
 * Memory: the rings (told by -m), 4 MB of the compressor's for each CPU that is traced, the records of one round, at most the rings'
 * data areas, HW_STASH_MAX and three times HW_EARLY_MAX.
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
#include "capture/record/pmu.h"
#include "capture/record/proc.h"
#include "capture/record/vm_find.h"

/* Sizes of a CPU's buffers by default: with CAP_PERFMON; without (they fit perf_event_mlock_kb's default); records with AUX samples. */
#define HW_DATA_KB		512
#define HW_AUX_KB		4096
#define HW_DATA_KB_UNPRIVILEGED 128
#define HW_AUX_KB_UNPRIVILEGED	128
#define HW_SAMPLED_KB		4096

struct hw_options {
	char **program; /* NULL: none */
	struct hw_list pids, tids;
	bool system_wide;
	struct hw_list cpus; /* empty: all that are online */
	double seconds;	     /* 0: no limit */
	unsigned levels;     /* HW_USER, HW_KERNEL; 0: what is permitted */
	uint64_t config;
	bool per_thread;
	bool sideband_only;
	uint64_t data_bytes, aux_bytes; /* 0: default */
	int level;			/* zstd's */
	bool stdout_to_stderr;
	bool quiet, verbose;
	const char **tracepoints;
	size_t tracepoint_count;
	const struct hw_group_event *group; /* AUX sampling, pause and resume: events.h */
	size_t group_count;
	bool start_paused;
	/* AUX buffers are overwritten; taken on *want_snapshot, by control, by trigger, at the end */
	bool snapshot;
	struct hw_control *control;	      /* NULL: none */
	struct hw_trigger *trigger;	      /* NULL: none */
	volatile sig_atomic_t *want_snapshot; /* counted up by a signal handler */
	const char *filter;		      /* of addresses, as the kernel takes it; NULL: none */
	const struct guest_kernels *kernels;  /* of guests, their pids resolved; NULL: none */
	const struct vms *vms;		      /* whose clocks are to be recorded; NULL: none */
	volatile sig_atomic_t *stop;	      /* set by a signal handler: end (1), end at once (2) */
	volatile sig_atomic_t *stop_signal;
};

struct hw_result {
	bool have_status;
	int status; /* of the program: 0..255, or 128 + signal */
	struct hw_losses losses;
	uint64_t aux_bytes, container_bytes;
	uint64_t missing_images;
	char missing_why[256];
	unsigned rings, snapshots;
	uint64_t samples, empty_samples; /* of AUX sampling; those without AUX data */
	size_t clocks;			 /* guests' TSC offsets that KVM's debugfs told */
};

/*
 * Captures into fd, whole container. pmu: NULL with sideband_only. notice(): says something to the user. Returns 0, also when
 * data was lost (result->losses); or -1: PT_ERR_REFUSED (what cannot be traced, and what to do), PT_ERR_IO,
 * PT_ERR_CLOSED, PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (a ring that makes no sense). A program that was started is killed then.
 */
int hw_capture(const struct hw_options *o, const struct hw_pmu *pmu, int fd, void (*notice)(const char *text),
	       struct hw_result *result, struct pt_error *e);

#endif
