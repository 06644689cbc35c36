/* seekable_read.c - see seekable.h. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "schema/bytes.h"
#include "schema/file_io.h"
#include "schema/seekable.h"
#include "schema/seekable_format.h"

enum { CACHE_BYTES = 8 << 20, CACHE_FRAMES_MIN = 2, CACHE_FRAMES_MAX = 64 };

/* Where a frame begins; after the last one: where all end. */
struct frame {
	uint64_t packed, unpacked;
};

struct cached {
	uint8_t *bytes; /* NULL: nothing yet */
	uint32_t frame; /* whose they are, while used is not 0 */
	uint64_t used;	/* when, in reads; 0: it has none */
};

struct pt_seekable {
	int fd;
	char *path;
	struct frame *frames; /* count + 1 */
	uint32_t count;
	uint32_t packed_max, unpacked_max; /* of a frame */
	uint8_t *packed;		   /* packed_max bytes */
	ZSTD_DCtx *zstd;
	struct cached cache[CACHE_FRAMES_MAX];
	unsigned cache_frames;
	uint64_t reads;
};

static bool read_number(int fd, uint64_t offset, uint32_t *ret)
{
	uint8_t bytes[4];
	size_t got;

	if (pt_read_at(fd, bytes, sizeof bytes, offset, &got, "", NULL) || got < sizeof bytes)
		return false;
	*ret = u32(bytes);
	return true;
}

bool pt_seekable_is(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint32_t front, end;
	struct stat st;
	bool ret = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		   st.st_size >= SEEKABLE_FOOTER_BYTES && read_number(fd, 0, &front) &&
		   read_number(fd, (uint64_t)st.st_size - 4, &end) &&
		   (front == ZSTD_MAGICNUMBER ||
		    (front & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START) &&
		   end == SEEKABLE_MAGIC;

	if (fd >= 0)
		close(fd);
	return ret;
}

/* ---- The table -------------------------------------------------------------------------------------- */

static int read_some(const struct pt_seekable *s, void *to, size_t n, uint64_t offset, struct pt_error *e)
{
	size_t got;

	if (pt_read_at(s->fd, to, n, offset, &got, s->path, e))
		return -1;
	return got == n ? 0
			: pt_fail(e, PT_ERR_TRUNCATED, offset, "%s has become shorter: at byte %" PRIu64,
				  s->path, offset);
}

static int bad_table(const struct pt_seekable *s, uint64_t offset, const char *why, struct pt_error *e)
{
	return pt_fail(e, PT_ERR_BAD_INPUT, offset,
		       "%s: the table of its compressed frames is damaged: %s (at byte %" PRIu64 ")", s->path,
		       why, offset);
}

static int add_frame(struct pt_seekable *s, uint32_t packed, uint32_t unpacked, uint64_t offset,
		     struct pt_error *e)
{
	struct frame *frame = &s->frames[s->count];

	if (unpacked > PT_SEEKABLE_FRAME_BYTES_MAX)
		return pt_fail(e, PT_ERR_BAD_INPUT, offset,
			       "%s: a compressed frame has %" PRIu32
			       " bytes, of which %d at most are read: unpack it with zstd -d",
			       s->path, unpacked, PT_SEEKABLE_FRAME_BYTES_MAX);
	if (packed > s->packed_max && unpacked)
		s->packed_max = packed;
	if (unpacked > s->unpacked_max)
		s->unpacked_max = unpacked;
	frame[1] = (struct frame){frame->packed + packed, frame->unpacked + unpacked};
	s->count++;
	return 0;
}

/* entries: so many, of entry_bytes each. They lie at table in the file, behind a frame's header. */
static int parse_table(struct pt_seekable *s, const uint8_t *entries, uint32_t count, size_t entry_bytes,
		       uint64_t table, struct pt_error *e)
{
	s->frames = calloc((size_t)count + 1, sizeof *s->frames);
	if (!s->frames)
		return pt_fail_no_memory(e, "the table of compressed frames");
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *entry = entries + i * entry_bytes;

		if (add_frame(s, u32(entry), u32(entry + 4), table + i * entry_bytes, e))
			return -1;
	}
	if (s->frames[count].packed != table - SEEKABLE_SKIPPABLE_HEADER_BYTES)
		return bad_table(s, table, "its frames have not the file's size", e);
	if (s->packed_max > ZSTD_compressBound(s->unpacked_max) + SEEKABLE_FRAME_EXTRA)
		return bad_table(s, table, "a frame is larger than what is packed in it", e);
	return 0;
}

