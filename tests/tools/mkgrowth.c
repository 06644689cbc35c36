/*
 * mkgrowth.c - writes an input with n of one thing, for tests/cli/growth.sh: how does a reader's work grow with n?
 *
 *   mkgrowth SHAPE N > FILE
 *   mkgrowth --list
 *
 * A shape's name begins with what it is: perf (a perf.data), ptc (a container), ptr (a record stream), or the
 * text file that it is. What there is n of is chosen to hurt a reader that looks through a list for each.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/perfdata/perf_user.h"
#include "schema/array.h"
#include "schema/container.h"
#include "schema/records.h"

#define KERNEL	       UINT64_C(0xffffffff81000000)
#define MODULES	       UINT64_C(0xffffffffc0000000)
#define USER	       UINT64_C(0x7f0000000000)
#define EVENT_DESC_BIT 12 /* HEADER_EVENT_DESC of perf's util/header.h */

static struct pt_error error;

static int64_t ok(int64_t ret)
{
	if (ret < 0) {
		fprintf(stderr, "mkgrowth: %s\n", error.message);
		exit(1);
	}
	return ret;
}

/* ---- Bytes ------------------------------------------------------------------------------------------- */

static uint8_t *bytes;
static size_t count, room;

static void put(const void *from, size_t n)
{
	while (count + n > room)
		ok(pt_array_grow(&bytes, room, &room, &error));
	memcpy(bytes + count, from, n);
	count += n;
}

static void put64(uint64_t v)
{
	put(&v, 8);
}

static void put32(uint32_t a, uint32_t b)
{
	put64(a | (uint64_t)b << 32);
}

static size_t begin_record(uint32_t type, uint16_t misc)
{
	struct perf_event_header h = {.type = type, .misc = misc};
	size_t at = count;

	put(&h, sizeof h);
	return at;
}

static void end_record(size_t at)
{
	uint16_t size = (uint16_t)(count - at);

	memcpy(bytes + at + 6, &size, 2);
}

/* A name with its NULs, to 8 bytes. */
static void put_name(const char *format, uint64_t i)
{
	char name[64] = "";

	snprintf(name, sizeof name, format, (unsigned)i);
	put(name, strlen(name) / 8 * 8 + 8);
}

/* ---- Records of the kernel's ------------------------------------------------------------------------- */

static uint64_t record_time; /* of the next; 0: records have no trailer */

/* The trailer of PERF_SAMPLE_TID | TIME | CPU | IDENTIFIER. */
static void end_kernel_record(size_t at, uint32_t pid, uint32_t tid)
{
	if (record_time) {
		put32(pid, tid);
		put64(record_time++);
		put64(0);
		put64(1);
	}
	end_record(at);
}

static void put_comm(uint32_t pid, uint32_t tid)
{
	size_t at = begin_record(PERF_RECORD_COMM, 0);

	put32(pid, tid);
	put_name("c%u", tid);
	end_kernel_record(at, pid, tid);
}

static void put_fork(uint32_t pid, uint32_t parent)
{
	size_t at = begin_record(PERF_RECORD_FORK, 0);

	put32(pid, parent);
	put32(pid, parent);
	put64(record_time);
	end_kernel_record(at, parent, parent);
}

static void put_mmap(uint32_t pid, uint64_t start, const char *format, uint64_t i)
{
	size_t at = begin_record(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);

	put32(pid, pid);
	put64(start);
	put64(0x1000);
	put64(0);
	put(&(uint64_t[3]){0}, 24);
	put32(5, 2); /* PROT_READ | PROT_EXEC, MAP_PRIVATE */
	put_name(format, i);
	end_kernel_record(at, pid, pid);
}

static void put_kernel_mmap(uint64_t start, const char *format, uint64_t i)
{
	size_t at = begin_record(PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL);

	put32(UINT32_MAX, 0);
	put64(start);
	put64(0x1000);
	put64(0);
	put_name(format, i);
	end_kernel_record(at, 0, 0);
}

