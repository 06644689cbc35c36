/* compress.c - see compress.h. */
#include "export/compress.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 1 << 20 };

static int write_all(int fd, const uint8_t *bytes, size_t n, struct pt_error *e)
{
	while (n) {
		ssize_t done = write(fd, bytes, n);

		if (done < 0 && errno != EINTR)
			return pt_fail_errno(e, "the compressed file");
		bytes += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
	}
	return 0;
}

/* All that is in the file `from`, to where `to` is. buffer: COPY_BYTES. */
static int copy(int to, int from, uint8_t *buffer, struct pt_error *e)
{
	uint64_t at = 0;

	for (;;) {
		ssize_t n = pread(from, buffer, COPY_BYTES, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return pt_fail_errno(e, "a scratch file");
		if (n == 0)
			return 0;
		if (write_all(to, buffer, (size_t)n, e))
			return -1;
		at += (uint64_t)n;
	}
}

static int replace_content(int fd, int by, struct pt_error *e)
{
	uint8_t *buffer = malloc(COPY_BYTES);
	int ret;

	if (!buffer)
		return pt_fail_no_memory(e, NULL);
	if (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET))
		ret = pt_fail_errno(e, "the compressed file");
	else
		ret = copy(fd, by, buffer, e);
	free(buffer);
	return ret;
}

int compress_file(int fd, int scratch, const struct pt_seekable_options *options, struct pt_error *e)
{
	struct stat st;

	if (fstat(fd, &st))
		return pt_fail_errno(e, "the file to compress");
	return pt_seekable_write(scratch, fd, (uint64_t)st.st_size, options, e) < 0
		   ? -1
		   : replace_content(fd, scratch, e);
}
