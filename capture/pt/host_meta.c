/* host_meta.c - see host_meta.h. */
#include "capture/record/host_meta.h"
#include "schema/version.h"

#include <cpuid.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>

static int put_cpuid(struct ptc_writer *w, const char *key, unsigned leaf, unsigned sub, struct pt_error *e)
{
	unsigned a, b, c, d;

	if (!__get_cpuid_count(leaf, sub, &a, &b, &c, &d))
		return 0;
	return ptc_put_metaf(w, e, key, "0x%x,0x%x,0x%x,0x%x", a, b, c, d);
}

static int put_cpu(struct ptc_writer *w, struct pt_error *e)
{
	unsigned regs[13] = {0}, a, b, c, d;
	int r = 0;

	__cpuid(0, a, regs[0], regs[2], regs[1]);
	r |= ptc_put_meta(w, "cpu_vendor", (char *)regs, e);
	__cpuid(1, a, b, c, d);
	r |= ptc_put_metaf(w, e, "cpu_family", "%u",
			   (a >> 8 & 15) + ((a >> 8 & 15) == 15 ? a >> 20 & 255 : 0));
	r |= ptc_put_metaf(w, e, "cpu_model", "%u", (a >> 4 & 15) | (a >> 16 & 15) << 4);
	r |= ptc_put_metaf(w, e, "cpu_stepping", "%u", a & 15);
	__cpuid(0x80000000, a, b, c, d);
	if (a >= 0x80000004) {
		memset(regs, 0, sizeof regs);
		for (unsigned i = 0; i < 3; i++)
			__cpuid(0x80000002 + i, regs[4 * i], regs[4 * i + 1], regs[4 * i + 2],
				regs[4 * i + 3]);
		r |= ptc_put_meta(w, "cpu_name", (char *)regs, e);
	}
	return r;
}

int host_meta_put(struct ptc_writer *w, const char *engine, const char *command, struct pt_error *e)
{
	unsigned char id[16];
	struct utsname u;
	char hex[33];
	int r = 0;

	if (getrandom(id, sizeof id, 0) == sizeof id) {
		for (size_t i = 0; i < sizeof id; i++)
			snprintf(hex + 2 * i, 3, "%02x", id[i]);
		r |= ptc_put_meta(w, "uuid", hex, e);
	}
	r |= ptc_put_meta(w, "tool", "pt-capture", e);
	r |= ptc_put_meta(w, "tool_version", PT_VERSION, e);
	r |= ptc_put_meta(w, "engine", engine, e);
	r |= ptc_put_meta(w, "command", command, e);
	r |= ptc_put_metaf(w, e, "start_time", "%lld", (long long)time(NULL));
	if (uname(&u) == 0) {
		r |= ptc_put_meta(w, "host", u.nodename, e);
		r |= ptc_put_meta(w, "kernel", u.release, e);
		r |= ptc_put_meta(w, "arch", u.machine, e);
	}
	return r | put_cpu(w, e) ? -1 : 0;
}

int host_meta_put_pt(struct ptc_writer *w, const struct hw_pmu *pmu, uint64_t config, unsigned levels,
		     const struct hw_clock *clock, struct pt_error *e)
{
	uint32_t num = pmu ? pmu->tsc_art_ratio_num : 0, den = pmu ? pmu->tsc_art_ratio_den : 0;
	unsigned a = 0, b = 0, c = 0, d = 0;
	int r = 0;

	if (clock->mult) {
		r |= ptc_put_metaf(w, e, "time_zero", "%" PRId64, (int64_t)clock->zero);
		r |= ptc_put_metaf(w, e, "time_mult", "%u", clock->mult);
		r |= ptc_put_metaf(w, e, "time_shift", "%u", clock->shift);
		r |= ptc_put_metaf(w, e, "tsc_hz", "%" PRIu64, hw_clock_tsc_hz(clock));
	}
	if (!pmu)
		return r ? -1 : 0;
	r |= put_cpuid(w, "cpuid_14_0", 0x14, 0, e);
	r |= put_cpuid(w, "cpuid_14_1", 0x14, 1, e);
	r |= put_cpuid(w, "cpuid_15", 0x15, 0, e);
	if (!num && __get_cpuid_count(0x15, 0, &a, &b, &c, &d) && a) {
		num = b;
		den = a;
	}
	if (num && den) {
		r |= ptc_put_metaf(w, e, "tsc_ctc_numerator", "%u", num);
		r |= ptc_put_metaf(w, e, "tsc_ctc_denominator", "%u", den);
	}
	if (pmu->max_nonturbo_ratio)
		r |= ptc_put_metaf(w, e, "nominal_ratio", "%u", pmu->max_nonturbo_ratio);
	r |= ptc_put_metaf(w, e, "mtc_freq", "%" PRIu64, hw_pmu_get(pmu, config, "mtc_period"));
	r |= ptc_put_metaf(w, e, "pt_config", "0x%" PRIx64, config);
	if (levels == HW_USER)
		r |= ptc_put_meta(w, "pt_user_only", "1", e);
	return r ? -1 : 0;
}
