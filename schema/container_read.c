/* container_read.c - see container.h. */
#include "schema/container.h"
#include "schema/container_format.h"
#include "schema/container_reader.h"
#include "schema/crc32c.h"
#include "schema/file_kind.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

/* Reads n bytes, fewer only at the end of input. -1: PT_ERR_IO. */
static ssize_t read_all(struct ptc_reader *r, uint8_t *to, size_t n, struct pt_error *e)
{
	size_t have = 0;

	while (have < n) {
		ssize_t got = read(r->fd, to + have, n - have);

		if (got < 0) {
			struct pollfd wait = {.fd = r->fd, .events = POLLIN};

			if (errno == EINTR)
				continue;
			if (errno == EAGAIN && (poll(&wait, 1, -1) >= 0 || errno == EINTR))
				continue;
			return pt_fail_errno(e, "cannot read the container");
		}
		if (got == 0)
			break;
		have += (size_t)got;
	}
	r->offset += have;
	return (ssize_t)have;
}

int ptc_reader_reserve(uint8_t **buffer, size_t *room, size_t bytes, struct pt_error *e)
{
	uint8_t *grown;

	if (bytes <= *room)
		return 0;
	/* The old content is not needed: no realloc(), which would copy it. */
	grown = malloc(bytes);
	if (!grown)
		return pt_fail_no_memory(e, "a chunk");
	free(*buffer);
	*buffer = grown;
	*room = bytes;
	return 0;
}

static int read_file_header(struct ptc_reader *r, struct pt_error *e)
{
	uint8_t h[PTC_FILE_HEADER_BYTES];
	ssize_t got = read_all(r, h, sizeof h, e);

	if (got < 0)
		return -1;
	if (got == 0)
		return pt_fail(e, PT_ERR_TRUNCATED, 0, "the input is empty");
	if (memcmp(h, PTC_FILE_MAGIC, got < 8 ? (size_t)got : 8) != 0)
		return pt_fail(e, PT_ERR_BAD_INPUT, 0, "not a container of pt-capture%s",
			       pt_file_kind(h, (size_t)got));
	if (got < (ssize_t)sizeof h)
		return pt_fail(e, PT_ERR_TRUNCATED, (uint64_t)got,
			       "the container ends within its file header");
	if (u32(h + 12) != crc32(0, h, 12))
		return pt_fail(e, PT_ERR_BAD_INPUT, 12, "the container's file header is damaged");
	if (ptc_get16(h + 8) != PTC_MAJOR)
		return pt_fail(e, PT_ERR_BAD_INPUT, 8,
			       "a container of version %u; this program reads version %u", ptc_get16(h + 8),
			       PTC_MAJOR);
	return 0;
}

struct ptc_reader *ptc_reader_create(int fd, struct pt_error *e)
{
	struct ptc_reader *r = calloc(1, sizeof *r);
	struct stat st;

	if (!r || !(r->zstd = ZSTD_createDCtx())) {
		pt_fail_no_memory(e, "the container's reader");
		goto fail;
	}
	r->fd = fd;
	r->state = 1;
	r->begin = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? lseek(fd, 0, SEEK_CUR) : -1;
	if (read_file_header(r, e))
		goto fail;
	return r;
fail:
	ptc_reader_destroy(r);
	return NULL;
}

void ptc_reader_destroy(struct ptc_reader *r)
{
	if (!r)
		return;
	ZSTD_freeDCtx(r->zstd);
	free(r->stored);
	free(r->raw);
	while (r->spare_count)
		free(r->spares[--r->spare_count].data);
	free(r);
}

static int bad_payload(const struct ptc_chunk *c, const char *what, struct pt_error *e)
{
	return pt_fail(e, PT_ERR_BAD_INPUT, c->offset, "the container holds a malformed %s chunk", what);
}

static int bad_chunk(const struct ptc_reader *r, uint64_t at, const char *what, struct pt_error *e)
{
	return pt_fail(e, PT_ERR_BAD_INPUT, at, "the container is damaged: chunk %llu %s",
		       (unsigned long long)r->chunks, what);
}

