/* test_container.c - the container's writer and reader: round trips, splits, every cut, every flipped bit. */
#include "schema/container.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

static unsigned passed, failed;

static void check(bool good, int line, const char *what)
{
	if (good) {
		passed++;
		return;
	}
	failed++;
	if (failed < 50)
		printf("test_container.c:%d: failed: %s\n", line, what);
}

#define CHECK(condition) check((condition), __LINE__, #condition)

static uint64_t random_state = 88172645463325252u;

static uint64_t random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void fill_random(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(random64() >> 32);
}

static int memory_file(void)
{
	int fd = memfd_create("container", MFD_CLOEXEC);

	if (fd < 0) {
		perror("memfd_create");
		exit(1);
	}
	return fd;
}

static int file_of(const uint8_t *bytes, size_t n)
{
	int fd = memory_file();

	if (write(fd, bytes, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET) != 0) {
		perror("write");
		exit(1);
	}
	return fd;
}

static uint8_t *content(int fd, size_t *ret_bytes)
{
	off_t n = lseek(fd, 0, SEEK_END);
	uint8_t *bytes = malloc((size_t)n);

	if (!bytes || pread(fd, bytes, (size_t)n, 0) != n) {
		perror("pread");
		exit(1);
	}
	*ret_bytes = (size_t)n;
	return bytes;
}

/* ---- All types, there and back ---- */

static const uint64_t ids[] = {7, 0x1122334455667788u};
static const uint8_t build_id[20] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
static const uint8_t records[] = {3, 0, 0, 0, 2, 0, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, /* one record */
				  4, 0, 0, 0, 0, 0, 8,	0};			   /* another */
static const struct ptc_symbol symbols[] = {
    {0x401000, 16, 0, 'T'}, {0x401010, 0, 5, 't'}, {0xffffffff81000000u, 99, 0, 'W'}};

static struct ptc_image test_image(void)
{
	return (struct ptc_image){.kind = PTC_IMAGE_FILE,
				  .machine_pid = 77,
				  .pid = PTC_ANY_PID,
				  .offset = 0x1000,
				  .vaddr = 0x401000,
				  .time_ns = 5,
				  .build_id = build_id,
				  .build_id_bytes = 20,
				  .name = "/bin/true",
				  .name_bytes = 9,
				  .bytes = (const uint8_t *)"\x90\x90\xc3",
				  .size = 3};
}

/* A small container with every type. Its length. */
static void write_all_types(int fd)
{
	struct pt_error e;
	struct ptc_writer *w = ptc_writer_create(fd, 3, &e);
	struct ptc_stream stream = {.cpu = 3, .pid = -1, .tid = -1, .attr = 0, .snapshot = 0};
	struct ptc_image image = test_image();
	struct ptc_symbols s = {.machine_pid = 77,
				.pid = PTC_ANY_PID,
				.absolute = 1,
				.count = 3,
				.build_id = build_id,
				.build_id_bytes = 20,
				.name = "/bin/true",
				.name_bytes = 9,
				.symbols = symbols,
				.strings = "main\0exit",
				.strings_bytes = 10};

	CHECK(w != NULL);
	CHECK(ptc_put_meta(w, "command", "a\nb\\n=c", &e) == 0);
	CHECK(ptc_put_metaf(w, &e, "mtc_freq", "%d", 3) == 0);
	CHECK(ptc_put_attr(w, "intel_pt//u", "0123456789", 10, ids, 2, &e) == 0);
	CHECK(ptc_put_stream(w, &stream, &e) == 1);
	stream.snapshot = 1;
	CHECK(ptc_put_stream(w, &stream, &e) == 2);
	CHECK(ptc_put_image(w, &image, &e) == 0);
	CHECK(ptc_put_symbols(w, &s, &e) == 0);
	CHECK(ptc_put_sideband(w, 9, records, sizeof records, &e) == 0);
	CHECK(ptc_put_meta(w, "command", "second", &e) == 0);
	CHECK(ptc_put_aux(w, 1, 100, PTC_AUX_PARTIAL, 1234, "abcdef", 6, &e) == 0);
	CHECK(ptc_put_aux(w, 1, 106, PTC_AUX_TRUNCATED, 0, NULL, 0, &e) == 0);
	CHECK(ptc_put_aux(w, 2, 50, 0, 0, "xyz", 3, &e) == 0);
	CHECK(ptc_put_aux(w, 2, 40, 0, 0, "uvw", 3, &e) == 0);
	CHECK(ptc_put_round(w, 4321, &e) == 0);
	CHECK(ptc_writer_finish(w, &e) == 0);
	CHECK(ptc_writer_bytes(w) == (uint64_t)lseek(fd, 0, SEEK_END));
	ptc_writer_destroy(w);
}

static bool next_is(struct ptc_reader *r, struct ptc_chunk *c, enum ptc_type type, uint32_t stream)
{
	struct pt_error e;

	return ptc_next(r, c, &e) == 1 && c->type == type && c->stream == stream;
}

