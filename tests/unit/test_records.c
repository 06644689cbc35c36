/* test_records.c - the record stream: every type through writer and reader, every cut, every flipped
 * bit, and payloads that lie under a right checksum: into the reader, and into a database. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sqlite3.h>
#include <zlib.h>

#include "export/sink.h"
#include "schema/crc32c.h"
#include "schema/records.h"
#include "schema/records_format.h"
#include "schema/vm_reasons.h"
#include "tests/unit/check.h"
#include "tests/unit/file_content.h"

static uint64_t random_state = 88172645463325252u;

static uint64_t random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static int file_of(const uint8_t *bytes, size_t n)
{
	int fd = memfd_create("records", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	return fd;
}

/* ---- A stream that has every type, and numbers from end to end ---- */

static const struct ptr_guest_run guest_run = {.machine = 2,
					       .thread = 1,
					       .cpu = 3,
					       .vcpu = 4,
					       .vmcs = 0x5fc57000,
					       .cr3 = PTR_UNKNOWN,
					       .entry_tsc = 1000,
					       .exit_tsc = 2000,
					       .entry_uncertainty_tsc = 7,
					       .exit_uncertainty_tsc = 0,
					       .entry_ip = 0xffffffff81000000,
					       .exit_ip = 0xffffffff81000123,
					       .entry_branch = 1024,
					       .exit_branch = 1025,
					       .insn_count = 99,
					       .cyc_count = PTR_UNKNOWN,
					       .injected = 0x800000ec,
					       .flags = PTR_VM_NESTED};

static const struct ptr_vmexit vmexit = {.machine = 2,
					 .thread = 1,
					 .vcpu = 4,
					 .exit_cpu = 3,
					 .entry_cpu = -1,
					 .before = 1,
					 .after = 77,
					 .vmcs = 0x5fc57000,
					 .exit_tsc = 2000,
					 .entry_tsc = PTR_NO_TSC,
					 .exit_uncertainty_tsc = 1,
					 .entry_uncertainty_tsc = PTR_UNKNOWN,
					 .guest_ip = 0xffffffff81000123,
					 .guest_symbol = 1,
					 .guest_dso = 1,
					 .guest_thread = 2,
					 .guest_cr3 = 0x10a000,
					 .exit_branch = 1025,
					 .entry_branch = 0,
					 .reason = 48,
					 .raw_reason = 0x80000030,
					 .qualification = 0x182,
					 .vector = PTR_UNKNOWN,
					 .operand = 0xfee00030,
					 .source = PTR_REASON_TRACEPOINT,
					 .injected = 0x800000ec,
					 .handler = 1,
					 .deepest = 0,
					 .deepest_depth = 5,
					 .host_insns = 12345,
					 .host_cycles = UINT64_MAX - 1,
					 .off_cpu_tsc = 0,
					 .userspace_tsc = PTR_UNKNOWN,
					 .stolen_by = 1,
					 .flags = PTR_VM_GAP | PTR_VM_MIGRATED};

static const uint8_t code_bytes[] = {0x90, 0x48, 0x89, 0xc3, 0xc3};
static const struct ptr_code code = {.version = 1,
				     .symbol = 1,
				     .bits = 64,
				     .ip = 0x401000,
				     .count = 3,
				     .lens = {1, 3, 1},
				     .bytes = code_bytes};
static const struct ptr_vm_clock vm_clock = {.machine = 2,
					     .vcpu = 4,
					     .vmcs = 0x5fc57000,
					     .from_tsc = PTR_NO_TSC,
					     .offset = 0xfffffd0b3e60cd07,
					     .ratio = PTR_UNKNOWN,
					     .frac_bits = 48,
					     .source = PTR_CLOCK_SOLVED,
					     .observations = 4711,
					     .worst_residual_tsc = 3,
					     .slack_tsc = 12};

