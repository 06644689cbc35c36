/*
 * test_packet_len.c - capture's packet lengths against the decoder's, over all beginnings and random bytes.
 */
#include "capture/pt/packet_len.h"
#include "decode/packet/packet.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>

static unsigned long compared, wrong;

/* A mode's reserved values and the like are the decoder's to refuse: here only the length matters. */
static void compare(const uint8_t *p, size_t n, unsigned block_before)
{
	struct pt_packet packet;
	int block = (int)block_before, got = pt_packet_len(p, n, &block);
	int want = pt_packet_decode(p, p + n, block_before, &packet);

	compared++;
	if (got == want || (want < 0 && got > 0))
		return;
	if (wrong++ < CHECK_SHOWN_MAX)
		printf("%02x %02x %02x %02x... (%zu bytes, block %u): %d, the decoder says %d\n", p[0],
		       n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, n > 3 ? p[3] : 0, n, block_before, got, want);
}

int main(void)
{
	uint64_t state = 1;
	uint8_t p[16];

	for (unsigned start = 0; start < 65536; start++) {
		for (size_t n = 1; n <= sizeof p; n += n < 4 ? 1 : 3) {
			for (size_t i = 0; i < sizeof p; i++) {
				state = state * 6364136223846793005u + 1442695040888963407u;
				p[i] = (uint8_t)(state >> 56);
			}
			memcpy(p, &start, 2);
			for (unsigned block = 0; block <= 8; block += 4)
				compare(p, n, block);
		}
	}
	for (size_t i = 0; i < sizeof p; i += 2)
		memcpy(p + i, "\x02\x82", 2);
	for (size_t n = 1; n <= sizeof p; n++)
		compare(p, n, 0);
	printf("%lu packets' lengths compared\n", compared);
	check(compared > 1000000 && wrong == 0, "capture's packet lengths are the decoder's");
	return sum_up();
}