static void read_image_and_symbols(struct ptc_reader *r)
{
	struct ptc_image image, want = test_image();
	struct ptc_symbols s;
	struct ptc_symbol symbol;
	struct ptc_chunk c;
	struct pt_error e;

	CHECK(next_is(r, &c, PTC_IMAGE, 0) && ptc_parse_image(&c, &image, &e) == 0);
	CHECK(image.kind == want.kind && image.machine_pid == 77 && image.pid == -1 && image.continues == 0);
	CHECK(image.offset == want.offset && image.vaddr == want.vaddr && image.time_ns == 5);
	CHECK(image.build_id_bytes == 20 && memcmp(image.build_id, build_id, 20) == 0);
	CHECK(image.name_bytes == 9 && memcmp(image.name, "/bin/true", 9) == 0);
	CHECK(image.size == 3 && memcmp(image.bytes, want.bytes, 3) == 0);
	CHECK(next_is(r, &c, PTC_SYMBOLS, 0) && ptc_parse_symbols(&c, &s, &e) == 0);
	CHECK(s.machine_pid == 77 && s.pid == -1 && s.absolute == 1 && s.count == 3 && s.name_bytes == 9);
	CHECK(s.build_id_bytes == 20 && s.strings[s.strings_bytes - 1] == 0);
	for (uint32_t i = 0; i < 3; i++) {
		memcpy(&symbol, (const uint8_t *)s.symbols + i * sizeof symbol, sizeof symbol);
		CHECK(symbol.value == symbols[i].value && symbol.size == symbols[i].size);
		CHECK(symbol.type == symbols[i].type &&
		      strcmp(s.strings + symbol.name, i == 1 ? "exit" : "main") == 0);
	}
}

static void read_aux(struct ptc_reader *r, uint32_t stream, uint64_t seq, uint64_t offset, uint64_t flags,
		     uint64_t time_ns, const char *bytes)
{
	struct ptc_chunk c;
	struct ptc_aux aux;
	struct pt_error e;

	CHECK(next_is(r, &c, PTC_AUX, stream) && ptc_parse_aux(&c, &aux, &e) == 0);
	CHECK(aux.seq == seq && aux.aux_offset == offset && aux.flags == flags && aux.time_ns == time_ns);
	CHECK(aux.size == strlen(bytes) && memcmp(aux.bytes, bytes, aux.size) == 0);
}

static void test_all_types(void)
{
	int fd = memory_file();
	struct ptc_meta *meta = ptc_meta_create();
	struct ptc_reader *r;
	struct ptc_stream stream;
	struct ptc_attr attr;
	struct ptc_chunk c;
	struct pt_error e;
	const char *key, *value;
	const uint8_t *p;
	uint64_t size, ns;
	uint32_t index;

	write_all_types(fd);
	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	CHECK(r != NULL);
	CHECK(next_is(r, &c, PTC_META, 0) && ptc_meta_add(meta, &c, &e) == 0);
	CHECK(strcmp(ptc_meta_get(meta, "command"), "a\nb\\n=c") == 0);
	CHECK(next_is(r, &c, PTC_ATTR, 0) && ptc_parse_attr(&c, &attr, &e) == 0);
	CHECK(attr.index == 0 && attr.name_bytes == 11 && memcmp(attr.name, "intel_pt//u", 11) == 0);
	CHECK(attr.attr_bytes == 10 && memcmp(attr.attr, "0123456789", 10) == 0);
	CHECK(attr.count == 2 && memcmp(attr.ids, ids, 16) == 0);
	CHECK(next_is(r, &c, PTC_STREAM, 1) && ptc_parse_stream(&c, &stream, &e) == 0);
	CHECK(stream.cpu == 3 && stream.pid == -1 && stream.tid == -1 && stream.attr == 0 &&
	      !stream.snapshot);
	CHECK(next_is(r, &c, PTC_STREAM, 2) && ptc_parse_stream(&c, &stream, &e) == 0 &&
	      stream.snapshot == 1);
	read_image_and_symbols(r);
	CHECK(next_is(r, &c, PTC_SIDEBAND, 0) && ptc_parse_sideband(&c, &index, &p, &size, &e) == 0);
	CHECK(index == 9 && size == sizeof records && memcmp(p, records, size) == 0);
	CHECK(next_is(r, &c, PTC_META, 0) && ptc_meta_add(meta, &c, &e) == 0);
	read_aux(r, 1, 0, 100, PTC_AUX_PARTIAL, 1234, "abcdef");
	read_aux(r, 1, 1, 106, PTC_AUX_TRUNCATED, 0, "");
	read_aux(r, 2, 0, 50, 0, 0, "xyz");
	read_aux(r, 2, 1, 40, 0, 0, "uvw");
	CHECK(next_is(r, &c, PTC_ROUND, 0) && ptc_parse_round(&c, &ns, &e) == 0 && ns == 4321);
	CHECK(next_is(r, &c, PTC_END, 0));
	CHECK(ptc_next(r, &c, &e) == 0 && ptc_next(r, &c, &e) == 0);
	CHECK(strcmp(ptc_meta_get(meta, "command"), "second") == 0);
	CHECK(ptc_meta_number(meta, "mtc_freq", 9) == 3 && ptc_meta_number(meta, "command", 9) == 9);
	CHECK(ptc_meta_get(meta, "other") == NULL && ptc_meta_number(meta, "other", 8) == 8);
	CHECK(ptc_meta_pair(meta, 0, &key, &value) && strcmp(key, "command") == 0 &&
	      strcmp(value, "second") == 0);
	CHECK(ptc_meta_pair(meta, 1, &key, &value) && strcmp(key, "mtc_freq") == 0 &&
	      strcmp(value, "3") == 0);
	CHECK(!ptc_meta_pair(meta, 2, &key, &value));
	ptc_reader_destroy(r);
	ptc_meta_destroy(meta);
	close(fd);
}

