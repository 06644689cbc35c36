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

void pt_text_add(struct pt_text_buffer *b, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(NULL, 0, format, ap);
	va_end(ap);
	if (n < 0 || !reserve(b, (size_t)n))
		return;
	va_start(ap, format);
	vsnprintf(b->text + b->length, (size_t)n + 1, format, ap);
	va_end(ap);
	b->length += (size_t)n;
}

void pt_text_add_json(struct pt_text_buffer *b, const uint8_t *s, size_t size)
{
	size_t n = strnlen((const char *)s, size), i = 0;

	pt_text_add(b, "\"");
	while (i < n) {
		size_t bytes = pt_utf8_bytes(s + i, n - i);

		if (bytes == 0 || s[i] < 0x20 || s[i] == 0x7f)
			pt_text_add(b, "\\u%04x", s[i]);
		else if (s[i] == '"' || s[i] == '\\')
			pt_text_add(b, "\\%c", s[i]);
		else
			pt_text_add(b, "%.*s", (int)bytes, (const char *)s + i);
		i += bytes ? bytes : 1;
	}
	pt_text_add(b, "\"");
}
