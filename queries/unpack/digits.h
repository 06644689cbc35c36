/*
 * digits.h - numbers that are packed into texts, as schema/tables.sql says: read one after the other.
 */
#ifndef QUERIES_UNPACK_DIGITS_H
#define QUERIES_UNPACK_DIGITS_H

#include <stdint.h>

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

	return c ? ret + ((c - 1) << 19) : ret;
}

#endif