/* ---- META ---- */

static int add_meta(struct ptc_meta *m, const char *lines, size_t n)
{
	struct ptc_chunk c = {.type = PTC_META, .data = (const uint8_t *)lines, .size = n};
	struct pt_error e = {0};
	int ret = ptc_meta_add(m, &c, &e);

	CHECK(ret == 0 || (ret == -1 && e.kind == PT_ERR_BAD_INPUT));
	return ret;
}

#define ADD_META(m, lines) add_meta((m), lines, sizeof(lines) - 1)

static void test_meta(void)
{
	struct ptc_meta *m = ptc_meta_create();
	char *line = malloc(1 << 20);
	int ret = 0;

	CHECK(ADD_META(m, "a=0x1f\nb=\nc=-5\nd= 5\ne=5x\nf=0x\ng=99999999999999999999\nh=x=y\\\\n\\n\\\n") ==
	      0);
	CHECK(ptc_meta_number(m, "a", 1) == 0x1f && ptc_meta_number(m, "b", 1) == 1);
	CHECK(ptc_meta_number(m, "c", 1) == (uint64_t)-5 && ptc_meta_number(m, "d", 1) == 1);
	CHECK(ptc_meta_number(m, "e", 1) == 1 && ptc_meta_number(m, "f", 1) == 1 &&
	      ptc_meta_number(m, "g", 1) == 1);
	CHECK(strcmp(ptc_meta_get(m, "h"), "x=y\\n\n\\") == 0 && strcmp(ptc_meta_get(m, "b"), "") == 0);
	CHECK(ADD_META(m, "no equals\n") == -1);
	CHECK(ADD_META(m, "=value\n") == -1);
	CHECK(ADD_META(m, "a=no newline") == -1);
	CHECK(ADD_META(m, "a=\0\n") == -1);
	CHECK(ADD_META(m, "\n") == -1);
	CHECK(ADD_META(m, "") == 0);
	for (int i = 0; i <= PTC_META_MAX && ret == 0; i++) {
		snprintf(line, 100, "key%d=1\n", i);
		ret = add_meta(m, line, strlen(line));
	}
	CHECK(ret == -1);
	ptc_meta_destroy(m);
	/* One key again and again: memory must not grow for ever either. */
	m = ptc_meta_create();
	memset(line, 'x', 1 << 20);
	line[1] = '=';
	line[(1 << 20) - 1] = '\n';
	ret = 0;
	for (int i = 0; i < 100 && ret == 0; i++)
		ret = add_meta(m, line, 1 << 20);
	CHECK(ret == -1);
	ptc_meta_destroy(m);
	free(line);
	ptc_meta_destroy(NULL);
	ptc_reader_destroy(NULL);
	ptc_writer_destroy(NULL);
}

/* ---- What is longer than a chunk ---- */

static uint8_t *big;
#define BIG ((size_t)40 << 20)

static void make_big(void)
{
	big = malloc(BIG);
	if (!big)
		exit(1);
	fill_random(big, 1 << 20);
	for (size_t i = 1 << 20; i < BIG; i += 1 << 20)
		memcpy(big + i, big, 1 << 20);
}

/* Records of sizes 8, 16, 24..., up to about 20 MiB. */
static uint8_t *make_records(size_t *ret_bytes)
{
	uint8_t *p = calloc(1, 21 << 20);
	size_t at = 0;

	for (uint16_t size = 8; at + size<20u << 20; size = size> 60000 ? 8 : (uint16_t)(size + 8)) {
		memcpy(p + at + 6, &size, 2);
		at += size;
	}
	*ret_bytes = at;
	return p;
}

