/* compress.c - see compress.h. */
#include "export/compress.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/scratch.h"
#include "schema/file_io.h"

enum { COPY_BYTES = 1 << 20 };

/* All that is in the file `from`. buffer: COPY_BYTES. */
static int copy(int to, int from, uint8_t *buffer, struct pt_error *e)
{
	size_t n = COPY_BYTES;

	for (uint64_t at = 0; n == COPY_BYTES; at += n)
		if (scratch_read(from, buffer, COPY_BYTES, at, &n, e) < 0 ||
		    pt_write_at(to, buffer, n, at, "writing what is compressed", e) < 0)
			return -1;
	return 0;
}

static int replace_content(int fd, int by, struct pt_error *e)
{
	uint8_t *buffer = malloc(COPY_BYTES);
	int ret;

	if (!buffer)
		return pt_fail_no_memory(e, NULL);
	ret =
	    ftruncate(fd, 0) ? pt_fail_errno(e, "cutting what was not compressed") : copy(fd, by, buffer, e);
	free(buffer);
	return ret;
}

int compress_file(int fd, int scratch, const struct pt_seekable_options *options, struct pt_error *e)
{
	struct stat st;

	if (fstat(fd, &st))
		return pt_fail_errno(e, "what is to be compressed");
	return pt_seekable_write(scratch, fd, (uint64_t)st.st_size, options, e) < 0
		   ? -1
		   : replace_content(fd, scratch, e);
}
