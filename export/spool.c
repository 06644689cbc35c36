/* spool.c - see spool.h. */
#include "export/spool.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int flush(struct spool *s, struct pt_error *e)
{
	const char *p = s->buffer;

	while (s->held) {
		ssize_t done = pwrite(s->scratch, p, s->held, (off_t)s->flushed);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return pt_fail_errno(e, "writing a scratch file");
		p += done;
		s->held -= (size_t)done;
		s->flushed += (uint64_t)done;
	}
	return 0;
}

int spool_write(struct spool *s, const void *from, size_t bytes, struct pt_error *e)
{
	const char *p = from;

	if (bytes < SPOOL_HELD - s->held) {
		memcpy(s->buffer + s->held, p, bytes);
		s->held += bytes;
		return 0;
	}
	while (bytes) {
		size_t n = bytes < SPOOL_HELD - s->held ? bytes : SPOOL_HELD - s->held;

		memcpy(s->buffer + s->held, p, n);
		s->held += n;
		p += n;
		bytes -= n;
		if (s->held == SPOOL_HELD && flush(s, e) < 0)
			return -1;
	}
	return 0;
}

int spool_rewind(struct spool *s, struct pt_error *e)
{
	if (s->flushed) {
		if (flush(s, e) < 0)
			return -1;
		s->flushed = 0;
	}
	s->at = 0;
	return 0;
}

static int fill(struct spool *s, struct pt_error *e)
{
	ssize_t done;

	do
		done = pread(s->scratch, s->buffer, SPOOL_HELD, (off_t)s->flushed);
	while (done < 0 && errno == EINTR);
	if (done < 0)
		return pt_fail_errno(e, "reading a scratch file");
	if (!done)
		return pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "a scratch file is cut");
	s->held = (size_t)done;
	s->flushed += (uint64_t)done;
	s->at = 0;
	return 0;
}

int spool_read(struct spool *s, void *to, size_t bytes, struct pt_error *e)
{
	char *p = to;

	if (bytes <= s->held - s->at) {
		memcpy(p, s->buffer + s->at, bytes);
		s->at += bytes;
		return 0;
	}
	while (bytes) {
		size_t n = bytes < s->held - s->at ? bytes : s->held - s->at;

		if (!n) {
			if (fill(s, e) < 0)
				return -1;
			continue;
		}
		memcpy(p, s->buffer + s->at, n);
		s->at += n;
		p += n;
		bytes -= n;
	}
	return 0;
}