static void put_ksymbol(uint64_t start, uint64_t i)
{
	size_t at = begin_record(PERF_RECORD_KSYMBOL, 0);

	put64(start);
	put32(16, PERF_RECORD_KSYMBOL_TYPE_BPF);
	put_name("bpf_prog_%u", i);
	end_kernel_record(at, 0, 0);
}

/* ---- perf.data --------------------------------------------------------------------------------------- */

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
	size = count - offset;
	memcpy(bytes + 48, &size, 8);
	if (bit) {
		bits = UINT64_C(1) << bit;
		memcpy(bytes + 72, &bits, 8);
		put64(count + 16);
		put64(0);
	}
	return count;
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
	size = count - begin;
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

/* ---- Containers -------------------------------------------------------------------------------------- */

static struct ptc_writer *ptc;

static void put_sideband(void)
{
	if (count)
		ok(ptc_put_sideband(ptc, 0, bytes, count, &error));
	count = 0;
}

static void begin_container(void)
{
	struct perf_event_attr attr = {
	    .type = 8, .size = sizeof attr, .sample_type = SAMPLE_TYPE, .sample_id_all = 1};
	struct ptc_attr a = ptc_host_attr("intel_pt", &attr, sizeof attr, &(uint64_t){1}, 1);

	ptc = ptc_writer_create(1, -7, &error);
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
	struct ptc_aux aux = {.bytes = bytes, .size = count, .time_ns = record_time};

	if (stream == 1) {
		aux.aux_offset = first_end;
		first_end += count;
	}
	ok(ptc_put_aux(ptc, stream, &aux, &error));
	count = 0;
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
		ok(ptc_put_sideband(ptc, (uint32_t)(n - i + 1), bytes, count, &error));
		count = 0;
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

/* ---- Record streams ---------------------------------------------------------------------------------- */

static struct ptr_writer *ptr;

static void begin_stream(void)
{
	ptr = ptr_writer_create(1, &error);
	ok(ptr ? 0 : -1);
	ok(ptr_put_meta(ptr, "uuid", "5", &error));
	ok(ptr_put_machine(ptr, &(struct ptr_machine){.name = "host"}, &error));
	ok(ptr_put_thread(ptr, &(struct ptr_thread){.machine = 1, .pid = 5, .tid = 5, .comm = "c"}, &error));
}

static void end_stream(void)
{
	ok(ptr_writer_finish(ptr, &error));
	ptr_writer_destroy(ptr);
}

static void ptr_metas(uint64_t n)
{
	begin_stream();
	for (uint64_t i = n; i > 0; i--) {
		char key[32];

		snprintf(key, sizeof key, "key%u", (unsigned)i);
		ok(ptr_put_meta(ptr, key, "value", &error));
	}
	end_stream();
}

/* Machines, threads, files, symbols, edges, paths, slices, runs: all that is defined, n of each, used once. */
static void ptr_definitions(uint64_t n)
{
	begin_stream();
	for (uint64_t k = n; k > 0; k--) {
		uint32_t i = (uint32_t)k;
		struct ptr_machine m = {.pid = i, .name = "vm"};
		struct ptr_thread t = {.pid = (int32_t)i, .tid = (int32_t)i, .comm = "c"};
		struct ptr_dso d = {.name = "f", .build_id = ""};
		struct ptr_symbol s = {.start = 64 * k, .end = 64 * k + 64, .name = "s"};
		struct ptr_edge e = {.from = 64 * k + 8, .to = 64 * k, .kind = PTR_JMP};
		struct ptr_path p = {.start_ip = 64 * k, .count = 1, .insns[0] = 2};
		struct ptr_slice slice = {.vcpu = -1, .tsc = k};
		struct ptr_run run = {.tsc = k, .repeats = 1, .cyc_count = PTR_UNKNOWN};

		t.machine = (uint32_t)ok(ptr_put_machine(ptr, &m, &error));
		s.dso = (uint32_t)ok(ptr_put_dso(ptr, &d, &error));
		e.from_symbol = e.to_symbol = (uint32_t)ok(ptr_put_symbol(ptr, &s, &error));
		p.edge[0] = (uint32_t)ok(ptr_put_edge(ptr, &e, &error));
		run.path = (uint32_t)ok(ptr_put_path(ptr, &p, &error));
		slice.thread = (uint32_t)ok(ptr_put_thread(ptr, &t, &error));
		run.slice = (uint32_t)ok(ptr_put_slice(ptr, &slice, &error));
		ok(ptr_put_run(ptr, &run, 1, &error));
	}
	end_stream();
}

/* Slices that remain open together, and runs of each in turn. */
static void ptr_slices(uint64_t n)
{
	struct ptr_edge e = {.from = 8, .to = 64, .kind = PTR_JMP};
	struct ptr_path p = {.start_ip = 64, .count = 1, .edge[0] = 1, .insns[0] = 2};

	begin_stream();
	ok(ptr_put_edge(ptr, &e, &error));
	ok(ptr_put_path(ptr, &p, &error));
	for (uint64_t i = 0; i < n; i++)
		ok(ptr_put_slice(
		    ptr,
		    &(struct ptr_slice){
			.thread = 1, .cpu = (int32_t)i, .vcpu = -1, .stream = (uint32_t)i + 1, .tsc = i},
		    &error));
	for (uint64_t i = n; i > 0; i--)
		ok(ptr_put_run(ptr,
			       &(struct ptr_run){.slice = (uint32_t)i,
						 .path = 1,
						 .repeats = 1,
						 .tsc = 2 * n - i,
						 .cyc_count = PTR_UNKNOWN},
			       1, &error));
	end_stream();
}

/* Calls on different call paths, deeper and deeper. */
static void ptr_calls(uint64_t n)
{
	begin_stream();
	for (uint64_t i = 0; i < n; i++)
		ok(ptr_put_call_path(ptr, &(struct ptr_call_path){.parent = (uint32_t)i, .ip = 64 * i},
				     &error));
	for (uint64_t i = n; i > 0; i--)
		ok(ptr_put_call(ptr,
				&(struct ptr_call){.thread = 1,
						   .call_path = (uint32_t)i,
						   .call_tsc = i,
						   .return_tsc = 2 * n - i,
						   .cyc_count = PTR_UNKNOWN,
						   .depth = (uint32_t)i - 1},
				&error));
	end_stream();
}

static void ptr_vm_rows(uint64_t n)
{
	begin_stream();
	for (uint64_t i = 0; i < n; i++) {
		ok(ptr_put_guest_run(ptr,
				     &(struct ptr_guest_run){.machine = 1,
							     .thread = 1,
							     .vcpu = (int32_t)i,
							     .entry_tsc = 2 * i,
							     .exit_tsc = 2 * i + 1},
				     &error));
		ok(ptr_put_vm_clock(
		    ptr,
		    &(struct ptr_vm_clock){
			.machine = 1, .vcpu = (int32_t)i, .from_tsc = i, .ratio = PTR_UNKNOWN},
		    &error));
		ok(ptr_put_vmexit(ptr,
				  &(struct ptr_vmexit){.machine = 1,
						       .thread = 1,
						       .vcpu = (int32_t)i,
						       .before = (uint32_t)i + 1,
						       .exit_tsc = 2 * i + 1,
						       .entry_tsc = 2 * i + 2,
						       .reason = i % 60,
						       .stolen_by = 1},
				  &error));
		ok(ptr_put_event(
		    ptr, &(struct ptr_event){.machine = 1, .tsc = i, .name = "n", .fields = "{}"}, &error));
		ok(ptr_put_error(ptr,
				 &(struct ptr_error){.tsc = i, .tsc_end = i, .kind = "lost", .message = "m"},
				 &error));
	}
	end_stream();
}

/* ---- Texts ------------------------------------------------------------------------------------------- */

static void kallsyms(uint64_t n)
{
	printf("%" PRIx64 " T _text\n", KERNEL);
	for (uint64_t i = n; i > 0; i--)
		printf("%" PRIx64 " t s%u\t[m%u]\n", MODULES + 16 * i, (unsigned)i, (unsigned)i);
}

static void modules(uint64_t n)
{
	for (uint64_t i = n; i > 0; i--)
		printf("m%u 4096 0 - Live 0x%" PRIx64 "\n", (unsigned)i, MODULES + 8192 * i);
}

static void maps(uint64_t n)
{
	for (uint64_t i = n; i > 0; i--)
		printf("%" PRIx64 " %" PRIx64 " 0 true\n", USER + 0x2000 * i, USER + 0x2000 * i + 0x1000);
}

/* An ELF core with a segment of code for each. */
static void kcore(uint64_t n)
{
	const uint64_t data = (64 + 56 * n + 4095) / 4096 * 4096;

	put("\x7f"
	    "ELF\2\1\1\0\0\0\0\0\0\0\0\0\4\0\x3e\0\1\0\0\0",
	    24);
	put64(0);
	put64(64);
	put64(0);
	put32(0, 64 | 56 << 16);
	put64((uint16_t)n);
	for (uint64_t i = n; i > 0; i--) {
		put32(1, 5);
		put64(data + 4096 * (n - i));
		put64(KERNEL + 8192 * i);
		put64(0);
		put64(4096);
		put64(4096);
		put64(4096);
	}
	while (count < data + 4096 * n)
		put("\xc3", 1);
}

/* ---- All of them ------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*write)(uint64_t n);
} shapes[] = {
    {"perf-id-index", perf_id_index},
    {"perf-machines", perf_machines},
    {"perf-event-update", perf_event_update},
    {"perf-event-desc", perf_event_desc},
    {"perf-build-ids", perf_build_ids},
    {"perf-files", perf_files},
    {"perf-kernel-maps", perf_kernel_maps},
    {"perf-threads", perf_threads},
    {"perf-aux", perf_aux},
    {"perf-cpus", perf_cpus},
    {"perf-tids", perf_tids},
    {"perf-ksymbols", perf_ksymbols},
    {"perf-backwards", perf_backwards},
    {"ptc-files", ptc_files},
    {"ptc-build-ids", ptc_build_ids},
    {"ptc-modules", ptc_modules},
    {"ptc-pieces", ptc_pieces},
    {"ptc-kernel-pieces", ptc_kernel_pieces},
    {"ptc-kernel-overlaps", ptc_kernel_overlaps},
    {"ptc-ksymbols", ptc_ksymbols},
    {"ptc-forks", ptc_forks},
    {"ptc-tasks", ptc_tasks},
    {"ptc-streams", ptc_streams},
    {"ptc-rounds", ptc_rounds},
    {"ptc-machines", ptc_machines},
    {"ptc-metas", ptc_metas},
    {"ptc-symbol-chunks", ptc_symbol_chunks},
    {"ptr-metas", ptr_metas},
    {"ptr-definitions", ptr_definitions},
    {"ptr-slices", ptr_slices},
    {"ptr-calls", ptr_calls},
    {"ptr-vm-rows", ptr_vm_rows},
    {"sideband", sideband},
    {"kallsyms", kallsyms},
    {"modules", modules},
    {"maps", maps},
    {"kcore", kcore},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		if (argc == 2 && !strcmp(argv[1], "--list"))
			puts(shapes[i].name);
		if (argc != 3 || strcmp(argv[1], shapes[i].name) != 0)
			continue;
		shapes[i].write(strtoull(argv[2], NULL, 10));
		if (count)
			fwrite(bytes, 1, count, stdout);
		return fflush(stdout) ? 1 : 0;
	}
	return argc == 2 ? 0 : 2;
}
