/*
 * bases.h - what is added to the record stream's numbers to make ids, so that several traces share a
 * database.
 *
 * Number n of the stream (1, 2, ...) becomes the id base + n. And the clock that gives rows their time_ns.
 */
#ifndef EXPORT_BASES_H
#define EXPORT_BASES_H

#include <stdbool.h>
#include <stdint.h>

/* perf's clock: time = zero + (tsc * mult >> shift), in 64 bits. */
struct trace_clock {
	bool known;
	uint64_t zero, mult, shift;
};

struct trace_bases {
	int64_t trace; /* no base: the trace's own id */
	int64_t machine, thread, dso, symbol, edge, path, slice, run, call_path, call, event, error,
	    thread_path, guest_run, vmexit, vm_clock, code, source_file, inlined_call;
	int64_t interrupt; /* of those whose branches are not there: their ids are negative, -(base + n) */
	struct trace_clock clock; /* as known before the first row */
};

#endif
