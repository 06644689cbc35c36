/* mapped_memory.c - see mapped_memory.h. */
#include "capture/record/mapped_memory.h"
#include "capture/code/image_set.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>

/* Whether a line of /proc/PID/maps is the mapping's. */
static bool is_line_of(const char *line, const struct hw_mapping *m)
{
	uint64_t start, end, offset, inode;
	char perms[8];

	return sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*x:%*x %" SCNu64, &start, &end, perms,
		      &offset, &inode) == 5 &&
	       start == m->start && end == m->start + m->bytes && offset == m->offset && inode == m->inode &&
	       perms[2] == 'x';
}

/* The process has it still, as a whole. */
static bool is_mapped(const struct hw_mapping *m, int32_t process)
{
	char path[32], *line = NULL;
	bool found = false;
	size_t room = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%" PRId32 "/maps", process);
	f = fopen(path, "re");
	while (f && !found && getline(&line, &room, f) > 0)
		found = is_line_of(line, m);
	free(line);
	if (f)
		fclose(f);
	return found;
}

int hw_mapped_memory(const struct hw_mapping *m, int32_t process, uint8_t **ret, uint64_t *ret_bytes,
		     struct pt_error *e)
{
	struct iovec to, from;
	uint8_t *bytes;
	ssize_t n;

	if (!m->inode || !m->bytes || m->bytes > IMAGE_RAW_BYTES_MAX || !is_mapped(m, process))
		return 1;
	bytes = malloc(m->bytes);
	if (!bytes)
		return pt_fail_no_memory(e, "the images");
	to = (struct iovec){bytes, m->bytes};
	from = (struct iovec){(void *)(uintptr_t)m->start, m->bytes};
	n = process_vm_readv(process, &to, 1, &from, 1, 0);
	if (n <= 0 || !is_mapped(m, process)) {
		free(bytes);
		return 1;
	}
	*ret = bytes;
	*ret_bytes = (uint64_t)n;
	return 0;
}
