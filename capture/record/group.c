/* group.c - see group.h. */
#include "capture/record/group.h"
#include "capture/record/event_name.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number, with a K after it where kilobytes are allowed; 0: it is none, or not in 1..max. */
static uint64_t number(const char *text, bool kilobytes, uint64_t max)
{
	char *end;
	unsigned long long v = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;

	if (v == 0 || v > max)
		return 0;
	if (kilobytes && (*end == 'k' || *end == 'K')) {
		v <<= 10;
		end++;
	}
	return *end || v > max ? 0 : v;
}

int hw_group_aux_sample(struct hw_group *g, const char *size, struct pt_error *e)
{
	uint64_t v = size ? number(size, true, HW_SAMPLE_MAX) : HW_SAMPLE_BYTES;

	if (!v)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--aux-sample=%s: it can be 1 to %d bytes (60K)", size, HW_SAMPLE_MAX);
	g->sample_bytes = ((uint32_t)v + 7) & ~7u;
	return 0;
}

int hw_group_frequency(struct hw_group *g, const char *hz, struct pt_error *e)
{
	g->frequency = number(hz, false, HW_SAMPLE_HZ_MAX);
	g->period = 0;
	return g->frequency ? 0
			    : pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
				      "-F %s: it can be 1 to %d samples a second", hz, HW_SAMPLE_HZ_MAX);
}

int hw_group_period(struct hw_group *g, const char *count, struct pt_error *e)
{
	g->period = number(count, false, INT64_MAX);
	g->frequency = 0;
	return g->period ? 0 : pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "-c %s: not a number of events", count);
}

static int add(struct hw_group *g, const char *name, size_t n, struct pt_error *e)
{
	struct hw_group_event *one = &g->at[g->count];

	if (g->count == HW_GROUP_MAX)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "more than %d events that sample, pause or resume", HW_GROUP_MAX);
	*one = (struct hw_group_event){0};
	if (n < sizeof one->name)
		memcpy(one->name, name, n);
	if (!hw_event_name_valid(one->name))
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "there is no event '%.*s': it can be cycles, instructions, branches, cpu-clock, "
		    "page-faults, ..., rHEX or SYSTEM:NAME",
		    (int)n, name);
	g->count++;
	return 0;
}

bool hw_group_has_pmu(const char *text, size_t *ret_bytes)
{
	size_t n = strcspn(text, "/:,");

	*ret_bytes = n;
	return text[n] == '/' && !strncmp(text, "cpu", 3) && (n == 3 || text[3] == '_') &&
	       n < sizeof((struct hw_group_event *)NULL)->pmu;
}

/* One of "aux-sample-size=8192,period=1000". */
static int set_term(struct hw_group *g, struct hw_group_event *one, const char *term, size_t n,
		    struct pt_error *e)
{
	static const char size[] = "aux-sample-size=", period[] = "period=", frequency[] = "freq=";
	uint64_t v = 0;
	char text[64] = "";

	if (n < sizeof text)
		memcpy(text, term, n);
	if (!strncmp(text, size, sizeof size - 1) &&
	    (v = number(text + sizeof size - 1, true, HW_SAMPLE_MAX)))
		one->sample_bytes = ((uint32_t)v + 7) & ~7u;
	else if (!strncmp(text, period, sizeof period - 1) &&
		 (v = number(text + sizeof period - 1, false, INT64_MAX)))
		one->period = v;
	else if (!strncmp(text, frequency, sizeof frequency - 1) &&
		 (v = number(text + sizeof frequency - 1, false, HW_SAMPLE_HZ_MAX)))
		one->frequency = v;
	if (!v)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "-e %s/%.*s/: it can be aux-sample-size=BYTES (1 to %d), period=N, freq=HZ",
			       one->name, (int)n, term, HW_SAMPLE_MAX);
	if (one->sample_bytes && !g->sample_bytes)
		g->sample_bytes = one->sample_bytes;
	return 0;
}

