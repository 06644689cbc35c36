/* with_meta.c - with_meta CONTAINER KEY=VALUE...: the same container with these lines of META, after those
 * that it begins with, to standard output. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/container/copy.h"
#include "tests/tools/rewriting.h"

static void put(struct ptc_writer *w, char *line)
{
	char *equals = strchr(line, '=');

	if (!equals)
		exit(2);
	*equals = 0;
	ok(ptc_put_meta(w, line, equals + 1, &error), line);
}

/* lines: NULL-terminated. */
static void copy(const char *path, struct ptc_writer *w, char **lines)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), more;
	struct ptc_reader *r = ptc_reader_create(fd, &error);
	struct ptc_chunk c;

	ok(r ? 0 : -1, path);
	while ((more = ptc_next(r, &c, &error)) > 0) {
		while (c.type != PTC_META && *lines)
			put(w, *lines++);
		ok(container_copy_chunk(w, &c, &error), "a chunk");
	}
	ok(more, path);
	ptc_reader_destroy(r);
	close(fd);
}

int main(int argc, char **argv)
{
	struct ptc_writer *w = argc > 1 ? ptc_writer_create(STDOUT_FILENO, NULL, 1, &error) : NULL;

	ok(w ? 0 : -1, "usage");
	copy(argv[1], w, argv + 2);
	ok(ptc_writer_finish(w, &error), "the end");
	ptc_writer_destroy(w);
	return 0;
}
