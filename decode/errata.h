/*
 * errata.h - what is wrong with the packets of some CPU models, and must be known to read them.
 *
 * From Intel's specification updates, by the models that libipt's pt_cpu_errata() has them for. Others (BDM70, APL11,
 * APL12: a FUP or TIP.PGD while tracing is disabled) need no model: no correct CPU writes such packets, and the flow
 * takes them for what they mean.
 */
#ifndef DECODE_ERRATA_H
#define DECODE_ERRATA_H

#include <stdint.h>

enum pt_erratum {
	PT_SKD007 = 1, /* an OVF may stand in place of a CYC's second byte */
	PT_SKD010 = 2, /* an OVF may lack its FUP or TIP.PGE */
	PT_SKD022 = 4, /* a VM entry that clears TraceEn may have a FUP before its TIP.PGD */
	PT_SKZ84 =
	    8 /* in a guest with a TSC offset or scaling, TMA is corrupt and a byte follows that is no packet */
};

/* Of CPUID's family and model; 0 for those that have none, or are not known. */
uint32_t pt_errata_of(uint32_t family, uint32_t model);

#endif