static void put_definitions(struct ptr_writer *w, struct pt_error *e)
{
	struct ptr_path path = {
	    .start_ip = 0x401000, .count = 2, .not_taken = 3, .edge = {1, 2}, .insns = {4, 1}};

	CHECK(ptr_put_meta(w, "uuid", "0123", e) == 0);
	CHECK(ptr_put_machine(w, &(struct ptr_machine){.name = "host"}, e) == 1);
	CHECK(ptr_put_machine(w, &(struct ptr_machine){.pid = 4000, .name = "vm"}, e) == 2);
	CHECK(ptr_put_thread(w, &(struct ptr_thread){.machine = 1, .pid = 1, .tid = 2, .comm = "a;b\"c"},
			     e) == 1);
	CHECK(ptr_put_thread(w, &(struct ptr_thread){.machine = 2, .pid = -1, .tid = -1, .comm = ""}, e) ==
	      2);
	CHECK(ptr_put_dso(w, &(struct ptr_dso){.name = "/bin/x", .build_id = "00ff"}, e) == 1);
	CHECK(ptr_put_symbol(
		  w, &(struct ptr_symbol){.dso = 1, .start = 0x401000, .end = UINT64_MAX, .name = "f"}, e) ==
	      1);
	CHECK(
	    ptr_put_edge(w,
			 &(struct ptr_edge){
			     .from = 0x401010, .to = 0xffffffffffffff00, .kind = PTR_ASYNC, .from_symbol = 1},
			 e) == 1);
	CHECK(ptr_put_edge(w, &(struct ptr_edge){.from = 0xffffffffffffff08, .kind = PTR_VMENTRY}, e) == 2);
	CHECK(ptr_put_path(w, &path, e) == 1);
	CHECK(ptr_put_path(w, &(struct ptr_path){.start_ip = 1, .tail_insns = 5, .end_ip = 9}, e) == 2);
	CHECK(ptr_put_call_path(w, &(struct ptr_call_path){.symbol = 1, .ip = 0x401000}, e) == 1);
	CHECK(ptr_put_call_path(w, &(struct ptr_call_path){.parent = 1, .ip = 0x7fffffffffffffff}, e) == 2);
	CHECK(ptr_put_vm_clock(w, &vm_clock, e) == 1);
	CHECK(ptr_put_code(w, &code, e) == 1);
}

static void put_facts(struct ptr_writer *w, struct pt_error *e)
{
	CHECK(ptr_put_slice(w,
			    &(struct ptr_slice){.thread = 1, .cpu = 3, .vcpu = -1, .stream = 9, .tsc = 500},
			    e) == 1);
	CHECK(ptr_put_run(w,
			  &(struct ptr_run){.slice = 1,
					    .tsc = 600,
					    .timing = PTR_TIME_EXACT,
					    .path = 1,
					    .repeats = 512,
					    .cyc_count = UINT64_MAX - 1,
					    .insn_count = 7},
			  2, e) == 1);
	CHECK(ptr_put_run(w,
			  &(struct ptr_run){.slice = 1,
					    .tsc = PTR_NO_TSC,
					    .timing = PTR_TIME_CYC,
					    .path = 2,
					    .repeats = 1,
					    .cyc_count = PTR_UNKNOWN},
			  0, e) == 2);
	CHECK(
	    ptr_put_slice_end(
		w,
		&(struct ptr_slice_end){
		    .slice = 1, .tsc = 900, .insn_count = 3, .cyc_count = PTR_UNKNOWN, .branch_count = 1024},
		e) == 0);
	CHECK(ptr_put_path_sum(w,
			       &(struct ptr_path_sum){.path = 1,
						      .machine = 2,
						      .runs = 3,
						      .repeats = 1ull << 40,
						      .insn_timed = UINT64_MAX,
						      .cycles = 0.125},
			       2, e) == 0);
	CHECK(ptr_put_call_sum(w,
			       &(struct ptr_call_sum){.thread = 1,
						      .call_path = 2,
						      .calls = 9,
						      .branch_count = 1ull << 63,
						      .insn_count = 5,
						      .cyc_count = PTR_UNKNOWN,
						      .elapsed_tsc = 0},
			       e) == 0);
	CHECK(ptr_put_interrupt(w, &(struct ptr_interrupt){.slice = 1, .path = 1, .at = 1, .tsc = PTR_NO_TSC},
				e) == 0);
	CHECK(ptr_put_guest_run(w, &guest_run, e) == 1);
	CHECK(ptr_put_vmexit(w, &vmexit, e) == 1);
	CHECK(ptr_put_call(w,
			   &(struct ptr_call){.thread = 1,
					      .stack = UINT32_MAX,
					      .call_path = 2,
					      .call_tsc = PTR_NO_TSC,
					      .return_tsc = UINT64_MAX - 1,
					      .call_branch = 1024,
					      .return_branch = 2047,
					      .branch_count = 1ull << 63,
					      .insn_count = UINT64_MAX,
					      .cyc_count = PTR_UNKNOWN,
					      .flags = PTR_CALL_NO_RETURN,
					      .depth = UINT32_MAX},
			   e) == 1);
	CHECK(ptr_put_event(w,
			    &(struct ptr_event){.slice = 1,
						.machine = 2,
						.thread = 2,
						.cpu = -1,
						.vcpu = 0,
						.tsc = 601,
						.ip = 1ull << 63,
						.name = "kvm:kvm_entry",
						.fields = "{}"},
			    e) == 1);
	CHECK(ptr_put_error(w,
			    &(struct ptr_error){.cpu = -1,
						.tsc = 5,
						.tsc_end = PTR_NO_TSC,
						.aux_offset = PTR_UNKNOWN,
						.kind = "overflow",
						.message = "\xff\xfe"},
			    e) == 1);
	CHECK(ptr_put_meta(w, "decode.container", "complete", e) == 0);
}