static int read_table(struct pt_seekable *s, struct pt_error *e)
{
	uint8_t footer[SEEKABLE_FOOTER_BYTES], *bytes;
	uint64_t size, table_bytes, begin;
	size_t entry_bytes;
	struct stat st;
	int ret = 0;

	if (fstat(s->fd, &st))
		return pt_fail_errno(e, "%s", s->path);
	size = (uint64_t)st.st_size;
	if (size < sizeof footer)
		return bad_table(s, 0, "there is none", e);
	if (read_some(s, footer, sizeof footer, size - sizeof footer, e))
		return -1;
	if (u32(footer + 5) != SEEKABLE_MAGIC)
		return bad_table(s, size - 4, "the file does not end with its mark", e);
	if (footer[4] & SEEKABLE_RESERVED)
		return bad_table(s, size - 5, "it has bits that are not defined", e);
	entry_bytes = footer[4] & SEEKABLE_CHECKSUMS ? 12 : 8;
	table_bytes = u32(footer) * (uint64_t)entry_bytes + sizeof footer;
	if (table_bytes + SEEKABLE_SKIPPABLE_HEADER_BYTES > size)
		return bad_table(s, size - sizeof footer, "it is larger than the file", e);
	begin = size - table_bytes - SEEKABLE_SKIPPABLE_HEADER_BYTES;
	bytes = malloc(size - begin);
	if (!bytes)
		return pt_fail_no_memory(e, "the table of compressed frames");
	if (read_some(s, bytes, size - begin, begin, e))
		ret = -1;
	else if (u32(bytes) != SEEKABLE_SKIPPABLE_MAGIC || u32(bytes + 4) != table_bytes)
		ret = bad_table(s, begin, "its frame does not begin where it should", e);
	else
		ret = parse_table(s, bytes + SEEKABLE_SKIPPABLE_HEADER_BYTES, u32(footer), entry_bytes,
				  begin + SEEKABLE_SKIPPABLE_HEADER_BYTES, e);
	free(bytes);
	return ret;
}

static int init(struct pt_seekable *s, const char *path, struct pt_error *e)
{
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (s->fd < 0)
		return pt_fail_errno(e, "%s", path);
	s->path = strdup(path);
	s->zstd = ZSTD_createDCtx();
	if (!s->path || !s->zstd)
		return pt_fail_no_memory(e, NULL);
	if (read_table(s, e))
		return -1;
	s->packed = malloc(s->packed_max ? s->packed_max : 1);
	if (!s->packed)
		return pt_fail_no_memory(e, "compressed frames");
	s->cache_frames = s->unpacked_max ? CACHE_BYTES / s->unpacked_max : 0;
	if (s->cache_frames < CACHE_FRAMES_MIN)
		s->cache_frames = CACHE_FRAMES_MIN;
	if (s->cache_frames > CACHE_FRAMES_MAX)
		s->cache_frames = CACHE_FRAMES_MAX;
	return 0;
}

struct pt_seekable *pt_seekable_open(const char *path, struct pt_error *e)
{
	struct pt_seekable *s = calloc(1, sizeof *s);

	if (!s) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	if (init(s, path, e) == 0)
		return s;
	pt_seekable_close(s);
	return NULL;
}

void pt_seekable_close(struct pt_seekable *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < CACHE_FRAMES_MAX; i++)
		free(s->cache[i].bytes);
	if (s->fd >= 0)
		close(s->fd);
	ZSTD_freeDCtx(s->zstd);
	free(s->packed);
	free(s->frames);
	free(s->path);
	free(s);
}

uint64_t pt_seekable_bytes(const struct pt_seekable *s)
{
	return s->frames[s->count].unpacked;
}

/* ---- Frames ----------------------------------------------------------------------------------------- */

/* The frame that has the byte: the last one that begins there or before. */
static uint32_t frame_at(const struct pt_seekable *s, uint64_t offset)
{
	uint32_t low = 0, high = s->count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (s->frames[middle].unpacked <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static int unpack(struct pt_seekable *s, uint32_t number, uint8_t *to, struct pt_error *e)
{
	const struct frame *frame = &s->frames[number];
	size_t packed = (size_t)(frame[1].packed - frame->packed),
	       unpacked = (size_t)(frame[1].unpacked - frame->unpacked), got;

	if (read_some(s, s->packed, packed, frame->packed, e))
		return -1;
	got = ZSTD_decompressDCtx(s->zstd, to, unpacked, s->packed, packed);
	if (ZSTD_isError(got) && ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
		return pt_fail_no_memory(e, "zstd");
	if (ZSTD_isError(got) || got != unpacked)
		return pt_fail(
		    e, PT_ERR_BAD_INPUT, frame->packed,
		    "%s is damaged: the compressed frame at byte %" PRIu64 ": %s", s->path, frame->packed,
		    ZSTD_isError(got) ? ZSTD_getErrorName(got) : "it has not the size that the table says");
	return 0;
}

/* The frame's bytes. NULL: it failed. */
static const uint8_t *frame_bytes(struct pt_seekable *s, uint32_t number, struct pt_error *e)
{
	struct cached *oldest = &s->cache[0];

	s->reads++;
	for (unsigned i = 0; i < s->cache_frames; i++) {
		struct cached *c = &s->cache[i];

		if (c->used && c->frame == number) {
			c->used = s->reads;
			return c->bytes;
		}
		if (c->used < oldest->used)
			oldest = c;
	}
	oldest->used = 0;
	if (!oldest->bytes && !(oldest->bytes = malloc(s->unpacked_max))) {
		pt_fail_no_memory(e, "compressed frames");
		return NULL;
	}
	if (unpack(s, number, oldest->bytes, e))
		return NULL;
	oldest->frame = number;
	oldest->used = s->reads;
	return oldest->bytes;
}

int pt_seekable_read(struct pt_seekable *s, void *to, size_t n, uint64_t offset, struct pt_error *e)
{
	uint8_t *out = to;

	while (n) {
		uint32_t number = frame_at(s, offset);
		const struct frame *frame = &s->frames[number];
		uint64_t within = offset - frame->unpacked, there = frame[1].unpacked - offset;
		size_t some = there < n ? (size_t)there : n;
		const uint8_t *bytes = frame_bytes(s, number, e);

		if (!bytes)
			return -1;
		memcpy(out, bytes + within, some);
		out += some;
		offset += some;
		n -= some;
	}
	return 0;
}
