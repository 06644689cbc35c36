/* text.c - see text.h. */
#include "queries/text.h"

#include <string.h>

#include "schema/utf8.h"

size_t text_put_utf8(FILE *out, const char *s)
{
	size_t n = pt_utf8_bytes((const uint8_t *)s, strnlen(s, 4));

	if (!n) {
		fputs("\xef\xbf\xbd", out);
		return 1;
	}
	fwrite(s, 1, n, out);
	return n;
}

void text_put_html(FILE *out, const char *s)
{
	while (*s) {
		switch (*s) {
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '&': fputs("&amp;", out); break;
		case '"': fputs("&quot;", out); break;
		default:
			if ((unsigned char)*s < 0x20)
				putc(' ', out);
			else
				s += text_put_utf8(out, s) - 1;
		}
		s++;
	}
}
