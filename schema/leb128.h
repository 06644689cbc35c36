/*
 * leb128.h - numbers in as few bytes as they need (LEB128, as in DWARF): 7 bits a byte, the lowest first; the
 * highest bit says that more follow. And zigzag code, in which small numbers remain small when they are
 * negative.
 */
#ifndef SCHEMA_LEB128_H
#define SCHEMA_LEB128_H

#include <stdint.h>

enum { PT_LEB128_MAX = 10 /* bytes of 64 bits */ };

/* Returns the byte after it. */
static inline uint8_t *pt_leb128_put(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

/* The number at *at, which is after it then. Only of what this process has put: nothing is checked. */
static inline uint64_t pt_leb128_get(const uint8_t **at)
{
	const uint8_t *p = *at;
	uint64_t v = *p & 0x7f;

	for (unsigned shift = 7; *p++ & 0x80; shift += 7)
		v |= (uint64_t)(*p & 0x7f) << shift;
	*at = p;
	return v;
}

/* Of a difference modulo 2^64. */
static inline uint64_t pt_zigzag(uint64_t v)
{
	return v << 1 ^ (uint64_t) - (int64_t)(v >> 63);
}

static inline uint64_t pt_unzigzag(uint64_t z)
{
	return z >> 1 ^ (uint64_t) - (int64_t)(z & 1);
}

#endif
