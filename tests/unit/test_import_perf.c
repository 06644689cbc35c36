/* test_import_perf.c - perf.data files of every form, made here: what comes into the container, and
 * in which order; and files that are cut, damaged or of another kind. */
#include "capture/perfdata/order.h"
#include "tests/unit/perf_data_samples.h"
#include "tests/unit/check.h"

#ifndef FLIPS
#define FLIPS 3000
#endif

static struct perf_bytes b;

/* Imports b; the summary and the notes are what they should be. */
static void expect(const char *what, const char *note, int line)
{
	char got[4096], text[10000];
	struct imported i;

	import_bytes(b.bytes, b.count, &i);
	summary(&i, got, sizeof got);
	snprintf(text, sizeof text, "%s\n  expected %s\n  got      %s", i.ret ? i.error.message : "", what,
		 got);
	check_line(i.ret == 0 && strcmp(got, what) == 0, "EXPECT", line, text);
	if (note)
		check_line(noted(&i, note), "its note", line, note);
	imported_deinit(&i);
}
#define EXPECT(what, note) expect(what, note, __LINE__)

static void expect_error(const char *what, uint64_t offset, int line)
{
	char text[2000];
	struct imported i;

	import_bytes(b.bytes, b.count, &i);
	snprintf(text, sizeof text, "'%s', got %d '%s' at %lld", what, i.ret, i.error.message,
		 (long long)i.error.offset);
	check_line(i.ret == -1 && strstr(i.error.message, what) && i.error.offset == offset, "EXPECT_ERROR",
		   line, text);
	imported_deinit(&i);
}
#define EXPECT_ERROR(what, offset) expect_error(what, offset, __LINE__)

/* Two CPUs, whose AUX data stands before the sideband that is older; rounds; padding; a lost piece. */
static void two_cpus(void)
{
	begin_file(&b, 0);
	put_comm(&b, 5, 0, "start");
	put_comm(&b, 5, 300, "c300");
	put_auxtrace(&b, 0, "aaaabbbbcc", 10, 400, 0);
	put_auxtrace(&b, 0, "dddddddd", 8, 400, 1);
	put_round(&b);
	put_comm(&b, 5, 100, "c100");
	put_aux_record(&b, 0, 4, 0, 200, 0);
	put_aux_record(&b, 4, 6, PTC_AUX_TRUNCATED, 320, 0);
	put_aux_record(&b, 0, 8, PTC_AUX_PARTIAL, 500, 1);
	put_comm(&b, 5, 700, "c700");
	put_round(&b);
	put_auxtrace(&b, 10, "eeee", 4, 800, 0);
	put_aux_record(&b, 10, 4, 0, 800, 0);
	put_comm(&b, 5, 600, "c600");
	put_comm(&b, 5, 900, "c900");
	put_round(&b);
	end_file(&b);
}

static void test_order(void)
{
	two_cpus();
	/* Neighbours are joined (bytes 0..10 of CPU 0); what is older than a piece's end stands before it. */
	EXPECT("Cstart Cc100 Cc300 A1@0+1:aaaabbbbcc A2@0+4:dddddddd R320 Cc600 Cc700 A1@10+0:eeee Cc900 R.",
	       NULL);
}

/* Two AUX records are taken for one, whose bytes perf has read at two times: the second half may be
 * as old as the first. */
static void test_one_record_two_reads(void)
{
	begin_file(&b, 0);
	put_comm(&b, 5, 0, "start");
	put_auxtrace(&b, 0, "aaaaaaaa", 8, 200, 0);
	put_aux_record(&b, 0, 8, 0, 100, 0);
	put_comm(&b, 5, 150, "c150");
	put_auxtrace(&b, 8, "bbbbbbbb", 8, 600, 0);
	put_aux_record(&b, 8, 8, 0, 500, 0);
	put_round(&b);
	end_file(&b);
	EXPECT("Cstart Cc150 A1@0+0:aaaaaaaa A1@8+0:bbbbbbbb R.", NULL);
}

static void test_no_rounds(void)
{
	begin_file(&b, 0);
	put_comm(&b, 5, 30, "c30");
	put_comm(&b, 5, 10, "c10");
	put_auxtrace(&b, 0, "aaaaaaaa", 8, 20, 3);
	end_file(&b);
	/* No PERF_RECORD_AUX: the time when perf wrote the data is the latest that it can be of. */
	EXPECT("Cc10 A1@0+0:aaaaaaaa Cc30 R.", NULL);
}

