/*
 * test_session_work.c - what a session's work grows with: containers in which two things are many,
 * and each of one would be looked at for each of the other. Twice as many of both take about twice as
 * long, in CPU time of this thread; if they took four times as long, the test fails.
 */
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "decode/session/session.h"
#include "tests/unit/check.h"

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void ok(bool done)
{
	if (!done) {
		printf("FAILED: the container is written\n");
		exit(1);
	}
}

static uint8_t bytes[4 << 20];
static size_t size;
static struct pt_error error;

static void put(const void *p, size_t n)
{
	memcpy(bytes + size, p, n);
	size += n;
}

#define PUT(literal) put((literal), sizeof(literal) - 1)

/* PSB, TSC, PIP of a CR3 that nobody knows, MODE.Exec, FUP in the kernel, PSBEND. */
static void put_psb(uint64_t tsc)
{
	PUT("\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x19");
	put(&tsc, 7);
	PUT("\x02\x43\x00\x12\x34\x00\x00\x00\x99\x01\x7d\x00\x10\x00\x81\xff\xff\x02\x23");
}

static void flush_aux(struct ptc_writer *w, uint32_t stream, uint64_t *offset)
{
	struct ptc_aux aux = {.aux_offset = *offset, .bytes = bytes, .size = size};

	ok(ptc_put_aux(w, stream, &aux, &error) >= 0);
	*offset += size;
	size = 0;
}

/* A recording whose time is the TSC, without MTC. Its records have pid, tid, time and CPU at their end. */
static void put_begin(struct ptc_writer *w, uint32_t streams, int32_t machine_pid)
{
	static const struct perf_event_attr attr = {.size = sizeof attr,
						    .sample_type =
							PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
						    .sample_id_all = 1};
	struct ptc_attr put = ptc_host_attr("a", &attr, sizeof attr, NULL, 0);

	put.machine_pid = machine_pid;
	ok(ptc_put_meta(w, "time_mult", "1", &error) == 0 &&
	   ptc_put_meta(w, "time_shift", "0", &error) == 0 &&
	   ptc_put_meta(w, "machine.7.time_mult", "1", &error) == 0 &&
	   ptc_put_meta(w, "pt_user_only", "0", &error) == 0 &&
	   ptc_put_meta(w, "pt_config", "1024", &error) == 0 && ptc_put_attr(w, &put, &error) >= 0);
	for (uint32_t i = 0; i < streams; i++) {
		const struct ptc_stream stream = {
		    .cpu = (int32_t)i, .pid = -1, .tid = -1, .attr = UINT32_MAX};

		ok(ptc_put_stream(w, &stream, &error) >= 0);
	}
}

/* n records, at the times from `time` on, of CPU 0 and thread 5. */
static void put_records(struct ptc_writer *w, uint16_t type, uint16_t misc, uint64_t time, size_t n)
{
	struct {
		struct perf_event_header h;
		uint32_t other_pid, other_tid;
		uint32_t pid, tid;
		uint64_t time;
		uint32_t cpu, reserved;
	} r = {.h = {type, misc, sizeof r}, .pid = 5, .tid = 5};

	for (size_t i = 0; i < n; i++) {
		r.time = time + i;
		put(&r, sizeof r);
		if (size + sizeof r > 65536 || i + 1 == n) {
			ok(ptc_put_sideband(w, 0, bytes, size, &error) == 0);
			size = 0;
		}
	}
}

/* Streams that show nothing, and records. */
static void many_streams(struct ptc_writer *w, size_t n)
{
	put_begin(w, (uint32_t)n, 0);
	put_records(w, PERF_RECORD_EXIT, 0, 10, 50 * n);
}

/* User space is reached again and again, with a CR3 of which nothing is known, and no switch to come
 * is to a process that has code. */
static void many_switches(struct ptc_writer *w, size_t n)
{
	uint64_t offset = 0;

	put_begin(w, 1, 0);
	put_records(w, PERF_RECORD_SWITCH_CPU_WIDE, 0, 10, n);
	put_psb(1);
	for (size_t i = 0; i < n; i++) {
		PUT("\x6d\x00\x10\x40\x00\x00\x00\x6d\x00\x10\x00\x81\xff\xff");
		if (size > 65536 || i + 1 == n)
			flush_aux(w, 1, &offset);
	}
}

