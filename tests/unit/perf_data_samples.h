/*
 * perf_data_samples.h - perf.data files made in memory for the tests of the import, and what comes out of it.
 */
#ifndef TESTS_PERF_DATA_SAMPLES_H
#define TESTS_PERF_DATA_SAMPLES_H

#include "capture/perfdata/file.h"
#include "capture/perfdata/perf_user.h"
#include "capture/perfdata/run.h"
#include "schema/container.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <zstd.h>

#define SAMPLE_PMU 8
#define SAMPLE_ID  77
/* One tick is one nanosecond. */
#define SAMPLE_SHIFT 0
#define SAMPLE_MULT  1

struct perf_bytes {
	uint8_t bytes[1 << 17];
	size_t count;
	uint64_t type; /* sample_type of the event */
};

static void put(struct perf_bytes *b, const void *from, size_t n)
{
	if (b->count + n > sizeof b->bytes)
		abort();
	memcpy(b->bytes + b->count, from, n);
	b->count += n;
}

static void put64(struct perf_bytes *b, uint64_t v)
{
	put(b, &v, 8);
}

static void patch64(struct perf_bytes *b, size_t at, uint64_t v)
{
	memcpy(b->bytes + at, &v, 8);
}

static size_t begin_record(struct perf_bytes *b, uint32_t type, uint16_t misc)
{
	struct perf_event_header h = {.type = type, .misc = misc};
	size_t at = b->count;

	put(b, &h, sizeof h);
	return at;
}

static void end_record(struct perf_bytes *b, size_t at)
{
	uint16_t size = (uint16_t)(b->count - at);

	memcpy(b->bytes + at + 6, &size, 2);
}

/* The trailer {tid, time, cpu, id}, and the end of a record of the kernel's. */
static void end_kernel_record(struct perf_bytes *b, size_t at, uint32_t tid, uint64_t time_ns, uint32_t cpu)
{
	put64(b, tid | (uint64_t)tid << 32);
	put64(b, time_ns);
	put64(b, cpu);
	put64(b, SAMPLE_ID);
	end_record(b, at);
}

static void put_comm(struct perf_bytes *b, uint32_t tid, uint64_t time_ns, const char *comm)
{
	size_t at = begin_record(b, PERF_RECORD_COMM, 0);
	char padded[8] = "";

	put64(b, tid | (uint64_t)tid << 32);
	put(b, memcpy(padded, comm, strlen(comm)), sizeof padded);
	end_kernel_record(b, at, tid, time_ns, 0);
}

static void put_aux_record(struct perf_bytes *b, uint64_t offset, uint64_t size, uint64_t flags,
			   uint64_t time_ns, uint32_t cpu)
{
	size_t at = begin_record(b, PERF_RECORD_AUX, 0);

	put64(b, offset);
	put64(b, size);
	put64(b, flags);
	end_kernel_record(b, at, 5, time_ns, cpu);
}

static void put_auxtrace(struct perf_bytes *b, uint64_t offset, const void *bytes, size_t n, uint64_t tsc,
			 uint32_t cpu)
{
	size_t at = begin_record(b, PERF_USER_AUXTRACE, 0), padded = (n + 7) / 8 * 8;
	static const uint8_t zero[8];

	put64(b, padded);
	put64(b, offset);
	put64(b, tsc);
	put64(b, cpu | (uint64_t)UINT32_MAX << 32); /* idx, tid */
	put64(b, cpu);
	end_record(b, at);
	put(b, bytes, n);
	put(b, zero, padded - n);
}

static void put_round(struct perf_bytes *b)
{
	end_record(b, begin_record(b, PERF_USER_FINISHED_ROUND, 0));
}

static void put_info(struct perf_bytes *b, uint32_t type, bool snapshot)
{
	const uint64_t words[18] = {
	    SAMPLE_PMU, SAMPLE_SHIFT, SAMPLE_MULT, 0,	1, 0x400, 0x800, 2, snapshot,
	    1,		0x200,	      0x3c000,	   160, 2, 2,	  20,	 0, 0,
	};
	size_t at = begin_record(b, PERF_USER_AUXTRACE_INFO, 0);

	put64(b, type);
	put(b, words, sizeof words);
	end_record(b, at);
}

