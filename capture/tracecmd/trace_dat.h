/*
 * trace_dat.h - a trace.dat of trace-cmd: what it says about itself, and its events in time order.
 */
#ifndef CAPTURE_TRACECMD_TRACE_DAT_H
#define CAPTURE_TRACECMD_TRACE_DAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/tracecmd/head.h"
#include "capture/tracecmd/library.h"
#include "schema/error.h"

struct trace_dat;

/* How its clock relates to others. */
enum trace_dat_clock {
	TRACE_DAT_TSC,	/* x86-tsc: times are the TSC of the machine that wrote them */
	TRACE_DAT_PERF, /* local, global, perf: ns of the kernel's scheduler clock, which is perf's */
	TRACE_DAT_OTHER
};

struct trace_dat_event {
	struct dat_raw raw;
	uint32_t id;
	int32_t cpu, tid;
};

/* Whether it is one, by its first bytes. False also when it cannot be read. */
bool trace_dat_is(const char *path);

/*
 * NULL: PT_ERR_BAD_INPUT, PT_ERR_TRUNCATED, PT_ERR_IO, PT_ERR_NO_MEMORY; PT_ERR_REFUSED (there is no
 * libtracecmd).
 */
struct trace_dat *trace_dat_open(const char *path, struct pt_error *e);
void trace_dat_close(struct trace_dat *t);

/* What the file says about itself. */
const struct trace_dat_head *trace_dat_head(const struct trace_dat *t);
/* Formats of events, names of threads. */
const struct dat_library *trace_dat_library(const struct trace_dat *t);

enum trace_dat_clock trace_dat_clock(const struct trace_dat *t);
/* "x86-tsc", "local"... */
const char *trace_dat_clock_name(const struct trace_dat *t);
/* How a guest's CPU's times relate to the host's, as trace-cmd's agent has found; NULL: unknown. */
const struct trace_dat_shift *trace_dat_shift(const struct trace_dat *t, uint32_t cpu);
/*
 * The vCPUs' threads in the host, when this host's file knows the guest's: their number, and *ret_tids of the
 * file.
 */
int trace_dat_guest_cpus(const struct trace_dat *t, const struct trace_dat *guest, const char **ret_name,
			 const int **ret_tids);
/* A number of an event's by its field's name. */
bool trace_dat_number(const struct trace_dat *t, const struct trace_dat_event *event, const char *field,
		      uint64_t *ret);

/*
 * The next event of the file, of its main buffer and its further ones (instances) together, in time order: 1
 * and *ret, with data that is valid until the next call; 0 at the end; -1: PT_ERR_NO_MEMORY, PT_ERR_IO,
 * PT_ERR_BAD_INPUT, PT_ERR_TRUNCATED.
 */
int trace_dat_next(struct trace_dat *t, struct trace_dat_event *ret, struct pt_error *e);

#endif
