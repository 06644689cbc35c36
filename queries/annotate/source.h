/*
 * source.h - lines of source files, as they are on this machine.
 */
#ifndef QUERIES_ANNOTATE_SOURCE_H
#define QUERIES_ANNOTATE_SOURCE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One file: the one that was asked for last. Zeroed: none yet. */
struct source_text {
	int64_t file; /* of the table source_file */
	char *name, *bytes;
	size_t size;
	bool changed; /* since the trace was recorded */
};

/* Reads the file of that row, when it is another one. Its name, "" when the table has none. */
const char *source_text_open(struct source_text *t, sqlite3 *db, int64_t file);
/* That line of it, *ret_length bytes. NULL: it cannot be read, or has none such. */
const char *source_text_line(const struct source_text *t, uint32_t line, size_t *ret_length);
void source_text_deinit(struct source_text *t);

#endif
