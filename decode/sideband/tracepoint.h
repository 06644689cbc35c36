/*
 * tracepoint.h - a kernel tracepoint's `format` text, and its raw samples as JSON.
 *
 * The text is tracefs's events/SYSTEM/NAME/format (kernel, "Event Tracing", "Event formats"):
 *
 *     	field:char prev_comm[16];	offset:8;	size:16;	signed:0;
 *
 * A field's value in JSON:
 *   an integer, pointer, enum or bool    a number; one of 8 bytes always as a signed one, as SQL has integers
 *   char x[n]                            a string up to the first NUL
 *   __data_loc char[] x, __rel_loc       a string (u16 offset, u16 length; the latter counts from the field's end)
 *   any other array                      an array of numbers
 *   anything of an odd size              a string of hex digits
 * Bytes that are no UTF-8 stand for the Unicode character of the same number. The common_ fields are left
 * out: a sample's own thread and CPU say more. A field that reaches beyond the sample's bytes is null.
 *
 * Pure: bytes in, text out.
 */
#ifndef DECODE_SIDEBAND_TRACEPOINT_H
#define DECODE_SIDEBAND_TRACEPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text that grows; a zeroed one is empty. text is malloc()ed, NUL-terminated unless NULL. */
struct pt_text_buffer {
	char *text;
	size_t length, room;
	bool failed; /* out of memory: what was added since is missing */
};

void pt_text_add(struct pt_text_buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string with its quotes, up to `size` bytes or the first NUL. */
void pt_text_add_json(struct pt_text_buffer *b, const uint8_t *s, size_t size);

struct pt_tracepoint;

/* Texts need no NUL. Lines that are not understood are left out. NULL: no memory. */
struct pt_tracepoint *pt_tracepoint_create(const char *format, size_t format_bytes);
void pt_tracepoint_destroy(struct pt_tracepoint *t); /* NULL is fine */

/* Appends the fields of a sample's raw bytes, in the format's order: `"pid":1,"comm":"x"`, without braces;
 * nothing when there are none. null: what does not lie in them, and what is behind fields that come to four
 * times of them together. */
void pt_tracepoint_json(const struct pt_tracepoint *t, const uint8_t *raw, size_t raw_bytes,
			struct pt_text_buffer *b);

/* The number in a field: false when there is no such field, or it is none of 1, 2, 4 or 8 bytes within raw.
 * Signed fields are sign-extended. */
bool pt_tracepoint_number(const struct pt_tracepoint *t, const uint8_t *raw, size_t raw_bytes,
			  const char *field, uint64_t *ret);

#endif
