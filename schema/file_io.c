/* file_io.c - see file_io.h. */
#include "schema/file_io.h"

#include <errno.h>
#include <unistd.h>

int pt_write_at(int fd, const void *from, size_t bytes, uint64_t at, const char *what, struct pt_error *e)
{
	const char *p = from;

	while (bytes) {
		ssize_t done = pwrite(fd, p, bytes, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return pt_fail_errno(e, "%s", what);
		p += done;
		bytes -= (size_t)done;
		at += (uint64_t)done;
	}
	return 0;
}

int pt_read_at(int fd, void *to, size_t bytes, uint64_t at, size_t *ret_bytes, const char *what,
	       struct pt_error *e)
{
	char *p = to;
	ssize_t done = 1;

	for (*ret_bytes = 0; *ret_bytes < bytes && done;) {
		done = pread(fd, p + *ret_bytes, bytes - *ret_bytes, (off_t)(at + *ret_bytes));
		if (done < 0 && errno != EINTR)
			return pt_fail_errno(e, "%s", what);
		*ret_bytes += done > 0 ? (size_t)done : 0;
	}
	return 0;
}
