/*
 * trigger.h - what takes a snapshot: a long VM exit, a tracepoint, a call of a function, its return, an
 * address, the program's end.
 *
 * Functions and addresses are hardware breakpoints (PERF_TYPE_BREAKPOINT): nothing is written into the code
 * that is traced. trigger_place.h finds the addresses.
 */
#ifndef CAPTURE_RECORD_TRIGGER_H
#define CAPTURE_RECORD_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

#define HW_TRIGGER_TASKS 1024
#define HW_TRIGGER_DEPTH 8 /* calls of a function that calls itself, timed for each thread */
#define HW_BREAKPOINTS	 4 /* that an x86 CPU has */

struct hw_breakpoint {
	uint64_t address;
	bool leaves;   /* the instruction leaves the function; else it is the first, or an address */
	char name[40]; /* as perf has it: "mem:0x401136:x" */
};

struct hw_trigger {
	enum {
		HW_TRIGGER_NONE,
		HW_TRIGGER_VMEXIT,
		HW_TRIGGER_TRACEPOINT,
		HW_TRIGGER_EXIT,
		HW_TRIGGER_CALL,
		HW_TRIGGER_RETURN,
		HW_TRIGGER_ADDRESS
	} kind;
	uint64_t longer_than_ns;
	char tracepoint[96];
	char function[256], file[256]; /* file "": any */
	uint64_t address;	       /* HW_TRIGGER_ADDRESS's */
	unsigned max;		       /* snapshots that it takes, then the capture ends; 0: no limit */

	struct hw_breakpoint at[HW_BREAKPOINTS]; /* by hw_trigger_place() */
	size_t count;
	char stop[512]; /* the PT filter by which the CPU itself stops there; "": none */

	struct {
		int32_t tid;
		unsigned depth;
		uint64_t begun_ns[HW_TRIGGER_DEPTH]; /* outside its guest, inside the function, since */
		/* the return was seen and its call not yet, as another CPU's ring has it; 0: no */
		uint64_t left_ns;
	} tasks[HW_TRIGGER_TASKS]; /* threads, hashed by tid */
	uint64_t armed_ns;	   /* what began before had its snapshot */
	uint64_t ready_ns; /* what fires before comes while a container is being completed: no snapshot */
	unsigned missed;   /* how often it did */
};

/*
 * "vmexit>100us" (ns, us, ms, s), "call:FUNCTION[@FILE]", "ret:FUNCTION[@FILE][>2ms]", "addr:0x401136",
 * "SYSTEM:NAME", "exit". max becomes 1 for what is a breakpoint. 0, or -1: PT_ERR_USAGE.
 */
int hw_trigger_parse(struct hw_trigger *t, const char *text, struct pt_error *e);

/* Whether it is a breakpoint. */
bool hw_trigger_is_breakpoint(const struct hw_trigger *t);

/* The tracepoints that must be recorded for it: their number, at most 2. The texts are its own. */
size_t hw_trigger_tracepoints(const struct hw_trigger *t, const char *ret[2]);

/* A sample of an event, by its name; returns whether a snapshot is to be taken. */
bool hw_trigger_sample(struct hw_trigger *t, const char *event, int32_t tid, uint64_t time_ns);

#endif