/*
 * Where a term stands in a CPU's event: in IA32_PERFEVTSELx (SDM vol. 3, 20.2.1.1 and 20.2.1.2), as the
 * kernel's format/ has it.
 */
static const struct {
	const char *name;
	unsigned shift, bits;
} raw_terms[] = {{"event", 0, 8}, {"umask", 8, 8}, {"edge", 18, 1},  {"pc", 19, 1},
		 {"any", 21, 1},  {"inv", 23, 1},  {"cmask", 24, 8}, {"config", 0, 64}};

/*
 * Sets the bits of "cmask=1", or of "edge" as of "edge=1", in *config. 1; 0: it is no such term; -1: its value
 * is too large or no number.
 */
static int set_raw_term(const char *term, size_t n, uint64_t *config)
{
	size_t name_bytes = strcspn(term, "=,/");
	char value[32] = "1", *end = value;
	uint64_t v, most;

	for (size_t i = 0; i < sizeof raw_terms / sizeof *raw_terms; i++) {
		if (strlen(raw_terms[i].name) != name_bytes ||
		    memcmp(term, raw_terms[i].name, name_bytes) != 0)
			continue;
		most = UINT64_MAX >> (64 - raw_terms[i].bits);
		if (name_bytes == n ? most != 1 : n - name_bytes > sizeof value)
			return -1;
		if (name_bytes < n)
			snprintf(value, sizeof value, "%.*s", (int)(n - name_bytes - 1),
				 term + name_bytes + 1);
		v = isdigit((unsigned char)*value) ? strtoull(value, &end, 0) : 0;
		if (end == value || *end || v > most)
			return -1;
		*config |= v << raw_terms[i].shift;
		return 1;
	}
	return 0;
}

/*
 * The terms of the last event, from text to a slash. by_terms: it is what those for the CPU say, with the name
 * "rHEX" that such a raw event has.
 */
static int set_terms(struct hw_group *g, const char *text, bool by_terms, struct pt_error *e)
{
	struct hw_group_event *one = &g->at[g->count - 1];
	uint64_t config = 0;
	bool found = false;

	for (size_t n; *text && *text != '/' && *text != ':'; text += n + (text[n] == ',')) {
		int raw;

		n = strcspn(text, ",/");
		raw = by_terms ? set_raw_term(text, n, &config) : 0;
		if (raw < 0)
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
				       "-e: %.*s: its value is too large, or no number", (int)n, text);
		if (raw)
			snprintf(one->name, sizeof one->name, "r%" PRIx64, config);
		else if (n && set_term(g, one, text, n, e))
			return -1;
		found = found || raw;
	}
	return !by_terms || found
		   ? 0
		   : pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			     "-e: no event is named: cpu/cycles,period=1000/, or event=0x3c,umask=0");
}

int hw_group_event(struct hw_group *g, const char *text, struct pt_error *e)
{
	const char *pmu = text;
	size_t pmu_bytes, n;
	bool has_pmu = hw_group_has_pmu(text, &pmu_bytes), by_terms;

	if (has_pmu)
		text += pmu_bytes + 1;
	n = strcspn(text, has_pmu ? "/," : "/:");
	by_terms = has_pmu && memchr(text, '=', n);
	if (by_terms ? add(g, "r0", 2, e) : add(g, text, n, e))
		return -1;
	/* "cpu" is what all types of CPUs are, and the one PMU of other processors. */
	if (has_pmu && pmu_bytes > 3)
		memcpy(g->at[g->count - 1].pmu, pmu, pmu_bytes);
	if (!by_terms)
		text += n + (text[n] == (has_pmu ? ',' : '/'));
	return set_terms(g, text, by_terms, e);
}

int hw_group_sample_event(struct hw_group *g, const char *name, struct pt_error *e)
{
	size_t n;

	return hw_group_has_pmu(name, &n) ? hw_group_event(g, name, e) : add(g, name, strlen(name), e);
}