static uint8_t *sample(size_t *ret_n)
{
	int fd = file_of(NULL, 0);
	struct pt_error e = {0};
	struct ptr_writer *w = ptr_writer_create(fd, NULL, &e);
	uint8_t *ret;

	CHECK(w != NULL);
	put_definitions(w, &e);
	put_facts(w, &e);
	CHECK(ptr_writer_finish(w, &e) == 0);
	ptr_writer_destroy(w);
	ret = content(fd, ret_n);
	close(fd);
	return ret;
}

/* Appends the record to another stream. */
static void put_again(struct ptr_writer *w, const struct ptr_record *r)
{
	static uint32_t counts[4096]; /* of paths, by number */
	struct pt_error e = {0};
	int64_t n = 0;

	switch (r->type) {
	case PTR_META: n = ptr_put_meta(w, r->meta.key, r->meta.value, &e); break;
	case PTR_MACHINE: n = ptr_put_machine(w, &r->machine, &e); break;
	case PTR_THREAD: n = ptr_put_thread(w, &r->thread, &e); break;
	case PTR_DSO: n = ptr_put_dso(w, &r->dso, &e); break;
	case PTR_SYMBOL: n = ptr_put_symbol(w, &r->symbol, &e); break;
	case PTR_EDGE: n = ptr_put_edge(w, &r->edge, &e); break;
	case PTR_PATH:
		counts[r->number % 4096] = r->path.count;
		n = ptr_put_path(w, &r->path, &e);
		break;
	case PTR_SLICE: n = ptr_put_slice(w, &r->slice, &e); break;
	case PTR_SLICE_END: n = ptr_put_slice_end(w, &r->slice_end, &e); break;
	case PTR_CALL_PATH: n = ptr_put_call_path(w, &r->call_path, &e); break;
	case PTR_EVENT: n = ptr_put_event(w, &r->event, &e); break;
	case PTR_ERROR: n = ptr_put_error(w, &r->error, &e); break;
	case PTR_GUEST_RUN: n = ptr_put_guest_run(w, &r->guest_run, &e); break;
	case PTR_VMEXIT_INTERVAL: n = ptr_put_vmexit(w, &r->vmexit, &e); break;
	case PTR_VM_CLOCK: n = ptr_put_vm_clock(w, &r->vm_clock, &e); break;
	case PTR_CODE: n = ptr_put_code(w, &r->code, &e); break;
	case PTR_PATH_SUM: n = ptr_put_path_sum(w, &r->path_sum, counts[r->path_sum.path % 4096], &e); break;
	case PTR_CALL_SUM: n = ptr_put_call_sum(w, &r->call_sum, &e); break;
	case PTR_INTERRUPT: n = ptr_put_interrupt(w, &r->interrupt, &e); break;
	case PTR_RUN: n = ptr_put_run(w, &r->run, counts[r->run.path % 4096], &e); break;
	case PTR_CALL: n = ptr_put_call(w, &r->call, &e); break;
	case PTR_END:
	case PTR_TYPES: break;
	}
	CHECK(n == (int64_t)r->number);
}

