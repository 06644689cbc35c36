/*
 * perfetto.h - a database's traces as a trace that https://ui.perfetto.dev opens.
 *
 * Tracks: a process for each of the host's, with its threads; a group for each VM, with its vCPUs and the
 * guest's threads; the CPUs, with their counters. Of idle threads each CPU and vCPU has one. On a thread's
 * track its calls are slices, on a vCPU's VM exits (their arguments: reason, qualification, guest's rip,
 * ...) and guest runs, with an arrow from each exit to the entry that ends it; on a CPU's which thread
 * ran. Events, interrupts and errors are marks on their thread, or their CPU. Times are perf's clock. What
 * has no time is not there: a mark says how many.
 */
#ifndef QUERIES_PERFETTO_PERFETTO_H
#define QUERIES_PERFETTO_PERFETTO_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdio.h>

#include "schema/error.h"

/*
 * parameters: "after=NS" and "until=NS", what the trace is to have something of; "trace=N", one of the
 * database's traces: of all of them, threads with the same pid and tid are one, for Perfetto knows them by
 * these. 0, or -1: PT_ERR_USAGE (another parameter, no such trace), PT_ERR_REFUSED (built without
 * protobuf-c; a trace whose times are not known), PT_ERR_BAD_INPUT (SQLite's message), PT_ERR_NO_MEMORY.
 * Whether it was written, out says.
 */
int perfetto_write(sqlite3 *db, const char *const *parameters, size_t parameter_count, FILE *out,
		   struct pt_error *e);

#endif
