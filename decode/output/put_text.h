/*
 * put_text.h - numbers and words into a line of text: printf is what most of the time would go to.
 *
 * Each writes at p, where there is room, and returns where it has ended.
 */
#ifndef DECODE_OUTPUT_PUT_TEXT_H
#define DECODE_OUTPUT_PUT_TEXT_H

#include <stdint.h>
#include <string.h>

#include "decode/packet/clock.h"

static inline char *pt_put_hex(char *p, uint64_t v)
{
	int n = v ? (67 - __builtin_clzll(v)) / 4 : 1;

	for (int i = n - 1; i >= 0; i--)
		*p++ = "0123456789abcdef"[v >> 4 * i & 15];
	return p;
}

static inline char *pt_put_decimal(char *p, uint64_t v)
{
	char d[20];
	int n = 0;

	do
		d[n++] = (char)('0' + v % 10);
	while (v /= 10);
	while (n)
		*p++ = d[--n];
	return p;
}

static inline char *pt_put_word(char *p, const char *s)
{
	size_t n = strlen(s);

	memcpy(p, s, n);
	return p + n;
}

static inline char *pt_put_number(char *p, int32_t v)
{
	return v < 0 ? pt_put_word(p, "-1") : pt_put_decimal(p, (uint64_t)v);
}

static inline char *pt_put_tsc(char *p, uint64_t t)
{
	return t == PT_CLOCK_UNKNOWN ? pt_put_word(p, "-") : pt_put_decimal(p, t);
}

#endif
