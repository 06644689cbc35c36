/* config.c - see config.h. */
#include "capture/pt/config.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	unsigned shift, bits;
	unsigned max; /* what the step engine can do */
} terms[] = {
    {"pt", 0, 1, 1},	      {"cyc", 1, 1, 1},		 {"mtc", 9, 1, 1},
    {"tsc", 10, 1, 1},	      {"noretcomp", 11, 1, 1},	 {"branch", 13, 1, 1},
    {"mtc_period", 14, 4, 9}, {"cyc_thresh", 19, 4, 12}, {"psb_period", 24, 4, 9},
};

#define TERMS "cyc, cyc_thresh=0..12, mtc, mtc_period=0..9, noretcomp, psb_period=0..9, tsc, branch, pt"

/* "NAME" or "NAME=NUMBER", of n bytes. */
static int set_term(const char *p, size_t n, uint64_t *config, struct pt_error *e)
{
	size_t name = strcspn(p, "=,/"), i;
	unsigned long value = 1;
	char *stop;

	if (name > n)
		name = n;
	for (i = 0; i < sizeof terms / sizeof *terms; i++)
		if (strlen(terms[i].name) == name && !strncmp(terms[i].name, p, name))
			break;
	if (i == sizeof terms / sizeof *terms)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "-e: no term is called '%.*s' here; there are: " TERMS, (int)name, p);
	if (name < n) {
		value = strtoul(p + name + 1, &stop, 0);
		if (stop != p + n || stop == p + name + 1)
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "-e: '%.*s' is not NAME=NUMBER", (int)n,
				       p);
	}
	if (value > terms[i].max)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "-e: %s=%lu: it can be 0 to %u", terms[i].name,
			       value, terms[i].max);
	*config &= ~((((uint64_t)1 << terms[i].bits) - 1) << terms[i].shift);
	*config |= (uint64_t)value << terms[i].shift;
	return 0;
}

int pt_config_parse(const char *text, uint64_t *config, struct pt_error *e)
{
	const char *p = text, *end = text + strlen(text);
	uint64_t c = *config;

	if (!strncmp(p, "intel_pt/", 9)) {
		const char *slash = strchr(p + 9, '/');

		p += 9;
		end = slash ? slash : end;
		if (slash && slash[1] && strcmp(slash, "/u") != 0)
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
				       "-e %s: stepping sees user space only: use '/u', or no modifier",
				       text);
	}
	while (p < end) {
		size_t n = strcspn(p, ",/");

		if (n > (size_t)(end - p))
			n = (size_t)(end - p);
		if (set_term(p, n, &c, e))
			return -1;
		p += n;
		if (p < end)
			p++;
	}
	if (!(c & PT_CONFIG_PT) || !(c & PT_CONFIG_BRANCH))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "-e: pt and branch cannot be 0: nothing would be traced");
	*config = c;
	return 0;
}
