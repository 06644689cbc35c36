/*
 * regular_file.h - opens a file whose name is from a trace, or from somebody else's folder.
 *
 * Such a name can be anything's: a FIFO's, where a read waits for ever and an open alone lets its writer go on; a device's, which an
 * open may start. So what is no regular file is not opened at all.
 */
#ifndef CAPTURE_CODE_REGULAR_FILE_H
#define CAPTURE_CODE_REGULAR_FILE_H

#include <sys/stat.h>

/* For reading. Returns the descriptor, with what fstat() tells of it in *ret, or -1 with errno; ENOEXEC: it is no regular file. */
int regular_file_open(const char *path, struct stat *ret);

#endif