static void test_losses(void)
{
	begin_file(&b, 0);
	put_aux_record(&b, 0, 8, 0, 50, 0);
	put_auxtrace(&b, 0, "aaaaaaaa", 8, 60, 0);
	put_aux_record(&b, 8, 0, PTC_AUX_TRUNCATED, 70, 0);
	put_aux_record(&b, 100000, 8, 0, 80, 0);
	put_auxtrace(&b, 100000, "bbbbbbbb", 8, 90, 0);
	end_file(&b);
	EXPECT("A1@0+1:aaaaaaaa R70 A1@100000+0:bbbbbbbb R.", NULL);
}

/* TSC 1000 in a PSB+. */
#define PSB_1000 "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x19\xe8\x03\0\0\0\0\0"

/* A CPU whose trace begins late is not waited for; one that begins in a guest has another TSC. */
static void test_late_begin(void)
{
	static const char *const after[] = {"\x02\x43\0\0\0\0\0\0\x02\x23", "\x02\x43\1\0\0\0\0\0\x02\x23"};

	for (int guest = 0; guest < 2; guest++) {
		char aux[64], got[4096];
		const char *late, *comm;
		struct imported i;

		memcpy(aux, PSB_1000, 24);
		memcpy(aux + 24, after[guest], 10);
		begin_file(&b, 0);
		put_auxtrace(&b, 0, aux, 34, 2000, 1);
		put_auxtrace(&b, 0, "aaaaaaaa", 8, 500, 0);
		put_comm(&b, 5, 1500, "c1500");
		end_file(&b);
		import_bytes(b.bytes, b.count, &i);
		summary(&i, got, sizeof got);
		late = strstr(got, "A2@");
		comm = strstr(got, "Cc1500");
		/* (The other one is stream 2, of the CPU that came second.) */
		CHECK(i.ret == 0 && late && comm && late < comm);
		CHECK((strstr(got, "R500") == NULL) == (guest == 1));
		imported_deinit(&i);
	}
}

/* A thread's buffer: its process is known by an AUX record, or by the thread's beginning. */
static void test_threads(void)
{
	size_t info = 112 + sizeof(struct perf_event_attr) + 16, at;
	struct imported i;

	begin_file(&b, 0);
	patch64(&b, info + 16 + 9 * 8, 0); /* not a buffer for each CPU */
	at = begin_record(&b, PERF_RECORD_FORK, 0);
	put64(&b, 5 | (uint64_t)4 << 32);
	put64(&b, 7 | (uint64_t)4 << 32);
	put64(&b, 0);
	end_kernel_record(&b, at, 4, 10, 0);
	at = b.count;
	put_auxtrace(&b, 0, "aaaaaaaa", 8, 20, UINT32_MAX);
	memcpy(b.bytes + at + 36, &(uint32_t){7}, 4);
	end_file(&b);
	import_bytes(b.bytes, b.count, &i);
	CHECK(i.ret == 0 && stream_of(&i, 1).tid == 7);
	CHECK(stream_of(&i, 1).pid == 5 && stream_of(&i, 1).cpu == -1);
	imported_deinit(&i);
}

/* 300 bytes of which no 16 in a row are twice there. */
static void noise(char *to, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1103515245 + 12345;
		to[i] = (char)('a' + (seed >> 16) % 26);
	}
}

/* A PSB with its TSC: by it an overlap is known to be none by chance. */
#define PSB_TSC                                                                                              \
	"\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x19"                               \
	"1234567\x02\x23"

static void test_snapshots(void)
{
	char all[2000], got[4096], expected[4096];
	struct imported i;

	noise(all, sizeof all, 1);
	memcpy(all + 500, PSB_TSC, sizeof PSB_TSC - 1);
	begin_file(&b, 0);
	b.count -= 160;
	put_info(&b, 1, true);
	put_auxtrace(&b, 0, all, 800, 100, 0);
	/* The second has the last 400 bytes of the first; its offset says nothing. The third has
	 * nothing of it. */
	put_auxtrace(&b, 0, all + 400, 800, 200, 0);
	noise(all + 1200, 800, 99);
	put_auxtrace(&b, 16, all + 1200, 800, 300, 0);
	end_file(&b);
	import_bytes(b.bytes, b.count, &i);
	summary(&i, got, sizeof got);
	snprintf(expected, sizeof expected, "A1@0+2:%.64s R100 A1@800+2:%.64s R200 A1@1216+2:%.64s R.", all,
		 all + 800, all + 1200);
	CHECK(i.ret == 0);
	CHECK(strcmp(got, expected) == 0);
	imported_deinit(&i);
	/* A buffer that has not yet wrapped: what follows goes on where the last ended. */
	begin_file(&b, 0);
	b.count -= 160;
	put_info(&b, 1, true);
	put_auxtrace(&b, 0, "aaaaaaaa", 8, 100, 0);
	put_auxtrace(&b, 8, "bbbbbbbb", 8, 200, 0);
	end_file(&b);
	EXPECT("A1@0+2:aaaaaaaa R100 A1@8+2:bbbbbbbb R.", NULL);
}