/* Guests are entered again and again, while the records of another guest wait for its clock: which is
 * not looked for any more. */
static void many_entries(struct ptc_writer *w, size_t n)
{
	uint64_t offset = 0;

	put_begin(w, 1, 7);
	put_records(w, PERF_RECORD_EXIT, 0, 10, n);
	ok(ptc_put_round(w, 1000000000, &error) == 0 && ptc_put_round(w, 1000000001, &error) == 0);
	put_psb(1);
	flush_aux(w, 1, &offset);
	memset(bytes, 0, sizeof bytes);
	while (offset < 65 << 20) {
		size = sizeof bytes;
		flush_aux(w, 1, &offset);
	}
	put_psb(2);
	for (size_t i = 0; i < n; i++) {
		PUT("\x02\x43\x01\x00\x00\x00\x00\x00\x6d\x00\x10\x00\x00\x00\x00");
		PUT("\x7d\x00\x20\x00\x00\x00\x00\x02\x43\x00\x12\x34\x00\x00\x00\x6d\x00\x10\x00\x81\xff"
		    "\xff");
		if (size > 65536 || i + 1 == n)
			flush_aux(w, 1, &offset);
	}
}

/* As many_switches(), on many CPUs in turn: what one has searched for is not forgotten for another's sake. */
static void many_cpus(struct ptc_writer *w, size_t n)
{
	enum { CPUS = 150 };
	static uint64_t offsets[CPUS + 1];

	put_begin(w, CPUS, 0);
	memset(offsets, 0, sizeof offsets);
	put_records(w, PERF_RECORD_SWITCH_CPU_WIDE, 0, (uint64_t)1 << 40, n);
	for (size_t round = 0; round < n / CPUS + 1; round++) {
		for (uint32_t cpu = 1; cpu <= CPUS; cpu++) {
			put_psb(round + 1);
			PUT("\x6d\x00\x10\x40\x00\x00\x00\x6d\x00\x10\x00\x81\xff\xff");
			flush_aux(w, cpu, &offsets[cpu]);
		}
		ok(ptc_put_round(w, round + 1, &error) == 0);
	}
}

/* The CPU seconds of a decode. */
static double decode(void (*write)(struct ptc_writer *, size_t), size_t n)
{
	const struct pt_session_options options = {0};
	struct pt_session_result result;
	int fd = memfd_create("container", MFD_CLOEXEC);
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &error);
	struct ptr_writer *out = ptr_writer_create(PTR_COUNT_ONLY, NULL, &error);
	struct ptc_reader *r;
	double begin;
	int status;

	ok(w && out);
	write(w, n);
	ok(ptc_writer_finish(w, &error) == 0);
	ptc_writer_destroy(w);
	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &error);
	ok(r != NULL);
	begin = cpu_seconds();
	status = pt_session_run(r, out, &options, &result, &error);
	begin = cpu_seconds() - begin;
	check(status == 0, status ? error.message : "decoded");
	ptc_reader_destroy(r);
	ptr_writer_destroy(out);
	close(fd);
	return begin;
}

static void grows_slowly(const char *what, void (*write)(struct ptc_writer *, size_t), size_t n)
{
	double none = decode(write, 1), once = decode(write, n), twice = decode(write, 2 * n);

	printf("%s: %.3f s, %.3f s, %.3f s\n", what, none, once, twice);
	/* What takes next to no time is no measure. */
	check_case(twice - none < 3 * (once - none) || twice - none < 0.2, "grows as its size does", what);
}

int main(void)
{
	grows_slowly("streams and records", many_streams, 1000);
	grows_slowly("entries to user space and switches", many_switches, 10000);
	grows_slowly("entries to user space on many CPUs", many_cpus, 5000);
	grows_slowly("VM entries and records that wait", many_entries, 5000);
	return sum_up();
}
