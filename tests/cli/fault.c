/*
 * fault.c - a library to preload: at the N-th change of a file (FAULT_AT, from 1) the process is
 * killed (FAULT_HOW=kill), or from then on no write finds room (FAULT_HOW=full). FAULT_HOW=close:
 * each write does, but closing a file that can be written to reports that there was no room after
 * all, as a file system that writes later may. FAULT_COUNT names a file that gets the number of
 * changes at the end.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static long changes;

/* True: the change is to fail. */
static int change(int is_write)
{
	const char *at = getenv("FAULT_AT"), *how = getenv("FAULT_HOW");
	long n = at ? atol(at) : 0;

	changes++;
	if (!n || !how)
		return 0;
	if (!strcmp(how, "kill") && changes == n)
		kill(getpid(), SIGKILL);
	if (strcmp(how, "full") || !is_write || changes < n)
		return 0;
	errno = ENOSPC;
	return 1;
}

__attribute__((destructor)) static void report(void)
{
	const char *name = getenv("FAULT_COUNT");
	FILE *f = name ? fopen(name, "w") : NULL;

	if (f) {
		fprintf(f, "%ld\n", changes);
		fclose(f);
	}
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name)) /* NOLINT(bugprone-macro-parentheses) */

ssize_t write(int fd, const void *bytes, size_t n)
{
	return fd > 2 && change(1) ? -1 : NEXT(write)(fd, bytes, n);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
	return change(1) ? -1 : NEXT(pwrite)(fd, bytes, n, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
	return change(1) ? -1 : NEXT(pwrite64)(fd, bytes, n, at);
}

int close(int fd)
{
	const char *how = getenv("FAULT_HOW");
	int flags = fcntl(fd, F_GETFL);
	struct stat st;
	bool fails = how && !strcmp(how, "close") && flags >= 0 && (flags & O_ACCMODE) != O_RDONLY &&
		     fstat(fd, &st) == 0 && S_ISREG(st.st_mode);

	int ret = NEXT(close)(fd);

	if (!fails)
		return ret;
	errno = ENOSPC;
	return -1;
}

int ftruncate(int fd, off_t n)
{
	return change(0) ? -1 : NEXT(ftruncate)(fd, n);
}

int ftruncate64(int fd, off64_t n)
{
	return change(0) ? -1 : NEXT(ftruncate64)(fd, n);
}

int fsync(int fd)
{
	return change(0) ? -1 : NEXT(fsync)(fd);
}

int fdatasync(int fd)
{
	return change(0) ? -1 : NEXT(fdatasync)(fd);
}

int unlink(const char *name)
{
	return change(0) ? -1 : NEXT(unlink)(name);
}

int rename(const char *from, const char *to)
{
	return change(0) ? -1 : NEXT(rename)(from, to);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	return change(0) ? -1 : NEXT(renameat2)(from_fd, from, to_fd, to, flags);
}
