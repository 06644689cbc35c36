/* spool.c - see spool.h. */
#include "export/spool.h"

#include <string.h>

#include "export/scratch.h"

static int flush(struct spool *s, struct pt_error *e)
{
	if (scratch_write(s->scratch, s->buffer, s->held, s->flushed, e) < 0)
		return -1;
	s->flushed += s->held;
	s->held = 0;
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
	if (scratch_read(s->scratch, s->buffer, SPOOL_HELD, s->flushed, &s->held, e) < 0)
		return -1;
	s->flushed += s->held;
	s->at = 0;
	return s->held ? 0 : pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "a scratch file was cut");
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
