/* byte_source.c - see byte_source.h. */
#include "capture/raw/byte_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#define WINDOW_LOG_MAX 27 /* 128 MiB: zstd's own limit for what it decompresses unasked */

struct byte_source {
	int fd;
	char *path;
	ZSTD_DCtx *zstd; /* NULL: plain bytes */
	ZSTD_inBuffer in;
	size_t room;
	bool at_end;   /* of the file */
	bool in_frame; /* a zstd frame has begun and not ended */
	uint8_t buffer[];
};

/* Refills the empty buffer. */
static int fill(struct byte_source *s, struct pt_error *e)
{
	ssize_t got;

	do
		got = read(s->fd, s->buffer, s->room);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return pt_fail_errno(e, "cannot read %s", s->path);
	s->at_end = got == 0;
	s->in = (ZSTD_inBuffer){s->buffer, (size_t)got, 0};
	return 0;
}

struct byte_source *byte_source_open(const char *path, struct pt_error *e)
{
	size_t room = ZSTD_DStreamInSize();
	struct byte_source *s = calloc(1, sizeof *s + room);
	struct stat st;

	if (!s || !(s->path = strdup(path)))
		goto no_memory;
	s->room = room;
	s->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (s->fd < 0 || fstat(s->fd, &st) < 0) {
		pt_fail_errno(e, "cannot open %s", path);
		goto fail;
	}
	if (fill(s, e))
		goto fail;
	/* A pipe may hand over its first bytes one by one. */
	while (s->in.size < 4 && !s->at_end) {
		ssize_t got = read(s->fd, s->buffer + s->in.size, s->room - s->in.size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			pt_fail_errno(e, "cannot read %s", path);
			goto fail;
		}
		s->at_end = got == 0;
		s->in.size += (size_t)got;
	}
	if (s->in.size >= 4 && memcmp(s->buffer, "\x28\xb5\x2f\xfd", 4) == 0) {
		s->zstd = ZSTD_createDCtx();
		if (!s->zstd)
			goto no_memory;
		ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	}
	return s;
no_memory:
	pt_fail_no_memory(e, path);
fail:
	byte_source_close(s);
	return NULL;
}

void byte_source_close(struct byte_source *s)
{
	if (!s)
		return;
	if (s->fd > STDIN_FILENO)
		close(s->fd);
	ZSTD_freeDCtx(s->zstd);
	free(s->path);
	free(s);
}

static ssize_t read_plain(struct byte_source *s, uint8_t *to, size_t n, struct pt_error *e)
{
	size_t have = s->in.size - s->in.pos < n ? s->in.size - s->in.pos : n;

	memcpy(to, s->buffer + s->in.pos, have);
	s->in.pos += have;
	while (have < n && !s->at_end) {
		ssize_t got = read(s->fd, to + have, n - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return pt_fail_errno(e, "cannot read %s", s->path);
		s->at_end = got == 0;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

ssize_t byte_source_read(struct byte_source *s, void *to, size_t n, struct pt_error *e)
{
	ZSTD_outBuffer out = {to, n, 0};

	if (!s->zstd)
		return read_plain(s, to, n, e);
	while (out.pos < n) {
		size_t before = out.pos, more;

		if (s->in.pos == s->in.size && !s->at_end && fill(s, e))
			return -1;
		if (s->in.pos == s->in.size && s->at_end && !s->in_frame)
			break;
		more = ZSTD_decompressStream(s->zstd, &out, &s->in);
		if (ZSTD_isError(more))
			return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s: broken zstd data: %s", s->path,
				       ZSTD_getErrorName(more));
		s->in_frame = more != 0;
		if (s->in_frame && s->at_end && out.pos == before)
			return pt_fail(e, PT_ERR_TRUNCATED, PT_NO_OFFSET, "%s: the zstd data is cut",
				       s->path);
	}
	return (ssize_t)out.pos;
}

int byte_source_skip(struct byte_source *s, uint64_t n, struct pt_error *e)
{
	uint8_t away[65536];

	while (n) {
		ssize_t got = byte_source_read(s, away, n < sizeof away ? n : sizeof away, e);

		if (got <= 0)
			return (int)got;
		n -= (uint64_t)got;
	}
	return 0;
}

bool byte_source_compressed(const struct byte_source *s)
{
	return s->zstd != NULL;
}
