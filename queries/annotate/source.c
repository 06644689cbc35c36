/* source.c - see source.h. */
#include "queries/annotate/source.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE_MAX_SOURCE (16 << 20) /* no source is larger; what is, is not read */

static void read_file(struct source_text *t, int64_t recorded)
{
	struct stat st = {0};
	int fd;

	/* A database may name anything: a FIFO or a device is not opened. */
	if (stat(t->name, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	fd = open(t->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= SIZE_MAX_SOURCE)
		t->bytes = malloc((size_t)st.st_size + 1);
	if (t->bytes) {
		ssize_t got = 1;

		while (got > 0 && t->size < (size_t)st.st_size) {
			got = read(fd, t->bytes + t->size, (size_t)st.st_size - t->size);
			t->size += got > 0 ? (size_t)got : 0;
		}
		t->changed = recorded && st.st_mtime > recorded;
	}
	if (fd >= 0)
		close(fd);
}

const char *source_text_open(struct source_text *t, sqlite3 *db, int64_t file)
{
	sqlite3_stmt *s;

	if (t->name && t->file == file)
		return t->name;
	source_text_deinit(t);
	t->file = file;
	if (sqlite3_prepare_v2(db,
			       "SELECT f.name, t.start_time FROM source_file f JOIN trace t ON t.id = f.trace"
			       " WHERE f.id = ?1",
			       -1, &s, NULL) != SQLITE_OK)
		return "";
	sqlite3_bind_int64(s, 1, file);
	if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_text(s, 0))
		t->name = strdup((const char *)sqlite3_column_text(s, 0));
	if (t->name && t->name[0] == '/')
		read_file(t, sqlite3_column_int64(s, 1));
	sqlite3_finalize(s);
	return t->name ? t->name : "";
}

const char *source_text_line(const struct source_text *t, uint32_t line, size_t *ret_length)
{
	const char *p = t->bytes, *end = t->bytes + t->size, *newline;

	for (uint32_t n = 1; p && p < end; n++) {
		newline = memchr(p, '\n', (size_t)(end - p));
		if (n == line) {
			*ret_length = (size_t)((newline ? newline : end) - p);
			return p;
		}
		p = newline ? newline + 1 : NULL;
	}
	return NULL;
}

void source_text_deinit(struct source_text *t)
{
	free(t->name);
	free(t->bytes);
	t->name = t->bytes = NULL;
	t->size = 0;
	t->file = 0;
	t->changed = false;
}
