/*
 * config.h - perf's terms for intel_pt, as far as the step engine has them: "cyc,mtc_period=3,noretcomp", or
 * with "intel_pt/" before and "/" or "/u" after them. What the hardware can do is in record/pmu.h.
 */
#ifndef CAPTURE_PT_CONFIG_H
#define CAPTURE_PT_CONFIG_H

#include <stdint.h>

#include "schema/error.h"

/* Bits of perf_event_attr.config, as /sys/bus/event_source/devices/intel_pt/format has them. */
enum {
	PT_CONFIG_PT = 1 << 0,
	PT_CONFIG_CYC = 1 << 1,
	PT_CONFIG_MTC = 1 << 9,
	PT_CONFIG_TSC = 1 << 10,
	PT_CONFIG_NORETCOMP = 1 << 11,
	PT_CONFIG_BRANCH = 1 << 13,
	PT_CONFIG_MTC_PERIOD = 14, /* shift, 4 bits */
	PT_CONFIG_CYC_THRESH = 19, /* shift, 4 bits */
	PT_CONFIG_PSB_PERIOD = 24  /* shift, 4 bits */
};
#define PT_CONFIG_DEFAULT 0x300e601 /* perf record's: tsc,mtc,mtc_period=3,psb_period=3,pt,branch */

/*
 * Changes *config by the terms. 0; or -1 with PT_ERR_USAGE, and *config is as it was: the message names the
 * term and what it can be.
 */
int pt_config_parse(const char *terms, uint64_t *config, struct pt_error *e);

/* A field of 4 bits. */
static inline unsigned pt_config_field(uint64_t config, unsigned shift)
{
	return config >> shift & 15;
}

#endif
