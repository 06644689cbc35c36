/* trace_meta.c - see trace_meta.h. */
#include "capture/record/trace_meta.h"

#include <cpuid.h>
#include <inttypes.h>

static int put_cpuid(struct ptc_writer *w, const char *key, unsigned leaf, unsigned sub, struct pt_error *e)
{
	unsigned a, b, c, d;

	if (!__get_cpuid_count(leaf, sub, &a, &b, &c, &d))
		return 0;
	return ptc_put_metaf(w, e, key, "0x%x,0x%x,0x%x,0x%x", a, b, c, d);
}

/* The ratio of TSC and CTC: the driver's, or CPUID's. */
static int put_ctc_ratio(struct ptc_writer *w, const struct hw_pmu *pmu, struct pt_error *e)
{
	uint32_t num = pmu->tsc_art_ratio_num, den = pmu->tsc_art_ratio_den;
	unsigned a = 0, b = 0, c = 0, d = 0;
	int r = 0;

	if (!num && __get_cpuid_count(0x15, 0, &a, &b, &c, &d) && a) {
		num = b;
		den = a;
	}
	if (num && den) {
		r |= ptc_put_metaf(w, e, "tsc_ctc_numerator", "%u", num);
		r |= ptc_put_metaf(w, e, "tsc_ctc_denominator", "%u", den);
	}
	return r;
}

int hw_clock_meta_put(struct ptc_writer *w, const struct hw_clock *clock, struct pt_error *e)
{
	int r = 0;

	if (!clock->mult)
		return 0;
	r |= ptc_put_metaf(w, e, "time_zero", "%" PRId64, (int64_t)clock->zero);
	r |= ptc_put_metaf(w, e, "time_mult", "%u", clock->mult);
	r |= ptc_put_metaf(w, e, "time_shift", "%u", clock->shift);
	r |= ptc_put_metaf(w, e, "tsc_hz", "%" PRIu64, hw_clock_tsc_hz(clock));
	return r ? -1 : 0;
}

int hw_trace_meta_put(struct ptc_writer *w, const struct hw_pmu *pmu, uint64_t config, unsigned levels,
		      struct pt_error *e)
{
	int r = 0;

	r |= put_cpuid(w, "cpuid_14_0", 0x14, 0, e);
	r |= put_cpuid(w, "cpuid_14_1", 0x14, 1, e);
	r |= put_cpuid(w, "cpuid_15", 0x15, 0, e);
	r |= put_ctc_ratio(w, pmu, e);
	if (pmu->max_nonturbo_ratio)
		r |= ptc_put_metaf(w, e, "nominal_ratio", "%u", pmu->max_nonturbo_ratio);
	r |= ptc_put_metaf(w, e, "mtc_freq", "%" PRIu64, hw_pmu_get(pmu, config, "mtc_period"));
	r |= ptc_put_metaf(w, e, "pt_config", "0x%" PRIx64, config);
	if (levels == HW_USER)
		r |= ptc_put_meta(w, "pt_user_only", "1", e);
	return r ? -1 : 0;
}
