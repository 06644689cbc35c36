/* test_container.c - the container's writer and reader: writing and reading back, splits, refusals,
 * pipes, the index. */
#include "tests/unit/container_samples.h"

#include "schema/crc32c.h"

static bool next_is(struct ptc_reader *r, struct ptc_chunk *c, enum ptc_type type, uint32_t stream)
{
	struct pt_error e;

	return ptc_next(r, c, &e) == 1 && c->type == type && c->stream == stream;
}

static void read_image_and_symbols(struct ptc_reader *r)
{
	struct ptc_image image = {0}, want = test_image();
	struct ptc_symbols s = {0};
	struct ptc_symbol symbol;
	struct ptc_chunk c = {0};
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
	for (uint32_t i = 0; i < 3 && s.symbols; i++) {
		memcpy(&symbol, (const uint8_t *)s.symbols + i * sizeof symbol, sizeof symbol);
		CHECK(symbol.value == symbols[i].value && symbol.size == symbols[i].size);
		CHECK(symbol.type == symbols[i].type &&
		      strcmp(s.strings + symbol.name, i == 1 ? "exit" : "main") == 0);
	}
}

static void read_aux(struct ptc_reader *r, uint32_t stream, uint64_t seq, uint64_t offset, uint64_t flags,
		     uint64_t time_ns, const char *bytes)
{
	struct ptc_chunk c = {0};
	struct ptc_aux aux = {0};
	struct pt_error e;

	CHECK(next_is(r, &c, PTC_AUX, stream) && ptc_parse_aux(&c, &aux, &e) == 0);
	CHECK(aux.seq == seq && aux.aux_offset == offset && aux.flags == flags && aux.time_ns == time_ns);
	CHECK(aux.bytes && aux.size == strlen(bytes) && memcmp(aux.bytes, bytes, aux.size) == 0);
}

static void test_all_types(void)
{
	int fd = memory_file();
	struct ptc_meta *meta = ptc_meta_create();
	struct ptc_reader *r;
	struct ptc_stream stream = {0};
	struct ptc_attr attr = {0};
	struct ptc_chunk c = {0};
	struct pt_error e;
	const char *key, *value;
	const uint8_t *p = NULL;
	uint64_t size = 0, ns = 0;
	struct ptc_tracepoint tracepoint = {0};
	uint32_t index = 0;

	write_all_types(fd);
	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	CHECK(r != NULL);
	CHECK(next_is(r, &c, PTC_META, 0) && ptc_meta_add(meta, &c, &e) == 0);
	CHECK(strcmp(ptc_meta_get(meta, "command"), "a\nb\\n=c") == 0);
	CHECK(next_is(r, &c, PTC_ATTR, 0) && ptc_parse_attr(&c, &attr, &e) == 0);
	CHECK(attr.index == 0 && attr.name_bytes == 11 && memcmp(attr.name, "intel_pt//u", 11) == 0);
	CHECK(attr.attr_bytes == 10 && memcmp(attr.attr, "0123456789", 10) == 0);
	CHECK(attr.count == 2 && memcmp(attr.ids, ids, 16) == 0 && attr.machine_pid == 0);
	CHECK(next_is(r, &c, PTC_ATTR, 0) && ptc_parse_attr(&c, &attr, &e) == 0);
	CHECK(attr.index == 1 && attr.count == 1 && attr.machine_pid == 77);
	CHECK(next_is(r, &c, PTC_FORMAT, 0) && ptc_parse_format(&c, &tracepoint, &e) == 0);
	CHECK(tracepoint.machine_pid == 77 && tracepoint.id == 1234);
	CHECK(tracepoint.system_bytes == 3 && memcmp(tracepoint.system, "kvm", 3) == 0);
	CHECK(tracepoint.name_bytes == 8 && memcmp(tracepoint.name, "kvm_exit", 8) == 0);
	CHECK(tracepoint.format_bytes == 24 &&
	      memcmp(tracepoint.format, "name: kvm_exit\nID: 1234\n", 24) == 0);
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

	if (!line)
		exit(1);

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
	/* One key again and again: memory must not grow forever either. */
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
		struct ptc_chunk c = {0};
		struct ptc_symbols s = {0};
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
	struct ptc_writer *w = ptc_writer_create(fd, NULL, -5, &e);
	struct ptc_reader *r;
	struct ptc_chunk c = {0};
	uint64_t done = 0, size = 1;
	size_t record_bytes;
	uint8_t *many = make_records(&record_bytes);
	char *value = malloc(200000);
	const uint8_t *p = NULL;
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
	CHECK(ptc_put_aux(w, 1, AUX(7, PTC_AUX_TRUNCATED | PTC_AUX_PARTIAL, 5, big, BIG), &e) == 0);
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
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e);

	CHECK(ptc_put_aux(w, 1, AUX(0, 0, 0, "x", 1), &e) == -1 && e.kind == PT_ERR_REFUSED);
	CHECK(ptc_put_stream(w, &stream, &e) == 1);
	CHECK(ptc_put_aux(w, 1, AUX(10, 0, 0, "x", 1), &e) == 0);
	CHECK(ptc_put_aux(w, 1, AUX(10, 0, 0, "x", 1), &e) == -1 && e.kind == PT_ERR_REFUSED);
	CHECK(ptc_put_aux(w, 1, AUX(UINT64_MAX, 0, 0, "x", 1), &e) == -1 && e.kind == PT_ERR_REFUSED);
	CHECK(ptc_put_aux(w, 0, AUX(20, 0, 0, "x", 1), &e) == -1);
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
	struct ptc_chunk c = {0};
	uint64_t got = 0;
	int ends[2], status;
	pid_t child;

	/* Non-blocking ends and a tiny buffer: short reads and writes, EAGAIN. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
		exit(1);
	child = fork();
	if (child == 0) {
		close(ends[0]);
		w = ptc_writer_create(ends[1], NULL, 1, &e);
		if (!w || ptc_put_stream(w, &stream, &e) != 1 ||
		    ptc_put_aux(w, 1, AUX(0, 0, 0, big, BIG), &e) || ptc_writer_finish(w, &e))
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
	CHECK(read(ends[0], &status, 1) == 0); /* no index after the end */
	close(ends[0]);

	if (pipe(ends))
		exit(1);
	close(ends[0]);
	CHECK(ptc_writer_create(ends[1], NULL, 1, &e) == NULL && e.kind == PT_ERR_CLOSED);
	close(ends[1]);
	ends[0] = open("/dev/full", O_WRONLY);
	if (ends[0] >= 0) {
		CHECK(ptc_writer_create(ends[0], NULL, 1, &e) == NULL && e.kind == PT_ERR_IO);
		CHECK(strstr(e.message, strerror(ENOSPC)) != NULL);
		close(ends[0]);
	}
	CHECK(ptc_reader_create(-1, &e) == NULL && e.kind == PT_ERR_IO);
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

