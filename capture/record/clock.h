/*
 * clock.h - perf's clock from the TSC, by the conversion in a ring's control page (struct
 * perf_event_mmap_page, cap_user_time_zero): ns = time_zero + (tsc * time_mult >> time_shift).
 */
#ifndef CAPTURE_RECORD_CLOCK_H
#define CAPTURE_RECORD_CLOCK_H

#include <linux/perf_event.h>
#include <stdint.h>

struct hw_clock {
	uint64_t zero;
	uint32_t mult; /* 0: the kernel gives no conversion (its clock is not the TSC) */
	uint32_t shift;
};

struct hw_clock hw_clock_read(const struct perf_event_mmap_page *page);

/* Each is 0 when there is no conversion. */
uint64_t hw_clock_ns(const struct hw_clock *c, uint64_t tsc);
uint64_t hw_clock_now_ns(const struct hw_clock *c);
uint64_t hw_clock_tsc_hz(const struct hw_clock *c);

#endif
