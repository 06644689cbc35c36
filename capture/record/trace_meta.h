/* trace_meta.h - META that says how a trace is to be decoded: its clock and its PT configuration. */
#ifndef CAPTURE_RECORD_TRACE_META_H
#define CAPTURE_RECORD_TRACE_META_H

#include "capture/record/clock.h"
#include "capture/record/pmu.h"
#include "schema/container.h"

/* How perf's clock follows from the TSC; nothing when that is not known. 0, or -1: the writer's errors. */
int hw_clock_meta_put(struct ptc_writer *w, const struct hw_clock *clock, struct pt_error *e);

/*
 * The configuration of PT, and what the CPU says of it. levels: HW_USER, HW_KERNEL. 0, or -1: the writer's
 * errors.
 */
int hw_trace_meta_put(struct ptc_writer *w, const struct hw_pmu *pmu, uint64_t config, unsigned levels,
		      struct pt_error *e);

#endif
