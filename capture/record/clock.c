/* clock.c - see clock.h. */
#include "capture/record/clock.h"

#include <x86intrin.h>

struct hw_clock hw_clock_read(const struct perf_event_mmap_page *page)
{
	const volatile struct perf_event_mmap_page *p = page;
	struct hw_clock c;
	uint32_t lock;

	do {
		lock = p->lock;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		c = (struct hw_clock){0};
		if (p->cap_user_time_zero)
			c = (struct hw_clock){p->time_zero, p->time_mult, p->time_shift};
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (p->lock != lock || lock & 1);
	return c;
}

uint64_t hw_clock_ns(const struct hw_clock *c, uint64_t tsc)
{
	return c->mult ? c->zero + (uint64_t)((unsigned __int128)tsc * c->mult >> c->shift) : 0;
}

uint64_t hw_clock_now_ns(const struct hw_clock *c)
{
	return c->mult ? hw_clock_ns(c, __rdtsc()) : 0;
}

uint64_t hw_clock_tsc_hz(const struct hw_clock *c)
{
	return c->mult ? (uint64_t)(((unsigned __int128)1000000000 << c->shift) / c->mult) : 0;
}