/* What was read, written again, is the same bytes; and fields are where they were put. */
static void test_round_trip(const uint8_t *bytes, size_t n)
{
	int fd = file_of(bytes, n), again = file_of(NULL, 0), got;
	struct pt_error e = {0};
	struct ptr_reader *r = ptr_reader_create(fd, &e);
	struct ptr_writer *w = ptr_writer_create(again, NULL, &e);
	struct ptr_record record;
	unsigned seen[PTR_TYPES] = {0};
	uint8_t *copy;
	size_t copied;

	memset(&record, 0, sizeof record); /* what lies between fields is compared, too */
	while ((got = ptr_next(r, &record, &e)) == 1) {
		seen[record.type]++;
		if (record.type == PTR_GUEST_RUN)
			/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): cleared by memset */
			CHECK(!memcmp(&record.guest_run, &guest_run, sizeof guest_run));
		if (record.type == PTR_VMEXIT_INTERVAL)
			/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): cleared by memset */
			CHECK(!memcmp(&record.vmexit, &vmexit, sizeof vmexit));
		if (record.type == PTR_VM_CLOCK)
			CHECK(!memcmp(&record.vm_clock, &vm_clock, sizeof vm_clock));
		if (record.type == PTR_CODE)
			CHECK(record.code.ip == 0x401000 && record.code.count == 3 &&
			      record.code.lens[1] == 3 && record.code.bits == 64 &&
			      !memcmp(record.code.bytes, code_bytes, sizeof code_bytes));
		if (record.type == PTR_PATH_SUM)
			CHECK(record.path_sum.repeats == 1ull << 40 && record.path_sum.cycles == 0.125);
		if (record.type == PTR_CALL_SUM)
			CHECK(record.call_sum.cyc_count == PTR_UNKNOWN && record.call_sum.elapsed_tsc == 0);
		if (record.type == PTR_INTERRUPT)
			CHECK(record.interrupt.at == 1 && record.interrupt.tsc == PTR_NO_TSC);
		if (record.type == PTR_EVENT)
			CHECK(record.event.slice == 1 && record.event.machine == 2 &&
			      record.event.thread == 2 && record.event.cpu == -1 && record.event.vcpu == 0 &&
			      record.event.tsc == 601);
		if (record.type == PTR_END)
			CHECK(record.end.branches == 1024 + (2ull << 40) && record.end.counts[PTR_RUN] == 2);
		else
			put_again(w, &record);
		memset(&record, 0, sizeof record);
	}
	CHECK(got == 0 && ptr_next(r, &record, &e) == 0);
	for (int t = PTR_META; t < PTR_TYPES; t++)
		CHECK(seen[t] > 0 || (t > PTR_RUN && t < PTR_SLICE_END) || /* those are RUN's, too */
		      (t > PTR_CALL_SUM && t < PTR_INTERRUPT));
	CHECK(ptr_writer_finish(w, &e) == 0);
	copy = content(again, &copied);
	CHECK(copied == n && !memcmp(copy, bytes, n));
	free(copy);
	ptr_writer_destroy(w);
	ptr_reader_destroy(r);
	close(fd);
	close(again);
}

/*
 * ---- Damage ---------------------------------------------------------------------------------------------
 */

/* Reads to the end. Returns how many records there were before END or the error; *ret_end: what
 * ptr_next() said last, -2 for a stream that could not be opened. */
