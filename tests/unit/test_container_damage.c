/* test_container_damage.c - containers that are cut, damaged, or made by nobody: every cut, every
 * flipped bit. */
#include "tests/unit/container_samples.h"

/*
 * Reads a damaged container: it must deliver a prefix of the good chunks, then fail at the right
 * place with the same error forever (or end, when all was delivered). How many chunks it delivered;
 * -1: it lied.
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
	CHECK(count == 16);
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
	static uint8_t piece[60000];
	struct ptc_stream stream = {.cpu = 0};
	int fd = memory_file();
	struct pt_error e;
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e);
	struct chunk_copy *good;
	size_t n, count;
	uint8_t *whole;

	CHECK(ptc_put_stream(w, &stream, &e) == 1);
	for (uint64_t i = 0; i < 40; i++) {
		size_t size = random64() % 60000;

		/* Half of it compresses, so that there are literals, sequences and raw blocks. */
		memset(piece, (int)i, size / 2);
		fill_random(piece + size / 2, size - size / 2);
		CHECK(ptc_put_aux(w, 1, AUX(i * 60000, 0, i, piece, size), &e) == 0);
	}
	CHECK(ptc_writer_finish(w, &e) == 0);
	ptc_writer_destroy(w);
	whole = content(fd, &n);
	good = copy_chunks(whole, n, &count);
	CHECK(count == 42);
	for (int i = 0; i < 300; i++) {
		test_cut(whole, good, count, random64() % n);
		test_flip(whole, n, good, count, random64() % (n * 8));
	}
	free_chunks(good, count);
	free(whole);
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
		struct ptc_tracepoint tracepoint;
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
		if (ptc_parse_format(&c, &tracepoint, &e) == 0)
			sum += tracepoint.format_bytes
				   ? (uint8_t)tracepoint.format[tracepoint.format_bytes - 1]
				   : 0;
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

int main(void)
{
	test_damage();
	test_damage_of_a_big_one();
	test_crafted();
	test_file_header();
	test_parsers();
	return sum_up();
}
