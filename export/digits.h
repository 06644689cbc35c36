/*
 * digits.h - a column of up to 64 numbers as text, one character a number: schema/tables.sql says how and why.
 *
 * A number below DIGITS_MAX has two digits of 15 bits; the low ones make one text, the high ones another, and a text of
 * nothing but zeros is NULL.
 */
#ifndef EXPORT_DIGITS_H
#define EXPORT_DIGITS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum { DIGITS_ROW = 64, DIGITS_BITS = 15, DIGITS_MAX = 1 << 2 * DIGITS_BITS };

struct digits {
	uint32_t any; /* all numbers or'ed */
	uint32_t number[DIGITS_ROW];
	char text[2][DIGITS_ROW * 3];
};

static inline void digits_set(struct digits *d, uint32_t i, uint32_t number)
{
	d->number[i] = number;
	d->any = i ? d->any | number : number;
}

/* Binds the first n numbers to the parameters low and high (0: there is none, the numbers have one digit). d must stay
 * as it is until the statement has run. */
void digits_bind(struct digits *d, uint32_t n, sqlite3_stmt *statement, int low, int high);

#endif
