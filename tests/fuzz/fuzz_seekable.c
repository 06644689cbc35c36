/* fuzz_seekable.c - any bytes as a file in zstd's seekable format: what opens is read as a whole and by pages,
 * which say the same, or why not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "schema/seekable.h"
#include "tests/fuzz/fuzz.h"

enum { READ_MAX = 1 << 20, PAGE = 8192 };

static void read_all(struct pt_seekable *s)
{
	size_t bytes = pt_seekable_bytes(s) < READ_MAX ? (size_t)pt_seekable_bytes(s) : READ_MAX;
	uint8_t *whole = calloc(1, bytes + 1), *paged = calloc(1, bytes + 1);
	struct pt_error e = {0};
	int failed = pt_seekable_read(s, whole, bytes, 0, &e), page_failed = 0;

	if (failed && !e.message[0])
		abort();
	for (size_t at = 0; at < bytes; at += PAGE)
		page_failed |= pt_seekable_read(s, paged + at, bytes - at < PAGE ? bytes - at : PAGE, at, &e);
	if (!failed != !page_failed || (!failed && memcmp(whole, paged, bytes)))
		abort();
	free(whole);
	free(paged);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct pt_error e = {0};
	struct pt_seekable *s;
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (fd >= 0 && write(fd, data, size) == (ssize_t)size) {
		(void)pt_seekable_is(path);
		s = pt_seekable_open(path, &e);
		if (!s && !e.message[0])
			abort();
		if (s)
			read_all(s);
		pt_seekable_close(s);
	}
	if (fd >= 0)
		close(fd);
	return 0;
}
