/*
 * test_seekable - schema/seekable.h: files that others may write by the format's rules are read, damaged
 * ones are refused with their place, and no damage is read as something else. cli/compress.sh has zstd's
 * own word on what is written.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "schema/bytes.h"
#include "schema/seekable.h"
#include "schema/seekable_format.h"
#include "tests/unit/check.h"

enum { RAW_BYTES = 1000000, FILE_MAX = 1 << 22, ENTRIES_MAX = 64 };

static uint8_t raw[RAW_BYTES], file[FILE_MAX];

/* A file that is being made. */
static size_t used;
static uint32_t entries[ENTRIES_MAX][2], count;

static void put(const void *bytes, size_t n)
{
	memcpy(file + used, bytes, n);
	used += n;
}

static void put_number(uint32_t value)
{
	put(&value, sizeof value);
}

static void begin(void)
{
	used = count = 0;
}

static void add_frame(size_t offset, size_t n, int level)
{
	size_t packed = ZSTD_compress(file + used, FILE_MAX - used, raw + offset, n, level);

	used += packed;
	entries[count][0] = (uint32_t)packed;
	entries[count++][1] = (uint32_t)n;
}

/* A frame that a reader is to pass over. */
static void add_skippable(void)
{
	put_number(0x184D2A50);
	put_number(5);
	put("hello", 5);
	entries[count][0] = 13;
	entries[count++][1] = 0;
}

static void end(uint8_t flags)
{
	size_t entry_bytes = flags & SEEKABLE_CHECKSUMS ? 12 : 8;

	put_number(SEEKABLE_SKIPPABLE_MAGIC);
	put_number((uint32_t)(count * entry_bytes + SEEKABLE_FOOTER_BYTES));
	for (uint32_t i = 0; i < count; i++) {
		put(entries[i], 8);
		if (entry_bytes == 12)
			put_number(0x12345678);
	}
	put_number(count);
	put(&flags, 1);
	put_number(SEEKABLE_MAGIC);
}

/* The path of the file, until the next call. */
static const char *path(void)
{
	static char name[32];
	static int fd = -1;

	if (fd >= 0)
		close(fd);
	fd = memfd_create("seekable", MFD_CLOEXEC);
	if (fd < 0 || write(fd, file, used) != (ssize_t)used) {
		perror("memfd");
		exit(1);
	}
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	return name;
}

/* All of it in pieces of so many bytes is raw's first n bytes. */
static bool reads(struct pt_seekable *s, size_t n, size_t piece)
{
	static uint8_t got[RAW_BYTES];

	for (size_t at = 0; at < n; at += piece)
		if (pt_seekable_read(s, got + at, n - at < piece ? n - at : piece, at, NULL))
			return false;
	return memcmp(got, raw, n) == 0;
}

static void test_layouts(void)
{
	struct pt_seekable *s;
	struct pt_error e;

	begin();
	add_skippable();
	add_frame(0, 1, 1);
	add_frame(1, 0, 1);
	add_frame(1, 70000, 1);
	add_skippable();
	add_frame(70001, 300000, 9);
	add_frame(370001, 8192, -5);
	add_skippable();
	end(SEEKABLE_CHECKSUMS | 3); /* the lowest two bits mean nothing */
	check(pt_seekable_is(path()), "frames of any size, empty ones, some to skip, checksums: is one");
	s = pt_seekable_open(path(), &e);
	check(s, "frames of any size: opens");
	if (!s)
		return;
	check(pt_seekable_bytes(s) == 378193, "frames of any size: how many bytes");
	check(reads(s, 378193, 378193), "frames of any size: all at once");
	check(reads(s, 378193, 8192), "frames of any size: by pages");
	check(reads(s, 378193, 777), "frames of any size: by pieces that are no pages");
	pt_seekable_close(s);
	begin();
	end(0);
	s = pt_seekable_open(path(), &e);
	check(s && pt_seekable_bytes(s) == 0, "no frames: an empty file");
	pt_seekable_close(s);
}

/* More frames than are remembered, in an order in which each is forgotten before it is wanted again. */
static void test_many(void)
{
	struct pt_seekable *s;
	bool same = true;

	begin();
	for (size_t i = 0; i < ENTRIES_MAX; i++)
		add_frame(i * 15625, 15625, 1);
	end(0);
	s = pt_seekable_open(path(), NULL);
	for (size_t i = 0; s && i < 10000; i++) {
		size_t at = i * 7919 * 31 % (RAW_BYTES - 5000);
		uint8_t got[5000];

		same &= pt_seekable_read(s, got, sizeof got, at, NULL) == 0 &&
			memcmp(got, raw + at, sizeof got) == 0;
	}
	check(s && same, "anywhere in many frames");
	pt_seekable_close(s);
}

static void refuses(const char *what, const char *why)
{
	struct pt_error e = {0};
	struct pt_seekable *s = pt_seekable_open(path(), &e);
	char text[200];

	snprintf(text, sizeof text, "%s: refused", what);
	check(!s && e.kind == PT_ERR_BAD_INPUT && e.offset != PT_NO_OFFSET, text);
	snprintf(text, sizeof text, "%s: says why", what);
	check(strstr(e.message, why), text);
	if (!strstr(e.message, why))
		printf("%s\n", e.message);
	pt_seekable_close(s);
}

static void set_number(size_t at, uint32_t value)
{
	memcpy(file + at, &value, sizeof value);
}

static void two_frames(void)
{
	begin();
	add_frame(0, 100000, 3);
	add_frame(100000, 100000, 3);
	end(0);
}

