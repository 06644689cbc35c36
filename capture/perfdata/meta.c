/* meta.c - see meta.h. */
#include "capture/perfdata/meta.h"
#include "schema/version.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

#define KEY_BYTES 64

/* Where sysfs has the terms' bits on every kernel so far. */
#define PT_BIT_CYC	 ((uint64_t)1 << 1)
#define PT_BIT_MTC	 ((uint64_t)1 << 9)
#define PT_BIT_TSC	 ((uint64_t)1 << 10)
#define PT_BIT_NORETCOMP ((uint64_t)1 << 11)
#define PT_MTC_SHIFT	 14
#define PT_MTC_BITS	 ((uint64_t)15 << PT_MTC_SHIFT)

/* attr.config of the intel_pt event with the bits at these places, wherever the traced kernel had them. */
static uint64_t pt_config(const struct perf_file_pt *pt, uint64_t config)
{
	const struct {
		uint64_t there, here;
	} bits[] = {{pt->tsc_bit, PT_BIT_TSC},
		    {pt->noretcomp_bit, PT_BIT_NORETCOMP},
		    {pt->mtc_bit, PT_BIT_MTC},
		    {pt->cyc_bit, PT_BIT_CYC}};
	uint64_t ret = config;

	for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
		if (bits[i].there && bits[i].there != bits[i].here)
			ret = (ret & ~bits[i].here) | (config & bits[i].there ? bits[i].here : 0);
	if (pt->mtc_freq_bits && pt->mtc_freq_bits != PT_MTC_BITS)
		ret = (ret & ~PT_MTC_BITS) |
		      (((config & pt->mtc_freq_bits) >> __builtin_ctzll(pt->mtc_freq_bits)) << PT_MTC_SHIFT &
		       PT_MTC_BITS);
	return ret;
}

static int put_number(struct ptc_writer *w, const char *key, uint64_t value, struct pt_error *e)
{
	return ptc_put_metaf(w, e, key, "%" PRIu64, value);
}

static int put_cpuid(struct ptc_writer *w, const char *text, struct pt_error *e)
{
	char vendor[32];
	unsigned family, model, stepping;

	if (!text || sscanf(text, "%31[^,],%u,%u,%u", vendor, &family, &model, &stepping) != 4)
		return 0;
	return ptc_put_meta(w, "cpu_vendor", vendor, e) || put_number(w, "cpu_family", family, e) ||
		       put_number(w, "cpu_model", model, e) || put_number(w, "cpu_stepping", stepping, e)
		   ? -1
		   : 0;
}

static int put_pt(struct ptc_writer *w, const struct perf_description *d, uint32_t pt_event,
		  struct pt_error *e)
{
	const struct perf_file_pt *pt = &d->pt;
	uint64_t config;

	if (!pt->present)
		return 0;
	if (pt->tsc_ctc_numerator && pt->tsc_ctc_denominator &&
	    (put_number(w, "tsc_ctc_numerator", pt->tsc_ctc_numerator, e) ||
	     put_number(w, "tsc_ctc_denominator", pt->tsc_ctc_denominator, e)))
		return -1;
	if (pt->filter[0] && ptc_put_meta(w, "addr_filter", pt->filter, e))
		return -1;
	if (pt->max_nonturbo_ratio && put_number(w, "nominal_ratio", pt->max_nonturbo_ratio, e))
		return -1;
	if (pt_event == UINT32_MAX)
		return 0;
	config = pt_config(pt, d->events[pt_event].attr.config);
	return ptc_put_metaf(w, e, "pt_config", "0x%" PRIx64, config) ||
		       put_number(w, "mtc_freq", (config & PT_MTC_BITS) >> PT_MTC_SHIFT, e)
		   ? -1
		   : 0;
}

static int put_cpu_types(struct ptc_writer *w, const struct perf_description *d, struct pt_error *e)
{
	char key[KEY_BYTES];

	for (size_t i = 0; i < d->cpu_type_count; i++) {
		snprintf(key, sizeof key, "cpu_type.%zu.name", i);
		if (ptc_put_meta(w, key, d->cpu_types[i].name, e))
			return -1;
		snprintf(key, sizeof key, "cpu_type.%zu.cpus", i);
		if (ptc_put_meta(w, key, d->cpu_types[i].cpus, e))
			return -1;
	}
	return 0;
}

