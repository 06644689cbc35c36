/*
 * pmu.h - what the kernel says of its intel_pt PMU, and perf's terms for it, checked against that.
 *
 * The kernel's driver shows under /sys/bus/event_source/devices/intel_pt: `type` (perf_event_attr.type),
 * `format/` (the bits of attr.config that a term has), `caps/` (what this CPU can do:
 * arch/x86/events/intel/pt.c, CPUID 14H). All of it is world-readable. perf_event_open() answers a config
 * that the CPU cannot do with EINVAL and nothing more, so the checks of pt_event_valid() are made here, with
 * a message.
 */
#ifndef CAPTURE_RECORD_PMU_H
#define CAPTURE_RECORD_PMU_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/error.h"

#define HW_SYSFS    "/sys/bus/event_source/devices/intel_pt"
#define HW_TERM_MAX 48

struct hw_term {
	char name[24];
	unsigned low, high; /* bits of attr.config, inclusive */
};

struct hw_pmu {
	uint32_t type;
	struct hw_term terms[HW_TERM_MAX];
	unsigned term_count;
	/* caps/; 0 where a kernel does not have the file */
	uint32_t psb_cyc, mtc;
	uint32_t psb_periods, cycle_thresholds, mtc_periods; /* bit n: value n is allowed */
	uint32_t ptwrite, power_event_trace, event_trace, tnt_disable, ip_filtering, num_address_ranges;
	bool one_entry; /* its memory is one contiguous piece: cap topa_multiple_entries is 0 */
	uint32_t max_nonturbo_ratio, tsc_art_ratio_num, tsc_art_ratio_den;
};

/* Levels of privilege that are traced; 0: not chosen. */
enum { HW_USER = 1, HW_KERNEL = 2 };

/*
 * Reads dir (HW_SYSFS, or a test's). 0, or -1: PT_ERR_REFUSED when there is no such PMU here,
 * PT_ERR_BAD_INPUT when its files are not as described.
 */
int hw_pmu_read(struct hw_pmu *ret, const char *dir, struct pt_error *e);

/*
 * perf record's default, as far as this CPU can do it: tsc, mtc with a period near 3, psb_period near 3,
 * branch.
 */
uint64_t hw_pmu_default(const struct hw_pmu *pmu);

/*
 * Changes *config and *levels (HW_USER, HW_KERNEL) by "cyc,mtc_period=3" or "intel_pt/cyc/u". 0; or -1 with
 * PT_ERR_USAGE, and they are as they were: the message names the term and what this CPU allows.
 */
int hw_pmu_terms(const struct hw_pmu *pmu, const char *text, uint64_t *config, unsigned *levels,
		 struct pt_error *e);

/* Checks a whole config as the driver would. 0, or -1 with PT_ERR_USAGE. */
int hw_pmu_check(const struct hw_pmu *pmu, uint64_t config, struct pt_error *e);

/* The value of a term in config; 0 when the PMU has no such term. */
uint64_t hw_pmu_get(const struct hw_pmu *pmu, uint64_t config, const char *term);

#endif
