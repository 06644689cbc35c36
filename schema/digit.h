/*
 * digit.h - numbers as text, one character per number, as schema/tables.sql says: written and read.
 *
 * A digit has 19 bits: a number below 2^19 has one, others a low one and a high one, each in a text of its
 * own. Digit d is the code point d + 1. Code points from 0xd800 (the surrogates, which UTF-8 has not) to
 * 0xffff are written 2^20 higher.
 */
#ifndef SCHEMA_DIGIT_H
#define SCHEMA_DIGIT_H

#include <stdint.h>

enum {
	DIGITS_BITS = 19, /* of a digit */
	DIGITS_BYTES = 4, /* of a digit as UTF-8, at most */
	DIGITS_SUM = 3	  /* of a sum, which has three texts */
};

/* Writes the digit: room for DIGITS_BYTES. Returns what is after it. */
static inline char *digit_put(char *p, uint32_t digit)
{
	uint32_t c = digit + 1;

	if (c < 0x80) {
		*p++ = (char)c;
		return p;
	}
	if (c >= 0xd800 && c < 0x10000)
		c += 0x100000;
	if (c < 0x800) {
		*p++ = (char)(0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			*p++ = (char)(0xe0 | c >> 12);
		} else {
			*p++ = (char)(0xf0 | c >> 18);
			*p++ = (char)(0x80 | (c >> 12 & 0x3f));
		}
		*p++ = (char)(0x80 | (c >> 6 & 0x3f));
	}
	*p++ = (char)(0x80 | (c & 0x3f));
	return p;
}

/* The next code point, 0 at the end. */
static inline uint32_t digits_point(const uint8_t **p)
{
	const uint8_t *s = *p;
	uint32_t c = *s;
	int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;

	if (!c)
		return 0;
	c &= more ? 0x3fu >> more : 0x7f;
	for (s++; more && (*s & 0xc0) == 0x80; more--)
		c = c << 6 | (*s++ & 0x3f);
	*p = s;
	return c;
}

/* The next number; 0 beyond the end, and of *p NULL. */
static inline uint32_t digits_next(const uint8_t **p)
{
	uint32_t c = *p ? digits_point(p) : 0;

	return c ? (c & 1048575) - 1 : 0;
}

/* The same of a number that has a low and a high part. */
static inline uint32_t digits_wide(const uint8_t **low, const uint8_t **high)
{
	uint32_t ret = digits_next(low), c = *high ? digits_point(high) : 0;

	return c ? ret + ((c - 1) << DIGITS_BITS) : ret;
}

#endif
