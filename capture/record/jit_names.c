/* jit_names.c - see jit_names.h. */
#include "capture/record/jit_names.h"
#include "capture/code/jit_symbols.h"
#include "capture/code/regular_file.h"
#include "capture/record/byte_buffer.h"
#include "capture/record/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE 65536

struct jit_names {
	int32_t pid;
	int fd; /* -1: not there yet */
	bool owner_known;
	uid_t owner;	      /* the process's */
	struct hw_bytes text; /* read, and not put: it ends inside a line */
	struct jit_symbols symbols;
};

struct jit_names *jit_names_create(int32_t pid)
{
	struct jit_names *n = calloc(1, sizeof *n);

	if (n)
		*n = (struct jit_names){.pid = pid, .fd = -1};
	return n;
}

void jit_names_destroy(struct jit_names *n)
{
	if (!n)
		return;
	if (n->fd >= 0)
		close(n->fd);
	hw_bytes_deinit(&n->text);
	jit_symbols_deinit(&n->symbols);
	free(n);
}

static void open_file(struct jit_names *n)
{
	char path[2][96];
	struct stat st;

	snprintf(path[0], sizeof path[0], "/proc/%d", n->pid);
	if (stat(path[0], &st) == 0) {
		n->owner_known = true;
		n->owner = st.st_uid;
	}
	snprintf(path[0], sizeof path[0], "/proc/%d/root/tmp/perf-%d.map", hw_proc_with_memory(n->pid),
		 n->pid);
	snprintf(path[1], sizeof path[1], "/tmp/perf-%d.map", n->pid); /* the process has ended */
	for (unsigned i = 0; i < 2 && n->fd < 0; i++) {
		n->fd = regular_file_open(path[i], &st);
		if (n->fd >= 0 && (!n->owner_known || st.st_uid != n->owner)) {
			close(n->fd);
			n->fd = -1;
		}
	}
}

/* Takes whole lines off the text. */
static int take_lines(struct jit_names *n, struct pt_error *e)
{
	size_t done = 0;
	uint8_t *end;

	while (done < n->text.count && (end = memchr(n->text.bytes + done, '\n', n->text.count - done))) {
		char *line = (char *)n->text.bytes + done;

		*end = 0;
		if (jit_symbols_add_line(&n->symbols, line, e))
			return -1;
		done = (size_t)(end + 1 - n->text.bytes);
	}
	/* What is too long for a line is none. */
	if (n->text.count - done > PIECE)
		done = n->text.count;
	memmove(n->text.bytes, n->text.bytes + done, n->text.count - done);
	n->text.count -= done;
	return 0;
}

int jit_names_put(struct jit_names *n, struct ptc_writer *w, struct pt_error *e)
{
	char piece[PIECE];
	ssize_t got;

	if (n->fd < 0)
		open_file(n);
	while (n->fd >= 0 && (got = read(n->fd, piece, sizeof piece)) > 0) {
		if (hw_bytes_add(&n->text, piece, (size_t)got, e) || take_lines(n, e))
			return -1;
		/* A chunk holds no more. */
		if (n->symbols.strings_bytes > ((size_t)4 << 20) &&
		    jit_symbols_put(&n->symbols, w, n->pid, e))
			return -1;
	}
	return jit_symbols_put(&n->symbols, w, n->pid, e);
}