/* A buffer of 4096 bytes that is overwritten, with a snapshot of 8 bytes at time 100; then the kernel writes
 * that the hardware stopped at `offset`. */
static void snapshot_then_stopped(uint64_t offset, uint64_t time_ns)
{
	begin_file(&b, 0);
	b.count -= 160;
	put_info(&b, 1, true);
	put_aux_record(&b, 0x108, 4096, PTC_AUX_OVERWRITE, 90, 0);
	put_auxtrace(&b, 0x5100, "aaaaaaaa", 8, 100, 0);
	put_aux_record(&b, offset, 4096, PTC_AUX_OVERWRITE, time_ns, 0);
	end_file(&b);
}

/* What was traced after the last snapshot is lost, and is said to be. */
static void test_after_the_last_snapshot(void)
{
	snapshot_then_stopped(0x110, 110);
	EXPECT("A1@0+2:aaaaaaaa R100 A1@24+2: R.", NULL);
	snapshot_then_stopped(0x108, 110);
	EXPECT("A1@0+2:aaaaaaaa R.", NULL); /* it ran, and wrote nothing */
	snapshot_then_stopped(0x110, 95);
	EXPECT("A1@0+2:aaaaaaaa R.", NULL); /* before the snapshot */
	begin_file(&b, 0);
	b.count -= 160;
	put_info(&b, 1, true);
	put_aux_record(&b, 0x108, 4096, PTC_AUX_OVERWRITE, 90, 0);
	end_file(&b);
	EXPECT("A1@16+2: R.", NULL); /* no snapshot at all */
}

static void put_aux_sample(uint64_t time_ns, uint32_t cpu, const char *bytes, size_t n)
{
	size_t at = begin_record(&b, PERF_RECORD_SAMPLE, 2);

	put64(&b, SAMPLE_ID);
	put64(&b, 5 | (uint64_t)5 << 32);
	put64(&b, time_ns);
	put64(&b, cpu);
	put64(&b, n);
	put(&b, bytes, n);
	end_record(&b, at);
}

static void test_aux_samples(void)
{
	begin_file(&b, PERF_SAMPLE_AUX);
	put_aux_sample(20, 1, "abcdef" PSB_TSC, 32);
	put_aux_sample(10, 0, "01234567", 8);
	put_comm(&b, 5, 15, "c15");
	put_aux_sample(30, 1, "ef" PSB_TSC "ABCD", 32);
	/* The kernel's buffer, which perf reads only through samples, makes no stream. */
	put_aux_record(&b, 0x108, 4096, PTC_AUX_OVERWRITE, 35, 0);
	/* Equal bytes without time are no overlap. */
	put_aux_sample(40, 1, "ABCD????", 8);
	end_file(&b);
	EXPECT("A1@0+2:01234567 Cc15 A2@0+2:abcdef" PSB_TSC " A2@32+2:ABCD A2@52+2:ABCD???? R.", NULL);
	begin_file(&b, PERF_SAMPLE_AUX);
	put_aux_sample(20, 1, "abcdefgh", 8);
	patch64(&b, b.count - 16, 9); /* one more than there is */
	end_file(&b);
	EXPECT_ERROR("ends too early", b.count - 28 - 56);
}

static void put_compressed(const uint8_t *bytes, size_t n, ZSTD_CCtx *zstd, bool second)
{
	size_t at = begin_record(&b, second ? PERF_USER_COMPRESSED2 : PERF_USER_COMPRESSED, 0), from;
	ZSTD_inBuffer in = {bytes, n, 0};
	ZSTD_outBuffer out;

	if (second)
		put64(&b, 0);
	from = b.count;
	out = (ZSTD_outBuffer){b.bytes + from, 60000, 0};
	ZSTD_compressStream2(zstd, &out, &in, ZSTD_e_flush);
	b.count += out.pos;
	if (second)
		patch64(&b, from - 8, out.pos);
	while (second && b.count % 8)
		b.bytes[b.count++] = 0;
	end_record(&b, at);
}

