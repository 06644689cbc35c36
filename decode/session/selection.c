/* selection.c - see selection.h. */
#include "decode/session/selection.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool pt_number_list_add(struct pt_number_list *list, const char *text)
{
	for (;;) {
		long first, last;
		char *end;

		if (!isdigit((unsigned char)*text) || list->count == PT_NUMBER_RANGES_MAX)
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

bool pt_selection_add_vm(struct pt_selection *s, const char *text)
{
	struct pt_number_list before = s->vms;

	if (pt_number_list_add(&s->vms, text))
		return true;
	s->vms = before;
	if (!*text || s->vm_name_count == PT_SELECTION_VM_NAMES_MAX)
		return false;
	s->vm_names[s->vm_name_count++] = text;
	return true;
}

const char *pt_selection_resolve_vms(struct pt_selection *s, const struct ptc_meta *meta)
{
	const char *key, *value;

	for (size_t n = 0; n < s->vm_name_count; n++) {
		bool found = false;

		for (size_t i = 0; ptc_meta_pair(meta, i, &key, &value); i++) {
			const char *what = strrchr(key, '.');
			char *end;
			long pid;

			if (strncmp(key, "machine.", 8) != 0 || strcmp(value, s->vm_names[n]) != 0 ||
			    (strcmp(what, ".name") != 0 && strcmp(what, ".host") != 0))
				continue;
			pid = strtol(key + 8, &end, 10);
			if (end != what || pid <= 0 || pid > INT32_MAX ||
			    s->vms.count == PT_NUMBER_RANGES_MAX)
				continue;
			s->vms.ranges[s->vms.count].first = s->vms.ranges[s->vms.count].last = (int32_t)pid;
			s->vms.count++;
			found = true;
		}
		if (!found)
			return s->vm_names[n];
	}
	return NULL;
}

/* NUMBER[UNIT] in [p, end). */
static bool parse_time(const char *p, const char *end, struct pt_time_bound *ret)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"", 1000000000}, {"s", 1000000000}, {"ms", 1000000},
		     {"us", 1000},     {"ns", 1},	  {"tsc", 0}};
	uint64_t whole = 0, part = 0, scale = 1;
	size_t i;

	*ret = (struct pt_time_bound){.given = true};
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

bool pt_selection_set_time(struct pt_selection *s, const char *text)
{
	const char *dots = strstr(text, ".."), *end = text + strlen(text);

	if (!dots || (dots == text && dots + 2 == end))
		return false;
	/* "1...2" is "1." to "2". */
	if (dots[2] == '.')
		dots++;
	return (dots == text || parse_time(text, dots, &s->from)) &&
	       (dots + 2 == end || parse_time(dots + 2, end, &s->to));
}

bool pt_selection_is_all(const struct pt_selection *s)
{
	return !s->cpus.count && !s->pids.count && !s->tids.count && !s->vms.count && !s->vm_name_count &&
	       !s->from.given && !s->to.given && !s->host_only && !s->guest_only;
}

bool pt_number_list_has(const struct pt_number_list *list, int32_t n)
{
	for (size_t i = 0; i < list->count; i++)
		if (n >= list->ranges[i].first && n <= list->ranges[i].last)
			return true;
	return false;
}

bool pt_selection_has_cpu(const struct pt_selection *s, int32_t cpu)
{
	return cpu < 0 || !s->cpus.count || pt_number_list_has(&s->cpus, cpu);
}

bool pt_selection_has_thread(const struct pt_selection *s, int32_t pid, int32_t tid)
{
	return (!s->pids.count || pt_number_list_has(&s->pids, pid)) &&
	       (!s->tids.count || pt_number_list_has(&s->tids, tid)) &&
	       (!s->vms.count || pt_number_list_has(&s->vms, pid));
}

bool pt_selection_has_side(const struct pt_selection *s, bool guest)
{
	return guest ? !s->host_only : !s->guest_only;
}

uint64_t pt_time_bound_tsc(const struct pt_time_bound *b, const struct pt_perf_clock *c, uint64_t begin_tsc)
{
	uint64_t ticks = b->value;

	if (!b->is_tsc) {
		if (!c->mult)
			return UINT64_MAX;
		if (!b->relative)
			return pt_perf_clock_to_tsc(c, b->value);
		ticks = (uint64_t)(((unsigned __int128)b->value << c->shift) / c->mult);
	}
	return b->relative ? begin_tsc + ticks : ticks;
}
