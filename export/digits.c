/* digits.c - see digits.h. */
#include "export/digits.h"

void digits_bind_always(const uint32_t *numbers, uint32_t n, unsigned shift, struct insert *row, int at,
			char *text)
{
	const uint32_t mask = (1u << DIGITS_BITS) - 1;
	char *p = text;

	for (uint32_t i = 0; i < n; i++)
		p = digit_put(p, numbers[i] >> shift & mask);
	insert_text(row, at, text, (size_t)(p - text));
}

static void bind_text(const uint32_t *numbers, uint32_t n, uint32_t any, unsigned shift, struct insert *row,
		      int at, char *text)
{
	if (any >> shift & ((1u << DIGITS_BITS) - 1))
		digits_bind_always(numbers, n, shift, row, at, text);
}

void digits_bind_array(const uint32_t *numbers, uint32_t n, unsigned shift, struct insert *row, int at,
		       char *text)
{
	uint32_t any = 0;

	for (uint32_t i = 0; i < n; i++)
		any |= numbers[i];
	bind_text(numbers, n, any, shift, row, at, text);
}

void digits_bind(struct digits *d, uint32_t n, struct insert *row, int low, int high)
{
	bind_text(d->number, n, d->any, 0, row, low, d->text[0]);
	if (high)
		bind_text(d->number, n, d->any, DIGITS_BITS, row, high, d->text[1]);
}
