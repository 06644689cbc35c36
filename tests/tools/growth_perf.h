/*
 * growth_perf.h - perf.data files, and perf records alone. Part of mkgrowth.c.
 */
#ifndef TESTS_TOOLS_GROWTH_PERF_H
#define TESTS_TOOLS_GROWTH_PERF_H

#include "capture/perfdata/perf_user.h"
#include "tests/tools/growth_bytes.h"

static void put_attr(uint64_t sample_type)
{
	struct perf_event_attr attr = {.type = 8,
				       .size = sizeof attr,
				       .config = 0x300e601,
				       .sample_type = sample_type,
				       .sample_id_all = 1};

	put(&attr, sizeof attr);
}

#define SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

/* The header with `events` events, whose ids are 1, 2...; the data is from here on. */
static void begin_perf_data(uint64_t events, bool per_cpu)
{
	const uint64_t ids = 104, attrs = ids + 8 * events, each = sizeof(struct perf_event_attr) + 16;
	const uint64_t header[13] = {0, 104, each, attrs, each * events, attrs + each * events};
	const uint64_t info[18] = {8,	    0,	   1,	    0,	 1, 0x400, 0x800, 2, 0,
				   per_cpu, 0x200, 0x3c000, 160, 2, 2,	   20,	  0, 0};
	size_t at;

	put(header, sizeof header);
	memcpy(bytes, "PERFILE2", 8);
	for (uint64_t i = 1; i <= events; i++)
		put64(i);
	for (uint64_t i = 0; i < events; i++) {
		put_attr(SAMPLE_TYPE);
		put64(ids + 8 * i);
		put64(8);
	}
	at = begin_record(PERF_USER_AUXTRACE_INFO, 0);
	put64(1);
	put(info, sizeof info);
	end_record(at);
	record_time = 1000;
}

/* The data ends here; a feature of count - from bytes follows, or none. */
static size_t end_perf_data(unsigned bit)
{
	uint64_t offset, size, bits;

	memcpy(&offset, bytes + 40, 8);
	size = used - offset;
	memcpy(bytes + 48, &size, 8);
	if (bit) {
		bits = UINT64_C(1) << bit;
		memcpy(bytes + 72, &bits, 8);
		put64(used + 16);
		put64(0);
	}
	return used;
}

static void put_id_index(uint64_t id, uint64_t machine_pid)
{
	size_t at = begin_record(PERF_USER_ID_INDEX, 0);

	put64(1);
	put64(id);
	put64(0);
	put64(0);
	put64(UINT64_MAX);
	put64(machine_pid);
	put64(0);
	end_record(at);
}

static void perf_id_index(uint64_t n)
{
	begin_perf_data(1, true);
	for (uint64_t i = n; i > 0; i--)
		put_id_index(i, 0);
	end_perf_data(0);
}

static void perf_machines(uint64_t n)
{
	begin_perf_data(1, true);
	for (uint64_t i = n; i > 0; i--)
		put_id_index(i + 1, i);
	put_comm(5, 5);
	end_perf_data(0);
}

/* In pipe mode, events come as records. */
static void perf_event_update(uint64_t n)
{
	size_t at;

	put("PERFILE2", 8);
	put64(16);
	for (uint64_t i = 1; i <= n; i++) {
		at = begin_record(PERF_USER_HEADER_ATTR, 0);
		put_attr(SAMPLE_TYPE);
		put64(i);
		end_record(at);
	}
	for (uint64_t i = n; i > 0; i--) {
		at = begin_record(PERF_USER_EVENT_UPDATE, 0);
		put64(2);
		put64(i);
		put_name("e%u", i);
		end_record(at);
	}
}

static void perf_event_desc(uint64_t n)
{
	size_t begin;
	uint64_t size;

	begin_perf_data(n, true);
	begin = end_perf_data(EVENT_DESC_BIT);
	put32((uint32_t)n, sizeof(struct perf_event_attr));
	for (uint64_t i = n; i > 0; i--) {
		put_attr(SAMPLE_TYPE);
		put32(1, 8);
		put_name("e%u", i % 1000);
		put64(i);
	}
	size = used - begin;
	memcpy(bytes + begin - 8, &size, 8);
}

static void perf_build_ids(uint64_t n)
{
	begin_perf_data(1, true);
	for (uint64_t i = n; i > 0; i--) {
		size_t at = begin_record(PERF_USER_HEADER_BUILD_ID, 0);

		put(&(uint32_t){UINT32_MAX}, 4);
		put(&(uint64_t[3]){i, i, i}, 24);
		put(&(uint32_t){0}, 4);
		put_name("/f/%u", i);
		end_record(at);
		put_mmap(5, USER + 0x1000 * i, "/f/%u", i);
	}
	end_perf_data(0);
}

static void perf_files(uint64_t n)
{
	begin_perf_data(1, true);
	for (uint64_t i = n; i > 0; i--)
		put_mmap(5, USER + 0x1000 * i, "/f/%u", i);
	end_perf_data(0);
}

static void perf_kernel_maps(uint64_t n)
{
	begin_perf_data(1, true);
	for (uint64_t i = n; i > 0; i--)
		put_kernel_mmap(MODULES + 0x2000 * i, "[m%u]", i);
	end_perf_data(0);
}

static void perf_threads(uint64_t n)
{
	begin_perf_data(1, false);
	for (uint64_t i = n; i > 0; i--)
		put_comm(5, (uint32_t)i + 5);
	end_perf_data(0);
}

static void put_auxtrace(uint64_t offset, uint32_t cpu, uint32_t tid)
{
	size_t at = begin_record(PERF_USER_AUXTRACE, 0);

	put64(8);
	put64(offset);
	put64(record_time);
	put32(cpu, tid);
	put64(cpu);
	end_record(at);
	put64(0);
}

static void put_aux_record(uint64_t offset)
{
	size_t at = begin_record(PERF_RECORD_AUX, 0);

	put64(offset);
	put64(8);
	put64(0);
	end_kernel_record(at, 5, 5);
}

static void perf_aux(uint64_t n)
{
	begin_perf_data(1, true);
	for (uint64_t i = 0; i < n; i++) {
		put_auxtrace(8 * i, 0, UINT32_MAX);
		put_aux_record(8 * i);
	}
	end_perf_data(0);
}

static void perf_cpus(uint64_t n)
{
	begin_perf_data(1, true);
	for (uint64_t i = n; i > 0; i--)
		put_auxtrace(0, (uint32_t)i, UINT32_MAX);
	end_perf_data(0);
}

static void perf_tids(uint64_t n)
{
	begin_perf_data(1, false);
	for (uint64_t i = n; i > 0; i--) {
		put_comm(5, (uint32_t)i + 5);
		put_auxtrace(0, UINT32_MAX, (uint32_t)i + 5);
	}
	end_perf_data(0);
}

static void perf_ksymbols(uint64_t n)
{
	begin_perf_data(1, true);
	for (uint64_t i = n; i > 0; i--)
		put_ksymbol(MODULES + 16 * i, i);
	end_perf_data(0);
}

/* The youngest first, and no rounds. */
static void perf_backwards(uint64_t n)
{
	begin_perf_data(1, true);
	for (uint64_t i = n; i > 0; i--) {
		record_time = 1000 + i;
		put_comm(5, 5);
	}
	end_perf_data(0);
}

/* The kernel's records alone, as import --raw --sideband reads them. */
static void sideband(uint64_t n)
{
	for (uint64_t i = n; i > 0; i--) {
		put_comm((uint32_t)i, (uint32_t)i);
		put_mmap((uint32_t)i, USER, "/f/%u", i);
	}
}

#endif