/* A file's header and its one event; the data is from here on. */
static void begin_file(struct perf_bytes *b, uint64_t more_sample_type)
{
	struct perf_event_attr attr = {.type = SAMPLE_PMU,
				       .size = sizeof attr,
				       .config = 0x300e601,
				       .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
						      PERF_SAMPLE_IDENTIFIER | more_sample_type,
				       .sample_id_all = 1,
				       .exclude_kernel = 1};
	const uint64_t header[13] = {0, 104, sizeof attr + 16, 112, sizeof attr + 16, 112 + sizeof attr + 16};

	b->count = 0;
	put(b, header, sizeof header);
	memcpy(b->bytes, "PERFILE2", 8);
	put64(b, SAMPLE_ID);
	put(b, &attr, sizeof attr);
	put64(b, 104);
	put64(b, 8);
	put_info(b, 1, false);
}

/* The data ends here; a host name as the one feature follows. */
static void end_file(struct perf_bytes *b)
{
	size_t data = 112 + sizeof(struct perf_event_attr) + 16;
	const char host[12] = "\x08\0\0\0emu";

	patch64(b, 48, b->count - data);
	patch64(b, 72, 1 << 3);
	put64(b, b->count + 16);
	put64(b, sizeof host);
	put(b, host, sizeof host);
}

/* What came of an import. */
struct imported {
	int ret;
	struct pt_error error;
	struct import_perf_notes notes;
	int fd; /* of the container */
};

static void import_bytes(const uint8_t *bytes, size_t n, struct imported *ret)
{
	int in = memfd_create("perf.data", 0);
	struct import_perf_request request = {.level = -7, .symfs = "/nonexistent"};
	char path[64];

	if (in < 0 || write(in, bytes, n) != (ssize_t)n)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", in);
	request.input = path;
	*ret = (struct imported){.error.offset = PT_NO_OFFSET, .fd = memfd_create("container", 0)};
	ret->ret = import_perf_run(&request, ret->fd, &ret->notes, &ret->error);
	lseek(ret->fd, 0, SEEK_SET);
	close(in);
}

static void imported_deinit(struct imported *i)
{
	import_perf_notes_free(&i->notes);
	close(i->fd);
}

static bool noted(const struct imported *i, const char *what)
{
	for (size_t n = 0; n < i->notes.count; n++)
		if (strstr(i->notes.lines[n], what))
			return true;
	return false;
}

/* The container in short: "C" for a COMM's name, "A" an AUX piece's bytes, "R" a round's time, in
 * their order. */
static void summary(struct imported *i, char *ret, size_t room)
{
	struct pt_error e = {0};
	struct ptc_reader *r = ptc_reader_create(i->fd, &e);
	struct ptc_chunk c;
	struct ptc_aux aux;
	size_t at = 0;

	*ret = 0;
	while (r && at + 200 < room && ptc_next(r, &c, &e) == 1) {
		uint64_t size, ns;
		const uint8_t *p;
		uint32_t attr;

		if (c.type == PTC_AUX && ptc_parse_aux(&c, &aux, &e) == 0)
			at += (size_t)snprintf(ret + at, room - at, "A%u@%llu+%llx:%.*s ", c.stream,
					       (unsigned long long)aux.aux_offset,
					       (unsigned long long)aux.flags,
					       (int)(aux.size < 64 ? aux.size : 64), (const char *)aux.bytes);
		if (c.type == PTC_ROUND && ptc_parse_round(&c, &ns, &e) == 0)
			at += (size_t)snprintf(ret + at, room - at, ns == UINT64_MAX ? "R." : "R%llu ",
					       (unsigned long long)ns);
		if (c.type != PTC_SIDEBAND || ptc_parse_sideband(&c, &attr, &p, &size, &e))
			continue;
		for (struct perf_event_header h; size && at + 200 < room; p += h.size, size -= h.size) {
			memcpy(&h, p, sizeof h);
			if (h.type == PERF_RECORD_COMM)
				at += (size_t)snprintf(ret + at, room - at, "C%.8s ", (const char *)p + 16);
		}
	}
	if (!r || e.kind)
		snprintf(ret, room, "not a container: %s", e.message);
	ptc_reader_destroy(r);
}

/* Stream number n of the container; cpu -2: there is none. */
static struct ptc_stream stream_of(struct imported *i, uint32_t n)
{
	struct ptc_stream ret = {.cpu = -2};
	struct pt_error e = {0};
	struct ptc_reader *r;
	struct ptc_chunk c;

	lseek(i->fd, 0, SEEK_SET);
	r = ptc_reader_create(i->fd, &e);
	while (r && ptc_next(r, &c, &e) == 1)
		if (c.type == PTC_STREAM && c.stream == n)
			ptc_parse_stream(&c, &ret, &e);
	ptc_reader_destroy(r);
	return ret;
}

#endif