int hw_group_tracepoint(struct hw_group *g, const char *text, int *ret_taken, struct pt_error *e)
{
	static const char term[] = "aux-action=";
	const char *slash = strchr(text, '/');
	unsigned action;

	*ret_taken = slash != NULL;
	if (!slash)
		return 0;
	action = strncmp(slash + 1, term, sizeof term - 1) != 0 ? 0
		 : strcmp(slash + sizeof term, "pause/") == 0	? HW_AUX_PAUSE
		 : strcmp(slash + sizeof term, "resume/") == 0	? HW_AUX_RESUME
								: 0;
	if (!action || !strchr(text, ':'))
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "--tracepoint %s: not SYSTEM:NAME, with /aux-action=pause/ or /aux-action=resume/ "
		    "after it",
		    text);
	if (add(g, text, (size_t)(slash - text), e))
		return -1;
	g->at[g->count - 1].action = action;
	g->actions = true;
	return 0;
}

int hw_group_terms(struct hw_group *g, const char *text, char *to, struct pt_error *e)
{
	static const char term[] = "aux-action=", value[] = "start-paused";
	char *at = strcpy(to, text), *found;
	size_t n;

	while ((found = strstr(at, term))) {
		if (found > to && found[-1] != ',' && found[-1] != '/') {
			at = found + 1;
			continue;
		}
		n = strcspn(found, ",/");
		if (n != sizeof term + sizeof value - 2 ||
		    memcmp(found + sizeof term - 1, value, sizeof value - 1) != 0)
			return pt_fail(
			    e, PT_ERR_USAGE, PT_NO_OFFSET,
			    "-e: %.*s: of intel_pt it can be aux-action=start-paused; events that pause "
			    "and resume it: --tracepoint SYSTEM:NAME/aux-action=pause/",
			    (int)n, found);
		g->start_paused = true;
		/* One comma of the two around it is removed, too. */
		if (found[n] == ',')
			n++;
		else if (found > to && found[-1] == ',') {
			found--;
			n++;
		}
		memmove(found, found + n, strlen(found + n) + 1);
		at = found;
	}
	return 0;
}

/* The options without AUX sampling. */
static int check_unsampled(const struct hw_group *g, bool sampled_events, struct pt_error *e)
{
	if (sampled_events || g->frequency || g->period)
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "--sample-event, -e with events that sample, -F and -c are for AUX sampling: with "
		    "--aux-sample");
	if (g->start_paused && !g->actions)
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "aux-action=start-paused: nothing would be traced; resume it with --tracepoint "
		    "SYSTEM:NAME/aux-action=resume/");
	return 0;
}

int hw_group_finish(struct hw_group *g, struct pt_error *e)
{
	const char *name;
	size_t sampled = 0;

	for (size_t i = 0; i < g->count; i++)
		sampled += !g->at[i].action;
	if (!g->sample_bytes)
		return check_unsampled(g, sampled > 0, e);
	if (g->actions || g->start_paused)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--aux-sample and aux-action=: choose one");
	/* perf's default, and what it takes where the CPU's counters cannot be had. */
	name = hw_event_opens("cycles") ? "cycles" : "cpu-clock";
	if (!sampled && add(g, name, strlen(name), e))
		return -1;
	for (size_t i = 0; i < g->count; i++) {
		struct hw_group_event *one = &g->at[i];

		if (!one->sample_bytes)
			one->sample_bytes = g->sample_bytes;
		if (!one->period && !one->frequency) {
			one->period = g->period;
			one->frequency = g->frequency;
		}
		/* Each event of a tracepoint is a sample, as with perf. */
		if (!one->period && !one->frequency) {
			one->period = strchr(one->name, ':') ? 1 : 0;
			one->frequency = one->period ? 0 : HW_SAMPLE_HZ;
		}
	}
	return 0;
}