int perf_meta_put(struct ptc_writer *w, const struct perf_description *d, uint32_t pt_event, bool user_only,
		  const char *command, struct pt_error *e)
{
	char *const *text = d->text;
	const struct {
		const char *key, *value;
	} plain[] = {
	    {"tool", "pt-capture"},
	    {"tool_version", PT_VERSION},
	    {"engine", "import-perf"},
	    {"host", text[PERF_TEXT_HOST]},
	    {"kernel", text[PERF_TEXT_RELEASE]},
	    {"arch", text[PERF_TEXT_ARCH] ? text[PERF_TEXT_ARCH] : "x86_64"},
	    {"cpu_name", text[PERF_TEXT_CPU]},
	    {"command", text[PERF_TEXT_COMMAND] ? text[PERF_TEXT_COMMAND] : command},
	};
	uint64_t uuid[2];

	if (getrandom(uuid, sizeof uuid, 0) != sizeof uuid)
		return pt_fail_errno(e, "no random numbers for the uuid");
	if (ptc_put_metaf(w, e, "uuid", "%016" PRIx64 "%016" PRIx64, uuid[0], uuid[1]))
		return -1;
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		if (plain[i].value && ptc_put_meta(w, plain[i].key, plain[i].value, e))
			return -1;
	if (put_cpuid(w, text[PERF_TEXT_CPUID], e) || put_cpu_types(w, d, e) ||
	    perf_meta_put_clock(w, 0, &d->clock, e) || put_pt(w, d, pt_event, e))
		return -1;
	return d->pt.present && user_only ? ptc_put_meta(w, "pt_user_only", "1", e) : 0;
}

/* META's key for a machine: "KEY", or "machine.PID.KEY" of a guest. */
static const char *machine_key(char to[KEY_BYTES], int32_t machine_pid, const char *key)
{
	if (!machine_pid)
		return key;
	snprintf(to, KEY_BYTES, "machine.%" PRId32 ".%s", machine_pid, key);
	return to;
}

int perf_meta_put_clock(struct ptc_writer *w, int32_t machine_pid, const struct perf_file_clock *clock,
			struct pt_error *e)
{
	char key[KEY_BYTES];

	if (!clock->mult)
		return 0;
	return put_number(w, machine_key(key, machine_pid, "time_zero"), clock->zero, e) ||
		       put_number(w, machine_key(key, machine_pid, "time_mult"), clock->mult, e) ||
		       put_number(w, machine_key(key, machine_pid, "time_shift"), clock->shift, e)
		   ? -1
		   : 0;
}

int perf_meta_put_tsc_offset(struct ptc_writer *w, int32_t machine_pid, uint32_t vcpu, int64_t offset,
			     struct pt_error *e)
{
	char key[KEY_BYTES];

	snprintf(key, sizeof key, "kvm.%" PRId32 ".%" PRIu32 ".tsc_offset", machine_pid, vcpu);
	return ptc_put_metaf(w, e, key, "%" PRId64, offset);
}

int perf_meta_put_guest(struct ptc_writer *w, int32_t machine_pid, const struct perf_description *d,
			struct pt_error *e)
{
	const char *host = d->text[PERF_TEXT_HOST], *kernel = d->text[PERF_TEXT_RELEASE];
	char key[KEY_BYTES];

	if (host && ptc_put_meta(w, machine_key(key, machine_pid, "host"), host, e))
		return -1;
	return kernel ? ptc_put_meta(w, machine_key(key, machine_pid, "kernel"), kernel, e) : 0;
}

int perf_meta_put_injected(struct ptc_writer *w, const struct perf_description *d, struct pt_error *e)
{
	for (size_t i = 0; i < d->id_count; i++) {
		const struct perf_file_id *id = &d->ids[i];

		if (id->machine_pid <= 0)
			continue;
		if (perf_meta_put_clock(w, id->machine_pid, &d->clock, e))
			return -1;
		if (id->vcpu >= 0 && perf_meta_put_tsc_offset(w, id->machine_pid, (uint32_t)id->vcpu, 0, e))
			return -1;
	}
	return 0;
}
