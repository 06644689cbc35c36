/* regular_file.c - see regular_file.h. */
#include "capture/code/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

ssize_t file_read_at(int fd, uint8_t *to, size_t n, uint64_t at)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(fd, to + done, n - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

int regular_file_open(const char *path, struct stat *ret)
{
	int fd;

	if (stat(path, ret) < 0)
		return -1;
	if (S_ISREG(ret->st_mode)) {
		/* It may be another one by now: not to hang then. */
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0 || (fstat(fd, ret) == 0 && S_ISREG(ret->st_mode)))
			return fd;
		close(fd);
	}
	errno = ENOEXEC;
	return -1;
}

static int open_below(const char *root, const char *name)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	char path[PATH_MAX];
	int dir, fd;

	if (!root[0])
		return open(name, O_PATH | O_CLOEXEC);
	dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
	close(dir);
	if (fd >= 0 || errno != ENOSYS)
		return fd;
	if (snprintf(path, sizeof path, "%s/%s", root, name) >= (int)sizeof path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return open(path, O_PATH | O_CLOEXEC);
}

int regular_file_below(const char *root, const char *name, struct stat *ret)
{
	int fd = open_below(root, name);

	if (fd < 0 || (fstat(fd, ret) == 0 && S_ISREG(ret->st_mode)))
		return fd;
	close(fd);
	errno = ENOEXEC;
	return -1;
}

#define LAG_TICKS 3 /* two, and one for a tick that is late */

uint64_t file_time_lag_ns(void)
{
	struct timespec tick;

	if (clock_getres(CLOCK_REALTIME_COARSE, &tick))
		return 0;
	return LAG_TICKS * ((uint64_t)tick.tv_sec * 1000000000u + (uint64_t)tick.tv_nsec);
}
