/*
 * rings FILE RINGS MB_PER_S SECONDS COMPRESSORS LEVEL AUX_KB - how fast pt-capture's rounds empty the rings
 * of a big host.
 *
 * The kernel's side is played: RINGS rings in memory, into each of which the AUX bytes of FILE are written
 * round and round, MB_PER_S altogether, with a PERF_RECORD_AUX each; a ring without room loses what comes and
 * says so (PERF_AUX_FLAG_TRUNCATED). The other side is the project's own: rounds, drain threads as for four
 * NUMA nodes, COMPRESSORS compressor threads with the memory that a capture gives them, the writer, to
 * /dev/null. Prints what was made, drained and lost, bytes drained per CPU second of all threads but the
 * played kernel, the longest time that published bytes waited in a ring, and how often and how long drain
 * threads found the compressors' queue full. Exit status 1: a byte is neither drained nor reported as lost.
 */
#include "capture/record/drain.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define DATA  65536u
#define PAGE  4096u
#define NODES 4

struct source {
	const uint8_t *bytes;
	uint64_t size;
};

struct player {
	struct source from;
	struct hw_drain_ring *rings;
	struct played {
		uint64_t at;	    /* in the file */
		uint64_t waits_ns;  /* since then bytes are in the ring; 0: it is empty */
		uint64_t waits_for; /* until aux_tail is here */
		uint64_t unpublished;
		uint64_t lost_bytes, losses, unreported;
	} * played;
	size_t count;
	double bytes_per_s;
	uint64_t due, made, longest_ns;
	double cpu_s, seconds;
	bool end;
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool put_aux_record(struct hw_ring *r, uint64_t offset, uint64_t size, uint64_t flags)
{
	struct {
		struct perf_event_header h;
		uint64_t offset, size, flags;
		int32_t pid, tid;
		uint64_t time;
		uint32_t cpu, zero;
		uint64_t id;
	} record = {
	    {PERF_RECORD_AUX, 0, sizeof record}, offset, size, flags, 1, 1, now_ns(CLOCK_MONOTONIC), 0, 0, 1};
	uint64_t head = r->page->data_head;
	uint8_t bytes[sizeof record];

	if (head + sizeof record - __atomic_load_n(&r->page->data_tail, __ATOMIC_ACQUIRE) > r->data_size)
		return false;
	memcpy(bytes, &record, sizeof record);
	for (size_t i = 0; i < sizeof record; i++)
		((uint8_t *)(uintptr_t)r->data)[(head + i) % r->data_size] = bytes[i];
	__atomic_store_n(&r->page->data_head, head + sizeof record, __ATOMIC_RELEASE);
	return true;
}

/* The CPU has made n bytes. */
static void play(struct player *p, size_t i, uint64_t n)
{
	struct hw_ring *r = &p->rings[i].ring;
	struct played *one = &p->played[i];
	uint64_t head = r->page->aux_head, tail = __atomic_load_n(&r->page->aux_tail, __ATOMIC_ACQUIRE),
		 room = r->aux_size - (head - tail), put = n < room ? n : room / PAGE * PAGE;

	if (one->waits_ns && tail + PAGE > one->waits_for)
		one->waits_ns = 0;
	for (uint64_t done = 0, part; done < put; done += part) {
		uint64_t at = (head + done) % r->aux_size;

		part = put - done;
		part = part < r->aux_size - at ? part : r->aux_size - at;
		part = part < p->from.size - one->at ? part : p->from.size - one->at;
		memcpy((uint8_t *)(uintptr_t)r->aux + at, p->from.bytes + one->at, part);
		one->at = (one->at + part) % p->from.size;
	}
	p->made += n;
	one->lost_bytes += n - put;
	one->losses += put < n;
	if (!put_aux_record(r, head, put, put < n ? PERF_AUX_FLAG_TRUNCATED : 0))
		one->unreported += put < n;
	if (!one->waits_ns && put) {
		one->waits_ns = now_ns(CLOCK_MONOTONIC);
		one->waits_for = head + put;
	}
	__atomic_store_n(&r->page->aux_head, head + put, __ATOMIC_RELEASE);
}

/*
 * The CPU makes n bytes, and the kernel publishes them by its watermark, a quarter; one of eight sees context
 * switches all the time.
 */
static void run_cpu(struct player *p, size_t i, uint64_t n)
{
	struct played *one = &p->played[i];

	one->unpublished += n;
	if (i % 8 && one->unpublished < p->rings[i].ring.aux_size / 4)
		return;
	play(p, i, one->unpublished);
	one->unpublished = 0;
}

static void look_at_waits(struct player *p)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < p->count; i++) {
		uint64_t tail = __atomic_load_n(&p->rings[i].ring.page->aux_tail, __ATOMIC_ACQUIRE);

		if (p->played[i].waits_ns && tail + PAGE > p->played[i].waits_for)
			p->played[i].waits_ns = 0;
		if (p->played[i].waits_ns && now - p->played[i].waits_ns > p->longest_ns)
			p->longest_ns = now - p->played[i].waits_ns;
	}
}

