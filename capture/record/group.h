/*
 * group.h - the options for events that sample, pause and resume a trace, as perf's: --aux-sample[=SIZE],
 * --sample-event, -F, -c, and aux-action= of -e and --tracepoint.
 */
#ifndef CAPTURE_RECORD_GROUP_H
#define CAPTURE_RECORD_GROUP_H

#include "capture/record/events.h"

#define HW_GROUP_MAX	 16
#define HW_SAMPLE_BYTES	 4096  /* of AUX data in a sample, perf's default */
#define HW_SAMPLE_MAX	 61440 /* perf's: a record is at most 64 KB */
#define HW_SAMPLE_HZ	 4000
#define HW_SAMPLE_HZ_MAX 1000000

/* Zeroed: none. */
struct hw_group {
	struct hw_group_event at[HW_GROUP_MAX];
	size_t count;
	uint32_t sample_bytes;	    /* 0: no AUX sampling */
	uint64_t frequency, period; /* -F, -c; 0: not given */
	bool start_paused;
	bool actions; /* an event pauses or resumes */
};

/*
 * Whether text begins with the PMU of a type of CPUs, "cpu/" or "cpu_core/": *ret_bytes without the slash.
 * What a CPU counts is then named after it, as with perf: "cpu_core/cycles/".
 */
bool hw_group_has_pmu(const char *text, size_t *ret_bytes);

/* Each takes an option's argument. 0, or -1 with PT_ERR_USAGE. */
int hw_group_aux_sample(struct hw_group *g, const char *size, struct pt_error *e); /* NULL: the default */
int hw_group_sample_event(struct hw_group *g, const char *name, struct pt_error *e);
/*
 * -e's "NAME", "NAME:LEVELS", "NAME/TERMS/LEVELS", "PMU/NAME,TERMS/LEVELS": terms are aux-sample-size,
 * period and freq; levels are the trace's. With a PMU the name may be terms of the CPU's event select register
 * instead, "cpu_core/event=0x3c,umask=1,cmask=1,inv/": the raw event "rHEX".
 */
int hw_group_event(struct hw_group *g, const char *text, struct pt_error *e);
int hw_group_frequency(struct hw_group *g, const char *hz, struct pt_error *e);
int hw_group_period(struct hw_group *g, const char *count, struct pt_error *e);

/*
 * "SYSTEM:NAME/aux-action=pause/" or resume. *ret_taken 1: it is one; 0: it is a plain tracepoint, not taken.
 */
int hw_group_tracepoint(struct hw_group *g, const char *text, int *ret_taken, struct pt_error *e);

/*
 * -e's terms: takes aux-action=start-paused, and writes the others to `to`, which has room for a copy of
 * text.
 */
int hw_group_terms(struct hw_group *g, const char *text, char *to, struct pt_error *e);

/*
 * After all options: checks that they fit together, and decides what each event does. 0, or -1 with
 * PT_ERR_USAGE.
 */
int hw_group_finish(struct hw_group *g, struct pt_error *e);

#endif
