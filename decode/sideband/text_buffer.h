/* text_buffer.h - text that grows, and strings as JSON in it. */
#ifndef DECODE_SIDEBAND_TEXT_BUFFER_H
#define DECODE_SIDEBAND_TEXT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed is empty. text is malloc()ed, NUL-terminated unless NULL. */
struct pt_text_buffer {
	char *text;
	size_t length, room;
	bool failed; /* out of memory: what was added since is missing */
};

void pt_text_add(struct pt_text_buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string with its quotes, of up to `size` bytes or up to the first NUL. Bytes that are no UTF-8 stand
 * for the Unicode character of the same number. */
void pt_text_add_json(struct pt_text_buffer *b, const uint8_t *s, size_t size);

#endif
