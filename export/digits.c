/* digits.c - see digits.h. */
#include "export/digits.h"

/* Code points 1 to 32768, below the surrogates. */
static char *put_digit(char *p, uint32_t digit)
{
	uint32_t c = digit + 1;

	if (c < 0x80) {
		*p++ = (char)c;
	} else if (c < 0x800) {
		*p++ = (char)(0xc0 | c >> 6);
		*p++ = (char)(0x80 | (c & 0x3f));
	} else {
		*p++ = (char)(0xe0 | c >> 12);
		*p++ = (char)(0x80 | (c >> 6 & 0x3f));
		*p++ = (char)(0x80 | (c & 0x3f));
	}
	return p;
}

static void bind_text(struct digits *d, uint32_t n, sqlite3_stmt *statement, int at, unsigned shift,
		      char *text)
{
	const uint32_t mask = (1u << DIGITS_BITS) - 1;
	char *p = text;

	if (!(d->any >> shift & mask)) {
		sqlite3_bind_null(statement, at);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		p = put_digit(p, d->number[i] >> shift & mask);
	sqlite3_bind_text(statement, at, text, (int)(p - text), SQLITE_STATIC);
}

void digits_bind(struct digits *d, uint32_t n, sqlite3_stmt *statement, int low, int high)
{
	bind_text(d, n, statement, low, 0, d->text[0]);
	if (high)
		bind_text(d, n, statement, high, DIGITS_BITS, d->text[1]);
}
