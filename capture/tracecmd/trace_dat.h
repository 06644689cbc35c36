/*
 * trace_dat.h - a trace.dat of trace-cmd, by Debian's libtracecmd and libtraceevent: its events in time order.
 */
#ifndef CAPTURE_TRACECMD_TRACE_DAT_H
#define CAPTURE_TRACECMD_TRACE_DAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/tracecmd/options.h"
#include "schema/error.h"

struct trace_dat;

/* How its clock relates to others. */
enum trace_dat_clock {
	TRACE_DAT_TSC,	/* x86-tsc: times are the TSC of the machine that wrote them */
	TRACE_DAT_PERF, /* local, global, perf: nanoseconds of the kernel's scheduler clock, which is perf's */
	TRACE_DAT_OTHER
};

struct trace_dat_event {
	uint64_t time; /* as the file has it, in no way corrected */
	int32_t cpu, tid;
	uint32_t id;
	uint64_t missed; /* events lost before this one; UINT64_MAX: some */
	const void *raw;
	uint32_t raw_bytes;
};

struct trace_dat_format {
	uint32_t id;
	const char *system, *name; /* the file's */
	char *text;		   /* tracefs's `format`, the caller's */
};

/* Is it one, by its first bytes? False too when it cannot be read. */
bool trace_dat_is(const char *path);

/* NULL: PT_ERR_BAD_INPUT, PT_ERR_IO, PT_ERR_NO_MEMORY. */
struct trace_dat *trace_dat_open(const char *path, struct pt_error *e);
void trace_dat_close(struct trace_dat *t);

enum trace_dat_clock trace_dat_clock(const struct trace_dat *t);
const char *trace_dat_clock_name(const struct trace_dat *t);
/* uname's nodename and release when the file tells them, else "". */
const char *trace_dat_host(const struct trace_dat *t);
const char *trace_dat_kernel(const struct trace_dat *t);
/* ns = tsc * mult >> shift, when the file says (--tsc2nsec). */
bool trace_dat_tsc2nsec(const struct trace_dat *t, uint32_t *ret_mult, uint32_t *ret_shift);
/* How a guest's CPU's times relate to the host's, as trace-cmd's agent has found; NULL: nothing is told. */
const struct trace_dat_shift *trace_dat_shift(const struct trace_dat *t, uint32_t cpu);
/* The vCPUs' threads in the host, when this host's file knows the guest's: their number, and *ret_tids of the file. */
int trace_dat_guest_cpus(const struct trace_dat *t, const struct trace_dat *guest, const char **ret_name,
			 const int **ret_tids);
/* The name of a thread, "" unknown. */
const char *trace_dat_comm(const struct trace_dat *t, int32_t tid);

/* The format of event id: 0, or -1: PT_ERR_BAD_INPUT (no such event), PT_ERR_NO_MEMORY. */
int trace_dat_format(const struct trace_dat *t, uint32_t id, struct trace_dat_format *ret,
		     struct pt_error *e);
/* A number of an event's by its field's name. */
bool trace_dat_number(const struct trace_dat *t, const struct trace_dat_event *event, const char *field,
		      uint64_t *ret);

/*
 * The next event of the file, of its main buffer and its further ones (instances) together, in time order: 1 and *ret, valid
 * until the next call; 0 at the end; -1: PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT.
 */
int trace_dat_next(struct trace_dat *t, struct trace_dat_event *ret, struct pt_error *e);

#endif