static size_t read_all(const uint8_t *bytes, size_t n, int *ret_end, struct pt_error *ret_error)
{
	int fd = file_of(bytes, n), got = -1;
	struct ptr_reader *r = ptr_reader_create(fd, ret_error);
	struct ptr_record record;
	struct pt_error again = {0};
	size_t ret = 0;

	*ret_end = -2;
	while (r && (got = ptr_next(r, &record, ret_error)) == 1)
		ret += record.type != PTR_END;
	if (r) {
		*ret_end = got;
		CHECK(ptr_next(r, &record, &again) == got);
		CHECK(got == 0 || !strcmp(again.message, ret_error->message));
	}
	ptr_reader_destroy(r);
	close(fd);
	return ret;
}

static void test_cuts(const uint8_t *bytes, size_t n)
{
	for (size_t at = 0; at < n; at++) {
		struct pt_error e = {0};
		int end;
		size_t got = read_all(bytes, at, &end, &e);

		CHECK(end < 0 && got == 0 && e.kind == PT_ERR_TRUNCATED && e.offset <= at);
	}
}

/* Checksums cover everything, so nothing of a damaged block is delivered. */
static void test_flips(uint8_t *bytes, size_t n)
{
	for (size_t bit = 0; bit < n * 8; bit++) {
		struct pt_error e = {0};
		int end;
		size_t got;

		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		got = read_all(bytes, n, &end, &e);
		CHECK(end < 0 && got == 0 && (e.kind == PT_ERR_BAD_INPUT || e.kind == PT_ERR_TRUNCATED) &&
		      *e.message);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void test_extra(const uint8_t *bytes, size_t n)
{
	uint8_t *more = malloc(n + 1);
	struct pt_error e = {0};
	int end;

	if (!more)
		abort();
	memcpy(more, bytes, n);
	more[n] = 0;
	read_all(more, n + 1, &end, &e);
	CHECK(end == -1 && e.kind == PT_ERR_BAD_INPUT);
	free(more);
}

/* Blocks of long strings: what is before a damaged one is good. */
static void test_blocks(void)
{
	int fd = file_of(NULL, 0), end;
	struct pt_error e = {0};
	struct ptr_writer *w = ptr_writer_create(fd, NULL, &e);
	char *text = malloc(700001);
	size_t n, got, per_block = 0;
	uint8_t *bytes;

	if (!text)
		abort();
	memset(text, 'x', 700000);
	text[700000] = 0;
	for (int i = 0; i < 5; i++)
		CHECK(ptr_put_meta(w, i ? "b" : "a", text, &e) == 0);
	CHECK(ptr_writer_finish(w, &e) == 0);
	ptr_writer_destroy(w);
	bytes = content(fd, &n);
	close(fd);
	CHECK(read_all(bytes, n, &end, &e) == 5 && end == 0);
	for (int i = 0; i < 40; i++) {
		size_t at = random64() % n;

		bytes[at] ^= 0x10;
		got = read_all(bytes, n, &end, &e);
		CHECK(end < 0 && got == (at < 16 ? 0 : (at - 16) / 700031));
		per_block += got;
		bytes[at] ^= 0x10;
	}
	CHECK(per_block > 0);
	free(bytes);
	free(text);
}

/* ---- Lies under a right checksum
 * ------------------------------------------------------------------------------ */

static void set_checksums(uint8_t *bytes, size_t n)
{
	uint8_t *block = bytes + PTR_HEADER_BYTES;
	size_t size = n - PTR_HEADER_BYTES - PTR_BLOCK_HEADER_BYTES;

	ptr_store_u32(block + 12, ptc_crc32c(block + PTR_BLOCK_HEADER_BYTES, size));
	ptr_store_u32(block + 16, (uint32_t)crc32(0, block, 16));
}

/* Everything in the views must be readable. */
static void read_views(const char *path)
{
	static const char *const views[] = {
	    "traces",  "branches",  "ipc",	 "errors",  "events", "functions",  "interrupts",
	    "vmexits", "vmentries", "vm_clocks", "samples", "calls",  "call_paths", "threads",
	};
	sqlite3 *db;

	CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK);
	for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
		sqlite3_stmt *st = NULL;
		char sql[64];
		int result = SQLITE_ERROR;

		snprintf(sql, sizeof sql, "SELECT * FROM %s LIMIT 5000", views[i]);
		if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK)
			while ((result = sqlite3_step(st)) == SQLITE_ROW)
				;
		CHECK(result == SQLITE_DONE);
		sqlite3_finalize(st);
	}
	sqlite3_close(db);
}