/* 700,000 symbols: 16 MiB without their names. */
static void put_many_symbols(struct ptc_writer *w)
{
	const uint32_t count = 700000;
	struct ptc_symbol *many = calloc(count, sizeof *many);
	struct ptc_symbols s = {.count = count, .name = "n", .name_bytes = 1, .symbols = many};
	char *strings = malloc((size_t)count * 12);
	size_t at = 0;
	struct pt_error e;

	for (uint32_t i = 0; i < count; i++) {
		many[i] = (struct ptc_symbol){i, i, (uint32_t)at, 'T'};
		at += (size_t)sprintf(strings + at, "s%u", i) + 1;
	}
	s.strings = strings;
	s.strings_bytes = at;
	CHECK(ptc_put_symbols(w, &s, &e) == 0);
	free(strings);
	free(many);
}

static void read_many_symbols(struct ptc_reader *r)
{
	uint32_t got = 0, chunks = 0;
	bool good = true;

	while (got < 700000) {
		struct ptc_chunk c;
		struct ptc_symbols s;
		struct pt_error e;

		if (!next_is(r, &c, PTC_SYMBOLS, 0) || ptc_parse_symbols(&c, &s, &e) || s.count == 0) {
			good = false;
			break;
		}
		for (uint32_t i = 0; i < s.count; i++, got++) {
			struct ptc_symbol symbol;
			char name[20];

			memcpy(&symbol, (const uint8_t *)s.symbols + i * sizeof symbol, sizeof symbol);
			sprintf(name, "s%u", got);
			good = good && symbol.value == got && strcmp(s.strings + symbol.name, name) == 0;
		}
		chunks++;
	}
	CHECK(good && got == 700000 && chunks == 2);
}

static void test_splits(void)
{
	struct ptc_stream stream = {.cpu = -1, .pid = 1, .tid = 1, .attr = UINT32_MAX};
	struct ptc_image image = test_image();
	int fd = memory_file();
	struct pt_error e;
	struct ptc_writer *w = ptc_writer_create(fd, -5, &e);
	struct ptc_reader *r;
	struct ptc_chunk c;
	uint64_t done = 0, size;
	size_t record_bytes;
	uint8_t *many = make_records(&record_bytes);
	char *value = malloc(200000);
	const uint8_t *p;
	uint32_t index;

	memset(value, '\\', 199999);
	value[199999] = 0;
	image.bytes = big;
	image.size = BIG;
	for (int i = 0; i < 100; i++)
		CHECK(ptc_put_metaf(w, &e, i % 2 ? "x" : "y", "%s", value) == 0);
	CHECK(ptc_put_stream(w, &stream, &e) == 1);
	CHECK(ptc_put_image(w, &image, &e) == 0);
	put_many_symbols(w);
	CHECK(ptc_put_sideband(w, 0, many, record_bytes, &e) == 0);
	CHECK(ptc_put_aux(w, 1, 7, PTC_AUX_TRUNCATED | PTC_AUX_PARTIAL, 5, big, BIG, &e) == 0);
	CHECK(ptc_writer_finish(w, &e) == 0);
	ptc_writer_destroy(w);

	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	do
		CHECK(ptc_next(r, &c, &e) == 1 && c.size <= PTC_CHUNK_MAX);
	while (c.type == PTC_META);
	CHECK(c.type == PTC_STREAM);
	for (done = 0; done < BIG; done += image.size) {
		CHECK(next_is(r, &c, PTC_IMAGE, 0) && ptc_parse_image(&c, &image, &e) == 0 && image.size > 0);
		CHECK(image.continues == (done > 0) && image.offset == 0x1000 + done &&
		      image.vaddr == 0x401000 + done);
		CHECK(memcmp(image.bytes, big + done, image.size) == 0);
	}
	read_many_symbols(r);
	for (done = 0; done < record_bytes; done += size) {
		CHECK(next_is(r, &c, PTC_SIDEBAND, 0) && ptc_parse_sideband(&c, &index, &p, &size, &e) == 0 &&
		      size > 0);
		CHECK(memcmp(p, many + done, size) == 0);
	}
	for (done = 0; done < BIG;) {
		struct ptc_aux aux = {0};

		CHECK(next_is(r, &c, PTC_AUX, 1) && ptc_parse_aux(&c, &aux, &e) == 0 && aux.size > 0);
		CHECK(aux.aux_offset == 7 + done && memcmp(aux.bytes, big + done, aux.size) == 0);
		done += aux.size;
		CHECK(aux.flags == (done == BIG ? PTC_AUX_TRUNCATED | PTC_AUX_PARTIAL : PTC_AUX_PARTIAL));
	}
	CHECK(next_is(r, &c, PTC_END, 0) && ptc_next(r, &c, &e) == 0);
	ptc_reader_destroy(r);
	free(many);
	free(value);
	close(fd);
}

