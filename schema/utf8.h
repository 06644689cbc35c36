/*
 * utf8.h - which bytes are UTF-8 (RFC 3629), and which of its characters a terminal obeys.
 */
#ifndef SCHEMA_UTF8_H
#define SCHEMA_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at p, of which there are n > 0; 0 when they begin none: overlong, a surrogate,
 * cut. */
size_t pt_utf8_bytes(const uint8_t *p, size_t n);
/* Whether the n bytes at p begin a character that may go on after them. */
bool pt_utf8_is_cut(const uint8_t *p, size_t n);
/*
 * Whether the character at p, of that many bytes, is none to be seen, but one that moves the cursor or
 * changes how others are shown: C0, DEL, C1, and Unicode's marks of direction (U+200E, U+200F, U+202A to
 * U+202E, U+2066 to U+2069).
 */
bool pt_utf8_controls(const uint8_t *p, size_t bytes);
/* The character's number. */
uint32_t pt_utf8_code(const uint8_t *p, size_t bytes);

#endif
