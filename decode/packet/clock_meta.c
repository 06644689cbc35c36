/* clock_meta.c - see clock_meta.h. */
#include "decode/packet/clock_meta.h"

#include <string.h>

#include "decode/packet/perf_clock.h"

/* The sysfs format of intel_pt, as attr.config: mtc is bit 9, mtc_period bits 14..17. */
#define CONFIG_MTC	  ((uint64_t)1 << 9)
#define CONFIG_MTC_PERIOD 14

void pt_clock_config_from_meta(const struct ptc_meta *meta, int32_t cpu, struct pt_clock_config *ret)
{
	uint64_t config = ptc_meta_number(meta, "pt_config", UINT64_MAX);
	bool known = config != UINT64_MAX;

	memset(ret, 0, sizeof *ret);
	ret->ctc_num = (uint32_t)ptc_meta_cpu_number(meta, cpu, "tsc_ctc_numerator", 0);
	ret->ctc_den = (uint32_t)ptc_meta_cpu_number(meta, cpu, "tsc_ctc_denominator", 0);
	ret->nominal_ratio = (uint32_t)ptc_meta_cpu_number(meta, cpu, "nominal_ratio", 0);
	ret->mtc_shift = ptc_meta_number(meta, "mtc_freq", known ? config >> CONFIG_MTC_PERIOD : 0) & 15;
	ret->mtc = !known || (config & CONFIG_MTC);
}

uint64_t pt_tsc_khz_from_meta(const struct ptc_meta *meta)
{
	struct pt_perf_clock c;
	uint64_t hz = ptc_meta_number(meta, "tsc_hz", 0);

	/* The kernel makes mult from its whole kHz: that is more exact than what CPUID says in Hz. */
	pt_perf_clock_from_meta(meta, &c);
	if (c.mult)
		return (uint64_t)((((unsigned __int128)1000000 << c.shift) + c.mult / 2) / c.mult);
	return (hz + 500) / 1000;
}