static void test_refusals(void)
{
	struct ptc_stream stream = {.cpu = 0};
	uint8_t bad_records[8] = {1, 0, 0, 0, 0, 0, 7, 0};
	struct ptc_image image = test_image();
	int fd = memory_file();
	struct pt_error e = {0};
	struct ptc_writer *w = ptc_writer_create(fd, 1, &e);

	CHECK(ptc_put_aux(w, 1, 0, 0, 0, "x", 1, &e) == -1 && e.kind == PT_ERR_REFUSED);
	CHECK(ptc_put_stream(w, &stream, &e) == 1);
	CHECK(ptc_put_aux(w, 1, 10, 0, 0, "x", 1, &e) == 0);
	CHECK(ptc_put_aux(w, 1, 10, 0, 0, "x", 1, &e) == -1 && e.kind == PT_ERR_REFUSED);
	CHECK(ptc_put_aux(w, 1, UINT64_MAX, 0, 0, "x", 1, &e) == -1 && e.kind == PT_ERR_REFUSED);
	CHECK(ptc_put_aux(w, 0, 20, 0, 0, "x", 1, &e) == -1);
	CHECK(ptc_put_meta(w, "a=b", "", &e) == -1 && ptc_put_meta(w, "", "", &e) == -1);
	CHECK(ptc_put_sideband(w, 0, bad_records, 8, &e) == -1 && e.kind == PT_ERR_REFUSED);
	CHECK(ptc_put_sideband(w, 0, records, sizeof records - 1, &e) == -1);
	image.build_id_bytes = 21;
	CHECK(ptc_put_image(w, &image, &e) == -1 && e.kind == PT_ERR_REFUSED);
	ptc_writer_destroy(w);
	close(fd);
}

/* ---- Pipes and full disks ---- */

static void test_pipe(void)
{
	struct ptc_stream stream = {.cpu = 0};
	struct pt_error e = {0};
	struct ptc_reader *r;
	struct ptc_writer *w;
	struct ptc_chunk c;
	uint64_t got = 0;
	int ends[2], status;
	pid_t child;

	/* Non-blocking ends and a tiny buffer: short reads and writes, EAGAIN. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
		exit(1);
	child = fork();
	if (child == 0) {
		close(ends[0]);
		w = ptc_writer_create(ends[1], 1, &e);
		if (!w || ptc_put_stream(w, &stream, &e) != 1 || ptc_put_aux(w, 1, 0, 0, 0, big, BIG, &e) ||
		    ptc_writer_finish(w, &e))
			_exit(1);
		_exit(0);
	}
	close(ends[1]);
	r = ptc_reader_create(ends[0], &e);
	CHECK(r != NULL);
	while (r && ptc_next(r, &c, &e) == 1) {
		CHECK(c.type != PTC_INDEX);
		if (c.type == PTC_AUX)
			got += c.size - 32;
		if (c.type == PTC_END)
			CHECK(ptc_reader_bytes(r) > c.offset);
	}
	CHECK(got == BIG);
	ptc_reader_destroy(r);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(read(ends[0], &status, 1) == 0); /* no index behind the end */
	close(ends[0]);

	if (pipe(ends))
		exit(1);
	close(ends[0]);
	CHECK(ptc_writer_create(ends[1], 1, &e) == NULL && e.kind == PT_ERR_CLOSED);
	close(ends[1]);
	ends[0] = open("/dev/full", O_WRONLY);
	if (ends[0] >= 0) {
		CHECK(ptc_writer_create(ends[0], 1, &e) == NULL && e.kind == PT_ERR_IO);
		CHECK(strstr(e.message, strerror(ENOSPC)) != NULL);
		close(ends[0]);
	}
	CHECK(ptc_reader_create(-1, &e) == NULL && e.kind == PT_ERR_IO);
}

/* ---- Damage ---- */

struct chunk_copy {
	enum ptc_type type;
	uint32_t stream;
	uint64_t offset, end;
	uint8_t *data;
	size_t size;
};

/* What a good container holds. */
static struct chunk_copy *copy_chunks(const uint8_t *bytes, size_t n, size_t *ret_count)
{
	int fd = file_of(bytes, n);
	struct pt_error e;
	struct ptc_reader *r = ptc_reader_create(fd, &e);
	struct chunk_copy *copies = NULL;
	struct ptc_chunk c;
	size_t count = 0;

	while (r && ptc_next(r, &c, &e) == 1) {
		copies = realloc(copies, (count + 1) * sizeof *copies);
		copies[count] = (struct chunk_copy){
		    c.type, c.stream, c.offset, ptc_reader_bytes(r), malloc(c.size + 1), c.size};
		memcpy(copies[count++].data, c.data, c.size);
	}
	ptc_reader_destroy(r);
	close(fd);
	*ret_count = count;
	return copies;
}

static void free_chunks(struct chunk_copy *chunks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(chunks[i].data);
	free(chunks);
}

/*
 * Reads a damaged container: it must deliver a prefix of the good chunks, then fail at the right place with the same
 * error for ever (or end, when all was delivered). How many chunks it delivered; -1: it lied.
 */