/* One frame of that size with its checksum, and nothing else. */
static bool is_frame(const uint8_t *p, size_t stored, size_t raw)
{
	/* Descriptor byte: bit 2 is the checksum's. Skippable frames have another magic. */
	return stored >= 6 && u32(p) == ZSTD_MAGICNUMBER && p[4] & 4 &&
	       ZSTD_getFrameContentSize(p, stored) == raw &&
	       ZSTD_findFrameCompressedSize(p, stored) == stored;
}

/* The zstd frame of a chunk into raw. */
/* zstd's error: of the chunk, or that memory was out. */
static int zstd_failed(struct ptc_reader *r, uint64_t at, size_t error, struct pt_error *e)
{
	if (ZSTD_getErrorCode(error) == ZSTD_error_memory_allocation)
		return pt_fail_no_memory(e, "decompressing a chunk");
	return bad_chunk(r, at, "does not decompress, or its checksum is wrong", e);
}

/* Room for a chunk: what was given back, if that is large enough. */
static int reserve_raw(struct ptc_reader *r, size_t bytes, struct pt_error *e)
{
	for (unsigned i = r->spare_count; i-- > 0 && !r->raw;) {
		struct ptc_spare spare = r->spares[i];

		if (spare.bytes < bytes)
			continue;
		r->raw = spare.data;
		r->raw_room = spare.bytes;
		r->spares[i] = r->spares[--r->spare_count];
	}
	return ptc_reader_reserve(&r->raw, &r->raw_room, bytes, e);
}

static int decompress(struct ptc_reader *r, uint64_t at, size_t stored, size_t raw, struct pt_error *e)
{
	size_t got;

	if (reserve_raw(r, raw ? raw : 1, e))
		return -1;
	got = ZSTD_decompressDCtx(r->zstd, r->raw, raw, r->stored, stored);
	if (ZSTD_isError(got))
		return zstd_failed(r, at, got, e);
	if (got != raw)
		return bad_chunk(r, at, "decompresses to another size than its header says", e);
	return 0;
}

/* The content of the frame's first block, which is at most LATER_HEAD_MAX bytes. *ret_size: 0 when it
 * is more. */
#define LATER_HEAD_MAX 8192
static int decompress_head(struct ptc_reader *r, uint64_t at, size_t stored, size_t *ret_size,
			   struct pt_error *e)
{
	/* Frame header: magic, descriptor, window unless single-segment, dictionary id, content size
	 * (RFC 8878, 3.1.1.1). */
	uint8_t d = r->stored[4];
	size_t header =
	    5 + !(d & 0x20) + (size_t[]){0, 1, 2, 4}[d & 3] + (size_t[]){d & 0x20 ? 1 : 0, 2, 4, 8}[d >> 6];
	size_t block = u32(r->stored + header) >> 3 & 0x1fffff, got;
	ZSTD_inBuffer in = {r->stored, header + 3 + block, 0};
	ZSTD_outBuffer out;

	*ret_size = 0;
	if (in.size >= stored ||
	    block > LATER_HEAD_MAX) /* the only block, or one too long for a description */
		return 0;
	if (ptc_reader_reserve(&r->raw, &r->raw_room, LATER_HEAD_MAX, e))
		return -1;
	out = (ZSTD_outBuffer){r->raw, LATER_HEAD_MAX, 0};
	ZSTD_DCtx_reset(r->zstd, ZSTD_reset_session_only);
	got = ZSTD_decompressStream(r->zstd, &out, &in);
	ZSTD_DCtx_reset(r->zstd, ZSTD_reset_session_only);
	if (ZSTD_isError(got))
		return zstd_failed(r, at, got, e);
	if (in.pos == in.size && out.pos < out.size)
		*ret_size = out.pos;
	return 0;
}

int ptc_check_header(const struct ptc_reader *r, const uint8_t *h, uint64_t at, struct pt_error *e)
{
	uint64_t stored = u64(h + 16), raw = u64(h + 24);

	if (memcmp(h, PTC_CHUNK_MAGIC, 4) != 0 || u32(h + 36) != crc32(0, h, 36))
		return bad_chunk(r, at, "has a broken header", e);
	if (raw > PTC_CHUNK_MAX || stored > ZSTD_compressBound(raw))
		return bad_chunk(r, at, "is larger than the format allows", e);
	return 0;
}

