/*
 * text.h - text from a database, which is any bytes, on its way into a format that wants UTF-8.
 */
#ifndef QUERIES_TEXT_H
#define QUERIES_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* Writes the first character of s, which is not empty; a byte that begins no valid one as U+FFFD.
 * Returns its bytes. */
size_t text_put_utf8(FILE *out, const char *s);

/* Writes s as text or as a quoted attribute's value of HTML. */
void text_put_html(FILE *out, const char *s);

#endif
