/*
 * fuzz_import.c - a perf.data, imported; what comes of it is read as a container.
 *
 * The first byte odd: the rest is a file as it is. Even: the rest is records, each u8 type (from 128
 * on: perf's own, from 64 on), u8 misc, u16 size, body, after the head of a recording of Intel PT in
 * pipe mode; an AUXTRACE record is followed by as many bytes as its first byte says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/perfdata/file.h"
#include "capture/perfdata/perf_user.h"
#include "capture/perfdata/run.h"
#include "schema/container.h"
#include "tests/fuzz/container_output.h"
#include "tests/fuzz/fuzz.h"

#define PMU 8

static void put(int fd, const void *p, size_t n)
{
	if (write(fd, p, n) != (ssize_t)n)
		abort();
}

static void put_record(int fd, uint32_t type, uint16_t misc, const void *body, size_t n)
{
	const struct perf_event_header h = {type, misc, (uint16_t)(sizeof h + n)};

	put(fd, &h, sizeof h);
	put(fd, body, n);
}

static void put_head(int fd)
{
	static const uint64_t head[2] = {0x32454c4946524550u, 16};
	static const uint64_t info[19] = {1, PMU,   0,	     1,	  0, 1, 0x400, 0x800, 2, 0,
					  1, 0x200, 0x3c000, 160, 2, 2, 20,    0,     0};
	struct {
		struct perf_event_attr attr;
		uint64_t id;
	} event = {.attr = {.type = PMU,
			    .size = sizeof event.attr,
			    .config = 0x300e601,
			    .sample_type =
				PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER,
			    .sample_id_all = 1},
		   .id = 5};

	put(fd, head, sizeof head);
	put_record(fd, PERF_USER_HEADER_ATTR, 0, &event, sizeof event);
	put_record(fd, PERF_USER_AUXTRACE_INFO, 0, info, sizeof info);
}

static void put_records(int fd, const uint8_t *p, const uint8_t *end)
{
	put_head(fd);
	while (end - p >= 4) {
		uint32_t type = p[0] < 128 ? p[0] : p[0] - 64u;
		uint16_t n;

		memcpy(&n, p + 2, sizeof n);
		if (n > UINT16_MAX - sizeof(struct perf_event_header))
			n = UINT16_MAX - sizeof(struct perf_event_header);
		if (n > end - p - 4)
			n = (uint16_t)(end - p - 4);
		if (type == PERF_USER_AUXTRACE && n >= 40) {
			uint8_t body[40];
			uint64_t bytes = p[4];

			memcpy(body, p + 4, sizeof body);
			if (bytes > (uint64_t)(end - p - 4 - n))
				bytes = (uint64_t)(end - p - 4 - n);
			memcpy(body, &bytes, sizeof bytes);
			put_record(fd, type, p[1], body, sizeof body);
			put(fd, p + 4 + n, bytes);
			p += bytes;
		} else {
			put_record(fd, type, p[1], p + 4, n);
		}
		p += 4 + n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct import_perf_request request = {.level = PTC_LEVEL_FASTEST, .symfs = "/nonexistent"};
	struct import_perf_notes notes;
	struct pt_error e = {0};
	char path[64];
	int in, out;

	if (!size)
		return 0;
	in = memfd_create("in", MFD_CLOEXEC);
	out = memfd_create("out", MFD_CLOEXEC);
	if (in < 0 || out < 0)
		abort();
	if (data[0] & 1)
		put(in, data + 1, size - 1);
	else
		put_records(in, data + 1, data + size);
	snprintf(path, sizeof path, "/proc/self/fd/%d", in);
	request.input = path;
	if (import_perf_run(&request, out, &notes, &e) == 0)
		fuzz_read_container(out);
	else if (!e.message[0])
		abort();
	import_perf_notes_free(&notes);
	close(in);
	close(out);
	return 0;
}