int ptc_unpack(struct ptc_reader *r, const uint8_t *h, uint64_t at, struct pt_error *e)
{
	uint64_t stored = u64(h + 16), raw = u64(h + 24);

	if (!is_frame(r->stored, stored, raw))
		return bad_chunk(r, at, "is not one zstd frame as its header says", e);
	if (ptc_get16(h + 6) & PTC_CHUNK_LATER && ptc_crc32c(r->stored, stored) != u32(h + 32))
		return bad_chunk(r, at, "has a wrong checksum", e);
	return decompress(r, at, stored, raw, e);
}

/* Reads and checks the next chunk's header. */
static int read_header(struct ptc_reader *r, uint8_t h[PTC_CHUNK_HEADER_BYTES], struct pt_error *e)
{
	uint64_t at = r->offset;
	ssize_t got = read_all(r, h, PTC_CHUNK_HEADER_BYTES, e);

	if (got < 0)
		return -1;
	if (got < PTC_CHUNK_HEADER_BYTES)
		return pt_fail(e, PT_ERR_TRUNCATED, r->offset,
			       got ? "the container is cut within the header of chunk %llu"
				   : "the container is cut before chunk %llu",
			       (unsigned long long)r->chunks);
	if (ptc_check_header(r, h, at, e) < 0)
		return -1;
	return u32(h + 12) == (uint32_t)r->chunks ? 0 : bad_chunk(r, at, "is missing", e);
}

/* Reads and checks the frame behind a header into r->stored. */
static int read_frame(struct ptc_reader *r, const uint8_t *h, struct pt_error *e)
{
	uint64_t at = r->offset - PTC_CHUNK_HEADER_BYTES, stored = u64(h + 16), raw = u64(h + 24);
	ssize_t got;

	if (ptc_reader_reserve(&r->stored, &r->stored_room, stored ? stored : 1, e))
		return -1;
	got = read_all(r, r->stored, stored, e);
	if (got < 0)
		return -1;
	if ((uint64_t)got < stored)
		return pt_fail(e, PT_ERR_TRUNCATED, r->offset, "the container is cut within chunk %llu",
			       (unsigned long long)r->chunks);
	if (!is_frame(r->stored, stored, raw))
		return bad_chunk(r, at, "is not one zstd frame as its header says", e);
	r->stored_bytes = stored;
	r->raw_bytes = raw;
	r->crc32c = u32(h + 32);
	return 0;
}

/* Whether the chunk behind the header is left out, and has been then. */
static bool passed_over(struct ptc_reader *r, const uint8_t *h)
{
	off_t end = r->begin + (off_t)(r->offset + u64(h + 16));
	struct stat st;

	if (!r->skip || r->begin < 0 || ptc_get16(h + 4) != PTC_AUX ||
	    !r->skip(r->skip_arg, u32(h + 8), r->offset - PTC_CHUNK_HEADER_BYTES))
		return false;
	/* One that is cut is read, which says so. */
	if (fstat(r->fd, &st) < 0 || end > st.st_size || lseek(r->fd, end, SEEK_SET) < 0)
		return false;
	r->offset += u64(h + 16);
	r->chunks++;
	return true;
}

static int next(struct ptc_reader *r, struct ptc_chunk *ret, struct pt_error *e)
{
	uint8_t h[PTC_CHUNK_HEADER_BYTES];
	uint64_t at;
	bool may_wait;

	do {
		at = r->offset;
		if (read_header(r, h, e) < 0)
			return -1;
	} while (passed_over(r, h));
	if (read_frame(r, h, e) < 0)
		return -1;
	may_wait = ptc_get16(h + 6) & PTC_CHUNK_LATER;
	if (may_wait && ptc_crc32c(r->stored, r->stored_bytes) != r->crc32c)
		return bad_chunk(r, at, "has a wrong checksum", e);
	ret->type = (enum ptc_type)ptc_get16(h + 4);
	ret->size = 0;
	if (r->leave_images && ret->type == PTC_IMAGE && may_wait &&
	    decompress_head(r, at, r->stored_bytes, &ret->size, e))
		return -1;
	ret->later = ret->size != 0;
	if (!ret->later) {
		if (decompress(r, at, r->stored_bytes, r->raw_bytes, e))
			return -1;
		ret->size = r->raw_bytes;
	}
	ret->stream = u32(h + 8);
	ret->offset = at;
	ret->data = r->raw;
	if (ret->type == PTC_END && (ret->size < PTC_END_BYTES || u64(r->raw) != r->chunks))
		return bad_chunk(r, at, "ends the container at the wrong place", e);
	r->chunks++;
	return 1;
}

