/* scratch.c - see scratch.h. */
#include "export/scratch.h"

#include <errno.h>
#include <unistd.h>

int scratch_write(int fd, const void *from, size_t bytes, uint64_t at, struct pt_error *e)
{
	const char *p = from;

	while (bytes) {
		ssize_t done = pwrite(fd, p, bytes, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return pt_fail_errno(e, "writing a scratch file");
		p += done;
		bytes -= (size_t)done;
		at += (uint64_t)done;
	}
	return 0;
}

int scratch_read(int fd, void *to, size_t bytes, uint64_t at, size_t *ret_bytes, struct pt_error *e)
{
	char *p = to;
	ssize_t done = 1;

	for (*ret_bytes = 0; *ret_bytes < bytes && done;) {
		done = pread(fd, p + *ret_bytes, bytes - *ret_bytes, (off_t)(at + *ret_bytes));
		if (done < 0 && errno != EINTR)
			return pt_fail_errno(e, "reading a scratch file");
		*ret_bytes += done > 0 ? (size_t)done : 0;
	}
	return 0;
}
