/*
 * trim_range.h - a time range of a container, as `pt-capture trim --time` says it.
 */
#ifndef CAPTURE_CONTAINER_TRIM_RANGE_H
#define CAPTURE_CONTAINER_TRIM_RANGE_H

#include "schema/container.h"

struct trim_range {
	uint64_t from_tsc, to_tsc; /* half-open */
};

/* perf's clock: ns = zero + (TSC * mult >> shift); mult 0: unknown. */
struct trim_clock {
	uint64_t zero, mult, shift;
};

struct trim_clock trim_clock_of(const struct ptc_meta *meta);
/* The clock is known. */
uint64_t trim_clock_ns(const struct trim_clock *c, uint64_t tsc);

/*
 * "A..B", either may be missing: seconds of the perf clock ("12.345678901"), "+" and seconds since
 * the first AUX data's PSB, or "tsc:" and a TSC (also with +). first_tsc: of that PSB. 0, or -1:
 * PT_ERR_USAGE.
 */
int trim_range_parse(const char *text, const struct ptc_meta *meta, uint64_t first_tsc,
		     struct trim_range *ret, struct pt_error *e);

#endif
