/*
 * bases.h - what is added to the record stream's numbers to make ids, so that several traces share a
 * database.
 *
 * Number n of the stream (1, 2, ...) becomes the id base + n.
 */
#ifndef EXPORT_BASES_H
#define EXPORT_BASES_H

#include <stdint.h>

struct trace_bases {
	int64_t trace; /* no base: the trace's own id */
	int64_t machine, thread, dso, symbol, edge, path, slice, run, call_path, call, event, error,
	    guest_run, vmexit, vm_clock, code, source_file;
};

#endif
