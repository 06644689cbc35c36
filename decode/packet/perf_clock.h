/*
 * perf_clock.h - perf's clock, by which sideband records are timed, and its relation to the TSC.
 *
 * The kernel publishes it in struct perf_event_mmap_page (cap_user_time_zero): ns = zero + (tsc * mult >>
 * shift). A container has the three numbers in META: time_zero, time_mult, time_shift.
 */
#ifndef DECODE_PACKET_PERF_CLOCK_H
#define DECODE_PACKET_PERF_CLOCK_H

#include <stdint.h>

#include "schema/container.h"

struct pt_perf_clock {
	uint64_t zero; /* modulo 2^64: it may stand for a negative number */
	uint32_t mult; /* 0: the relation is not known */
	uint32_t shift;
};

/* The host's. mult is 0 when META does not have it. */
void pt_perf_clock_from_meta(const struct ptc_meta *meta, struct pt_perf_clock *ret);
/* The TSC at a time of perf's clock; 0 for times before the TSC was 0; PTR_NO_TSC when the relation is not
 * known. */
uint64_t pt_perf_clock_to_tsc(const struct pt_perf_clock *c, uint64_t ns);

#endif
