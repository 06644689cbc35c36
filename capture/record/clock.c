/* clock.c - see clock.h. */
#include "capture/record/clock.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define NS	  UINT64_C(1000000000)
#define APART_NS  (50 * NS / 1000) /* what is between two moments, at least: 50 ns in it are a millionth */
#define TRIES	  64
#define SHIFT_MAX 31

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
			c = (struct hw_clock){
			    .zero = p->time_zero, .mult = p->time_mult, .shift = p->time_shift};
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (p->lock != lock || lock & 1);
	return c;
}

/* ---- CLOCK_MONOTONIC_RAW ---- */

static uint64_t raw_ns(void)
{
	struct timespec t;

	return clock_gettime(CLOCK_MONOTONIC_RAW, &t) ? 0 : (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

/* The clock is read between two readings of the TSC: of several times that at which these were the nearest. */
static struct hw_clock_moment moment(void)
{
	struct hw_clock_moment best = {0};
	uint64_t best_width = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = __rdtsc(), ns = raw_ns(), width = __rdtsc() - before;

		if (width >= best_width)
			continue;
		best_width = width;
		best = (struct hw_clock_moment){before + width / 2, ns};
	}
	return best;
}

/* False: no line leads through both. */
static bool through(struct hw_clock *c, const struct hw_clock_moment *a, const struct hw_clock_moment *b)
{
	uint64_t tsc = b->tsc - a->tsc, ns = b->ns - a->ns, mult;

	if (b->tsc <= a->tsc || b->ns <= a->ns)
		return false;
	c->shift = SHIFT_MAX + 1;
	do
		mult = (uint64_t)(((unsigned __int128)ns << --c->shift) / tsc);
	while (mult > UINT32_MAX && c->shift);
	c->mult = mult > UINT32_MAX ? 0 : (uint32_t)mult;
	c->zero = 0;
	c->zero = b->ns - hw_clock_ns(c, b->tsc);
	return c->mult;
}

int hw_clock_perf_is_tsc(void)
{
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
				    .size = sizeof a,
				    .config = PERF_COUNT_SW_DUMMY,
				    .disabled = 1,
				    .exclude_kernel = 1,
				    .exclude_hv = 1};
	int ret = 0, fd = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);

	if (p != MAP_FAILED) {
		ret = hw_clock_read(p).mult ? 1 : -1;
		munmap(p, page);
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

struct hw_clock hw_clock_raw(void)
{
	return (struct hw_clock){.raw = true, .first = moment()};
}

struct hw_clock hw_clock_choose(void)
{
	return hw_clock_perf_is_tsc() < 0 ? hw_clock_raw() : (struct hw_clock){0};
}

void hw_clock_settle(struct hw_clock *c, const struct perf_event_mmap_page *page)
{
	uint64_t since_ns;

	if (!c->raw) {
		*c = hw_clock_read(page);
		return;
	}
	since_ns = raw_ns() - c->first.ns;
	if (since_ns < APART_NS)
		nanosleep(&(struct timespec){0, (long)(APART_NS - since_ns)}, NULL);
	hw_clock_refine(c);
}

void hw_clock_refine(struct hw_clock *c)
{
	struct hw_clock_moment now;
	struct hw_clock better = *c;

	if (!c->raw)
		return;
	now = moment();
	if (through(&better, &c->first, &now))
		*c = better;
}

uint64_t hw_clock_ns(const struct hw_clock *c, uint64_t tsc)
{
	return c->mult ? c->zero + (uint64_t)((unsigned __int128)tsc * c->mult >> c->shift) : 0;
}

uint64_t hw_clock_now_ns(const struct hw_clock *c)
{
	if (c->raw)
		return raw_ns(); /* no record's time is after it */
	return c->mult ? hw_clock_ns(c, __rdtsc()) : 0;
}

uint64_t hw_clock_tsc_hz(const struct hw_clock *c)
{
	return c->mult ? (uint64_t)(((unsigned __int128)1000000000 << c->shift) / c->mult) : 0;
}
