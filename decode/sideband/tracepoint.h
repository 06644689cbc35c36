/*
 * tracepoint.h - a kernel tracepoint's `format` text, and its raw samples as JSON.
 *
 * The text is tracefs's events/SYSTEM/NAME/format (kernel, "Event Tracing", "Event formats"), with tabs:
 *
 *     field:char prev_comm[16]; offset:8; size:16; signed:0;
 *
 * A field's value in JSON:
 *     an integer, pointer, enum or bool  a number; one of 8 bytes always signed, as SQL has integers
 *     char x[n]                          a string up to the first NUL
 *     __data_loc char[] x, __rel_loc     a string (u16 offset, u16 length; the latter from the field's end)
 *     any other array                    an array of numbers
 *     anything of an odd size            a string of hex digits
 * Strings are as in pt_text_add_json(). The common_ fields are left out: a sample's own thread and CPU say
 * more. A field that reaches beyond the sample's bytes is null.
 */
#ifndef DECODE_SIDEBAND_TRACEPOINT_H
#define DECODE_SIDEBAND_TRACEPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/sideband/text_buffer.h"

struct pt_tracepoint;

/* The format needs no NUL. Lines that are not understood are left out. NULL: no memory. */
struct pt_tracepoint *pt_tracepoint_create(const char *format, size_t format_bytes);
void pt_tracepoint_destroy(struct pt_tracepoint *t); /* NULL is fine */

/*
 * Appends the fields of a sample's raw bytes, in the format's order: `"pid":1,"comm":"x"`, without braces;
 * nothing when there are none. A field is null when it does not lie in the bytes; or when the fields before
 * it come to four times these bytes, as only in a format that was made to do harm.
 */
void pt_tracepoint_json(const struct pt_tracepoint *t, const uint8_t *raw, size_t raw_bytes,
			struct pt_text_buffer *b);

/* The number in a field, sign-extended when the field is signed. False when there is no such field, or it is
 * not of 1, 2, 4 or 8 bytes within raw. */
bool pt_tracepoint_number(const struct pt_tracepoint *t, const uint8_t *raw, size_t raw_bytes,
			  const char *field, uint64_t *ret);

#endif
