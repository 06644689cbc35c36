/*
 * digits.h - columns of numbers as texts (schema/digit.h), as values of rows.
 *
 * A number below DIGITS_MAX has two digits. The low digits make one text, the high ones another; a text of
 * zeros only is NULL.
 */
#ifndef EXPORT_DIGITS_H
#define EXPORT_DIGITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/inserter.h"
#include "schema/digit.h"

enum {
	DIGITS_ROW = 64,      /* numbers in struct digits */
	DIGITS_MAX = 1 << 30, /* numbers of two digits are below that */
	DIGITS_ONE = 1 << 15  /* numbers that have one digit by design are below that */
};

/* A column of up to DIGITS_ROW numbers. */
struct digits {
	uint32_t any; /* all numbers or'ed */
	uint32_t number[DIGITS_ROW];
	char text[2][DIGITS_ROW * DIGITS_BYTES];
};

/* Sets number i. A column is filled from 0 on. */
static inline void digits_set(struct digits *d, uint32_t i, uint32_t number)
{
	d->number[i] = number;
	d->any = i ? d->any | number : number;
}

/* How many bytes the low digit of a number takes. */
static inline uint32_t digit_bytes(uint32_t number)
{
	uint32_t c = (number & ((1u << DIGITS_BITS) - 1)) + 1;

	return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0xd800 ? 3 : 4;
}

/* Sets the columns low and high (0: the numbers have one digit) of the row to the first n numbers. d must not
 * change until insert_run(). */
void digits_bind(struct digits *d, uint32_t n, struct insert *row, int low, int high);

/* The same for one digit of an array: shift is 0 or DIGITS_BITS. text has room for n * DIGITS_BYTES,
 * and must not change until insert_run(). */
void digits_bind_array(const uint32_t *numbers, uint32_t n, unsigned shift, struct insert *row, int at,
		       char *text);

/* The same, but zeros only are a text, too, and not NULL. */
void digits_bind_always(const uint32_t *numbers, uint32_t n, unsigned shift, struct insert *row, int at,
			char *text);

#endif
