/* cpu_types.c - see cpu_types.h. */
#include "capture/record/cpu_types.h"

#include <cpuid.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Which there are ---- */

/* The first line of dir/name/file; false: there is none. */
static bool read_line(const char *dir, const char *name, const char *file, char *to, int room)
{
	char path[1024];
	FILE *f;
	bool ok;

	snprintf(path, sizeof path, "%s/%s/%s", dir, name, file);
	f = fopen(path, "re");
	ok = f && fgets(to, room, f);
	if (f)
		fclose(f);
	if (ok)
		to[strcspn(to, "\n")] = 0;
	return ok && to[0];
}

/* Adds the PMU if it is one type's. */
static int add_type(struct hw_cpu_types *t, const char *dir, const char *name, struct pt_error *e)
{
	struct hw_cpu_type *one = &t->at[t->count];
	char cpus[4096], type[32], *end;

	if (strncmp(name, "cpu_", 4) != 0 || strlen(name) >= sizeof one->name ||
	    t->count == HW_CPU_TYPES_MAX || !read_line(dir, name, "cpus", cpus, sizeof cpus) ||
	    !read_line(dir, name, "type", type, sizeof type))
		return 0;
	one->pmu = (uint32_t)strtoul(type, &end, 10);
	if (*end)
		return 0;
	strcpy(one->name, name);
	t->count++;
	return hw_list_parse(&one->cpus, cpus, name, e);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct hw_cpu_type *)a)->name, ((const struct hw_cpu_type *)b)->name);
}

int hw_cpu_types_read(struct hw_cpu_types *ret, const char *dir, struct pt_error *e)
{
	DIR *d = opendir(dir);
	struct dirent *one;
	int r = 0;

	memset(ret, 0, sizeof *ret);
	while (d && r == 0 && (one = readdir(d)))
		r = add_type(ret, dir, one->d_name, e);
	if (d)
		closedir(d);
	if (ret->count == 1)
		hw_cpu_types_deinit(ret);
	qsort(ret->at, ret->count, sizeof *ret->at, by_name);
	return r;
}

void hw_cpu_types_deinit(struct hw_cpu_types *t)
{
	for (size_t i = 0; i < t->count; i++)
		hw_list_deinit(&t->at[i].cpus);
	t->count = 0;
}

/* ---- What they are ---- */

struct put {
	struct ptc_writer *w;
	size_t type;
};

static int put_text(const struct put *p, const char *what, const char *value, struct pt_error *e)
{
	char key[64];

	snprintf(key, sizeof key, "cpu_type.%zu.%s", p->type, what);
	return ptc_put_meta(p->w, key, value, e);
}

static int put_number(const struct put *p, const char *what, unsigned value, struct pt_error *e)
{
	char text[16];

	snprintf(text, sizeof text, "%u", value);
	return put_text(p, what, text, e);
}

static int put_cpuid(const struct put *p, const char *what, unsigned leaf, unsigned sub, struct pt_error *e)
{
	unsigned a, b, c, d;
	char text[64];

	if (!__get_cpuid_count(leaf, sub, &a, &b, &c, &d))
		return 0;
	snprintf(text, sizeof text, "0x%x,0x%x,0x%x,0x%x", a, b, c, d);
	return put_text(p, what, text, e);
}

/* Of the CPU that runs this. */
static int put_registers(const struct put *p, struct pt_error *e)
{
	unsigned a, b, c, d;
	int r = 0;

	__cpuid(1, a, b, c, d);
	r |= put_number(p, "cpu_family", (a >> 8 & 15) + ((a >> 8 & 15) == 15 ? a >> 20 & 255 : 0), e);
	r |= put_number(p, "cpu_model", (a >> 4 & 15) | (a >> 16 & 15) << 4, e);
	r |= put_number(p, "cpu_stepping", a & 15, e);
	r |= put_cpuid(p, "cpuid_14_0", 0x14, 0, e);
	r |= put_cpuid(p, "cpuid_14_1", 0x14, 1, e);
	r |= put_cpuid(p, "cpuid_15", 0x15, 0, e);
	if (__get_cpuid_count(0x15, 0, &a, &b, &c, &d) && a && b) {
		r |= put_number(p, "tsc_ctc_numerator", b, e);
		r |= put_number(p, "tsc_ctc_denominator", a, e);
	}
	return r ? -1 : 0;
}

/* Moves this thread to one of the CPUs; false: it may run on none of them. */
static bool move_to(const struct hw_list *cpus)
{
	cpu_set_t set;

	for (size_t i = 0; i < cpus->count; i++) {
		CPU_ZERO(&set);
		if (cpus->at[i] >= CPU_SETSIZE)
			continue;
		CPU_SET((size_t)cpus->at[i], &set);
		if (sched_setaffinity(0, sizeof set, &set) == 0)
			return true;
	}
	return false;
}

/* "0-7,16" */
static void list_text(const struct hw_list *cpus, char *to, size_t room)
{
	size_t n = 0;

	to[0] = 0;
	for (size_t i = 0; i < cpus->count && n < room; i++) {
		size_t last = i;

		while (last + 1 < cpus->count && cpus->at[last + 1] == cpus->at[last] + 1)
			last++;
		n += (size_t)snprintf(to + n, room - n, last > i ? "%s%d-%d" : "%s%d", n ? "," : "",
				      (int)cpus->at[i], (int)cpus->at[last]);
		i = last;
	}
}

int hw_cpu_types_put(const struct hw_cpu_types *t, struct ptc_writer *w, struct pt_error *e)
{
	char cpus[4096];
	cpu_set_t before;
	int r = 0;

	if (t->count == 0)
		return 0;
	if (sched_getaffinity(0, sizeof before, &before))
		return 0;
	for (size_t i = 0; i < t->count && r == 0; i++) {
		struct put p = {w, i};

		list_text(&t->at[i].cpus, cpus, sizeof cpus);
		if (put_text(&p, "name", t->at[i].name, e) || put_text(&p, "cpus", cpus, e))
			r = -1;
		else if (move_to(&t->at[i].cpus))
			r = put_registers(&p, e);
	}
	sched_setaffinity(0, sizeof before, &before);
	return r;
}