static long read_damaged(const uint8_t *bytes, size_t n, const struct chunk_copy *good, size_t count,
			 int *ret_end, struct pt_error *ret_error)
{
	int fd = file_of(bytes, n), got = -1;
	struct ptc_reader *r = ptc_reader_create(fd, ret_error);
	struct pt_error again = {0};
	struct ptc_chunk c;
	size_t i = 0;
	long ret = -1;

	while (r && (got = ptc_next(r, &c, ret_error)) == 1) {
		if (i >= count || c.type != good[i].type || c.stream != good[i].stream ||
		    c.offset != good[i].offset || c.size != good[i].size ||
		    memcmp(c.data, good[i].data, c.size) != 0)
			goto out;
		i++;
	}
	if (r && ptc_next(r, &c, &again) != got)
		goto out;
	if (got < 0 && ((r && strcmp(again.message, ret_error->message) != 0) || ret_error->offset > n ||
			(ret_error->kind != PT_ERR_BAD_INPUT && ret_error->kind != PT_ERR_TRUNCATED)))
		goto out;
	ret = (long)i;
	*ret_end = got;
out:
	ptc_reader_destroy(r);
	close(fd);
	return ret;
}

static void test_cut(const uint8_t *bytes, const struct chunk_copy *good, size_t count, size_t at)
{
	struct pt_error e = {0};
	size_t whole = 0;
	long got;
	int end = 9;

	while (whole < count && good[whole].end <= at)
		whole++;
	got = read_damaged(bytes, at, good, count, &end, &e);
	CHECK(got == (long)whole);
	CHECK(end == (whole == count ? 0 : -1));
	CHECK(whole == count || e.kind == PT_ERR_TRUNCATED);
}

static void test_flip(uint8_t *bytes, size_t n, const struct chunk_copy *good, size_t count, size_t bit)
{
	struct pt_error e = {0};
	size_t at = bit / 8, whole = 0;
	bool in_frame;
	long got;
	int end = 9;

	while (whole < count && good[whole].end <= at)
		whole++;
	in_frame = whole < count && at >= good[whole].offset + PTC_CHUNK_HEADER_BYTES;
	bytes[at] ^= (uint8_t)(1u << bit % 8);
	got = read_damaged(bytes, n, good, count, &end, &e);
	bytes[at] ^= (uint8_t)(1u << bit % 8);
	/* A bit of a zstd frame may mean nothing (its unused bit): then all is there, and right. */
	CHECK(got == (long)whole || (in_frame && got == (long)count));
	CHECK(end == (got == (long)count ? 0 : -1));
	/* Every bit of the headers counts. */
	CHECK(whole == count || in_frame || end == -1);
}

static void test_damage(void)
{
	int fd = memory_file();
	struct chunk_copy *good;
	size_t n, count;
	uint8_t *bytes;

	write_all_types(fd);
	bytes = content(fd, &n);
	good = copy_chunks(bytes, n, &count);
	CHECK(count == 14);
	for (size_t at = 0; at <= n; at++)
		test_cut(bytes, good, count, at);
	for (size_t bit = 0; bit < n * 8; bit++)
		test_flip(bytes, n, good, count, bit);
	free_chunks(good, count);
	free(bytes);
	close(fd);
}

static void test_damage_of_a_big_one(void)
{
	struct ptc_stream stream = {.cpu = 0};
	int fd = memory_file();
	struct pt_error e;
	struct ptc_writer *w = ptc_writer_create(fd, 1, &e);
	struct chunk_copy *good;
	size_t n, count;
	uint8_t *bytes;

	CHECK(ptc_put_stream(w, &stream, &e) == 1);
	for (uint64_t i = 0; i < 40; i++) {
		size_t size = random64() % 60000;

		/* Half of it compresses, so that there are literals, sequences and raw blocks. */
		memset(big, (int)i, size / 2);
		CHECK(ptc_put_aux(w, 1, i * 60000, 0, i, big, size, &e) == 0);
	}
	CHECK(ptc_writer_finish(w, &e) == 0);
	ptc_writer_destroy(w);
	bytes = content(fd, &n);
	good = copy_chunks(bytes, n, &count);
	CHECK(count == 42);
	for (int i = 0; i < 300; i++) {
		test_cut(bytes, good, count, random64() % n);
		test_flip(bytes, n, good, count, random64() % (n * 8));
	}
	free_chunks(good, count);
	free(bytes);
	close(fd);
}

/* ---- Chunks that no writer of ours makes, with checksums that are right ---- */

struct crafted {
	uint16_t type, flags;
	uint32_t stream, number;
	uint64_t stored, raw;
	const uint8_t *frame;
	size_t frame_bytes;
};

