/* digits.c - see digits.h. */
#include "export/digits.h"

void digits_bind_always(const uint32_t *numbers, uint32_t n, unsigned shift, sqlite3_stmt *statement, int at,
			char *text)
{
	const uint32_t mask = (1u << DIGITS_BITS) - 1;
	char *p = text;

	for (uint32_t i = 0; i < n; i++)
		p = digit_put(p, numbers[i] >> shift & mask);
	sqlite3_bind_text(statement, at, text, (int)(p - text), SQLITE_STATIC);
}

static void bind_text(const uint32_t *numbers, uint32_t n, uint32_t any, unsigned shift,
		      sqlite3_stmt *statement, int at, char *text)
{
	if (any >> shift & ((1u << DIGITS_BITS) - 1))
		digits_bind_always(numbers, n, shift, statement, at, text);
	else
		sqlite3_bind_null(statement, at);
}

void digits_bind_array(const uint32_t *numbers, uint32_t n, unsigned shift, sqlite3_stmt *statement, int at,
		       char *text)
{
	uint32_t any = 0;

	for (uint32_t i = 0; i < n; i++)
		any |= numbers[i];
	bind_text(numbers, n, any, shift, statement, at, text);
}

void digits_bind(struct digits *d, uint32_t n, sqlite3_stmt *statement, int low, int high)
{
	bind_text(d->number, n, d->any, 0, statement, low, d->text[0]);
	if (high)
		bind_text(d->number, n, d->any, DIGITS_BITS, statement, high, d->text[1]);
}
