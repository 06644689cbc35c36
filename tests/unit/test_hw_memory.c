/*
 * test_hw_memory.c - how much memory a capture takes at most, as pt-capture(1) says it: its buffers, 4 MB for each CPU, 256 MB of AUX data
 * and 192 MB for records. Rings that are full whenever somebody looks, a flood of records from one after the other, an output that now and then
 * takes nothing for a while: what is set aside reaches its limits, and the process's greatest size is asked of the kernel.
 */
#include "capture/record/spill_thread.h"
#include "capture/record/drain_threads.h"
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

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static struct hw_drain_ring rings[RINGS];
static struct hw_drain drain = {.rings = rings, .ring_count = RINGS, .sideband_attr = 0};
static int flooded = -1, stopped,
	   end; /* which ring records come from; the output takes nothing; all threads are to end */
static uint64_t early_max, stash_max, taken;

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

/* The output's other end. It stops until as much is set aside as can be. */
static void *output(void *arg)
{
	static char bytes[1 << 20];
	int fd = *(int *)arg;
	ssize_t n;

	do {
		for (int waited = 0; __atomic_load_n(&stopped, __ATOMIC_ACQUIRE) && waited < 20000;
		     waited++) {
			bool full;

			pthread_mutex_lock(&drain.lock);
			early_max = drain.early > early_max ? drain.early : early_max;
			stash_max = drain.stashed > stash_max ? drain.stashed : stash_max;
			full = drain.early > HW_EARLY_MAX - DATA && drain.stashed > HW_STASH_MAX - AUX;
			pthread_mutex_unlock(&drain.lock);
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

int main(void)
{
	static uint64_t ids[] = {1};
	static uint32_t attrs[] = {0};
	struct perf_event_attr attr = {
	    .size = sizeof attr, .sample_type = HW_SAMPLE_TYPE, .sample_id_all = 1};
	pthread_t cpu, reader;
	struct pt_error e = {0};
	struct hw_spill_thread *spill_thread;
	uint64_t before, most, limit;
	int pipes[2], r = 0;

	if (pipe(pipes))
		return 1;
	fcntl(pipes[1], F_SETPIPE_SZ, 4096);
	drain.w = ptc_writer_create(pipes[1], -7, &e);
	drain.ids = malloc(sizeof ids);
	drain.id_attrs = malloc(sizeof attrs);
	if (!drain.w || !drain.ids || !drain.id_attrs)
		return 1;
	memcpy(drain.ids, ids, sizeof ids);
	memcpy(drain.id_attrs, attrs, sizeof attrs);
	drain.id_count = 1;
	drain.sample_types[0] = HW_SAMPLE_TYPE;
	if (pthread_create(&reader, NULL, output, &pipes[0]))
		return 1;
	ptc_put_attr(drain.w,
		     &(struct ptc_attr){.name = "dummy",
					.name_bytes = 5,
					.attr = (const uint8_t *)&attr,
					.attr_bytes = sizeof attr,
					.ids = (const uint8_t *)ids,
					.count = 1},
		     &e);
	for (int i = 0; i < RINGS; i++)
		make_ring(i, &e);
	before = status_kb("VmRSS:");
	drain.readers = hw_drain_threads_create(drain.w, RINGS, &e);
	spill_thread = hw_spill_thread_create(&drain, &e);
	if (!drain.readers || !spill_thread || pthread_create(&cpu, NULL, kernel, NULL))
		return 1;
	/* What one ring's flood leaves behind, the next one's must not add to. */
	for (int phase = 0; phase <= RINGS && r == 0; phase++) {
		__atomic_store_n(&stopped, 1, __ATOMIC_RELEASE);
		__atomic_store_n(&flooded, phase % RINGS, __ATOMIC_RELAXED);
		while (r == 0 && __atomic_load_n(&stopped, __ATOMIC_ACQUIRE))
			r = hw_drain_round(&drain, 0, &e);
		__atomic_store_n(&flooded, -1, __ATOMIC_RELAXED);
		for (int i = 0; i < 4 && r == 0; i++)
			r = hw_drain_round(&drain, 0, &e);
	}
	most = status_kb("VmHWM:");
	__atomic_store_n(&end, 1, __ATOMIC_RELAXED);
	pthread_join(cpu, NULL);
	hw_spill_thread_destroy(spill_thread);
	check(r == 0, e.message[0] ? e.message : "rounds");
	hw_drain_threads_destroy(drain.readers);
	ptc_writer_destroy(drain.w);
	close(pipes[1]);
	pthread_join(reader, NULL);
	for (int i = 0; i < RINGS; i++) {
		free(rings[i].ring.page);
		free((void *)(uintptr_t)rings[i].ring.data);
		free((void *)(uintptr_t)rings[i].ring.aux);
	}
	hw_drain_deinit(&drain);
	limit = ((256 + 192) << 10) + RINGS * 4096;
	printf("%.0f MB above the buffers at most, of %.0f MB that are stated; %.0f MB of records and %.0f "
	       "MB of AUX data were set aside at once; %.0f "
	       "MB came out\n",
	       (double)(most - before) / 1024, (double)limit / 1024, (double)early_max / 1048576,
	       (double)stash_max / 1048576, (double)taken / 1048576);
	check(early_max > HW_EARLY_MAX - DATA, "records were set aside up to their limit");
	check(stash_max > HW_STASH_MAX - AUX, "AUX data was set aside up to its limit");
	if (SANITIZED)
		printf("built with a sanitizer, which takes memory of its own\n");
	else
		check(most - before <= limit, "the memory that a capture takes");
	return sum_up();
}