/* What the reader says to a container of this one chunk. */
static int read_crafted(const struct crafted *k, struct pt_error *e)
{
	uint8_t *bytes = calloc(1, 16 + 40 + k->frame_bytes), *h = bytes + 16;
	const uint16_t major = 1;
	uint32_t crc;
	struct ptc_reader *r;
	struct ptc_chunk c;
	int fd, ret;

	memcpy(bytes, "\x89PTC\r\n\x1a\n", 8);
	memcpy(bytes + 8, &major, 2);
	crc = (uint32_t)crc32(0, bytes, 12);
	memcpy(bytes + 12, &crc, 4);
	memcpy(h, "PTCK", 4);
	memcpy(h + 4, &k->type, 2);
	memcpy(h + 6, &k->flags, 2);
	memcpy(h + 8, &k->stream, 4);
	memcpy(h + 12, &k->number, 4);
	memcpy(h + 16, &k->stored, 8);
	memcpy(h + 24, &k->raw, 8);
	crc = (uint32_t)crc32(0, h, 36);
	memcpy(h + 36, &crc, 4);
	memcpy(h + 40, k->frame, k->frame_bytes);
	fd = file_of(bytes, 56 + k->frame_bytes);
	r = ptc_reader_create(fd, e);
	ret = r ? ptc_next(r, &c, e) : -2;
	ptc_reader_destroy(r);
	close(fd);
	free(bytes);
	return ret;
}

static size_t make_frame(uint8_t *to, size_t room, const void *from, size_t n, int checksum, int content_size)
{
	ZSTD_CCtx *z = ZSTD_createCCtx();
	size_t got;

	ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, checksum);
	ZSTD_CCtx_setParameter(z, ZSTD_c_contentSizeFlag, content_size);
	got = ZSTD_compress2(z, to, room, from, n);
	ZSTD_freeCCtx(z);
	return got;
}

static void test_crafted(void)
{
	uint8_t frame[400];
	size_t n = make_frame(frame, 200, "0123456789", 10, 1, 1), m;
	struct crafted good = {.type = 99, .stored = n, .raw = 10, .frame = frame, .frame_bytes = n}, k;
	struct pt_error e;

	CHECK(read_crafted(&good, &e) == 1);
	k = good;
	k.number = 1;
	CHECK(read_crafted(&k, &e) == -1 && e.kind == PT_ERR_BAD_INPUT && e.offset == 16);
	k = good;
	k.raw = 9;
	CHECK(read_crafted(&k, &e) == -1 && e.kind == PT_ERR_BAD_INPUT);
	k = good;
	k.raw = PTC_CHUNK_MAX + 1;
	CHECK(read_crafted(&k, &e) == -1 && e.kind == PT_ERR_BAD_INPUT);
	k = good;
	k.stored = UINT64_MAX;
	CHECK(read_crafted(&k, &e) == -1 && e.kind == PT_ERR_BAD_INPUT);
	k = good;
	k.stored = 0;
	CHECK(read_crafted(&k, &e) == -1 && e.kind == PT_ERR_BAD_INPUT);
	k = good;
	k.stored = ZSTD_compressBound(10) + 1;
	CHECK(read_crafted(&k, &e) == -1 && e.kind == PT_ERR_BAD_INPUT);
	k = good;
	k.stored = n - 1;
	CHECK(read_crafted(&k, &e) == -1 && e.kind == PT_ERR_BAD_INPUT);
	k = good;
	k.stored = n + 1; /* more than there is */
	CHECK(read_crafted(&k, &e) == -1 && e.kind == PT_ERR_TRUNCATED);
	/* Two frames that together have the size. */
	m = make_frame(frame, 200, "01234", 5, 1, 1);
	m += make_frame(frame + m, 200, "56789", 5, 1, 1);
	k = good;
	k.stored = k.frame_bytes = m;
	CHECK(read_crafted(&k, &e) == -1 && e.kind == PT_ERR_BAD_INPUT);
	/* No checksum, no content size, a skippable frame. */
	k.stored = k.frame_bytes = make_frame(frame, 200, "0123456789", 10, 0, 1);
	CHECK(read_crafted(&k, &e) == -1 && e.kind == PT_ERR_BAD_INPUT);
	k.stored = k.frame_bytes = make_frame(frame, 200, "0123456789", 10, 1, 0);
	CHECK(read_crafted(&k, &e) == -1 && e.kind == PT_ERR_BAD_INPUT);
	memcpy(frame, "\x50\x2a\x4d\x18\x02\0\0\0ab", 10);
	k.stored = k.frame_bytes = 10;
	k.raw = 0;
	CHECK(read_crafted(&k, &e) == -1 && e.kind == PT_ERR_BAD_INPUT);
	/* An end at the wrong place. */
	memset(frame + 300, 7, 24);
	k = good;
	k.type = PTC_END;
	k.raw = 24;
	k.stored = k.frame_bytes = make_frame(frame, 200, frame + 300, 24, 1, 1);
	CHECK(read_crafted(&k, &e) == -1 && e.kind == PT_ERR_BAD_INPUT);
}

