/* test_crc32c.c - CRC-32C against its definition, a bit at a time: lengths around those summed by lanes. */
#include "schema/crc32c.h"

#include <string.h>

#include "tests/unit/check.h"

enum { MOST = 40000 }; /* three lanes of 4096 bytes, three times, and more */

static uint8_t bytes[MOST + 8];
static uint32_t sums[MOST + 1]; /* of the first bytes, before the last complement */

static void define(const uint8_t *p)
{
	sums[0] = UINT32_MAX;
	for (unsigned i = 0; i < MOST; i++) {
		uint32_t c = sums[i] ^ p[i];

		for (int bit = 0; bit < 8; bit++)
			c = c >> 1 ^ (c & 1 ? 0x82f63b78 : 0);
		sums[i + 1] = c;
	}
}

int main(void)
{
	uint32_t random = 1;

	CHECK(ptc_crc32c("123456789", 9) == 0xe3069283); /* RFC 3720's check value */
	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)((random = random * 1103515245 + 12345) >> 16);
	for (unsigned offset = 0; offset < 8; offset += 3) {
		unsigned wrong = 0;

		define(bytes + offset);
		for (unsigned n = 0; n <= MOST; n++)
			wrong +=
			    n % 4096 < 40 || n % 101 == 0 ? ptc_crc32c(bytes + offset, n) != ~sums[n] : 0;
		CHECK(wrong == 0);
	}
	return sum_up();
}
