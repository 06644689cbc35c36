/* terminal.c - see terminal.h. */
#include "schema/terminal.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "schema/utf8.h"

#define REST_MAX 3 /* bytes of a character that is not whole yet, or a CR */

/* The stream's state: what the next write goes on from. */
struct filter {
	int fd;
	uint8_t rest[REST_MAX];
	size_t rest_bytes;
};

static int write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -1;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

/* Bytes at p that are shown as they are; 0: one byte is made visible. n bytes are there. */
static size_t shown(const uint8_t *p, size_t n)
{
	size_t bytes = pt_utf8_bytes(p, n);

	if (p[0] == '\n' || p[0] == '\t')
		return 1;
	if (p[0] == '\r' && n > 1 && p[1] == '\n')
		return 2;
	return bytes && !pt_utf8_controls(p, bytes) ? bytes : 0;
}

/* Bytes at p that are one thing, of which each is written visibly: a character that controls, or one
 * that is none. */
static size_t hidden(const uint8_t *p, size_t n)
{
	size_t bytes = pt_utf8_bytes(p, n);

	return bytes ? bytes : 1;
}

/* Of n bytes what is complete becomes text of up to four times as many bytes; *ret_text: how many.
 * Returns how many bytes of p it is. */
static size_t make_visible(const uint8_t *p, size_t n, char *text, size_t *ret_text)
{
	size_t i = 0, to = 0;

	while (i < n && !pt_utf8_is_cut(p + i, n - i) && !(p[i] == '\r' && i + 1 == n)) {
		size_t bytes = shown(p + i, n - i), end = i + hidden(p + i, n - i);

		if (bytes) {
			memcpy(text + to, p + i, bytes);
			to += bytes;
			i += bytes;
			continue;
		}
		for (; i < end; i++)
			to += (size_t)sprintf(text + to, "\\x%02x", p[i]);
	}
	*ret_text = to;
	return i;
}

static ssize_t filter_write(void *cookie, const char *bytes, size_t n)
{
	struct filter *f = cookie;
	size_t all = f->rest_bytes + n, used, text_bytes;
	uint8_t *joined = malloc(all + 1);
	char *text = malloc(4 * all + 1);
	int failed = -1;

	if (joined && text) {
		memcpy(joined, f->rest, f->rest_bytes);
		memcpy(joined + f->rest_bytes, bytes, n);
		used = make_visible(joined, all, text, &text_bytes);
		f->rest_bytes = all - used;
		memcpy(f->rest, joined + used, f->rest_bytes);
		failed = write_all(f->fd, text, text_bytes);
	}
	free(joined);
	free(text);
	return failed ? 0 : (ssize_t)n; /* 0: fopencookie()'s way to say that it failed */
}

/* to, or when that is a terminal, a stream in its place. */
static FILE *protect(FILE *to, struct filter *filter, int buffering)
{
	static const cookie_io_functions_t functions = {.write = filter_write};
	FILE *protected;

	if (!isatty(fileno(to)))
		return to;
	protected = fopencookie(filter, "w", functions);
	if (!protected) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	filter->fd = fileno(to);
	setvbuf(protected, NULL, buffering, BUFSIZ);
	return protected;
}

/* glibc lets both be assigned to. */
void pt_terminal_protect(void)
{
	static struct filter filter;

	stdout = protect(stdout, &filter, _IOLBF);
}

void pt_terminal_protect_errors(void)
{
	static struct filter filter;

	stderr = protect(stderr, &filter, _IOLBF);
}
