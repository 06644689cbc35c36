/*
 * growth_ptc.h - containers. Part of mkgrowth.c.
 */
#ifndef TESTS_TOOLS_GROWTH_PTC_H
#define TESTS_TOOLS_GROWTH_PTC_H

#include "schema/container.h"
#include "tests/tools/growth_bytes.h"

static struct ptc_writer *ptc;

static void put_sideband(void)
{
	if (used)
		ok(ptc_put_sideband(ptc, 0, bytes, used, &error));
	used = 0;
}

static void begin_container(void)
{
	struct perf_event_attr attr = {
	    .type = 8, .size = sizeof attr, .sample_type = SAMPLE_TYPE, .sample_id_all = 1};
	struct ptc_attr a = ptc_host_attr("intel_pt", &attr, sizeof attr, &(uint64_t){1}, 1);

	ptc = ptc_writer_create(1, NULL, -7, &error);
	ok(ptc ? 0 : -1);
	ok(ptc_put_meta(ptc, "engine", "perf", &error));
	ok(ptc_put_meta(ptc, "uuid", "5", &error));
	ok(ptc_put_meta(ptc, "time_mult", "1", &error));
	ok(ptc_put_meta(ptc, "time_shift", "0", &error));
	ok(ptc_put_meta(ptc, "time_zero", "0", &error));
	ok(ptc_put_attr(ptc, &a, &error));
	ok(ptc_put_stream(ptc, &(struct ptc_stream){.cpu = 0, .pid = -1, .tid = -1, .attr = 0}, &error));
	record_time = 1000;
}

/* PSB, TSC, PSBEND. */
static void put_psb(void)
{
	uint64_t tsc = record_time << 8 | 0x19;

	for (int i = 0; i < 8; i++)
		put("\x02\x82", 2);
	put(&tsc, 8);
	put("\x02\x23", 2);
}

/* What has been put, as AUX data. */
static void put_aux(uint32_t stream)
{
	static uint64_t first_end; /* of stream 1, which gets several */
	struct ptc_aux aux = {.bytes = bytes, .size = used, .time_ns = record_time};

	if (stream == 1) {
		aux.aux_offset = first_end;
		first_end += used;
	}
	ok(ptc_put_aux(ptc, stream, &aux, &error));
	used = 0;
}

static void end_container(void)
{
	put_sideband();
	put_psb();
	put_aux(1);
	ok(ptc_put_round(ptc, UINT64_MAX, &error));
	ok(ptc_writer_finish(ptc, &error));
	ptc_writer_destroy(ptc);
}

static const uint8_t code[16] = {0xc3}; /* ret */

static void put_image(struct ptc_image image, const char *name)
{
	image.name = name;
	image.name_bytes = (uint32_t)strlen(name);
	image.bytes = code;
	image.size = sizeof code;
	ok(ptc_put_image(ptc, &image, &error));
}

static void ptc_files(uint64_t n)
{
	begin_container();
	for (uint64_t i = n; i > 0; i--) {
		char name[32];

		snprintf(name, sizeof name, "/f/%u", (unsigned)i);
		put_image((struct ptc_image){.kind = PTC_IMAGE_FILE}, name);
		put_mmap(5, USER + 0x1000 * i, "/f/%u", i);
	}
	end_container();
}

static void put_kernel_image(uint64_t address)
{
	put_image((struct ptc_image){.kind = PTC_IMAGE_MEMORY, .pid = PTC_ANY_PID, .vaddr = address},
		  "[kernel]");
}

/* Mapped by name, with build ids in the container. */
static void ptc_build_ids(uint64_t n)
{
	begin_container();
	for (uint64_t i = n; i > 0; i--) {
		struct ptc_image image = {
		    .kind = PTC_IMAGE_FILE, .build_id = (const uint8_t *)&i, .build_id_bytes = 8};
		char name[32];

		snprintf(name, sizeof name, "/f/%u", (unsigned)i);
		put_image(image, name);
		put_mmap(5, USER + 0x1000 * i, "/f/%u", i);
	}
	end_container();
}

static void ptc_modules(uint64_t n)
{
	begin_container();
	put_kernel_image(KERNEL);
	for (uint64_t i = n; i > 0; i--)
		put_kernel_mmap(MODULES + 0x2000 * i, "[m%u]", i);
	end_container();
}

/* Pieces of one file, the last one first. */
static void ptc_pieces(uint64_t n)
{
	begin_container();
	for (uint64_t i = n; i > 0; i--)
		put_image(
		    (struct ptc_image){
			.kind = PTC_IMAGE_FILE, .continues = i < n, .offset = 64 * i, .vaddr = 64 * i},
		    "/f");
	put_mmap(5, USER, "/f", 0);
	end_container();
}

