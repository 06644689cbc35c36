/* errata.c - see errata.h. */
#include "decode/packet/errata.h"

#include <stddef.h>

uint32_t pt_errata_of(uint32_t family, uint32_t model)
{
	if (family == 0x13 && model == 1) /* Diamond Rapids */
		return PT_SKD022 | PT_SKL014 | PT_SKZ84;
	if (family == 0x12 && (model == 1 || model == 3)) /* Nova Lake */
		return PT_SKD022 | PT_SKL014;
	if (family != 6)
		return 0;
	switch (model) {
	case 0x3d: /* Broadwell */
	case 0x47:
	case 0x4f:
	case 0x56: return PT_BDM64;
	case 0x4e: /* Skylake */
	case 0x5e:
	case 0x8e: /* Kaby Lake, Coffee Lake */
	case 0x9e:
	case 0xa5: /* Comet Lake */
	case 0xa6: return PT_SKD007 | PT_SKD010 | PT_SKD022 | PT_SKL014;
	case 0x55: /* Skylake-X, Cascade Lake */
	case 0x6a: /* Ice Lake-X */
	case 0x6c:
	case 0x8f: /* Sapphire Rapids */
	case 0xcf: /* Emerald Rapids */
	case 0xad: /* Granite Rapids */
	case 0xae: return PT_SKD022 | PT_SKL014 | PT_SKZ84;
	case 0x66: /* Cannon Lake */
	case 0x7d: /* Ice Lake */
	case 0x7e:
	case 0x8c: /* Tiger Lake */
	case 0x8d:
	case 0xa7: /* Rocket Lake */
	case 0xa8:
	case 0x97: /* Alder Lake */
	case 0x9a:
	case 0xb7: /* Raptor Lake */
	case 0xba:
	case 0xbf:
	case 0xaa: /* Meteor Lake */
	case 0xac:
	case 0xb5: /* Arrow Lake */
	case 0xc5:
	case 0xc6:
	case 0xbd: /* Lunar Lake */
	case 0xcc: /* Panther Lake */
	case 0xd5: /* Wildcat Lake */ return PT_SKD022 | PT_SKL014;
	default: return 0;
	}
}

int pt_errata_packet(uint32_t errata, const uint8_t *p, const uint8_t *end, bool last, int n,
		     struct pt_packet *k)
{
	ptrdiff_t left = end - p;

	/* A CYC of two bytes and one of one byte, which together are OVF's after a first byte. No CPU sends
	 * two CYC in a row but when its counter wraps, and those are longer. */
	if (errata & PT_SKD007 && n == 2 && k->type == PT_CYC && p[1] == 0x02) {
		if (left < 3)
			return last ? n : PT_NEED_MORE_BYTES;
		if (p[2] == 0xf3) {
			pt_packet_decode(p + 1, end, 0, k);
			return 3;
		}
	}
	if (errata & PT_SKZ84 && n == PT_BAD_PACKET && left >= 2 && p[0] == 0x02 && p[1] == 0x73) {
		if (left < 8)
			return last ? n : PT_NEED_MORE_BYTES;
		k->type = PT_PAD;
		return 8;
	}
	return n;
}
