/* perf_clock.c - see perf_clock.h. */
#include "decode/packet/perf_clock.h"

#include "schema/records.h"

void pt_perf_clock_from_meta(const struct ptc_meta *meta, struct pt_perf_clock *ret)
{
	ret->zero = ptc_meta_number(meta, "time_zero", 0);
	ret->mult = (uint32_t)ptc_meta_number(meta, "time_mult", 0);
	ret->shift = (uint32_t)ptc_meta_number(meta, "time_shift", 0) & 63;
}

uint64_t pt_perf_clock_to_tsc(const struct pt_perf_clock *c, uint64_t ns)
{
	if (!c->mult)
		return PTR_NO_TSC;
	if ((int64_t)(ns - c->zero) < 0)
		return 0;
	return (uint64_t)(((unsigned __int128)(ns - c->zero) << c->shift) / c->mult);
}