int ptc_next(struct ptc_reader *r, struct ptc_chunk *ret, struct pt_error *e)
{
	struct ptc_chunk c = {0};

	if (r->state == 1)
		r->state = next(r, &c, &r->error);
	else if (r->state == 2) /* PTC_END has been delivered */
		r->state = 0;
	if (r->state < 0 && e)
		*e = r->error;
	if (r->state <= 0)
		return r->state;
	if (c.type == PTC_END)
		r->state = 2;
	*ret = c;
	return 1;
}

uint8_t *ptc_take_data(struct ptc_reader *r, size_t bytes_max, size_t *ret_bytes)
{
	uint8_t *data = r->raw;

	if (r->raw_room > bytes_max)
		return NULL;
	*ret_bytes = r->raw_room;
	r->raw = NULL;
	r->raw_room = 0;
	return data;
}

void ptc_give_data(struct ptc_reader *r, uint8_t *data, size_t bytes)
{
	if (r->spare_count == PTC_SPARES || bytes > PTC_SPARE_BYTES_MAX)
		free(data);
	else
		r->spares[r->spare_count++] = (struct ptc_spare){data, bytes};
}

void ptc_reader_skip(struct ptc_reader *r, bool (*skip)(void *arg, uint32_t stream, uint64_t offset),
		     void *arg)
{
	r->skip = skip;
	r->skip_arg = arg;
}

void ptc_reader_leave_images(struct ptc_reader *r)
{
	r->leave_images = true;
}

struct ptc_kept {
	uint64_t offset; /* of the frame in the container */
	size_t stored_bytes, raw_bytes, head_bytes;
	uint32_t crc32c;
	uint8_t stored[]; /* the frame, unless it can be read again */
};

struct ptc_kept *ptc_keep(const struct ptc_reader *r, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_kept *k;
	struct ptc_image image;

	if (ptc_parse_image(c, &image, e) < 0)
		return NULL;
	if (image.size > r->raw_bytes - c->size) {
		bad_payload(c, "image", e);
		return NULL;
	}
	k = malloc(sizeof *k + (r->begin < 0 ? r->stored_bytes : 0));
	if (!k) {
		pt_fail_no_memory(e, "an image");
		return NULL;
	}
	*k = (struct ptc_kept){.offset = c->offset + PTC_CHUNK_HEADER_BYTES,
			       .stored_bytes = r->stored_bytes,
			       .raw_bytes = r->raw_bytes,
			       .head_bytes = c->size,
			       .crc32c = r->crc32c};
	if (r->begin < 0)
		memcpy(k->stored, r->stored, r->stored_bytes);
	return k;
}

size_t ptc_kept_room(const struct ptc_kept *k)
{
	return k->raw_bytes;
}

