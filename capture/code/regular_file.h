/*
 * regular_file.h - opens and reads a file that a trace names, or another user's folder has.
 *
 * Such a name can be that of a FIFO, where a read waits forever and an open alone lets its writer go
 * on, or of a device, which an open may start. So what is no regular file is not opened at all.
 */
#ifndef CAPTURE_CODE_REGULAR_FILE_H
#define CAPTURE_CODE_REGULAR_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Opens for reading. Returns the descriptor, with fstat()'s result in *ret; or -1 with errno,
 * ENOEXEC: no regular file. */
int regular_file_open(const char *path, struct stat *ret);

/*
 * The same file as a process opens by that name whose root directory is `root` ("" is this process's own):
 * a ".." or a symbolic link does not lead out of it. Returns a descriptor (O_PATH: what it leads to is
 * opened as /proc/self/fd/N), with fstat()'s result in *ret; or -1 with errno, ENOEXEC: no regular file.
 * Before Linux 5.6, which has no openat2(), links are followed as this process sees them.
 */
int regular_file_below(const char *root, const char *name, struct stat *ret);

/*
 * By how much a file's time may be before that of the write: it is the kernel's coarse clock's. That lags by
 * what the last tick left over, less than one, and the time since (kernel/time/timekeeping.c,
 * timekeeping_advance()); ticks may be late. 0: not known.
 */
uint64_t file_time_lag_ns(void);

/* Reads n bytes at an offset, or as many as there are. Returns how many, or -1 with errno. */
ssize_t file_read_at(int fd, uint8_t *to, size_t n, uint64_t at);

#endif
