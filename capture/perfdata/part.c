/* part.c - see part.h. */
#include "capture/perfdata/part.h"
#include "capture/perfdata/perf_user.h"
#include "schema/bytes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNPACKED_BYTES ((size_t)1 << 20) /* more than one record */
#define WINDOW_LOG_MAX 27
#define AUXTRACE_HEAD  48 /* struct perf_record_auxtrace */

/* ---- Bytes ---- */

/* n bytes at offset; fewer at the file's end. How many, or -1. */
static ssize_t read_at(const struct perf_part *p, uint64_t offset, void *to, size_t n, struct pt_error *e)
{
	size_t done = 0;

	if (offset > INT64_MAX - n)
		return 0;
	while (done < n) {
		ssize_t got = pread(p->fd, (uint8_t *)to + done, n - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return pt_fail_errno(e, "cannot read %s", p->path);
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

int perf_part_read(const struct perf_part *p, uint64_t offset, void *to, size_t n, const char *what,
		   struct pt_error *e)
{
	ssize_t got = read_at(p, offset, to, n, e);

	if (got < 0)
		return -1;
	if ((size_t)got < n)
		return pt_fail(e, PT_ERR_TRUNCATED, offset + (uint64_t)got, "%s ends inside %s", p->path,
			       what);
	return 0;
}

/* n bytes (at most a record's) at p->at: *ret, NULL when the part ends before. */
static int fetch(struct perf_part *p, size_t n, const uint8_t **ret, struct pt_error *e)
{
	*ret = NULL;
	if (n > p->end - p->at)
		return 0;
	if (p->at < p->buffer_at || p->at + n > p->buffer_at + p->buffer_bytes) {
		uint64_t left = p->end - p->at;
		ssize_t got;

		if (!p->buffer && !(p->buffer = malloc(p->buffer_room)))
			return pt_fail_no_memory(e, "the perf.data");
		got = read_at(p, p->at, p->buffer, left < p->buffer_room ? left : p->buffer_room, e);
		if (got < 0)
			return -1;
		p->buffer_at = p->at;
		p->buffer_bytes = (size_t)got;
		if ((size_t)got < n)
			return 0;
	}
	*ret = p->buffer + (p->at - p->buffer_at);
	return 0;
}

/* ---- Records as they are in the file ---- */

static void fill_record(struct perf_record *ret, const uint8_t *bytes)
{
	struct perf_event_header h;

	memcpy(&h, bytes, sizeof h);
	ret->bytes = bytes;
	ret->type = h.type;
	ret->misc = h.misc;
	ret->size = h.size;
}

/* Moves on past the record and the bytes after it that its size does not cover. */
static int pass_record(struct perf_part *p, struct perf_record *rec, struct pt_error *e)
{
	uint64_t left;

	p->at += rec->size;
	left = p->end - p->at;
	if (rec->type == PERF_USER_AUXTRACE) {
		if (rec->size < AUXTRACE_HEAD)
			return pt_fail(e, PT_ERR_BAD_INPUT, rec->offset, "%s: an AUXTRACE record of %u bytes",
				       p->path, rec->size);
		rec->tail_bytes = u64(rec->bytes + 8);
	} else if (rec->type == PERF_USER_HEADER_TRACING_DATA && rec->size >= 12) {
		rec->tail_bytes = ((uint64_t)u32(rec->bytes + 8) + 7) / 8 * 8;
	}
	if (rec->tail_bytes > left)
		return pt_fail(e, PT_ERR_TRUNCATED, rec->offset,
			       "%s ends inside the %" PRIu64 " bytes after a record of type %u", p->path,
			       rec->tail_bytes, rec->type);
	rec->tail_offset = p->at;
	p->at += rec->tail_bytes;
	return 0;
}

static int next_plain(struct perf_part *p, struct perf_record *ret, struct pt_error *e)
{
	const uint8_t *bytes;

	*ret = (struct perf_record){.part = p->number, .offset = p->at};
	if (p->at == p->end)
		return 0;
	if (fetch(p, sizeof(struct perf_event_header), &bytes, e))
		return -1;
	if (!bytes)
		return pt_fail(e, PT_ERR_TRUNCATED, p->at, "%s ends inside a record's header", p->path);
	fill_record(ret, bytes);
	if (ret->size < sizeof(struct perf_event_header))
		return pt_fail(e, PT_ERR_BAD_INPUT, p->at, "%s: a record of type %u and %u bytes", p->path,
			       ret->type, ret->size);
	if (fetch(p, ret->size, &bytes, e))
		return -1;
	if (!bytes)
		return pt_fail(e, PT_ERR_TRUNCATED, ret->offset, "%s ends inside a record of type %u",
			       p->path, ret->type);
	ret->bytes = bytes;
	return pass_record(p, ret, e) ? -1 : 1;
}

/* ---- Compressed records ---- */

static bool is_compressed(const struct perf_record *r)
{
	return r->type == PERF_USER_COMPRESSED || r->type == PERF_USER_COMPRESSED2;
}

/* Copies a compressed record's bytes, since the buffer moves on. */
static int begin_unpacking(struct perf_part *p, const struct perf_record *rec, struct pt_error *e)
{
	size_t head = 8, n;

	if (!p->zstd) {
		p->zstd = ZSTD_createDCtx();
		p->packed = malloc(UINT16_MAX);
		p->unpacked = malloc(UNPACKED_BYTES);
		if (!p->zstd || !p->packed || !p->unpacked)
			return pt_fail_no_memory(e, "the perf.data");
		ZSTD_DCtx_setParameter(p->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	}
	n = rec->size - head;
	if (rec->type == PERF_USER_COMPRESSED2) { /* u64 bytes; padding follows them */
		head = 16;
		if (rec->size < head || u64(rec->bytes + 8) > rec->size - head)
			return pt_fail(e, PT_ERR_BAD_INPUT, rec->offset,
				       "%s: a compressed record of %u bytes", p->path, rec->size);
		n = u64(rec->bytes + 8);
	}
	memcpy(p->packed, rec->bytes + head, n);
	p->in = (ZSTD_inBuffer){p->packed, n, 0};
	p->more = true;
	p->packed_offset = rec->offset;
	return 0;
}

/* Fills what is free of the unpacked bytes. */
static int unpack(struct perf_part *p, struct pt_error *e)
{
	ZSTD_outBuffer out;
	size_t status;

	memmove(p->unpacked, p->unpacked + p->unpacked_at, p->unpacked_bytes - p->unpacked_at);
	p->unpacked_bytes -= p->unpacked_at;
	p->unpacked_at = 0;
	out = (ZSTD_outBuffer){p->unpacked, UNPACKED_BYTES, p->unpacked_bytes};
	status = ZSTD_decompressStream(p->zstd, &out, &p->in);
	if (ZSTD_isError(status))
		return pt_fail(e, PT_ERR_BAD_INPUT, p->packed_offset, "%s: a broken compressed record: %s",
			       p->path, ZSTD_getErrorName(status));
	p->unpacked_bytes = out.pos;
	/* When the buffer is full there may be more. */
	p->more = p->in.pos < p->in.size || out.pos == UNPACKED_BYTES;
	return 0;
}

/* A whole record among what is unpacked: 1; 0: not yet; -1. */
static int next_unpacked(struct perf_part *p, struct perf_record *ret, struct pt_error *e)
{
	size_t left = p->unpacked_bytes - p->unpacked_at;

	if (left < sizeof(struct perf_event_header))
		return 0;
	*ret = (struct perf_record){.part = p->number, .offset = p->packed_offset};
	fill_record(ret, p->unpacked + p->unpacked_at);
	if (ret->size < sizeof(struct perf_event_header) || ret->type == PERF_USER_AUXTRACE ||
	    is_compressed(ret))
		return pt_fail(e, PT_ERR_BAD_INPUT, p->packed_offset,
			       "%s: a compressed record with one of type %u and %u bytes in it", p->path,
			       ret->type, ret->size);
	if (left < ret->size)
		return 0;
	p->unpacked_at += ret->size;
	return 1;
}

/* ---- Both ---- */

int perf_part_next(struct perf_part *p, struct perf_record *ret, struct pt_error *e)
{
	for (;;) {
		int got = next_unpacked(p, ret, e);

		if (got)
			return got;
		if (p->more) {
			if (unpack(p, e))
				return -1;
			continue;
		}
		got = next_plain(p, ret, e);
		if (got == 1 && is_compressed(ret)) {
			if (begin_unpacking(p, ret, e))
				return -1;
			continue;
		}
		if (got)
			return got;
		if (p->unpacked_bytes > p->unpacked_at)
			return pt_fail(e, PT_ERR_TRUNCATED, p->packed_offset,
				       "%s ends inside a compressed record", p->path);
		return 0;
	}
}

void perf_part_rewind(struct perf_part *p)
{
	p->at = p->begin;
	p->buffer_bytes = p->unpacked_at = p->unpacked_bytes = 0;
	p->in = (ZSTD_inBuffer){0};
	p->done = p->more = false;
	if (p->zstd)
		ZSTD_DCtx_reset(p->zstd, ZSTD_reset_session_only);
}

void perf_part_close(struct perf_part *p)
{
	if (p->fd > STDIN_FILENO)
		close(p->fd);
	ZSTD_freeDCtx(p->zstd);
	free(p->buffer);
	free(p->unpacked);
	free(p->packed);
}
