/* text.c - see text.h. */
#include "queries/text.h"

#include <stdint.h>

/* Bytes of the valid character (RFC 3629) that s begins with, 0 for none. */
static size_t utf8_length(const unsigned char *s)
{
	size_t n = s[0] < 0x80	 ? 1
		   : s[0] < 0xc2 ? 0
		   : s[0] < 0xe0 ? 2
		   : s[0] < 0xf0 ? 3
		   : s[0] < 0xf5 ? 4
				 : 0;
	uint32_t c = n < 2 ? s[0] : s[0] & (0xffu >> (n + 1));

	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	/* Overlong encodings, surrogates, and what is beyond Unicode. */
	if ((n == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) ||
	    (n == 4 && (c < 0x10000 || c > 0x10ffff)))
		return 0;
	return n;
}

size_t text_put_utf8(FILE *out, const char *s)
{
	size_t n = utf8_length((const unsigned char *)s);

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
