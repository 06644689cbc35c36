/* crc32c.c - see crc32c.h. */
#include "schema/crc32c.h"

#include <string.h>
#ifdef __x86_64__
#include <nmmintrin.h>
#include <wmmintrin.h>
#endif

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

/* The instruction takes three cycles, but another can begin in each: so three lanes are summed at once. */
#define LANE_BYTES 4096
/* x^(8 * bytes - 33) modulo the polynomial, reflected: a sum that so many bytes follow, times that, is what the
 * instruction makes the sum after them of. (It multiplies by x^32; the reflected product is one by x.) */
#define AFTER_LANE  0x82f89c77
#define AFTER_LANES 0x54a86326 /* two */

__attribute__((target("sse4.2"))) static uint64_t add_word(uint64_t crc, const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return _mm_crc32_u64(crc, v);
}

__attribute__((target("sse4.2"))) static uint32_t add_bytes(const uint8_t *p, size_t n, uint32_t crc)
{
	uint64_t c = crc;

	for (; n >= sizeof(uint64_t); p += sizeof(uint64_t), n -= sizeof(uint64_t))
		c = add_word(c, p);
	while (n--)
		c = _mm_crc32_u8((uint32_t)c, *p++);
	return (uint32_t)c;
}

__attribute__((target("sse4.2,pclmul"))) static uint64_t product(uint64_t crc, uint32_t factor)
{
	return (uint64_t)_mm_cvtsi128_si64(
	    _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc), _mm_cvtsi32_si128((int)factor), 0));
}

/* Three lanes from p on. */
__attribute__((target("sse4.2,pclmul"))) static uint32_t add_lanes(const uint8_t *p, uint32_t crc)
{
	uint64_t first = crc, second = 0, third = 0;

	for (const uint8_t *end = p + LANE_BYTES; p < end; p += sizeof(uint64_t)) {
		first = add_word(first, p);
		second = add_word(second, p + LANE_BYTES);
		third = add_word(third, p + 2 * LANE_BYTES);
	}
	return (uint32_t)(_mm_crc32_u64(0, product(first, AFTER_LANES) ^ product(second, AFTER_LANE)) ^
			  third);
}

static uint32_t by_instruction(const uint8_t *p, size_t n, uint32_t crc)
{
	if (__builtin_cpu_supports("pclmul"))
		for (; n >= 3 * LANE_BYTES; p += 3 * LANE_BYTES, n -= 3 * LANE_BYTES)
			crc = add_lanes(p, crc);
	return add_bytes(p, n, crc);
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
