/*
 * capture_ring.c - how fast a capture empties its rings.
 *
 * capture_ring FILE LEVEL MB [RINGS] publishes the bytes of FILE over and over in rings of 4 MB (1), drains
 * them in rounds into /dev/null, with one compressor thread for each ring, and prints MB of AUX data per CPU
 * second of all threads, and the compression ratio. The copying into the ring, which is the CPU's own work in
 * a real capture, is measured and subtracted.
 */
#include "capture/record/drain.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AUX	  ((uint64_t)4 << 20)
#define RINGS_MAX 64

static double cpu_seconds(clockid_t whose)
{
	struct timespec t;

	clock_gettime(whose, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint8_t *input;
static size_t input_bytes;

static void publish(struct perf_event_mmap_page *page, uint8_t *aux, size_t n)
{
	for (uint64_t head = page->aux_head, end = head + n; head < end;) {
		size_t from = head % input_bytes, to = head % AUX, m = end - head;

		if (m > input_bytes - from)
			m = input_bytes - from;
		if (m > AUX - to)
			m = AUX - to;
		memcpy(aux + to, input + from, m);
		head += m;
	}
	page->aux_head += n;
}

int main(int argc, char **argv)
{
	struct hw_drain_ring rings[RINGS_MAX] = {0};
	struct hw_drain d = {.rings = rings, .ring_count = argc > 4 ? (size_t)atoi(argv[4]) : 1};
	struct pt_error e = {0};
	double begin, copying = 0, all;
	uint64_t bytes;
	FILE *f;

	if (argc < 4 || !(f = fopen(argv[1], "rb")) || d.ring_count == 0 || d.ring_count > RINGS_MAX)
		return 2;
	fseek(f, 0, SEEK_END);
	input_bytes = (size_t)ftell(f);
	rewind(f);
	input = malloc(input_bytes + 1);
	if (!input || !input_bytes || fread(input, 1, input_bytes, f) != input_bytes)
		return 2;
	fclose(f);
	bytes = (uint64_t)atoi(argv[3]) << 20;
	d.w = ptc_writer_create(open("/dev/null", O_WRONLY), NULL, atoi(argv[2]), &e);
	for (size_t i = 0; i < d.ring_count; i++) {
		struct ptc_stream s = {.cpu = (int32_t)i, .pid = -1, .tid = -1, .attr = UINT32_MAX};

		rings[i] = (struct hw_drain_ring){.cpu = (int32_t)i, .tid = -1};
		rings[i].ring = (struct hw_ring){calloc(1, 4096), calloc(1, 4096), 4096, malloc(AUX), AUX};
		rings[i].stream = (uint32_t)ptc_put_stream(d.w, &s, &e);
		if (!rings[i].ring.page || !rings[i].ring.data || !rings[i].ring.aux)
			return 2;
	}
	if (ptc_writer_threads(d.w, (unsigned)d.ring_count, (16 + 2 * d.ring_count) << 20, &e) ||
	    !(d.threads = hw_drain_threads_create(&d, NULL, &e)))
		return 2;
	begin = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
	while (d.aux_bytes < bytes) {
		double before = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);

		for (size_t i = 0; i < d.ring_count; i++)
			publish(rings[i].ring.page, (uint8_t *)(uintptr_t)rings[i].ring.aux, AUX / 4);
		copying += cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - before;
		/* Twice: data that has no record is taken a round later. */
		/* NOLINTNEXTLINE(misc-redundant-expression) */
		if (hw_drain_round(&d, 0, &e) || hw_drain_round(&d, 0, &e) || hw_drain_settle(&d, &e)) {
			fprintf(stderr, "%s\n", e.message);
			return 1;
		}
	}
	hw_drain_threads_destroy(d.threads);
	if (ptc_writer_finish(d.w, &e))
		return 1;
	all = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
	printf("%.0f MB/s, %.1f times smaller\n", (double)d.aux_bytes / 1e6 / (all - copying),
	       (double)d.aux_bytes / (double)ptc_writer_bytes(d.w));
	ptc_writer_destroy(d.w);
	hw_drain_deinit(&d);
	return 0;
}
