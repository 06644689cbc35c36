/* trim_range.c - see trim_range.h. */
#include "capture/container/trim_range.h"

#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1000000000u

struct trim_clock trim_clock_of(const struct ptc_meta *meta)
{
	return (struct trim_clock){.zero = ptc_meta_number(meta, "time_zero", 0),
				   .mult = ptc_meta_number(meta, "time_mult", 0),
				   .shift = ptc_meta_number(meta, "time_shift", 0) & 63};
}

uint64_t trim_clock_ns(const struct trim_clock *c, uint64_t tsc)
{
	return c->zero + (uint64_t)((unsigned __int128)tsc * c->mult >> c->shift);
}

static uint64_t tsc_of(const struct trim_clock *c, uint64_t ns)
{
	return (uint64_t)((((unsigned __int128)(ns - c->zero)) << c->shift) / c->mult);
}

/* Seconds with a fraction, in ns. False when there is something else. */
static bool parse_seconds(const char *text, size_t n, uint64_t *ret)
{
	uint64_t ns = 0, unit = NS_PER_S;
	bool fraction = false;

	if (n == 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (text[i] == '.' && !fraction) {
			fraction = true;
			continue;
		}
		if (text[i] < '0' || text[i] > '9' || ns > UINT64_MAX / 20)
			return false;
		if (!fraction) {
			ns = ns * 10 + (uint64_t)(text[i] - '0') * NS_PER_S;
		} else {
			unit /= 10;
			ns += (uint64_t)(text[i] - '0') * unit;
		}
	}
	*ret = ns;
	return true;
}

static bool parse_tsc(const char *text, size_t n, uint64_t *ret)
{
	char digits[24] = "", *end;

	if (n == 0 || n >= sizeof digits || *text < '0' || *text > '9')
		return false;
	memcpy(digits, text, n);
	*ret = strtoull(digits, &end, 0);
	return *end == 0;
}

/* One end of the range, as a TSC. */
static bool parse_time(const char *text, size_t n, const struct trim_clock *c, uint64_t first_tsc,
		       uint64_t *ret)
{
	bool is_tsc = n > 4 && memcmp(text, "tsc:", 4) == 0, relative;
	uint64_t ns;

	text += is_tsc ? 4 : 0;
	n -= is_tsc ? 4 : 0;
	relative = n && *text == '+';
	text += relative;
	n -= relative;
	if (is_tsc) {
		if (!parse_tsc(text, n, ret))
			return false;
		*ret += relative ? first_tsc : 0;
		return true;
	}
	if (!c->mult || !parse_seconds(text, n, &ns))
		return false;
	*ret = tsc_of(c, relative ? trim_clock_ns(c, first_tsc) + ns : ns);
	return true;
}

int trim_range_parse(const char *text, const struct ptc_meta *meta, uint64_t first_tsc,
		     struct trim_range *ret, struct pt_error *e)
{
	struct trim_clock c = trim_clock_of(meta);
	const char *dots = strstr(text, "..");

	*ret = (struct trim_range){0, UINT64_MAX};
	if (!dots ||
	    (dots != text && !parse_time(text, (size_t)(dots - text), &c, first_tsc, &ret->from_tsc)) ||
	    (dots[2] && !parse_time(dots + 2, strlen(dots + 2), &c, first_tsc, &ret->to_tsc)))
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "--time %s: it is A..B, each SECONDS%s, or tsc:TSC; with + they count from the "
		    "beginning",
		    text, c.mult ? "" : " (but this container has no perf clock)");
	if (ret->from_tsc >= ret->to_tsc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--time %s: nothing lies in between", text);
	return 0;
}
