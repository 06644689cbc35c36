/*
 * libipt_errata.c - libipt_errata - which errata libipt and errata.h name for each model: a line for each
 * that only one of them has, "FAMILY MODEL ERRATUM libipt|ours" (hexadecimal).
 *
 * Intel's libipt knows the models of its day; those that came later are "ours".
 */
#define pt_packet libipt_packet /* ours has the name, too */
#include <intel-pt.h>
#undef pt_packet
#include <stdio.h>
#include <string.h>

#include "decode/packet/errata.h"

static void compare(uint16_t family, uint16_t model, const char *name, bool libipt, bool ours)
{
	if (libipt != ours)
		printf("%x %x %s %s\n", family, model, name, libipt ? "libipt" : "ours");
}

int main(void)
{
	for (uint16_t model = 0; model < 256; model++) {
		struct pt_cpu cpu = {.vendor = pcv_intel, .family = 6, .model = (uint8_t)model};
		struct pt_errata e;
		uint32_t ours = pt_errata_of(6, model);

		memset(&e, 0, sizeof e);
		pt_cpu_errata(&e, &cpu); /* fails for a model that is not known: none */
		compare(6, model, "SKD007", e.skd007, ours & PT_SKD007);
		compare(6, model, "SKD010", e.skd010, ours & PT_SKD010);
		compare(6, model, "SKD022", e.skd022, ours & PT_SKD022);
		compare(6, model, "BDM64", e.bdm64, ours & PT_BDM64);
	}
	return 0;
}
