/* text_buffer.c - see text_buffer.h. */
#include "decode/sideband/text_buffer.h"

#include "schema/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct pt_text_buffer *b, size_t more)
{
	size_t need = b->length + more + 1, room = b->room ? b->room : 256;
	char *text;

	if (need <= b->room)
		return true;
	while (room < need)
		room *= 2;
	text = b->failed ? NULL : realloc(b->text, room);
	if (!text) {
		b->failed = true;
		return false;
	}
	b->text = text;
	b->room = room;
	return true;
}

/* Mostly it has room at once, and is printed once. */
void pt_text_add(struct pt_text_buffer *b, const char *format, ...)
{
	size_t left = b->room ? b->room - b->length : 0;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(left ? b->text + b->length : NULL, left, format, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < left) {
		b->length += (size_t)n;
		return;
	}
	if (left)
		b->text[b->length] = 0;
	if (n < 0 || !reserve(b, (size_t)n))
		return;
	va_start(ap, format);
	vsnprintf(b->text + b->length, (size_t)n + 1, format, ap);
	va_end(ap);
	b->length += (size_t)n;
}

static void add_bytes(struct pt_text_buffer *b, const void *bytes, size_t n)
{
	if (!n || !reserve(b, n))
		return;
	memcpy(b->text + b->length, bytes, n);
	b->length += n;
	b->text[b->length] = 0;
}

/* The bytes of a character that stands for itself; 0: it does not. */
static size_t plain_bytes(const uint8_t *s, size_t n)
{
	return *s < 0x20 || *s == 0x7f || *s == '"' || *s == '\\' ? 0 : pt_utf8_bytes(s, n);
}

void pt_text_add_json(struct pt_text_buffer *b, const uint8_t *s, size_t size)
{
	size_t n = strnlen((const char *)s, size), i = 0, from = 0, bytes;

	add_bytes(b, "\"", 1);
	while (i < n) {
		bytes = plain_bytes(s + i, n - i);
		if (bytes) {
			i += bytes;
			continue;
		}
		add_bytes(b, s + from, i - from);
		if (s[i] == '"' || s[i] == '\\')
			pt_text_add(b, "\\%c", s[i]);
		else
			pt_text_add(b, "\\u%04x", s[i]);
		from = ++i;
	}
	add_bytes(b, s + from, n - from);
	add_bytes(b, "\"", 1);
}