#define LEFT_BYTES 200000
static struct pt_error e_left;

/* Reads all, leaving the images; then their bytes, the last one first. */
static void read_left(int fd)
{
	struct ptc_reader *r = ptc_reader_create(fd, &e_left);
	struct ptc_kept *kept[64] = {0};
	uint64_t offsets[64] = {0}, sizes[64] = {0}, sum = 0;
	struct ptc_chunk c = {0};
	struct ptc_image image;
	uint32_t n = 0;

	ptc_reader_leave_images(r);
	while (ptc_next(r, &c, &e_left) == 1) {
		CHECK(c.later == (c.type == PTC_IMAGE));
		if (c.type != PTC_IMAGE || n == 64)
			continue;
		CHECK(ptc_parse_image(&c, &image, &e_left) == 0 && !image.bytes && image.later == &c);
		offsets[n] = image.offset - 0x1000;
		sizes[n] = image.size;
		kept[n++] = ptc_keep(r, &c, &e_left);
	}
	CHECK(n > 1 && c.type == PTC_END);
	while (n-- > 0) {
		uint8_t *room = malloc(ptc_kept_room(kept[n]));
		const uint8_t *p = ptc_kept_read(r, kept[n], room, &e_left);

		CHECK(p && p + sizes[n] == room + ptc_kept_room(kept[n]) &&
		      memcmp(p, big + offsets[n], sizes[n]) == 0);
		sum += sizes[n];
		free(room);
		free(kept[n]);
	}
	CHECK(sum == LEFT_BYTES);
	ptc_reader_destroy(r);
}

/* Code that is left in the container: from a file, where it is read when it is wanted, and a pipe. */
static void test_left(void)
{
	int fd = memory_file(), pipes[2];
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e_left);
	struct ptc_image image = test_image();
	struct ptc_chunk c;
	struct ptc_reader *r;
	struct ptc_kept *kept;
	uint8_t room[70000];
	pid_t child;

	image.bytes = big;
	image.size = LEFT_BYTES;
	CHECK(ptc_put_image(w, &image, &e_left) == 0 && ptc_writer_finish(w, &e_left) == 0);
	ptc_writer_destroy(w);
	lseek(fd, 0, SEEK_SET);
	read_left(fd);

	CHECK(pipe(pipes) == 0);
	child = fork();
	if (child == 0) {
		char buffer[4096];
		ssize_t n;

		lseek(fd, 0, SEEK_SET);
		while ((n = read(fd, buffer, sizeof buffer)) > 0)
			if (write(pipes[1], buffer, (size_t)n) != n)
				_exit(1);
		_exit(0);
	}
	close(pipes[1]);
	read_left(pipes[0]);
	close(pipes[0]);
	waitpid(child, NULL, 0);

	/* A byte that changes is noticed: before and after the chunk was read. */
	for (int early = 0; early < 2; early++) {
		uint8_t byte;

		lseek(fd, 0, SEEK_SET);
		r = ptc_reader_create(fd, &e_left);
		ptc_reader_leave_images(r);
		CHECK(pread(fd, &byte, 1, 1000) == 1);
		byte ^= 4;
		CHECK(!early || pwrite(fd, &byte, 1, 1000) == 1);
		CHECK(ptc_next(r, &c, &e_left) == (early ? -1 : 1));
		if (!early) {
			kept = ptc_keep(r, &c, &e_left);
			CHECK(ptc_kept_room(kept) <= sizeof room && pwrite(fd, &byte, 1, 1000) == 1);
			CHECK(!ptc_kept_read(r, kept, room, &e_left) && e_left.kind == PT_ERR_IO);
			free(kept);
		}
		byte ^= 4;
		CHECK(pwrite(fd, &byte, 1, 1000) == 1);
		ptc_reader_destroy(r);
	}
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
	test_left();
	test_index();
	free(big);
	return sum_up();
}
