/*
 * text.h - text from a database, which may be any bytes, in formats that must be UTF-8.
 */
#ifndef QUERIES_TEXT_H
#define QUERIES_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* Writes the first character of s, which is not empty; a byte that begins no valid character as
 * U+FFFD. Returns its size in bytes. */
size_t text_put_utf8(FILE *out, const char *s);

/* Writes s as HTML: text, or the value of a quoted attribute. */
void text_put_html(FILE *out, const char *s);

#endif
