/*
 * put_text.h - numbers and words into a line of text: printf is what most of the time would go to.
 *
 * Each writes at p, where there is room, and returns where it has ended.
 */
#ifndef DECODE_OUTPUT_PUT_TEXT_H
#define DECODE_OUTPUT_PUT_TEXT_H

#include <stdbool.h>
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

#define PT_FIELD_BYTES 64 /* a comm of 15 bytes, each as \xHH */

/* A thread's name, ? where it is not known. On a terminal it is one word on one line, whatever it has. */
static inline char *pt_put_comm(char *p, const char *comm, bool on_terminal)
{
	static const char digits[] = "0123456789abcdef";

	if (!comm[0])
		return pt_put_word(p, "?");
	for (; *comm; comm++) {
		if (on_terminal && (*comm == '\n' || *comm == '\t')) {
			*p++ = '\\';
			*p++ = 'x';
			*p++ = digits[*comm >> 4];
			*p++ = digits[*comm & 15];
		} else {
			*p++ = *comm;
		}
	}
	return p;
}

#endif