static void test_compressed(void)
{
	static struct perf_bytes inner;
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	size_t cut;

	inner.count = 0;
	put_comm(&inner, 5, 20, "c20");
	cut = inner.count + 11; /* within a record */
	put_comm(&inner, 5, 10, "c10");
	put_comm(&inner, 5, 40, "c40");
	begin_file(&b, 0);
	put_compressed(inner.bytes, cut, zstd, false);
	put_comm(&b, 5, 30, "c30");
	put_compressed(inner.bytes + cut, inner.count - cut, zstd, true);
	end_file(&b);
	EXPECT("Cc10 Cc20 Cc30 Cc40 R.", NULL);
	begin_file(&b, 0);
	ZSTD_CCtx_reset(zstd, ZSTD_reset_session_only);
	cut = b.count;
	put_compressed(inner.bytes, 11, zstd, false);
	end_file(&b);
	EXPECT_ERROR("ends inside a compressed record", cut);
	memset(b.bytes + cut + 8, 0xee, 8);
	EXPECT_ERROR("broken compressed record", cut);
	ZSTD_freeCCtx(zstd);
}

static void test_pipe(void)
{
	struct perf_event_attr attr = {.type = SAMPLE_PMU,
				       .size = sizeof attr,
				       .config = 0x300e601,
				       .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
						      PERF_SAMPLE_IDENTIFIER,
				       .sample_id_all = 1};
	size_t at;

	b.count = 0;
	put(&b, "PERFILE2", 8);
	put64(&b, 16);
	at = begin_record(&b, PERF_USER_HEADER_ATTR, 0);
	put(&b, &attr, sizeof attr);
	put64(&b, SAMPLE_ID);
	end_record(&b, at);
	put_info(&b, 1, false);
	put_comm(&b, 5, 10, "c10");
	put_auxtrace(&b, 0, "aaaaaaaa", 8, 20, 0);
	put_comm(&b, 5, 30, "c30");
	EXPECT("Cc10 A1@0+0:aaaaaaaa Cc30 R.", "no code of the kernel");
}

static void test_other_files(void)
{
	size_t at, data = 112 + sizeof(struct perf_event_attr) + 16;

	two_cpus();
	memcpy(b.bytes, "2ELIFREP", 8);
	EXPECT_ERROR("big-endian", 0);
	memcpy(b.bytes, "PERFFILE", 8);
	EXPECT_ERROR("before 2009", 0);
	memcpy(b.bytes, "\x7f\x45LF1234", 8);
	EXPECT_ERROR("not a perf.data", 0);
	two_cpus();
	patch64(&b, 8, 105);
	EXPECT_ERROR("a header of 105 bytes", 8);
	begin_file(&b, 0);
	b.count = data;
	put_info(&b, 3, false);
	end_file(&b);
	EXPECT_ERROR("another kind than Intel PT (type 3)", PT_NO_OFFSET);
	begin_file(&b, 0);
	b.count = data;
	put_comm(&b, 5, 10, "c10");
	end_file(&b);
	EXPECT("Cc10 R.", "no Intel PT");
	/* Records that nobody knows yet. */
	begin_file(&b, 0);
	at = begin_record(&b, 60, 0);
	end_kernel_record(&b, at, 5, 5, 0);
	at = begin_record(&b, 4711, 0);
	put64(&b, 0);
	end_record(&b, at);
	put_comm(&b, 5, 10, "c10");
	end_file(&b);
	EXPECT("Cc10 R.", "1 records of type 60 were skipped");
	EXPECT("Cc10 R.", "1 records of type 255 and above were skipped");
	/* What perf 7.2 adds for itself (BPF_METADATA, SCHEDSTAT_*) is no news of a trace. */
	begin_file(&b, 0);
	for (uint32_t type = 84; type <= 86; type++) {
		at = begin_record(&b, type, 0);
		put64(&b, 0);
		end_record(&b, at);
	}
	put_comm(&b, 5, 10, "c10");
	put_auxtrace(&b, 0, "aaaaaaaa", 8, 20, 0);
	end_file(&b);
	EXPECT("Cc10 A1@0+0:aaaaaaaa R.", NULL);
	/* perf was killed: no size of the data, and the last record is cut. */
	begin_file(&b, 0);
	put_comm(&b, 5, 10, "c10");
	put_auxtrace(&b, 0, "aaaaaaaa", 8, 20, 0);
	put_comm(&b, 5, 30, "c30");
	b.count -= 5;
	EXPECT("Cc10 A1@0+0:aaaaaaaa R.", "was not finished");
}

