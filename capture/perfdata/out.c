/* out.c - see out.h. */
#include "capture/perfdata/out.h"

#include <unistd.h>

static int failed(const struct perf_out *o, struct pt_error *e)
{
	return pt_fail_errno(e, "cannot write %s", o->name);
}

int perf_out_open(struct perf_out *o, int fd, const char *name, struct pt_error *e)
{
	int copy = dup(fd);

	*o = (struct perf_out){.file = copy < 0 ? NULL : fdopen(copy, "w"), .name = name};
	if (o->file)
		return 0;
	failed(o, e);
	if (copy >= 0)
		close(copy);
	return -1;
}

int perf_out_bytes(struct perf_out *o, const void *bytes, size_t n, struct pt_error *e)
{
	if (n && fwrite(bytes, 1, n, o->file) != n)
		return failed(o, e);
	o->offset += n;
	return 0;
}

int perf_out_u32(struct perf_out *o, uint32_t v, struct pt_error *e)
{
	return perf_out_bytes(o, &v, sizeof v, e);
}

int perf_out_u64(struct perf_out *o, uint64_t v, struct pt_error *e)
{
	return perf_out_bytes(o, &v, sizeof v, e);
}

int perf_out_seek(struct perf_out *o, uint64_t offset, struct pt_error *e)
{
	if (fseeko(o->file, (off_t)offset, SEEK_SET))
		return failed(o, e);
	o->offset = offset;
	return 0;
}

int perf_out_flush(struct perf_out *o, struct pt_error *e)
{
	return fflush(o->file) ? failed(o, e) : 0;
}

void perf_out_close(struct perf_out *o)
{
	if (o->file)
		fclose(o->file);
	*o = (struct perf_out){0};
}