/* Loads the stream; whatever it says, the loader takes it whole or refuses it. True: loaded. */
static bool load(const uint8_t *bytes, size_t n, const char *path)
{
	int fd = file_of(bytes, n), got = -1;
	struct pt_error e = {0};
	struct pt_sink_options options = {.replace = true};
	struct ptr_reader *r = ptr_reader_create(fd, &e);
	struct pt_sink *sink = pt_sqlite_sink_create(path, &options, &e);
	struct ptr_record record;
	bool ret = false;

	CHECK(sink != NULL);
	while (r && sink && (got = ptr_next(r, &record, &e)) == 1)
		if (record.type != PTR_END && sink->ops->record(sink, &record, &e) < 0)
			break;
	if (got == 0)
		ret = sink->ops->commit(sink, &e) == 0;
	CHECK(ret || *e.message);
	if (sink)
		sink->ops->destroy(sink);
	ptr_reader_destroy(r);
	close(fd);
	return ret;
}

static void test_lies(const uint8_t *bytes, size_t n)
{
	const size_t start = PTR_HEADER_BYTES + PTR_BLOCK_HEADER_BYTES;
	uint8_t *lie = malloc(n);
	char folder[] = "/tmp/test_records.XXXXXX", path[64];
	unsigned accepted = 0, loaded = 0;

	if (!lie || !mkdtemp(folder))
		abort();
	snprintf(path, sizeof path, "%s/db", folder);
	for (int i = 0; i < 20000; i++) {
		struct pt_error e = {0};
		int end;

		memcpy(lie, bytes, n);
		for (uint64_t k = 1 + random64() % 3; k; k--)
			lie[start + random64() % (n - start)] =
			    (uint8_t)(random64() % 3 ? random64() >> 20 : random64() % 4);
		set_checksums(lie, n);
		read_all(lie, n, &end, &e);
		CHECK(end == 0 || (*e.message && (e.kind == PT_ERR_BAD_INPUT || e.kind == PT_ERR_TRUNCATED)));
		if (end != 0 || accepted++ >= 60)
			continue;
		if (load(lie, n, path)) {
			loaded++;
			read_views(path);
		}
		unlink(path);
	}
	CHECK(accepted > 60 && loaded > 30);
	CHECK(rmdir(folder) == 0);
	free(lie);
}

static void test_reasons(void)
{
	CHECK(!strcmp(pt_vm_reason_name(48), "EPT violation") &&
	      !strcmp(pt_vm_reason_kvm_name(48), "EPT_VIOLATION"));
	CHECK(!pt_vm_reason_name(35) && !pt_vm_reason_name(86) && !pt_vm_reason_name(UINT64_MAX));
	CHECK(!pt_vm_reason_kvm_name(11) && !strcmp(pt_vm_reason_name(11), "GETSEC"));
	CHECK(pt_vm_reason_find("HLT") == 12 && pt_vm_reason_find("External interrupt") == 1);
	CHECK(pt_vm_reason_find("no such") == UINT64_MAX);
	for (uint64_t i = 0; i < PT_VM_REASONS; i++)
		CHECK(!pt_vm_reason_name(i) || pt_vm_reason_find(pt_vm_reason_name(i)) == i);
	for (uint64_t i = 0; i < PT_VM_REASONS; i++)
		CHECK(!pt_vm_reason_kvm_name(i) || pt_vm_reason_find(pt_vm_reason_kvm_name(i)) == i);
}

int main(void)
{
	size_t n;
	uint8_t *bytes = sample(&n);

	test_round_trip(bytes, n);
	test_cuts(bytes, n);
	test_flips(bytes, n);
	test_extra(bytes, n);
	test_blocks();
	test_lies(bytes, n);
	test_reasons();
	free(bytes);
	return sum_up();
}
