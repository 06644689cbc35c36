/*
 * digits.h - a column of up to 64 numbers as text, one character a number: schema/tables.sql says how and why.
 *
 * A number below DIGITS_MAX has two digits, the low one of 19 bits; the low ones make one text, the high ones another, and a
 * text of nothing but zeros is NULL. A digit d is the code point d + 1. Surrogates are none, nor what else is in UTF-8's
 * way up to 65535: those stand 2^20 higher.
 */
#ifndef EXPORT_DIGITS_H
#define EXPORT_DIGITS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	DIGITS_ROW = 64,
	DIGITS_BITS = 19,
	DIGITS_MAX = 1 << 30,
	DIGITS_ONE = 1 << 15, /* where a number has one digit, it is below that */
	DIGITS_BYTES = 4      /* that a digit takes, at most */
};

struct digits {
	uint32_t any; /* all numbers or'ed */
	uint32_t number[DIGITS_ROW];
	char text[2][DIGITS_ROW * DIGITS_BYTES];
};

static inline void digits_set(struct digits *d, uint32_t i, uint32_t number)
{
	d->number[i] = number;
	d->any = i ? d->any | number : number;
}

/* Binds the first n numbers to the parameters low and high (0: there is none, the numbers have one digit). d must stay
 * as it is until the statement has run. */
void digits_bind(struct digits *d, uint32_t n, sqlite3_stmt *statement, int low, int high);

/* The same for any array, of the digit from bit `shift` on. text has room for n * DIGITS_BYTES. */
void digits_bind_array(const uint32_t *numbers, uint32_t n, unsigned shift, sqlite3_stmt *statement, int at,
		       char *text);

/* The same, but zeros are a text, too. */
void digits_bind_always(const uint32_t *numbers, uint32_t n, unsigned shift, sqlite3_stmt *statement, int at,
			char *text);

#endif
