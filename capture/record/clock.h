/*
 * clock.h - the clock of the events, from the TSC: ns = zero + (tsc * mult >> shift).
 *
 * Of perf's own clock that is the conversion in a ring's control page (struct perf_event_mmap_page,
 * cap_user_time_zero). The kernel gives none where its scheduler's clock is not the TSC: in a guest with
 * kvmclock, or when it takes the TSC for unstable. There the events are to have CLOCK_MONOTONIC_RAW
 * (perf_event_attr.use_clockid, Linux 4.1), which programs can read, too: the line is that through two moments
 * at which it and the TSC were read.
 */
#ifndef CAPTURE_RECORD_CLOCK_H
#define CAPTURE_RECORD_CLOCK_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

struct hw_clock {
	uint64_t zero;
	uint32_t mult; /* 0: it is not known how it follows from the TSC */
	uint32_t shift;
	bool raw; /* the events are to have CLOCK_MONOTONIC_RAW */
	struct hw_clock_moment {
		uint64_t tsc, ns;
	} first; /* of raw */
};

/* Whether perf's own clock follows from the TSC: 1, or -1; 0: no event may be opened that would say. */
int hw_clock_perf_is_tsc(void);
/* Before the events are opened: raw where perf's own clock does not. */
struct hw_clock hw_clock_choose(void);
/* Raw: its first moment is now. */
struct hw_clock hw_clock_raw(void);
/* The events are opened, and page is the control page of one. Raw takes up to 50 ms. */
void hw_clock_settle(struct hw_clock *c, const struct perf_event_mmap_page *page);
/* Of raw: by now it is known better, the longer the time since the first moment. */
void hw_clock_refine(struct hw_clock *c);

/* perf's own, by a control page. */
struct hw_clock hw_clock_read(const struct perf_event_mmap_page *page);

/* Each is 0 when there is no conversion. */
uint64_t hw_clock_ns(const struct hw_clock *c, uint64_t tsc);
uint64_t hw_clock_now_ns(const struct hw_clock *c);
uint64_t hw_clock_tsc_hz(const struct hw_clock *c);

#endif