static void test_bad_tables(void)
{
	size_t table;

	two_frames();
	table = used - 2 * 8 - SEEKABLE_FOOTER_BYTES;
	set_number(used - 9, 1000000);
	refuses("more frames than the file has room for", "larger than the file");
	two_frames();
	set_number(used - 9, UINT32_MAX);
	refuses("the largest number of frames", "larger than the file");
	two_frames();
	set_number(used - 9, 1);
	refuses("fewer frames than there are", "does not begin where it should");
	two_frames();
	file[used - 5] = 4;
	refuses("flags that are not defined", "bits that are not defined");
	two_frames();
	set_number(table, u32(file + table) + 1);
	refuses("a frame that ends elsewhere", "have not the file's size");
	two_frames();
	set_number(table + 4, PT_SEEKABLE_FRAME_BYTES_MAX + 1);
	refuses("a frame that is too large", "zstd -d");
	two_frames();
	set_number(table + 4, 1);
	set_number(table + 12, 1);
	refuses("frames that are larger than what is in them", "larger than what is packed");
}

/* What the table says of a frame is not what is in it. */
static void test_wrong_sizes(void)
{
	for (int by = -1; by <= 1; by += 2) {
		struct pt_seekable *s;
		struct pt_error e = {0};
		uint8_t got[10];
		size_t table;

		two_frames();
		table = used - 2 * 8 - SEEKABLE_FOOTER_BYTES;
		set_number(table + 4, (uint32_t)(100000 + by));
		s = pt_seekable_open(path(), &e);
		check(s && pt_seekable_read(s, got, sizeof got, 0, &e) && e.kind == PT_ERR_BAD_INPUT &&
			  e.offset == 0,
		      "a frame with more or less than the table says: refused, with its place");
		check(s && pt_seekable_read(s, got, sizeof got, 150000, &e) == 0, "the other frame is read");
		pt_seekable_close(s);
	}
}

/* Each byte of a file that pt_seekable_write() made is changed in turn. */
static void test_damage(void)
{
	const struct pt_seekable_options options = {.level = 1, .threads = 3};
	int from = memfd_create("raw", MFD_CLOEXEC), to = memfd_create("packed", MFD_CLOEXEC);
	enum { BYTES = 2 * PT_SEEKABLE_FRAME_BYTES + 1000 };
	bool never_wrong = true, says = true;
	unsigned refused = 0;

	memset(raw, 'x', BYTES); /* so that frames are short */
	check(write(from, raw, BYTES) == BYTES && pt_seekable_write(to, from, BYTES, &options, NULL) == 0,
	      "packed");
	used = (size_t)lseek(to, 0, SEEK_END);
	check(used < FILE_MAX && pread(to, file, used, 0) == (ssize_t)used, "read back");
	for (size_t at = 0; at < used; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			struct pt_error e = {0};
			struct pt_seekable *s;
			bool same;

			file[at] ^= 1u << bit;
			s = pt_seekable_open(path(), &e);
			same = s && pt_seekable_bytes(s) == BYTES && reads(s, BYTES, 8192);
			refused += !same;
			if (s && !same && pt_seekable_bytes(s) == BYTES) {
				uint8_t got;

				for (size_t i = 0; i < BYTES && !e.message[0]; i += 1000)
					(void)pt_seekable_read(s, &got, 1, i, &e);
			}
			never_wrong &= same || !s || pt_seekable_bytes(s) != BYTES || e.message[0];
			says &= same || !e.message[0] || e.kind == PT_ERR_BAD_INPUT;
			pt_seekable_close(s);
			file[at] ^= 1u << bit;
		}
	check(never_wrong, "each bit changed: never other bytes without an error");
	check(says, "each bit changed: the input is what is bad");
	check(refused > used * 6, "most changes matter");
	printf("%zu bytes, %u of their bits refused\n", used, refused);
	close(from);
	close(to);
}

static bool at_once(void *arg)
{
	(void)arg;
	return true;
}

static void test_interrupted(void)
{
	const struct pt_seekable_options options = {.level = 1, .threads = 2, .interrupted = at_once};
	int from = memfd_create("raw", MFD_CLOEXEC), to = memfd_create("packed", MFD_CLOEXEC);
	struct pt_error e = {0};

	check(write(from, raw, RAW_BYTES) == RAW_BYTES &&
		  pt_seekable_write(to, from, RAW_BYTES, &options, &e) < 0 && e.kind == PT_ERR_REFUSED,
	      "interrupted");
	check(ftruncate(from, 1000) == 0 &&
		  pt_seekable_write(to, from, RAW_BYTES, &(struct pt_seekable_options){.level = 1}, &e) < 0 &&
		  e.kind == PT_ERR_IO,
	      "a file that becomes shorter meanwhile");
	check(pt_seekable_write(open("/dev/full", O_WRONLY | O_CLOEXEC), from, 1000,
				&(struct pt_seekable_options){.level = 1, .threads = 1}, &e) < 0 &&
		  e.kind == PT_ERR_IO,
	      "nowhere to write");
	close(from);
	close(to);
}

int main(void)
{
	uint32_t random = 1;

	for (size_t i = 0; i < RAW_BYTES; i++) {
		random = random * 1664525 + 1013904223;
		raw[i] = (uint8_t)(random >> 29);
	}
	test_layouts();
	test_many();
	test_bad_tables();
	test_wrong_sizes();
	test_interrupted();
	test_damage();
	return sum_up();
}
