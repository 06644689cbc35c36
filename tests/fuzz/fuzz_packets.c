/* fuzz_packets.c - any bytes as packets: sizes are within what is there, texts within their buffer, a cut
 * packet asks for more. The first byte is the size of BIP packets to begin with. */
#include <stdlib.h>
#include <string.h>

#include "decode/packet/packet.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *p = data, *end = data + size;
	unsigned bip;

	if (!size)
		return 0;
	bip = *p++ % 3 * 4;
	while (p < end) {
		struct pt_packet k, cut;
		char text[80];
		int n = pt_packet_decode(p, end, bip, &k);

		if (n == PT_NEED_MORE_BYTES) {
			if (end - p >= PT_PACKET_MAX)
				abort();
			break;
		}
		if (n == PT_BAD_PACKET) {
			const uint8_t *next = pt_find_psb(p + 1, end);

			if (!next)
				break;
			p = next;
			bip = 0;
			continue;
		}
		if (n < 1 || n > end - p || k.size != n || k.type >= PT_TYPES)
			abort();
		if (pt_packet_text(&k, text, sizeof text) != strlen(text) ||
		    !pt_type_name((enum pt_type)k.type))
			abort();
		for (int less = 0; less < n; less++)
			if (pt_packet_decode(p, p + less, bip, &cut) != PT_NEED_MORE_BYTES)
				abort();
		if (k.type == PT_BBP)
			bip = k.n;
		else if (k.type == PT_BEP || k.type == PT_PSB || k.type == PT_OVF)
			bip = 0;
		p += n;
	}
	return 0;
}
