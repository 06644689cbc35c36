/* pmu.c - see pmu.h. */
#include "capture/record/pmu.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_line(const char *dir, const char *name, char *to, int room)
{
	char path[1024];
	FILE *f;
	bool ok;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "re");
	if (!f)
		return -1;
	ok = fgets(to, room, f);
	fclose(f);
	if (ok)
		to[strcspn(to, "\n")] = 0;
	return ok ? 0 : -1;
}

/* The driver prints them in hexadecimal, without 0x. */
static uint32_t cap(const char *dir, const char *name)
{
	char line[64], path[64];

	snprintf(path, sizeof path, "caps/%s", name);
	return read_line(dir, path, line, sizeof line) ? 0 : (uint32_t)strtoul(line, NULL, 16);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct hw_term *)a)->name, ((const struct hw_term *)b)->name);
}

static int read_formats(struct hw_pmu *p, const char *dir, struct pt_error *e)
{
	char path[512], line[128];
	struct dirent *d;
	DIR *formats;

	snprintf(path, sizeof path, "%s/format", dir);
	formats = opendir(path);
	if (!formats)
		return pt_fail_errno(e, "cannot read %s", path);
	while ((d = readdir(formats)) && p->term_count < HW_TERM_MAX) {
		struct hw_term *t = &p->terms[p->term_count];
		int n;

		if (d->d_name[0] == '.' || strlen(d->d_name) >= sizeof t->name ||
		    read_line(path, d->d_name, line, sizeof line))
			continue;
		n = sscanf(line, "config:%u-%u", &t->low, &t->high);
		if (n == 1)
			t->high = t->low;
		if (n < 1 || t->low > t->high || t->high > 63)
			continue; /* of config1, or a form that is not known: not ours to set */
		strcpy(t->name, d->d_name);
		p->term_count++;
	}
	closedir(formats);
	qsort(p->terms, p->term_count, sizeof *p->terms, by_name);
	return 0;
}

int hw_pmu_read(struct hw_pmu *ret, const char *dir, struct pt_error *e)
{
	struct hw_pmu p = {0};
	char line[128], *end;

	if (read_line(dir, "type", line, sizeof line))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "this kernel offers no intel_pt (%s: %s); `pt-capture check` says why", dir,
			       strerror(errno));
	p.type = (uint32_t)strtoul(line, &end, 10);
	if (*end || end == line)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s/type is '%s', no number", dir, line);
	if (read_formats(&p, dir, e))
		return -1;
	p.psb_cyc = cap(dir, "psb_cyc");
	p.mtc = cap(dir, "mtc");
	p.psb_periods = cap(dir, "psb_periods");
	p.cycle_thresholds = cap(dir, "cycle_thresholds");
	p.mtc_periods = cap(dir, "mtc_periods");
	p.ptwrite = cap(dir, "ptwrite");
	p.power_event_trace = cap(dir, "power_event_trace");
	p.event_trace = cap(dir, "event_trace");
	p.tnt_disable = cap(dir, "tnt_disable");
	p.ip_filtering = cap(dir, "ip_filtering");
	p.num_address_ranges = cap(dir, "num_address_ranges");
	/* A kernel that does not say is no reason to think so. */
	p.one_entry = read_line(dir, "caps/topa_multiple_entries", line, sizeof line) == 0 && line[0] == '0';
	if (read_line(dir, "max_nonturbo_ratio", line, sizeof line) == 0)
		p.max_nonturbo_ratio = (uint32_t)strtoul(line, NULL, 10);
	if (read_line(dir, "tsc_art_ratio", line, sizeof line) == 0 &&
	    sscanf(line, "%u:%u", &p.tsc_art_ratio_num, &p.tsc_art_ratio_den) != 2)
		p.tsc_art_ratio_num = p.tsc_art_ratio_den = 0;
	*ret = p;
	return 0;
}

static const struct hw_term *term_of(const struct hw_pmu *p, const char *name, size_t n)
{
	for (unsigned i = 0; i < p->term_count; i++)
		if (strlen(p->terms[i].name) == n && !strncmp(p->terms[i].name, name, n))
			return &p->terms[i];
	return NULL;
}

static uint64_t mask_of(const struct hw_term *t)
{
	unsigned bits = t->high - t->low + 1;

	return bits == 64 ? UINT64_MAX : (((uint64_t)1 << bits) - 1) << t->low;
}

static void set(const struct hw_pmu *p, uint64_t *config, const char *name, uint64_t value)
{
	const struct hw_term *t = term_of(p, name, strlen(name));

	if (t)
		*config = (*config & ~mask_of(t)) | (value << t->low & mask_of(t));
}

uint64_t hw_pmu_get(const struct hw_pmu *p, uint64_t config, const char *name)
{
	const struct hw_term *t = term_of(p, name, strlen(name));

	return t ? (config & mask_of(t)) >> t->low : 0;
}

/* The allowed value that is nearest to 3; the lower one of two. */
static unsigned near_three(uint32_t allowed)
{
	for (unsigned d = 0; d < 32; d++) {
		if (d <= 3 && allowed >> (3 - d) & 1)
			return 3 - d;
		if (d <= 28 && allowed >> (3 + d) & 1)
			return 3 + d;
	}
	return 0;
}

uint64_t hw_pmu_default(const struct hw_pmu *p)
{
	uint64_t config = 0;

	set(p, &config, "pt", 1);
	set(p, &config, "tsc", 1);
	set(p, &config, "branch", 1);
	if (p->mtc) {
		set(p, &config, "mtc", 1);
		set(p, &config, "mtc_period", near_three(p->mtc_periods));
	}
	if (p->psb_cyc)
		set(p, &config, "psb_period", near_three(p->psb_periods));
	return config;
}

