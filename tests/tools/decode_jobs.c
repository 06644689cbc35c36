/*
 * decode_jobs.c - decode_jobs BYTES THREADS CONTAINER...: decodes each container with one thread, and with
 * THREADS where segments have BYTES. Prints a line for each whose record streams differ, and at the end how
 * many were decoded, how many segments were made, how many of them fitted, how many bytes were taken
 * over, and how many runs of how many were encoded by other threads. Exit status 1: some differed.
 * DECODE_JOBS_MB: memory for code and paths (pt-decode --memory).
 * DECODE_JOBS_DETAIL: the level, by its name (pt-decode --detail). DECODE_JOBS_TIMES: prints the CPU time of
 * each decode with THREADS, and what of it is the one thread's that puts all together, without what others do
 * as well: all that is given to them is theirs here, as with cores enough.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "decode/session/session.h"

/* CPU time. */
struct times {
	uint64_t all_ns, alone_ns;
};

struct decoded {
	struct times times;
	int status;
	char message[1100];
	struct pt_session_result result;
	char *records;
	size_t size;
};

static enum ptr_detail detail_wanted(void)
{
	const char *name = getenv("DECODE_JOBS_DETAIL");
	enum ptr_detail d = PTR_DETAIL_BRANCHES;

	while (name && strcmp(name, ptr_detail_name(d)) != 0)
		if (++d > PTR_DETAIL_SUMS)
			exit(2);
	return d;
}

static int run(struct ptc_reader *reader, int out, unsigned threads, unsigned bytes,
	       struct pt_session_result *result, struct pt_error *e)
{
	const char *mb = getenv("DECODE_JOBS_MB");
	const struct pt_session_options options = {.calls = true,
						   .definitions = true,
						   .stats = true,
						   .threads = threads,
						   .segment_bytes = bytes,
						   .segments_wait = true,
						   .detail = detail_wanted(),
						   .graph_bytes = mb ? (size_t)atoi(mb) << 20 : 0};
	struct ptr_writer *w = ptr_writer_create(out, NULL, e);
	int r = w ? 0 : -1;

	if (r == 0)
		r = pt_session_run(reader, w, &options, result, e);
	if (r == 0)
		r = ptr_writer_finish(w, e);
	ptr_writer_destroy(w);
	return r;
}

static uint64_t cpu_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct times now(void)
{
	return (struct times){cpu_ns(CLOCK_PROCESS_CPUTIME_ID), cpu_ns(CLOCK_THREAD_CPUTIME_ID)};
}

static void print_times(const char *name, const struct decoded *d)
{
	printf("%s: %" PRIu64 " us of CPU time, %" PRIu64 " us alone, %.1f %%\n", name,
	       d->times.all_ns / 1000, d->times.alone_ns / 1000,
	       100.0 * (double)d->times.alone_ns / (double)d->times.all_ns);
}

static struct decoded decode(const char *name, unsigned threads, unsigned bytes)
{
	struct decoded d = {0};
	struct pt_error e = {0};
	int in = open(name, O_RDONLY | O_CLOEXEC), out = memfd_create("records", MFD_CLOEXEC);
	struct ptc_reader *reader = ptc_reader_create(in, &e);
	struct times begin = now(), end;
	struct stat st;

	d.status = reader ? run(reader, out, threads, bytes, &d.result, &e) : -1;
	end = now();
	d.times.all_ns = end.all_ns - begin.all_ns;
	d.times.alone_ns = end.alone_ns - begin.alone_ns - d.result.helped_ns;
	if (d.status < 0)
		snprintf(d.message, sizeof d.message, "%s", e.message);
	ptc_reader_destroy(reader);
	if (fstat(out, &st) == 0 && st.st_size > 0) {
		d.size = (size_t)st.st_size;
		d.records = malloc(d.size);
		if (!d.records || pread(out, d.records, d.size, 0) != (ssize_t)d.size)
			exit(2);
	}
	close(out);
	close(in);
	return d;
}

/* Without memory for it a decode may end at another place. */
static bool same(const struct decoded *a, const struct decoded *b)
{
	return a->status == b->status && !strcmp(a->message, b->message) &&
	       (a->status < 0 ||
		(a->size == b->size && (!a->size || !memcmp(a->records, b->records, a->size)))) &&
	       a->result.hash == b->result.hash && a->result.insns == b->result.insns &&
	       a->result.packets == b->result.packets && a->result.psbs == b->result.psbs;
}

int main(int argc, char **argv)
{
	unsigned bytes = argc > 3 ? (unsigned)atoi(argv[1]) : 0,
		 threads = argc > 3 ? (unsigned)atoi(argv[2]) : 0;
	struct pt_segment_counts sum = {0};
	uint64_t runs = 0, encoded = 0;
	int status = argc > 3 ? 0 : 2;

	for (int i = 3; i < argc; i++) {
		struct decoded one = decode(argv[i], 1, 0), many = decode(argv[i], threads, bytes);

		if (!same(&one, &many)) {
			printf("differs: %s: %zu and %zu bytes; %s; %s\n", argv[i], one.size, many.size,
			       one.message, many.message);
			status = 1;
		}
		if (getenv("DECODE_JOBS_TIMES"))
			print_times(argv[i], &many);
		sum.segments += many.result.segments.segments;
		sum.fitting += many.result.segments.fitting;
		sum.bytes += many.result.segments.bytes;
		runs += many.result.runs;
		encoded += many.result.encoded_runs;
		free(one.records);
		free(many.records);
	}
	printf("%d containers, %" PRIu64 " segments, %" PRIu64 " fitting, %" PRIu64 " bytes, %" PRIu64
	       " of %" PRIu64 " runs encoded\n",
	       argc - 3, sum.segments, sum.fitting, sum.bytes, encoded, runs);
	return status;
}
