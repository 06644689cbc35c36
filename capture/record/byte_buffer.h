/*
 * byte_buffer.h - a growing buffer of bytes: perf records on their way from a ring buffer to the
 * container.
 */
#ifndef CAPTURE_RECORD_BYTE_BUFFER_H
#define CAPTURE_RECORD_BYTE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

/* Zeroed: empty. */
struct hw_bytes {
	uint8_t *bytes;
	size_t count, room;
};

void hw_bytes_deinit(struct hw_bytes *b);

/* Appends n bytes. 0, or -1: PT_ERR_NO_MEMORY, and nothing was appended. */
int hw_bytes_add(struct hw_bytes *b, const void *from, size_t n, struct pt_error *e);

/* Empties it. It keeps its memory, but no more than 1 MB: what a flood of records took is given back. */
void hw_bytes_clear(struct hw_bytes *b);

#endif
