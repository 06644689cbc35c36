/* utf8.c - see utf8.h. */
#include "schema/utf8.h"

/* What the first byte says. 0: it begins no character. */
static size_t length_by(uint8_t first)
{
	return first < 0x80   ? 1
	       : first < 0xc2 ? 0
	       : first < 0xe0 ? 2
	       : first < 0xf0 ? 3
	       : first < 0xf5 ? 4
			      : 0;
}

/* Whether the second byte may follow the first (Unicode, table 3-7). */
static bool may_follow(uint8_t first, uint8_t second)
{
	uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
	uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;

	return second >= low && second <= high;
}

/* How many of n bytes can be one character's. */
static size_t fitting(const uint8_t *p, size_t n)
{
	size_t bytes = length_by(p[0]), i = 1;

	while (i < bytes && i < n && (i == 1 ? may_follow(p[0], p[1]) : (p[i] & 0xc0) == 0x80))
		i++;
	return i;
}

size_t pt_utf8_bytes(const uint8_t *p, size_t n)
{
	size_t bytes = length_by(p[0]);

	return bytes && fitting(p, n) == bytes ? bytes : 0;
}

bool pt_utf8_is_cut(const uint8_t *p, size_t n)
{
	return n < length_by(p[0]) && fitting(p, n) == n;
}

bool pt_utf8_controls(const uint8_t *p, size_t bytes)
{
	if (bytes == 1)
		return p[0] < 0x20 || p[0] == 0x7f;
	if (bytes == 2)
		return p[0] == 0xc2 && p[1] < 0xa0;
	return bytes == 3 && p[0] == 0xe2 &&
	       ((p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xaa && p[2] <= 0xae))) ||
		(p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9));
}

uint32_t pt_utf8_code(const uint8_t *p, size_t bytes)
{
	uint32_t code = bytes == 1 ? p[0] : p[0] & (0xffu >> (bytes + 1));

	for (size_t i = 1; i < bytes; i++)
		code = code << 6 | (p[i] & 0x3f);
	return code;
}
