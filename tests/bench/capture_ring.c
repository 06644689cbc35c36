/* capture_ring.c - how fast a capture empties its rings: capture_ring FILE LEVEL MB publishes the bytes of FILE over and over in
 * a ring of 4 MB, drains it in rounds into /dev/null, and prints MB of AUX data a CPU second, and how much smaller they got. The
 * copying into the ring, which is the CPU's own work in a real capture, is measured apart and taken off. */
#include "capture/hw_drain.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AUX ((uint64_t)4 << 20)

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
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
	static struct perf_event_mmap_page page[1];
	static uint8_t data[4096], aux[AUX];
	struct ptc_stream s = {.cpu = 0, .pid = -1, .tid = -1, .attr = UINT32_MAX};
	struct hw_drain_ring ring = {.cpu = 0, .tid = -1};
	struct hw_drain d = {.rings = &ring, .ring_count = 1};
	struct pt_error e = {0};
	double begin, copying = 0, all;
	uint64_t bytes;
	FILE *f;

	if (argc != 4 || !(f = fopen(argv[1], "rb")))
		return 2;
	fseek(f, 0, SEEK_END);
	input_bytes = (size_t)ftell(f);
	rewind(f);
	input = malloc(input_bytes + 1);
	if (!input || !input_bytes || fread(input, 1, input_bytes, f) != input_bytes)
		return 2; /* NOLINT(clang-analyzer-unix.Malloc): it ends here */
	fclose(f);
	bytes = (uint64_t)atoi(argv[3]) << 20;
	ring.ring = (struct hw_ring){page, data, 4096, aux, AUX};
	d.w = ptc_writer_create(open("/dev/null", O_WRONLY), atoi(argv[2]), &e);
	ring.stream = (uint32_t)ptc_put_stream(d.w, &s, &e);
	begin = cpu_seconds();
	while (d.aux_bytes < bytes) {
		double before = cpu_seconds();

		publish(page, aux, AUX / 4);
		copying += cpu_seconds() - before;
		if (hw_drain_round(&d, 0, &e)) {
			fprintf(stderr, "%s\n", e.message);
			return 1;
		}
	}
	all = cpu_seconds() - begin;
	printf("%.0f MB/s, %.1f times smaller\n", (double)d.aux_bytes / 1e6 / (all - copying),
	       (double)d.aux_bytes / (double)ptc_writer_bytes(d.w));
	ptc_writer_destroy(d.w);
	hw_drain_deinit(&d);
	return 0;
}