static void ptc_kernel_pieces(uint64_t n)
{
	begin_container();
	for (uint64_t i = n; i > 0; i--)
		put_kernel_image(KERNEL + 64 * i);
	put_kernel_mmap(KERNEL, "[kernel.kallsyms]_text", 0);
	end_container();
}

/* Each has what lies before it as well. */
static void ptc_kernel_overlaps(uint64_t n)
{
	begin_container();
	for (uint64_t i = n; i > 0; i--)
		put_kernel_image(KERNEL + 8 * i);
	put_kernel_mmap(KERNEL, "[kernel.kallsyms]_text", 0);
	end_container();
}

/* Functions of BPF programs, each with a symbol of its own; the trace runs all of them. */
static void ptc_ksymbols(uint64_t n)
{
	begin_container();
	for (uint64_t i = n; i > 0; i--) {
		put_kernel_image(MODULES + 64 * i);
		put_ksymbol(MODULES + 64 * i, i);
	}
	put_sideband();
	put_psb();
	for (uint64_t i = n; i > 0; i--) {
		uint64_t ip = MODULES + 64 * i;

		put(i == n ? "\xd1" : "\xcd", 1); /* TIP.PGE, TIP: IPBytes 110 */
		put(&ip, 8);
	}
	put_aux(1);
	end_container();
}

/* A process with n mappings forks n times. */
static void ptc_forks(uint64_t n)
{
	begin_container();
	for (uint64_t i = 0; i < n; i++)
		put_mmap(5, USER + 0x2000 * i, "/f", 0);
	for (uint64_t i = 0; i < n; i++)
		put_fork((uint32_t)i + 10, 5);
	end_container();
}

static void ptc_tasks(uint64_t n)
{
	begin_container();
	for (uint64_t i = n; i > 0; i--) {
		put_comm((uint32_t)i + 10, (uint32_t)i + 10);
		put_comm(5, (uint32_t)(i + n) + 10);
	}
	end_container();
}

static void ptc_streams(uint64_t n)
{
	begin_container();
	for (uint64_t i = n; i > 0; i--) {
		struct ptc_stream s = {.cpu = (int32_t)i, .pid = -1, .tid = -1, .attr = 0};
		uint32_t stream = (uint32_t)ok(ptc_put_stream(ptc, &s, &error));

		put_psb();
		put_aux(stream);
	}
	end_container();
}

static void ptc_rounds(uint64_t n)
{
	begin_container();
	for (uint64_t i = 0; i < n; i++) {
		put_comm(5, 5);
		put_sideband();
		put_psb();
		record_time += 100;
		put_aux(1);
		ok(ptc_put_round(ptc, record_time - 50, &error));
	}
	end_container();
}

static void ptc_machines(uint64_t n)
{
	begin_container();
	for (uint64_t i = n; i > 0; i--) {
		struct perf_event_attr attr = {
		    .size = sizeof attr, .sample_type = SAMPLE_TYPE, .sample_id_all = 1};
		struct ptc_attr a = ptc_host_attr("dummy", &attr, sizeof attr, &(uint64_t){i + 10}, 1);

		a.machine_pid = (int32_t)i;
		ok(ptc_put_attr(ptc, &a, &error));
		put_comm(7, 7);
		ok(ptc_put_sideband(ptc, (uint32_t)(n - i + 1), bytes, used, &error));
		used = 0;
	}
	end_container();
}

static void ptc_metas(uint64_t n)
{
	begin_container();
	for (uint64_t i = n; i > 0; i--) {
		char key[32];

		snprintf(key, sizeof key, "key%u", (unsigned)i);
		ok(ptc_put_meta(ptc, key, "value", &error));
	}
	end_container();
}

/* A chunk of symbols for each. */
static void ptc_symbol_chunks(uint64_t n)
{
	begin_container();
	put_image((struct ptc_image){.kind = PTC_IMAGE_FILE}, "/f");
	for (uint64_t i = n; i > 0; i--) {
		char name[32];
		int length = snprintf(name, sizeof name, "s%u", (unsigned)i);
		struct ptc_symbol symbol = {.value = i % sizeof code, .size = 1, .type = 't'};
		struct ptc_symbols s = {.count = 1,
					.name = "/f",
					.name_bytes = 2,
					.symbols = &symbol,
					.strings = name,
					.strings_bytes = (uint64_t)length + 1};

		ok(ptc_put_symbols(ptc, &s, &error));
	}
	put_mmap(5, USER, "/f", 0);
	end_container();
}

#endif
