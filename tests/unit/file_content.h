/* file_content.h - what a test has written, to look at. */
#ifndef TESTS_FILE_CONTENT_H
#define TESTS_FILE_CONTENT_H

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* The file's content, malloc()ed. */
static inline uint8_t *content(int fd, size_t *ret_n)
{
	off_t n = lseek(fd, 0, SEEK_END);
	uint8_t *ret = malloc((size_t)n + 1);

	if (!ret || pread(fd, ret, (size_t)n, 0) != n)
		abort();
	*ret_n = (size_t)n;
	return ret;
}

#endif
