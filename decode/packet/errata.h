/*
 * errata.h - what is wrong with the packets of some CPU models, and must be known to read them.
 *
 * From Intel's specification updates, by the models that libipt's pt_cpu_errata() has them for. The others that it or perf
 * know, and what becomes of them (each that is read has a scenario that ends in its name):
 *
 *   BDM70   a FUP in PSB+ while tracing is disabled             no correct CPU writes it: taken for what it means, on all models
 *   APL11   TIP.PGD instead of a FUP behind OVF                 as BDM70
 *   APL12   a FUP behind OVF while tracing is disabled          as BDM70
 *   SKL168  CYC packets are lost around a PSB                   nothing to do: the next timing packet tells; a loss is no count
 *   BDM64   a wrong branch record behind a TSX abort            Broadwell only: not read
 */
#ifndef DECODE_PACKET_ERRATA_H
#define DECODE_PACKET_ERRATA_H

#include <stdint.h>

enum pt_erratum {
	PT_SKD007 = 1, /* an OVF may stand in place of a CYC's second byte */
	PT_SKD010 = 2, /* an OVF may lack its FUP or TIP.PGE */
	PT_SKD022 = 4, /* a VM entry that clears TraceEn may have a FUP before its TIP.PGD */
	PT_SKZ84 =
	    8, /* in a guest with a TSC offset or scaling, TMA is corrupt and a byte follows that is no packet */
	PT_SKL014 = 16 /* TIP.PGD may lack its IP where a direct jump or call leaves what is filtered by */
};

/* Of CPUID's family and model; 0 for those that have none, or are not known. */
uint32_t pt_errata_of(uint32_t family, uint32_t model);

#endif
