/* crc32c.c - see crc32c.h. */
#include "schema/crc32c.h"

#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* reflected */

static uint32_t by_table(const uint8_t *p, size_t n, uint32_t crc)
{
	uint32_t table[256];

	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? POLYNOMIAL : 0);
	}
	while (n--)
		crc = crc >> 8 ^ table[(uint8_t)crc ^ *p++];
	return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t by_instruction(const uint8_t *p, size_t n, uint32_t crc)
{
	uint64_t v, c = crc;

	for (; n >= sizeof v; p += sizeof v, n -= sizeof v) {
		memcpy(&v, p, sizeof v);
		c = __builtin_ia32_crc32di(c, v);
	}
	while (n--)
		c = __builtin_ia32_crc32qi((uint32_t)c, *p++);
	return (uint32_t)c;
}
#endif

uint32_t ptc_crc32c(const void *bytes, size_t n)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return ~by_instruction(bytes, n, UINT32_MAX);
#endif
	return ~by_table(bytes, n, UINT32_MAX);
}
