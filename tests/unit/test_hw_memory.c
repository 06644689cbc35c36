/*
 * test_hw_memory.c - how much memory a capture takes at most, as pt-capture(1) states it: its buffers, 10 MB
 * for each CPU, 320 MB of AUX data and 192 MB for records.
 *
 * Rings that are full at every look, a flood of records from one ring after the other, an output that now and
 * then takes nothing for a while: what is spilled reaches its limits, and the kernel says how much memory the
 * process had at most.
 */
#include "capture/record/drain.h"
#include "capture/record/sample_id.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RINGS  8
#define DATA   ((uint64_t)512 << 10)
#define AUX    ((uint64_t)4 << 20)
#define PAGE   ((uint64_t)4096)
#define RECORD 64
/* As a capture's with so many compressors. */
#define QUEUE (((uint64_t)16 << 20) + RINGS * ((uint64_t)2 << 20))

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static struct hw_drain_ring rings[RINGS];
static struct hw_drain drain = {.rings = rings, .ring_count = RINGS};
static int flooded = -1; /* the ring that records come from */
static int stopped;	 /* the output takes nothing */
static int end;		 /* all threads are to end */
static uint64_t records_max, aux_max, taken;

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void pause_us(long us)
{
	struct timespec t = {.tv_nsec = us * 1000};

	nanosleep(&t, NULL);
}

/* The kernel: it fills what it may. What the bytes are does not change, so it only moves the heads. */
static void *kernel(void *arg)
{
	while (!__atomic_load_n(&end, __ATOMIC_RELAXED)) {
		int flood = __atomic_load_n(&flooded, __ATOMIC_RELAXED);

		for (int i = 0; i < RINGS && flood >= 0; i++) {
			struct perf_event_mmap_page *page = rings[i].ring.page;

			__atomic_store_n(&page->aux_head,
					 __atomic_load_n(&page->aux_tail, __ATOMIC_ACQUIRE) + AUX - PAGE,
					 __ATOMIC_RELEASE);
			if (i == flood)
				__atomic_store_n(&page->data_head,
						 __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE) + DATA,
						 __ATOMIC_RELEASE);
		}
		pause_us(200);
	}
	return arg;
}

/* The output's other end. While it is stopped it waits until as much is spilled as can be. */
static void *output(void *arg)
{
	static char bytes[1 << 20];
	int fd = *(int *)arg;
	ssize_t n;

	do {
		for (int waited = 0; __atomic_load_n(&stopped, __ATOMIC_ACQUIRE) && waited < 20000;
		     waited++) {
			bool full;

			uint64_t record_bytes =
				     __atomic_load_n(&drain.spilled_record_bytes, __ATOMIC_RELAXED),
				 aux_bytes;

			pthread_mutex_lock(&drain.blocks.lock);
			aux_bytes = drain.blocks.used_bytes;
			pthread_mutex_unlock(&drain.blocks.lock);
			records_max = max(records_max, record_bytes);
			aux_max = max(aux_max, aux_bytes);
			full =
			    record_bytes > HW_SPILL_RECORDS_MAX - DATA && aux_bytes > HW_SPILL_AUX_MAX - AUX;
			if (full)
				break;
			pause_us(1000);
		}
		__atomic_store_n(&stopped, 0, __ATOMIC_RELEASE);
		n = read(fd, bytes, sizeof bytes);
		taken += n > 0 ? (uint64_t)n : 0;
	} while (n > 0 || (n < 0 && errno == EINTR));
	return NULL;
}

static uint64_t status_kb(const char *key)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long kb = 0;
	char line[256];

	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, key, strlen(key)) == 0)
			kb = strtoul(line + strlen(key), NULL, 10);
	if (f)
		fclose(f);
	return kb;
}

static void make_ring(int i, struct pt_error *e)
{
	struct ptc_stream s = {.cpu = i, .pid = -1, .tid = -1, .attr = UINT32_MAX};
	struct perf_event_header h = {PERF_RECORD_COMM, 0, RECORD};
	uint8_t *data = malloc(DATA), *aux = malloc(AUX);
	uint64_t random = 88172645463325252u + (uint64_t)i;

	if (!data || !aux)
		exit(1);
	memset(data, 0, DATA);
	for (uint64_t at = 0; at < DATA; at += RECORD) {
		memcpy(data + at, &h, sizeof h);
		memcpy(data + at + 8, &random, 4); /* a pid: not all alike */
		data[at + RECORD - 8] = 1;	   /* the id */
		random = random * 6364136223846793005u + 1442695040888963407u;
	}
	for (uint64_t at = 0; at < AUX; at += 8) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		memcpy(aux + at, &random, 8);
	}
	rings[i] = (struct hw_drain_ring){.cpu = i, .tid = -1};
	rings[i].ring = (struct hw_ring){calloc(1, PAGE), data, DATA, aux, AUX};
	rings[i].stream = (uint32_t)ptc_put_stream(drain.w, &s, e);
}