/* Reads the frame from the container's file again. NULL: failed. */
static const uint8_t *read_again(struct ptc_reader *r, const struct ptc_kept *k, struct pt_error *e)
{
	size_t have = 0;

	if (ptc_reader_reserve(&r->stored, &r->stored_room, k->stored_bytes, e))
		return NULL;
	while (have < k->stored_bytes) {
		ssize_t n = pread(r->fd, r->stored + have, k->stored_bytes - have,
				  r->begin + (off_t)(k->offset + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			pt_fail_errno(e, "cannot read the container");
			return NULL;
		}
		if (n == 0)
			break;
		have += (size_t)n;
	}
	if (have < k->stored_bytes || ptc_crc32c(r->stored, have) != k->crc32c) {
		pt_fail(e, PT_ERR_IO, k->offset, "the container was changed while it was read");
		return NULL;
	}
	return r->stored;
}

const uint8_t *ptc_kept_read(struct ptc_reader *r, const struct ptc_kept *k, uint8_t *room,
			     struct pt_error *e)
{
	const uint8_t *stored = r->begin >= 0 ? read_again(r, k, e) : k->stored;
	size_t got;

	if (!stored)
		return NULL;
	got = ZSTD_decompressDCtx(r->zstd, room, k->raw_bytes, stored, k->stored_bytes);
	if (got != k->raw_bytes) {
		if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
			pt_fail_no_memory(e, "decompressing a chunk");
		else
			pt_fail(e, PT_ERR_IO, k->offset,
				"the container is damaged: an image does not decompress");
		return NULL;
	}
	return room + k->head_bytes;
}

uint64_t ptc_reader_bytes(const struct ptc_reader *r)
{
	return r->offset;
}

/* ---- Payloads ---- */

/* What is left of a payload; `bad` once it was too short for what was asked. */
struct cursor {
	const uint8_t *p;
	uint64_t left;
	bool bad;
};

static struct cursor cursor_of(const struct ptc_chunk *c)
{
	return (struct cursor){c->data, c->size, false};
}

static const uint8_t *take(struct cursor *c, uint64_t n)
{
	const uint8_t *p = c->p;

	if (c->bad || n > c->left) {
		c->bad = true;
		return NULL;
	}
	c->p += n;
	c->left -= n;
	return p;
}

static uint32_t take32(struct cursor *c)
{
	const uint8_t *p = take(c, 4);

	return p ? u32(p) : 0;
}

static uint64_t take64(struct cursor *c)
{
	const uint8_t *p = take(c, 8);

	return p ? u64(p) : 0;
}

/* A "str": its bytes; NULL when bad. */
static const uint8_t *take_str(struct cursor *c, uint32_t *ret_bytes)
{
	*ret_bytes = take32(c);
	return take(c, *ret_bytes);
}

int ptc_parse_stream(const struct ptc_chunk *c, struct ptc_stream *ret, struct pt_error *e)
{
	struct cursor at = cursor_of(c);
	uint32_t kind = take32(&at);
	struct ptc_stream s;

	s.cpu = (int32_t)take32(&at);
	s.pid = (int32_t)take32(&at);
	s.tid = (int32_t)take32(&at);
	s.attr = take32(&at);
	s.snapshot = take32(&at);
	if (at.bad || c->stream == 0)
		return bad_payload(c, "stream", e);
	if (kind != 1)
		return pt_fail(e, PT_ERR_BAD_INPUT, c->offset,
			       "stream %u is of kind %u, which is not Intel PT", c->stream, kind);
	*ret = s;
	return 0;
}

int ptc_parse_aux(const struct ptc_chunk *c, struct ptc_aux *ret, struct pt_error *e)
{
	struct cursor at = cursor_of(c);
	struct ptc_aux a;

	a.seq = take64(&at);
	a.aux_offset = take64(&at);
	a.flags = take64(&at);
	a.time_ns = take64(&at);
	a.size = at.left;
	a.bytes = take(&at, at.left);
	if (at.bad || a.aux_offset + a.size < a.aux_offset)
		return bad_payload(c, "AUX", e);
	*ret = a;
	return 0;
}

int ptc_parse_attr(const struct ptc_chunk *c, struct ptc_attr *ret, struct pt_error *e)
{
	struct cursor at = cursor_of(c);
	struct ptc_attr a;

	a.index = take32(&at);
	a.name = (const char *)take_str(&at, &a.name_bytes);
	a.attr = take_str(&at, &a.attr_bytes);
	a.count = take32(&at);
	a.ids = take(&at, (uint64_t)a.count * 8);
	a.machine_pid = !at.bad && at.left >= 4 ? (int32_t)take32(&at) : 0;
	if (at.bad)
		return bad_payload(c, "event attribute", e);
	*ret = a;
	return 0;
}

int ptc_parse_format(const struct ptc_chunk *c, struct ptc_tracepoint *ret, struct pt_error *e)
{
	struct cursor at = cursor_of(c);
	struct ptc_tracepoint t;

	t.machine_pid = (int32_t)take32(&at);
	t.id = take32(&at);
	t.system = (const char *)take_str(&at, &t.system_bytes);
	t.name = (const char *)take_str(&at, &t.name_bytes);
	t.format = (const char *)take_str(&at, &t.format_bytes);
	if (at.bad)
		return bad_payload(c, "tracepoint format", e);
	*ret = t;
	return 0;
}

int ptc_parse_sideband(const struct ptc_chunk *c, uint32_t *ret_attr, const uint8_t **ret_records,
		       uint64_t *ret_size, struct pt_error *e)
{
	struct cursor at = cursor_of(c);
	uint32_t attr = take32(&at);
	struct cursor walk;

	take32(&at);
	walk = at;
	while (!walk.bad && walk.left > 0) {
		uint16_t size = walk.left < 8 ? 0 : ptc_get16(walk.p + 6);

		if (size < 8)
			walk.bad = true;
		take(&walk, size);
	}
	if (walk.bad)
		return bad_payload(c, "sideband", e);
	*ret_attr = attr;
	*ret_records = at.p;
	*ret_size = at.left;
	return 0;
}

uint32_t ptc_sideband_flags(const struct ptc_chunk *c)
{
	struct cursor at = cursor_of(c);

	take32(&at);
	return take32(&at);
}

int ptc_parse_image(const struct ptc_chunk *c, struct ptc_image *ret, struct pt_error *e)
{
	struct cursor at = cursor_of(c);
	struct ptc_image i;

	i.kind = (enum ptc_image_kind)take32(&at);
	i.machine_pid = (int32_t)take32(&at);
	i.pid = (int32_t)take32(&at);
	i.continues = take32(&at);
	i.offset = take64(&at);
	i.vaddr = take64(&at);
	i.time_ns = take64(&at);
	i.build_id = take_str(&at, &i.build_id_bytes);
	i.name = (const char *)take_str(&at, &i.name_bytes);
	i.size = take64(&at);
	i.bytes = c->later ? NULL : take(&at, i.size);
	i.later = c->later ? c : NULL;
	at.bad |= c->later && at.left;
	if (at.bad || i.build_id_bytes > 20 || i.offset + i.size < i.offset ||
	    (i.kind != PTC_IMAGE_FILE && i.kind != PTC_IMAGE_MEMORY))
		return bad_payload(c, "image", e);
	if (i.build_id_bytes == 0)
		i.build_id = NULL;
	*ret = i;
	return 0;
}

int ptc_parse_symbols(const struct ptc_chunk *c, struct ptc_symbols *ret, struct pt_error *e)
{
	struct cursor at = cursor_of(c);
	const uint8_t *table;
	struct ptc_symbols s;

	s.machine_pid = (int32_t)take32(&at);
	s.pid = (int32_t)take32(&at);
	s.absolute = take32(&at);
	s.count = take32(&at);
	s.build_id = take_str(&at, &s.build_id_bytes);
	s.name = (const char *)take_str(&at, &s.name_bytes);
	table = take(&at, (uint64_t)s.count * PTC_SYMBOL_BYTES);
	s.strings_bytes = take64(&at);
	s.strings = (const char *)take(&at, s.strings_bytes);
	if (at.bad || s.build_id_bytes > 20 || (s.count && s.strings_bytes == 0) ||
	    (s.strings_bytes && s.strings[s.strings_bytes - 1] != 0))
		return bad_payload(c, "symbols", e);
	for (uint32_t i = 0; i < s.count; i++)
		if (u32(table + (size_t)i * PTC_SYMBOL_BYTES + 16) >= s.strings_bytes)
			return bad_payload(c, "symbols", e);
	if (s.build_id_bytes == 0)
		s.build_id = NULL;
	s.symbols = (const struct ptc_symbol *)(const void *)table;
	*ret = s;
	return 0;
}

int ptc_parse_round(const struct ptc_chunk *c, uint64_t *ret_time_ns, struct pt_error *e)
{
	struct cursor at = cursor_of(c);
	uint64_t time_ns = take64(&at);

	if (at.bad)
		return bad_payload(c, "round", e);
	*ret_time_ns = time_ns;
	return 0;
}
