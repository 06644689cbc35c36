/*
 * test_raw_clock.c - CLOCK_MONOTONIC_RAW from the TSC (capture/record/clock.h), held against the C library's
 * clock, and against the kernel: the time of a record that it makes while the TSC is read before and after.
 */
#include "capture/record/clock.h"
#include "tests/unit/check.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define NS UINT64_C(1000000000)
/* By so much the line may be wrong: a virtual machine's clock is not quite straight. */
#define OFF_NS 20000

static uint64_t raw_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

/* ns was the clock's between two readings of the TSC. */
static bool is_between(const struct hw_clock *c, uint64_t before, uint64_t ns, uint64_t after)
{
	uint64_t from = hw_clock_ns(c, before), to = hw_clock_ns(c, after);

	if (from <= ns + OFF_NS && ns <= to + OFF_NS)
		return true;
	printf("%" PRIu64 " ns is not in %" PRIu64 " to %" PRIu64 "\n", ns, from, to);
	return false;
}

static void test_line(struct hw_clock *c)
{
	bool good = true;

	for (int i = 0; i < 30; i++) {
		uint64_t before = __rdtsc(), ns = raw_ns(), after = __rdtsc();

		good &= is_between(c, before, ns, after);
		usleep(10000);
		hw_clock_refine(c);
	}
	check(good, "the line is the clock, for 0.3 s, as it is found again and again");
	check(hw_clock_now_ns(c) >= raw_ns() - NS && hw_clock_now_ns(c) <= raw_ns(), "now");
}

/* The time of the COMM record that the ring has from at on; *at is after it then. */
static uint64_t comm_time(const struct perf_event_mmap_page *page, uint64_t *at)
{
	const uint8_t *data = (const uint8_t *)page + page->data_offset;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), time = 0;
	struct perf_event_header h;

	for (; *at < head; *at += h.size) {
		memcpy(&h, data + *at, sizeof h);
		if (h.type == PERF_RECORD_COMM) /* its sample_id is the time alone */
			memcpy(&time, data + *at + h.size - sizeof time, sizeof time);
	}
	return time;
}

static void test_kernel(const struct hw_clock *c)
{
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
				    .size = sizeof a,
				    .config = PERF_COUNT_SW_DUMMY,
				    .sample_type = PERF_SAMPLE_TIME,
				    .clockid = CLOCK_MONOTONIC_RAW};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t at = 0;
	bool good = true;
	void *p;
	int fd;

	a.exclude_kernel = a.exclude_hv = a.comm = a.sample_id_all = a.use_clockid = 1;
	fd = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, 0);
	p = fd < 0 ? MAP_FAILED : mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		printf("no event may be opened here: not held against the kernel\n");
		return;
	}
	for (int i = 0; i < 20 && good; i++) {
		uint64_t before = __rdtsc(), after;

		prctl(PR_SET_NAME, i % 2 ? "one" : "another");
		after = __rdtsc();
		good = is_between(c, before, comm_time(p, &at), after);
	}
	check(good, "the times of the kernel's records");
	munmap(p, 2 * page);
	close(fd);
}

int main(void)
{
	struct hw_clock c = hw_clock_raw();

	hw_clock_settle(&c, NULL);
	check(c.mult && hw_clock_tsc_hz(&c) > 100000000 && hw_clock_tsc_hz(&c) < 20 * NS, "a line was found");
	test_line(&c);
	test_kernel(&c);
	return sum_up();
}
