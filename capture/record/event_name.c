/* event_name.c - see event_name.h. */
#include "capture/record/event_name.h"

#include <ctype.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	uint32_t type, config;
} generic[] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
    {"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
    {"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    {"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
};

static bool raw(const char *name, unsigned long long *ret)
{
	char *end;

	if (name[0] != 'r' || !isxdigit((unsigned char)name[1]))
		return false;
	*ret = strtoull(name + 1, &end, 16);
	return *end == 0;
}

/* perf's mem:ADDRESS:x, which is an execution breakpoint. */
static bool breakpoint(const char *name, unsigned long long *ret)
{
	char *end;

	if (strncmp(name, "mem:0x", 6) != 0)
		return false;
	*ret = strtoull(name + 4, &end, 16);
	return strcmp(end, ":x") == 0;
}

/* A path is made of it: letters, digits, _ and - only. */
static bool tracepoint(const char *name)
{
	const char *colon = strchr(name, ':');

	if (!colon || colon == name || !colon[1])
		return false;
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_' && *p != '-' && p != colon)
			return false;
	return true;
}

bool hw_event_name_valid(const char *name)
{
	unsigned long long config;

	for (size_t i = 0; i < sizeof generic / sizeof *generic; i++)
		if (strcmp(generic[i].name, name) == 0)
			return true;
	return raw(name, &config) || tracepoint(name);
}

bool hw_tracepoint_file(const char *event, const char *file, char *to, size_t room)
{
	static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	const char *colon = strchr(event, ':');

	for (size_t i = 0; colon && i < sizeof roots / sizeof *roots; i++) {
		snprintf(to, room, "%s/events/%.*s/%s/%s", roots[i], (int)(colon - event), event, colon + 1,
			 file);
		if (access(to, R_OK) == 0)
			return true;
	}
	return false;
}

bool hw_tracepoint_id(const char *event, unsigned long long *ret)
{
	char path[512];
	FILE *f;
	int got;

	if (!tracepoint(event) || !hw_tracepoint_file(event, "id", path, sizeof path))
		return false;
	f = fopen(path, "re");
	got = f ? fscanf(f, "%llu", ret) : 0;
	if (f)
		fclose(f);
	return got == 1;
}

bool hw_event_opens(const char *name)
{
	struct perf_event_attr a = {.size = sizeof a};
	struct pt_error e = {0};
	int fd;

	if (hw_event_named(&a, name, &e))
		return false;
	a.disabled = a.exclude_kernel = a.exclude_hv = 1;
	fd = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int hw_event_named(struct perf_event_attr *a, const char *name, struct pt_error *e)
{
	unsigned long long config;

	for (size_t i = 0; i < sizeof generic / sizeof *generic; i++) {
		if (strcmp(generic[i].name, name) != 0)
			continue;
		a->type = generic[i].type;
		a->config = generic[i].config;
		return 0;
	}
	if (raw(name, &config)) {
		a->type = PERF_TYPE_RAW;
		a->config = config;
		return 0;
	}
	if (breakpoint(name, &config)) {
		a->type = PERF_TYPE_BREAKPOINT;
		a->bp_type = HW_BREAKPOINT_X;
		a->bp_addr = config;
		a->bp_len = sizeof(long); /* as the kernel wants it of execution */
		return 0;
	}
	if (!tracepoint(name))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "there is no event '%s': it can be cycles, instructions, branches, cpu-clock, "
			       "page-faults, ..., rHEX or SYSTEM:NAME",
			       name);
	if (!hw_tracepoint_id(name, &config))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "the tracepoint %s is not there, or not to be seen by this user", name);
	a->type = PERF_TYPE_TRACEPOINT;
	a->config = config;
	return 0;
}
