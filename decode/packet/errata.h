/*
 * errata.h - what is wrong with the packets of some CPU models, and must be known to read them.
 *
 * From Intel's specification updates, for the models for which libipt's pt_cpu_errata() has them. Those that
 * this decoder knows are enum pt_erratum. Of the others that libipt or perf know:
 *
 *   BDM70   a FUP in PSB+ while tracing is disabled: no correct CPU writes it, so it is read so on all models
 *   APL11   TIP.PGD instead of a FUP after OVF: as BDM70
 *   APL12   a FUP after OVF while tracing is disabled: as BDM70
 *   SKL168  CYC packets are lost around a PSB: nothing to do, the next timing packet corrects the clock
 *
 * Each that is handled has a scenario in tests/scenarios, with a name that ends in its name.
 */
#ifndef DECODE_PACKET_ERRATA_H
#define DECODE_PACKET_ERRATA_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/packet/packet.h"

enum pt_erratum {
	/* An OVF may stand in place of a CYC's second byte. */
	PT_SKD007 = 1,
	/* An OVF may lack its FUP or TIP.PGE. */
	PT_SKD010 = 2,
	/* A VM entry that clears TraceEn may have a FUP before its TIP.PGD. */
	PT_SKD022 = 4,
	/* In a guest with a TSC offset or scaling, TMA is corrupt, and a byte after it is no packet. */
	PT_SKZ84 = 8,
	/* TIP.PGD may lack its IP where a direct jump or call leaves the range of an address filter. */
	PT_SKL014 = 16,
	/* The packet of a branch right before a TSX abort may have a wrong target. */
	PT_BDM64 = 32
};

/* The errata of a CPU by CPUID's family and model, or'ed; 0 for a model that has none or is not known. */
uint32_t pt_errata_of(uint32_t family, uint32_t model);

/*
 * What is at p on a CPU with SKD007 or SKZ84 among its errata, where pt_packet_decode() came to n and *k.
 * Returns its length, and sets *k; or n, if that is right. A corrupt TMA becomes 8 bytes of PT_PAD: nothing
 * in it is true. PT_NEED_MORE_BYTES: more bytes are needed to say so (last: there are none).
 */
int pt_errata_packet(uint32_t errata, const uint8_t *p, const uint8_t *end, bool last, int n,
		     struct pt_packet *k);

#endif
