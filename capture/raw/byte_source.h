/*
 * byte_source.h - a file's bytes from front to back. What begins as zstd data does is decompressed on the
 * way. Constant memory, whatever the file's length.
 */
#ifndef CAPTURE_RAW_BYTE_SOURCE_H
#define CAPTURE_RAW_BYTE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "schema/error.h"

struct byte_source;

/* "-" is standard input. NULL: PT_ERR_IO, PT_ERR_NO_MEMORY. */
struct byte_source *byte_source_open(const char *path, struct pt_error *e);
void byte_source_close(struct byte_source *s);

/*
 * Reads n bytes, fewer only at the end. Returns how many (0: the end), or -1: PT_ERR_IO, PT_ERR_BAD_INPUT
 * (no zstd data), PT_ERR_TRUNCATED (the zstd data ends early).
 */
ssize_t byte_source_read(struct byte_source *s, void *to, size_t n, struct pt_error *e);

/* Skips n bytes. Returns 0, also when there were fewer; -1 as above. */
int byte_source_skip(struct byte_source *s, uint64_t n, struct pt_error *e);

/* Whether the file is compressed. */
bool byte_source_compressed(const struct byte_source *s);

#endif
