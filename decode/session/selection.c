/* selection.c - see selection.h. */
#include "decode/session/selection.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode/packet/packet.h"

bool pt_only_add(struct pt_only_list *list, const char *text)
{
	for (;;) {
		long first, last;
		char *end;

		if (!isdigit((unsigned char)*text) || list->count == PT_ONLY_MAX)
			return false;
		errno = 0;
		first = last = strtol(text, &end, 10);
		if (*end == '-') {
			if (!isdigit((unsigned char)end[1]))
				return false;
			last = strtol(end + 1, &end, 10);
		}
		if (errno || first > last || last > INT32_MAX)
			return false;
		list->ranges[list->count].first = (int32_t)first;
		list->ranges[list->count].last = (int32_t)last;
		list->count++;
		if (!*end)
			return true;
		if (*end != ',')
			return false;
		text = end + 1;
	}
}

bool pt_only_add_vm(struct pt_only *o, const char *text)
{
	struct pt_only_list before = o->vms;

	if (pt_only_add(&o->vms, text))
		return true;
	o->vms = before;
	if (!*text || o->vm_name_count == PT_ONLY_NAMES)
		return false;
	o->vm_names[o->vm_name_count++] = text;
	return true;
}

const char *pt_only_name_vms(struct pt_only *o, const struct ptc_meta *meta)
{
	const char *key, *value;

	for (size_t n = 0; n < o->vm_name_count; n++) {
		bool found = false;

		for (size_t i = 0; ptc_meta_pair(meta, i, &key, &value); i++) {
			const char *what = strrchr(key, '.');
			char *end;
			long pid;

			if (strncmp(key, "machine.", 8) != 0 || strcmp(value, o->vm_names[n]) != 0 ||
			    (strcmp(what, ".name") != 0 && strcmp(what, ".host") != 0))
				continue;
			pid = strtol(key + 8, &end, 10);
			if (end != what || pid <= 0 || pid > INT32_MAX || o->vms.count == PT_ONLY_MAX)
				continue;
			o->vms.ranges[o->vms.count].first = o->vms.ranges[o->vms.count].last = (int32_t)pid;
			o->vms.count++;
			found = true;
		}
		if (!found)
			return o->vm_names[n];
	}
	return NULL;
}

/* NUMBER[UNIT] in [p, end). */
static bool parse_time(const char *p, const char *end, struct pt_only_time *ret)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"", 1000000000}, {"s", 1000000000}, {"ms", 1000000},
		     {"us", 1000},     {"ns", 1},	  {"tsc", 0}};
	uint64_t whole = 0, part = 0, scale = 1;
	size_t i;

	*ret = (struct pt_only_time){.given = true};
	if (p < end && *p == '+') {
		ret->relative = true;
		p++;
	}
	if (p == end || !isdigit((unsigned char)*p))
		return false;
	for (; p < end && isdigit((unsigned char)*p); p++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, (unsigned)(*p - '0'), &whole))
			return false;
	if (p < end && *p == '.')
		for (p++; p < end && isdigit((unsigned char)*p); p++)
			if (scale < 1000000000) {
				part = part * 10 + (unsigned)(*p - '0');
				scale *= 10;
			}
	for (i = 0; i < sizeof units / sizeof *units; i++)
		if (strlen(units[i].name) == (size_t)(end - p) &&
		    !memcmp(units[i].name, p, (size_t)(end - p)))
			break;
	if (i == sizeof units / sizeof *units)
		return false;
	ret->is_tsc = !units[i].ns;
	if (ret->is_tsc) {
		ret->value = whole;
		return scale == 1;
	}
	if (__builtin_mul_overflow(whole, units[i].ns, &ret->value))
		return false;
	return !__builtin_add_overflow(ret->value, part * units[i].ns / scale, &ret->value);
}

bool pt_only_add_time(struct pt_only *only, const char *text)
{
	const char *dots = strstr(text, ".."), *end = text + strlen(text);

	if (!dots || (dots == text && dots + 2 == end))
		return false;
	/* "1...2" is "1." to "2". */
	if (dots[2] == '.')
		dots++;
	return (dots == text || parse_time(text, dots, &only->from)) &&
	       (dots + 2 == end || parse_time(dots + 2, end, &only->to));
}

bool pt_only_all(const struct pt_only *o)
{
	return !o->cpus.count && !o->pids.count && !o->tids.count && !o->vms.count && !o->vm_name_count &&
	       !o->from.given && !o->to.given && !o->host_only && !o->guest_only;
}

static bool in_list(const struct pt_only_list *list, int32_t n)
{
	for (size_t i = 0; i < list->count; i++)
		if (n >= list->ranges[i].first && n <= list->ranges[i].last)
			return true;
	return false;
}

bool pt_only_cpu(const struct pt_only *o, int32_t cpu)
{
	return cpu < 0 || !o->cpus.count || in_list(&o->cpus, cpu);
}

bool pt_only_thread(const struct pt_only *o, int32_t pid, int32_t tid)
{
	return (!o->pids.count || in_list(&o->pids, pid)) && (!o->tids.count || in_list(&o->tids, tid)) &&
	       (!o->vms.count || in_list(&o->vms, pid));
}

bool pt_only_side(const struct pt_only *o, bool guest)
{
	return guest ? !o->host_only : !o->guest_only;
}

uint64_t pt_only_tsc(const struct pt_only_time *t, const struct pt_perf_clock *c, uint64_t begin_tsc)
{
	uint64_t ticks = t->value;

	if (!t->is_tsc) {
		if (!c->mult)
			return UINT64_MAX;
		if (!t->relative)
			return pt_perf_clock_to_tsc(c, t->value);
		ticks = (uint64_t)(((unsigned __int128)t->value << c->shift) / c->mult);
	}
	return t->relative ? begin_tsc + ticks : ticks;
}

/* The host's TSC packet of the PSB+ at p: UINT64_MAX when it has none, or is a guest's. */
static uint64_t psb_tsc(const uint8_t *p, const uint8_t *end)
{
	const uint8_t *begin = p;
	uint64_t tsc = UINT64_MAX;
	struct pt_packet k;
	int n;

	while ((n = pt_packet_decode(p, end, 0, &k)) > 0 && k.type != PT_PSBEND && k.type != PT_OVF) {
		/* (It is looked at by itself.) */
		if (k.type == PT_PSB && p != begin)
			return UINT64_MAX;
		if (k.type == PT_TSC)
			tsc = k.a;
		if (k.type == PT_PIP && k.b)
			return UINT64_MAX;
		p += n;
	}
	return n > 0 && k.type == PT_PSBEND ? tsc : UINT64_MAX;
}

size_t pt_only_psb(const uint8_t *bytes, size_t size, uint64_t tsc, bool *ret_past)
{
	const uint8_t *p = bytes, *end = bytes + size, *last = bytes;

	*ret_past = false;
	for (; (p = pt_find_psb(p, end)); p += PT_PACKET_MAX) {
		uint64_t t = psb_tsc(p, end);

		if (t == UINT64_MAX)
			continue;
		if (t > tsc) {
			*ret_past = true;
			break;
		}
		last = p;
	}
	return (size_t)(last - bytes);
}

uint64_t pt_only_first_tsc(const uint8_t *bytes, size_t size)
{
	const uint8_t *p = bytes, *end = bytes + size;

	for (; (p = pt_find_psb(p, end)); p += PT_PACKET_MAX)
		if (psb_tsc(p, end) != UINT64_MAX)
			return psb_tsc(p, end);
	return UINT64_MAX;
}