static FILE *create(const char *folder, const char *name)
{
	char path[100];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return fopen(path, "w");
}

/* `perf record --threads`: two files, each in order, and each longer than what is kept to be put in order. */
static void test_threads_files(void)
{
	enum { ROUNDS = 1000, BYTES = 60000 };
	char folder[] = "/tmp/pt-test.XXXXXX", path[100];
	static const char *const names[] = {"data", "data.0", "data.1"};
	const struct ordered_record *first;
	struct perf_order *order = NULL;
	struct perf_file file = {0};
	struct pt_error e = {0};
	uint64_t last = 0, count = 0, back = 0;
	FILE *f;

	if (!mkdtemp(folder))
		abort();
	for (int i = 0; i < 3; i++) {
		f = create(folder, names[i]);
		if (!f)
			abort();
		begin_file(&b, 0);
		if (i == 0) {
			end_file(&b);
			fwrite(b.bytes, 1, b.count, f);
		}
		for (uint64_t k = 1; i && k <= ROUNDS; k++) {
			size_t at;

			b.count = 0;
			at = begin_record(&b, 60, 0);
			memset(b.bytes + b.count, 0, BYTES);
			b.count += BYTES;
			end_kernel_record(&b, at, 5, 10 * k + (uint64_t)i, (uint32_t)i);
			fwrite(b.bytes, 1, b.count, f);
		}
		fclose(f);
	}
	CHECK(perf_file_open(&file, folder, &e) == 0 && file.parts == 3);
	if (file.parts)
		order = perf_order_create(&file);
	while (order && perf_order_peek(order, &first, &e) > 0) {
		back += first->stamp.time_ns < last;
		last = first->stamp.time_ns;
		count++;
		free(perf_order_take(order));
	}
	CHECK(count == 2 * ROUNDS);
	CHECK(last == 10 * ROUNDS + 2);
	CHECK(back == 0 && order && perf_order_late(order) == 0);
	perf_order_destroy(order);
	perf_file_close(&file);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

/* Not one cut goes unnoticed, and each error has its place. */
static void test_cuts(void)
{
	size_t whole;
	unsigned bad = 0;

	two_cpus();
	whole = b.count;
	for (size_t n = 0; n < whole; n++) {
		struct imported i;

		import_bytes(b.bytes, n, &i);
		if (i.ret != -1 || !i.error.message[0] || i.error.offset > whole)
			bad++;
		imported_deinit(&i);
	}
	CHECK(bad == 0);
}

/* What comes of a damaged file is a container or an error, never anything else. */
static void try_damaged(unsigned *bad)
{
	struct imported i;
	char got[8192] = "";

	import_bytes(b.bytes, b.count, &i);
	if (i.ret == 0)
		summary(&i, got, sizeof got);
	if (i.ret == 0 ? strncmp(got, "not a container", 15) == 0 : !i.error.message[0])
		(*bad)++;
	imported_deinit(&i);
}

static void test_extremes(void)
{
	static const uint64_t extremes[] = {
	    0, 1, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff, 0xfffffffffffffff8, UINT64_MAX};
	static struct perf_bytes good;
	unsigned bad = 0;

	two_cpus();
	good = b;
	for (size_t at = 8; at + 8 <= good.count; at += 8)
		for (size_t x = 0; x < sizeof extremes / sizeof *extremes; x++) {
			b = good;
			patch64(&b, at, extremes[x]);
			try_damaged(&bad);
			b = good;
			memcpy(b.bytes + at + 6, &extremes[x], 2); /* a record's size */
			try_damaged(&bad);
		}
	CHECK(bad == 0);
}

static void test_flips(void)
{
	static struct perf_bytes good;
	unsigned bad = 0;
	uint32_t seed = 1;

	two_cpus();
	good = b;
	for (unsigned n = 0; n < FLIPS; n++) {
		b = good;
		for (unsigned k = 0; k < 1 + n % 4; k++) {
			seed = seed * 1664525 + 1013904223;
			b.bytes[seed / 8 % b.count] ^= (uint8_t)(1 << seed % 8);
		}
		try_damaged(&bad);
	}
	CHECK(bad == 0);
}

int main(void)
{
	test_order();
	test_one_record_two_reads();
	test_no_rounds();
	test_losses();
	test_late_begin();
	test_threads();
	test_snapshots();
	test_after_the_last_snapshot();
	test_aux_samples();
	test_compressed();
	test_pipe();
	test_other_files();
	test_threads_files();
	test_cuts();
	test_extremes();
	test_flips();
	return sum_up();
}
