/*
 * regular_file.h - opens a file that a trace names, or another user's folder has.
 *
 * Such a name can be that of a FIFO, where a read waits forever and an open alone lets its writer go
 * on, or of a device, which an open may start. So what is no regular file is not opened at all.
 */
#ifndef CAPTURE_CODE_REGULAR_FILE_H
#define CAPTURE_CODE_REGULAR_FILE_H

#include <sys/stat.h>

/* Opens for reading. Returns the descriptor, with fstat()'s result in *ret; or -1 with errno,
 * ENOEXEC: no regular file. */
int regular_file_open(const char *path, struct stat *ret);

#endif