static void *player_main(void *arg)
{
	struct player *p = arg;
	uint64_t began = now_ns(CLOCK_MONOTONIC);

	while (!__atomic_load_n(&p->end, __ATOMIC_RELAXED)) {
		double due =
		    (double)(now_ns(CLOCK_MONOTONIC) - began) / 1e9 * p->bytes_per_s - (double)p->due;
		uint64_t each = due > 0 ? (uint64_t)due / p->count : 0;

		p->due += each * p->count;

		/* One ring has more than another, and now and then one stands still. */
		for (size_t i = 0; i < p->count && each; i++)
			if ((i * 7 + p->made / 4096) % 16)
				run_cpu(p, i, each * (i % 4 + 1) * 2 / 5 + 64);
		look_at_waits(p);
		nanosleep(&(struct timespec){0, 500000}, NULL);
	}
	p->cpu_s = (double)now_ns(CLOCK_THREAD_CPUTIME_ID) / 1e9;
	return NULL;
}

static void *map(size_t n)
{
	/* cppcheck-suppress invalidFunctionArg ; -1 is what anonymous memory has */
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	return p;
}

static void make_rings(struct hw_drain *d, struct player *p, size_t count, uint64_t aux, struct ptc_writer *w)
{
	struct pt_error e = {0};

	p->rings = d->rings = calloc(count, sizeof *d->rings);
	p->played = calloc(count, sizeof *p->played);
	if (!d->rings || !p->played)
		exit(2);
	p->count = d->ring_count = count;
	for (size_t i = 0; i < count; i++) {
		struct hw_drain_ring *r = &d->rings[i];
		struct ptc_stream s = {.cpu = (int32_t)i, .pid = -1, .tid = -1};

		p->played[i].at = p->from.size / count * i;
		r->cpu = (int32_t)i;
		r->tid = -1;
		r->ring = (struct hw_ring){map(PAGE), map(DATA), DATA, map(aux), aux};
		r->stream = (uint32_t)ptc_put_stream(w, &s, &e);
	}
}