/* "0-5", "0,3,6,9" */
static const char *list(uint32_t allowed, char *to, size_t room)
{
	size_t n = 0;

	to[0] = 0;
	for (unsigned i = 0; i < 32 && n < room; i++) {
		unsigned last = i;

		if (!(allowed >> i & 1))
			continue;
		while (last < 31 && allowed >> (last + 1) & 1)
			last++;
		n += (size_t)snprintf(to + n, room - n, last > i ? "%s%u-%u" : "%s%u", n ? "," : "", i, last);
		i = last;
	}
	return to;
}

int hw_pmu_check(const struct hw_pmu *p, uint64_t config, struct pt_error *e)
{
	/* A value of 0 is always allowed: pt_event_valid() looks at others only. */
	const struct {
		const char *term;
		uint32_t allowed;
	} ranges[] = {{"psb_period", p->psb_periods | 1},
		      {"cyc_thresh", p->cycle_thresholds | 1},
		      {"mtc_period", p->mtc_periods}};
	const struct {
		const char *term;
		uint32_t able;
		const char *what;
	} flags[] = {{"cyc", p->psb_cyc, "cycle counts"},
		     {"mtc", p->mtc, "MTC packets"},
		     {"mtc_period", p->mtc, "MTC packets"},
		     {"ptw", p->ptwrite, "PTWRITE"},
		     {"pwr_evt", p->power_event_trace, "power events"},
		     {"event", p->event_trace, "Event Trace"},
		     {"notnt", p->tnt_disable, "tracing without TNT packets"}};
	char text[128];

	for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++)
		if (hw_pmu_get(p, config, flags[i].term) && !flags[i].able)
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "-e: %s: this CPU has no %s",
				       flags[i].term, flags[i].what);
	for (unsigned i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		uint64_t v = hw_pmu_get(p, config, ranges[i].term);

		if (i == 2 && v == 0 && !hw_pmu_get(p, config, "mtc"))
			continue;
		if (v >= 32 || !(ranges[i].allowed >> v & 1)) {
			if (i < 2 && !p->psb_cyc)
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "-e: %s=%llu: this CPU allows 0 only", ranges[i].term,
					       (unsigned long long)v);
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "-e: %s=%llu: this CPU allows %s",
				       ranges[i].term, (unsigned long long)v,
				       list(ranges[i].allowed, text, sizeof text));
		}
	}
	if (term_of(p, "pt", 2) && !hw_pmu_get(p, config, "pt"))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "-e: pt cannot be 0: nothing would be traced");
	return 0;
}

static int unknown(const struct hw_pmu *p, const char *name, size_t n, struct pt_error *e)
{
	char there[512] = "";
	size_t at = 0;

	for (unsigned i = 0; i < p->term_count && at < sizeof there; i++)
		at +=
		    (size_t)snprintf(there + at, sizeof there - at, "%s%s", i ? ", " : "", p->terms[i].name);
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
		       "-e: this kernel's intel_pt has no term '%.*s'; it has: %s", (int)n, name, there);
}

/* The levels after the terms, "uk". */
static int parse_levels(const char *text, const char *at, unsigned *levels, struct pt_error *e)
{
	for (; *at; at++) {
		if (*at != 'u' && *at != 'k')
			return pt_fail(
			    e, PT_ERR_USAGE, PT_NO_OFFSET,
			    "-e %s: after the terms can be u (user space) and k (kernel), not '%c'", text,
			    *at);
		*levels |= *at == 'u' ? HW_USER : HW_KERNEL;
	}
	return 0;
}

/* "NAME" or "NAME=NUMBER", of n bytes. */
static int set_term(const struct hw_pmu *p, const char *at, size_t n, uint64_t *config, struct pt_error *e)
{
	size_t name = strcspn(at, "=,/");
	const struct hw_term *t;
	uint64_t value = 1, max;

	if (name > n)
		name = n;
	t = term_of(p, at, name);
	if (!t)
		return unknown(p, at, name, e);
	if (name < n) {
		char *stop;

		value = strtoull(at + name + 1, &stop, 0);
		if (stop != at + n || stop == at + name + 1 || !isdigit((unsigned char)at[name + 1]))
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "-e: '%.*s' is not NAME=NUMBER", (int)n,
				       at);
	}
	max = mask_of(t) >> t->low;
	if (value > max)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "-e: %s=%llu: it can be 0 to %llu", t->name,
			       (unsigned long long)value, (unsigned long long)max);
	set(p, config, t->name, value);
	return 0;
}

int hw_pmu_terms(const struct hw_pmu *p, const char *text, uint64_t *config, unsigned *levels,
		 struct pt_error *e)
{
	const char *at = text, *end = text + strlen(text);
	uint64_t c = *config;
	unsigned l = 0;

	if (!strncmp(at, "intel_pt/", 9)) {
		const char *slash = strchr(at + 9, '/');

		at += 9;
		if (slash && parse_levels(text, slash + 1, &l, e))
			return -1;
		end = slash ? slash : end;
	}
	while (at < end) {
		size_t n = strcspn(at, ",/");

		if (n > (size_t)(end - at))
			n = (size_t)(end - at);
		if (set_term(p, at, n, &c, e))
			return -1;
		at += n;
		if (at < end)
			at++;
	}
	if (hw_pmu_check(p, c, e))
		return -1;
	*config = c;
	if (l)
		*levels = l;
	return 0;
}
