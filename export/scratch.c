/* scratch.c - see scratch.h. */
#include "export/scratch.h"

#include "schema/file_io.h"

int scratch_write(int fd, const void *from, size_t bytes, uint64_t at, struct pt_error *e)
{
	return pt_write_at(fd, from, bytes, at, "writing a scratch file", e);
}

int scratch_read(int fd, void *to, size_t bytes, uint64_t at, size_t *ret_bytes, struct pt_error *e)
{
	return pt_read_at(fd, to, bytes, at, ret_bytes, "reading a scratch file", e);
}