static int report(const struct hw_drain *d, const struct player *p)
{
	uint64_t lost = 0, losses = 0, unreported = 0;
	struct hw_held_back held = hw_drain_threads_held_back(d->threads);
	struct rusage used;
	double cpu;

	for (size_t i = 0; i < p->count; i++) {
		lost += p->played[i].lost_bytes;
		losses += p->played[i].losses;
		unreported += p->played[i].unreported;
	}
	getrusage(RUSAGE_SELF, &used);
	cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	      (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6 - p->cpu_s;
	printf("%zu rings, %u drain threads: %.0f MB/s made, %.0f MB/s drained, %.0f MB/s per core, %.1f "
	       "times smaller, "
	       "%.1f %% lost in %" PRIu64 " losses, longest wait %.1f ms, queue full %" PRIu64
	       " times, %.0f ms\n",
	       p->count, hw_drain_threads_count(d->threads), (double)p->made / p->seconds / 1e6,
	       (double)d->aux_bytes / p->seconds / 1e6, (double)d->aux_bytes / cpu / 1e6,
	       (double)d->aux_bytes / (double)ptc_writer_bytes(d->w), (double)lost * 100 / (double)p->made,
	       losses, (double)p->longest_ns / 1e6, held.times, (double)held.ns / 1e6);
	if (d->aux_bytes + lost == p->made && d->losses.truncated + unreported == losses)
		return 0;
	printf("%" PRIu64 " bytes are neither drained nor lost; %" PRIu64 " of %" PRIu64 " losses reported\n",
	       p->made - lost - d->aux_bytes, d->losses.truncated, losses);
	return 1;
}

static void rounds(struct hw_drain *d, double seconds, struct player *p)
{
	uint64_t began = now_ns(CLOCK_MONOTONIC);
	struct pt_error e = {0};
	pthread_t thread;
	bool more = true;

	if (pthread_create(&thread, NULL, player_main, p))
		exit(2);
	while (more) {
		more = (double)(now_ns(CLOCK_MONOTONIC) - began) / 1e9 < seconds;
		if (hw_drain_round(d, 0, &e)) {
			fprintf(stderr, "%s\n", e.message);
			exit(2);
		}
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	}
	__atomic_store_n(&p->end, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	p->seconds = (double)(now_ns(CLOCK_MONOTONIC) - began) / 1e9;
	/* What the last round left; twice, as capture_finish(). */
	for (unsigned i = 0; i < 2; i++)
		if (hw_drain_round(d, 0, &e))
			exit(2);
	if (hw_drain_settle(d, &e) || ptc_writer_finish(d->w, &e))
		exit(2);
}

/* The CPUs of a host with four nodes, of which the first are here. */
static struct hw_numa four_nodes(size_t cpus)
{
	struct hw_numa n = {calloc(NODES, sizeof *n.nodes), NODES};
	struct pt_error e;

	for (size_t i = 0; n.nodes && i < cpus; i++)
		hw_list_add(&n.nodes[i * NODES / cpus], (int32_t)i, &e);
	return n;
}

int main(int argc, char **argv)
{
	static struct hw_drain d = {.restart_lock = PTHREAD_MUTEX_INITIALIZER};
	struct perf_event_attr attr = {.size = sizeof attr, .type = 1, .sample_id_all = 1};
	static struct player p;
	struct pt_error e = {0};
	uint64_t id = 1;
	int fd = argc == 8 ? open(argv[1], O_RDONLY) : -1, out = open("/dev/null", O_WRONLY);
	struct ptc_attr put = ptc_host_attr("dummy:u", &attr, sizeof attr, &id, 1);
	struct hw_numa numa;
	unsigned threads;

	if (fd < 0) {
		fputs("usage: rings FILE RINGS MB_PER_S SECONDS COMPRESSORS LEVEL AUX_KB\n", stderr);
		return 2;
	}
	p.from.size = (uint64_t)lseek(fd, 0, SEEK_END);
	p.from.bytes = mmap(NULL, p.from.size, PROT_READ, MAP_PRIVATE, fd, 0);
	p.bytes_per_s = strtod(argv[3], NULL) * 1e6;
	threads = (unsigned)strtoul(argv[5], NULL, 10);
	d.w = ptc_writer_create(out, NULL, (int)strtol(argv[6], NULL, 10), &e);
	if (p.from.bytes == MAP_FAILED || !d.w || ptc_put_attr(d.w, &put, &e))
		return 2;
	make_rings(&d, &p, strtoul(argv[2], NULL, 10), strtoull(argv[7], NULL, 10) * 1024, d.w);
	d.events.ids = calloc(1, sizeof *d.events.ids);
	d.events.attrs = calloc(1, sizeof *d.events.attrs);
	if (!d.events.ids || !d.events.attrs)
		return 2;
	d.events.ids[0] = 1;
	d.events.count = 1;
	numa = four_nodes(d.ring_count);
	if (ptc_writer_threads(d.w, threads, ((uint64_t)16 << 20) + threads * ((uint64_t)2 << 20), &e) ||
	    !(d.threads = hw_drain_threads_create(&d, &numa, &e)))
		return 2;
	rounds(&d, strtod(argv[4], NULL), &p);
	return report(&d, &p);
}
