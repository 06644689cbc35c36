/*
 * options.h - what a trace.dat's options tell and libtracecmd does not: how fast its TSC is, and how a guest's
 * clock relates to its host's. Read as trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5) have it.
 */
#ifndef CAPTURE_TRACECMD_OPTIONS_H
#define CAPTURE_TRACECMD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define TRACE_DAT_CPUS_MAX 1024

/* Of one CPU of a guest, when the recording began and when it ended: time of the host = time of the guest + it. */
struct trace_dat_shift {
	bool known;
	bool scaled; /* the clocks run at different speeds: the offset alone says nothing */
	int64_t first, last;
};

struct trace_dat_options {
	bool tsc2nsec; /* ns = TSC * mult >> shift */
	uint32_t mult, shift;
	struct trace_dat_shift shifts[TRACE_DAT_CPUS_MAX];
	uint32_t shift_count;
};

/* Reads them; what is missing or malformed is not known. */
void trace_dat_options_read(struct trace_dat_options *ret, const char *path);

#endif
