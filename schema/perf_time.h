/*
 * perf_time.h - times of perf's clock from TSC values, as the macros TSC_TO_NS and TSC_TO_TIME (macros.sql)
 * have them in SQL.
 */
#ifndef SCHEMA_PERF_TIME_H
#define SCHEMA_PERF_TIME_H

#include <stdint.h>

/* Nanoseconds at a TSC value: as perf's mmap page has it (linux/perf_event.h, time_zero), in parts that do not
 * overflow. shift: 0 to 63. */
static inline int64_t pt_perf_time_ns(int64_t zero, int64_t mult, int64_t shift, int64_t tsc)
{
	uint64_t low = (uint64_t)tsc & ((UINT64_C(1) << shift) - 1);

	return (int64_t)((uint64_t)zero + (uint64_t)(tsc >> shift) * (uint64_t)mult +
			 (uint64_t)((int64_t)(low * (uint64_t)mult) >> shift));
}

#endif