static void test_file_header(void)
{
	uint8_t h[16] = "\x89PTC\r\n\x1a\n";
	struct pt_error e = {0};
	uint32_t crc;
	int fd;

	for (int version = 0; version < 3; version++) {
		struct ptc_reader *r;

		h[8] = (uint8_t)version;
		h[10] = 200; /* the minor one does not matter */
		crc = (uint32_t)crc32(0, h, 12);
		memcpy(h + 12, &crc, 4);
		fd = file_of(h, 16);
		r = ptc_reader_create(fd, &e);
		CHECK((r != NULL) == (version == 1));
		ptc_reader_destroy(r);
		close(fd);
	}
	CHECK(e.kind == PT_ERR_BAD_INPUT && strstr(e.message, "version 2") != NULL);
	fd = file_of((const uint8_t *)"PERFILE2 and so on", 18);
	CHECK(ptc_reader_create(fd, &e) == NULL && e.kind == PT_ERR_BAD_INPUT);
	close(fd);
	fd = file_of(h, 0);
	CHECK(ptc_reader_create(fd, &e) == NULL && e.kind == PT_ERR_TRUNCATED);
	close(fd);
}

/* Random and shortened payloads into every parser: an error or bounds that hold (ASan looks on). */
static void test_parsers(void)
{
	uint64_t sum = 0, errors = 0;

	for (int round = 0; round < 200000; round++) {
		size_t n = random64() % 120, start = 0;
		uint8_t *p = malloc(n + 1);
		struct ptc_chunk c = {.type = PTC_META, .stream = 1, .data = p, .size = n};
		struct ptc_stream stream;
		struct ptc_symbols s;
		struct ptc_image image;
		struct ptc_attr attr;
		struct ptc_aux aux;
		const uint8_t *at;
		struct pt_error e;
		uint64_t size;
		uint32_t index;

		/* Small numbers, so that lengths fit now and then. */
		for (size_t i = 0; i < n; i++)
			p[i] = random64() % 4 ? 0 : (uint8_t)(random64() % 24);
		if (n >= 4)
			p[0] = 1;
		errors += ptc_parse_stream(&c, &stream, &e) != 0;
		if (ptc_parse_aux(&c, &aux, &e) == 0)
			for (; start < aux.size; start++)
				sum += aux.bytes[start];
		if (ptc_parse_attr(&c, &attr, &e) == 0)
			sum += attr.name_bytes ? (uint8_t)attr.name[attr.name_bytes - 1] : 0;
		if (ptc_parse_sideband(&c, &index, &at, &size, &e) == 0)
			for (start = 0; start < size; start++)
				sum += at[start];
		if (ptc_parse_image(&c, &image, &e) == 0) {
			for (start = 0; start < image.size; start++)
				sum += image.bytes[start];
			sum += image.build_id_bytes ? image.build_id[image.build_id_bytes - 1] : 0;
		}
		if (ptc_parse_symbols(&c, &s, &e) == 0) {
			for (uint32_t i = 0; i < s.count; i++) {
				struct ptc_symbol symbol;

				memcpy(&symbol, (const uint8_t *)s.symbols + i * sizeof symbol,
				       sizeof symbol);
				sum += strlen(s.strings + symbol.name);
			}
		}
		errors += ptc_parse_round(&c, &size, &e) != 0;
		free(p);
	}
	CHECK(errors > 0 && sum > 0);
}

/* ---- The index ---- */

static void test_index(void)
{
	int fd = memory_file();
	size_t n, count;
	struct chunk_copy *good;
	uint8_t *bytes, entries[4096];
	uint64_t at, stored, raw;

	write_all_types(fd);
	bytes = content(fd, &n);
	good = copy_chunks(bytes, n, &count);
	CHECK(memcmp(bytes + n - 8, "PTCINDEX", 8) == 0);
	memcpy(&at, bytes + n - 16, 8);
	CHECK(at == good[count - 1].end);
	memcpy(&stored, bytes + at + 16, 8);
	memcpy(&raw, bytes + at + 24, 8);
	CHECK(at + 40 + stored + 16 == n && raw == count * 32);
	CHECK(ZSTD_decompress(entries, sizeof entries, bytes + at + 40, stored) == raw);
	for (size_t i = 0; i < count; i++) {
		uint64_t offset, size;
		uint32_t stream;
		uint16_t type;

		memcpy(&offset, entries + 32 * i, 8);
		memcpy(&type, entries + 32 * i + 8, 2);
		memcpy(&stream, entries + 32 * i + 12, 4);
		memcpy(&size, entries + 32 * i + 16, 8);
		CHECK(offset == good[i].offset && type == good[i].type && stream == good[i].stream &&
		      size == good[i].size);
	}
	free_chunks(good, count);
	free(bytes);
	close(fd);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	make_big();
	test_all_types();
	test_meta();
	test_splits();
	test_refusals();
	test_pipe();
	test_damage();
	test_damage_of_a_big_one();
	test_crafted();
	test_file_header();
	test_parsers();
	test_index();
	free(big);
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? 1 : 0;
}