/* One event, whose id is 1. */
static void make_events(struct pt_error *e)
{
	static const uint64_t id = 1;
	struct perf_event_attr attr = {
	    .size = sizeof attr, .sample_type = HW_SAMPLE_TYPE, .sample_id_all = 1};
	struct ptc_attr put = ptc_host_attr("dummy", &attr, sizeof attr, &id, 1);

	drain.events.ids = malloc(sizeof *drain.events.ids);
	drain.events.attrs = calloc(1, sizeof *drain.events.attrs);
	if (!drain.events.ids || !drain.events.attrs)
		exit(1);
	drain.events.ids[0] = id;
	drain.events.count = 1;
	drain.events.sample_types[0] = HW_SAMPLE_TYPE;
	ptc_put_attr(drain.w, &put, e);
}

/* A flood of records from each ring in turn; what one leaves, the next one must not add to. */
static int flood(struct pt_error *e)
{
	int r = 0;

	for (int phase = 0; phase <= RINGS && r == 0; phase++) {
		__atomic_store_n(&stopped, 1, __ATOMIC_RELEASE);
		__atomic_store_n(&flooded, phase % RINGS, __ATOMIC_RELAXED);
		while (r == 0 && __atomic_load_n(&stopped, __ATOMIC_ACQUIRE))
			r = hw_drain_round(&drain, 0, e);
		__atomic_store_n(&flooded, -1, __ATOMIC_RELAXED);
		for (int i = 0; i < 4 && r == 0; i++)
			r = hw_drain_round(&drain, 0, e);
	}
	return r;
}

static void free_rings(void)
{
	for (int i = 0; i < RINGS; i++) {
		free(rings[i].ring.page);
		free((void *)(uintptr_t)rings[i].ring.data);
		free((void *)(uintptr_t)rings[i].ring.aux);
	}
}

/* kb: the most that there was above the buffers. */
static void check_memory(uint64_t kb)
{
	uint64_t limit_kb = ((320 + 192) << 10) + RINGS * 10240;

	printf("%.0f MB above the buffers at most, of %.0f MB that are stated; %.0f MB of records and %.0f "
	       "MB of "
	       "AUX data were spilled at once; %.0f MB came out\n",
	       (double)kb / 1024, (double)limit_kb / 1024, (double)records_max / 1048576,
	       (double)aux_max / 1048576, (double)taken / 1048576);
	check(records_max > HW_SPILL_RECORDS_MAX - DATA, "records were spilled up to their limit");
	check(aux_max > HW_SPILL_AUX_MAX - AUX, "AUX data was spilled up to its limit");
	if (SANITIZED)
		printf("built with a sanitizer, which takes memory of its own\n");
	else
		check(kb <= limit_kb, "the memory that a capture takes");
}

int main(void)
{
	pthread_t cpu, reader;
	struct pt_error e = {0};
	uint64_t before, most;
	int pipes[2], r;

	if (pipe(pipes))
		return 1;
	fcntl(pipes[1], F_SETPIPE_SZ, 4096);
	drain.w = ptc_writer_create(pipes[1], NULL, -7, &e);
	if (!drain.w || pthread_create(&reader, NULL, output, &pipes[0]))
		return 1;
	make_events(&e);
	for (int i = 0; i < RINGS; i++)
		make_ring(i, &e);
	before = status_kb("VmRSS:");
	if (ptc_writer_threads(drain.w, RINGS, QUEUE, &e) ||
	    !(drain.threads = hw_drain_threads_create(&drain, NULL, &e)) ||
	    pthread_create(&cpu, NULL, kernel, NULL))
		return 1;
	r = flood(&e);
	most = status_kb("VmHWM:");
	__atomic_store_n(&end, 1, __ATOMIC_RELAXED);
	pthread_join(cpu, NULL);
	check(r == 0, e.message[0] ? e.message : "rounds");
	hw_drain_threads_destroy(drain.threads);
	ptc_writer_destroy(drain.w);
	close(pipes[1]);
	pthread_join(reader, NULL);
	free_rings();
	hw_drain_deinit(&drain);
	check_memory(most - before);
	return sum_up();
}
