/*
 * test_hw_events.c - the perf events that a capture opens, by a double of perf_event_open(): groups of AUX
 * sampling, pause and resume; the message when a kernel refuses; records that it lost; the options that ask
 * for all that.
 */
#include "capture/record/event_name.h"
#include "capture/record/events.h"
#include "capture/record/group.h"
#include "capture/record/pmu.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- The double: an event is a memfd, which can be mapped and read ---- */

#define OPENED_MAX 64

static struct opened {
	struct perf_event_attr attr;
	int32_t tid, cpu;
	int fd, group_fd;
	unsigned enabled, disabled;
	int output;
	char filter[256];
} opened[OPENED_MAX];
static size_t count;
static int32_t unmappable_cpu = -1; /* an event of this CPU can have no ring: mmap() fails with EPERM */
static bool no_sample_cgroup;	    /* no CONFIG_CGROUP_PERF */
static bool old_kernel;		    /* before 6.0: no PERF_FORMAT_LOST, no aux_action */
static uint64_t lost_each;
/* Threads that inherit PT: 71 on CPU 0, 72 everywhere. */
#define INHERITS(tid, cpu) ((tid) == 72 || ((tid) == 71 && (cpu) == 0))
static int refused_why; /* errno of whole-CPU events of CPU 0; 0: they open */

/* aux_action: the 32 bits at byte 116 of struct perf_event_attr. */
static uint32_t word_at_116(const struct perf_event_attr *a)
{
	uint32_t v;

	memcpy(&v, (const uint8_t *)a + 116, sizeof v);
	return v;
}

static int double_open(struct perf_event_attr *a, int32_t tid, int32_t cpu, int group_fd)
{
	uint64_t values[3] = {7, 1000 + count, lost_each};
	int fd;

	if (old_kernel && (word_at_116(a) || a->read_format & PERF_FORMAT_LOST)) {
		errno = EINVAL;
		return -1;
	}
	if (no_sample_cgroup && a->sample_type & PERF_SAMPLE_CGROUP) {
		errno = EINVAL;
		return -1;
	}
	if (refused_why && tid == -1 && cpu == 0) {
		errno = refused_why;
		return -1;
	}
	if (a->type == 8 && INHERITS(tid, cpu)) {
		errno = EBUSY;
		return -1;
	}
	fd = memfd_create("event", MFD_ALLOW_SEALING);
	if (fd < 0 || count == OPENED_MAX || ftruncate(fd, 1 << 20) ||
	    pwrite(fd, values, sizeof values, 0) < 0 ||
	    (cpu == unmappable_cpu && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE))) {
		perror("memfd");
		exit(1);
	}
	opened[count++] = (struct opened){*a, tid, cpu, fd, group_fd, 0, 0, -1, ""};
	return fd;
}

static int double_ioctl(int fd, unsigned long request, void *arg)
{
	struct opened *o = NULL;

	/* Of those with this number the last: the others were closed. */
	for (size_t i = 0; i < count; i++)
		if (opened[i].fd == fd)
			o = &opened[i];
	if (!o) {
		errno = EBADF;
		return -1;
	}
	switch (request) {
	case PERF_EVENT_IOC_ENABLE: o->enabled++; break;
	case PERF_EVENT_IOC_DISABLE: o->disabled++; break;
	case PERF_EVENT_IOC_SET_OUTPUT: o->output = (int)(intptr_t)arg; break;
	case PERF_EVENT_IOC_ID: *(uint64_t *)arg = 1000 + (uint64_t)(o - opened); break;
	case PERF_EVENT_IOC_SET_FILTER: snprintf(o->filter, sizeof o->filter, "%s", (char *)arg); break;
	default: errno = ENOTTY; return -1;
	}
	return 0;
}

/* Marked by a thread below 0. */
static int double_open_cgroup(struct perf_event_attr *a, int cgroup_fd, int32_t cpu, int group_fd)
{
	return double_open(a, -cgroup_fd, cpu, group_fd);
}

static const struct hw_perf_calls calls = {double_open, double_ioctl, double_open_cgroup};
static int32_t numbers[] = {0, 1, 70};
static const struct hw_list cpus = {numbers, 2, 2}, cpu_1 = {numbers + 1, 1, 1}, tids = {numbers + 2, 1, 1};
static struct hw_events ev;

/* A thread with what it starts, on two CPUs. */
static const struct hw_events_options target = {.tids = &tids,
						.cpus = &cpus,
						.online = &cpus,
						.pt_type = 8,
						.config = 0xe601,
						.levels = HW_USER,
						.pt = true,
						.inherit = true,
						.data_bytes = 65536,
						.aux_bytes = 131072,
						.calls = &calls};

static int open_target(const struct hw_events_options *o, struct pt_error *e)
{
	count = 0;
	memset(opened, 0, sizeof opened);
	ev = (struct hw_events){0};
	return hw_events_open(&ev, o, e);
}

static int open_group(const struct hw_group *g, struct pt_error *e)
{
	struct hw_events_options o = target;

	o.overwrite = g->sample_bytes;
	o.group = g->at;
	o.group_count = g->count;
	o.start_paused = g->start_paused;
	return open_target(&o, e);
}

/* The n-th event that is still open, of that type. */
static struct opened *event(uint32_t type, uint64_t config, unsigned n)
{
	for (size_t i = 0; i < ev.count; i++)
		for (size_t k = 0; k < count; k++)
			if (opened[k].fd == ev.events[i].fd && 1000 + k == ev.events[i].id &&
			    opened[k].attr.type == type && opened[k].attr.config == config && n-- == 0)
				return &opened[k];
	return NULL;
}

/* ---- Events ---- */

static void test_sampling(void)
{
	struct pt_error e = {0};
	struct hw_group g = {0};
	struct opened *last;

	check(hw_group_aux_sample(&g, "8000", &e) == 0 && hw_group_sample_event(&g, "cpu-clock", &e) == 0 &&
		  hw_group_period(&g, "100000", &e) == 0 && hw_group_finish(&g, &e) == 0,
	      "the options of sampling");
	check(open_group(&g, &e) == 0, "they open");
	for (unsigned i = 0; i < 2; i++) {
		struct opened *pt = event(8, 0xe601, i), *clock = event(PERF_TYPE_SOFTWARE, 0, i);

		check(pt && clock && pt->cpu == cpus.at[i] && clock->cpu == cpus.at[i] && clock->tid == 70,
		      "an event of each on each CPU");
		if (!pt || !clock)
			continue;
		check(clock->group_fd == pt->fd && pt->group_fd == -1, "intel_pt leads the group");
		check(pt->attr.disabled && !clock->attr.disabled, "the other counts when intel_pt does");
		check(clock->attr.sample_type & PERF_SAMPLE_AUX && clock->attr.aux_sample_size == 8000 &&
			  !clock->attr.freq && clock->attr.sample_period == 100000,
		      "what it samples");
		check(clock->attr.exclude_kernel && clock->attr.inherit, "where");
		check(pt->attr.aux_watermark == 0, "nobody is woken for AUX data");
		check(clock->output == pt->fd, "into the ring of intel_pt");
		check(word_at_116(&pt->attr) == 0 && word_at_116(&clock->attr) == 0, "nothing pauses");
	}
	hw_events_start(&ev);
	hw_events_disable(&ev);
	check(event(8, 0xe601, 0)->enabled == 1 && event(PERF_TYPE_SOFTWARE, 0, 0)->enabled == 0 &&
		  event(8, 0xe601, 0)->disabled == 1,
	      "the group starts and stops by its leader");
	last = event(8, 0xe601, 1);
	check(hw_events_filter(&ev, "filter 0x1/0x2@/x", &e) == 0 && last &&
		  !strcmp(last->filter, "filter 0x1/0x2@/x") && !event(PERF_TYPE_SOFTWARE, 0, 1)->filter[0],
	      "filters are intel_pt's");
	hw_events_close(&ev);
}

/* cpu_core/cycles/: of one type alone. */
static void test_named_pmu(struct hw_events_options o)
{
	const uint64_t atom = (uint64_t)10 << 32, core = (uint64_t)4 << 32;
	struct pt_error e = {0};
	struct hw_group g = {0};

	check(hw_group_event(&g, "cpu_core/cycles,period=1000/u", &e) == 0 && g.at[0].period == 1000 &&
		  hw_group_sample_event(&g, "cpu_atom/r1c0/", &e) == 0 &&
		  hw_group_event(&g, "cpu/instructions/k", &e) == 0 &&
		  hw_group_aux_sample(&g, "8000", &e) == 0 && hw_group_finish(&g, &e) == 0,
	      "events of a PMU");
	o.group = g.at;
	o.group_count = g.count;
	check(open_target(&o, &e) == 0, e.message);
	check(event(PERF_TYPE_HARDWARE, core, 0) && !event(PERF_TYPE_HARDWARE, atom, 0),
	      "cycles of cpu_core alone");
	check(event(10, 0x1c0, 0) && !event(4, 0x1c0, 0), "a raw event of cpu_atom alone");
	check(event(PERF_TYPE_HARDWARE, core | 1, 0) && event(PERF_TYPE_HARDWARE, atom | 1, 0),
	      "cpu: of both");
	hw_events_close(&ev);
	g.count = 1;
	strcpy(g.at[0].pmu, "cpu_lowpower");
	o.group_count = 1;
	check(open_target(&o, &e) < 0 && e.kind == PT_ERR_REFUSED && strstr(e.message, "no such type"),
	      "a type that is not there");
	hw_events_close(&ev);
	o.cpu_types = NULL;
	check(open_target(&o, &e) < 0 && e.kind == PT_ERR_REFUSED, "no hybrid processor");
	hw_events_close(&ev);
	check(hw_group_event(&g, "cpu_core/nothing/", &e) < 0 && hw_group_event(&g, "cpu_core/", &e) < 0,
	      "no event");
}

/* perf's terms of a CPU's event: its bits are the SDM's, of IA32_PERFEVTSELx. */
static void test_event_by_terms(void)
{
	static const char *const wrong[] = {
	    "cpu/event=0x100/",	     "cpu/event/",	 "cpu/umask=x,event=1/", "cpu/event=,umask=1/",
	    "cpu/event=1,period=0/", "cpu/period=1000/", "cpu/edge=2,event=1/"};
	struct pt_error e = {0};
	struct hw_group g = {0};

	check(hw_group_event(&g, "cpu_core/event=0xd1,umask=0x20,period=1009/u", &e) == 0 &&
		  !strcmp(g.at[0].name, "r20d1") && !strcmp(g.at[0].pmu, "cpu_core") &&
		  g.at[0].period == 1009,
	      "event and umask");
	check(hw_group_event(&g, "cpu/freq=99,event=60,cmask=2,edge,inv=1/", &e) == 0 &&
		  !strcmp(g.at[1].name, "r284003c") && !g.at[1].pmu[0] && g.at[1].frequency == 99,
	      "in any order, flags with a value or without");
	check(hw_group_sample_event(&g, "cpu/config=0x1a2b3c4d5e6f/", &e) == 0 &&
		  !strcmp(g.at[2].name, "r1a2b3c4d5e6f"),
	      "the whole register");
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		check(hw_group_event(&g, wrong[i], &e) < 0 && e.kind == PT_ERR_USAGE, wrong[i]);
}

/* Of a hybrid processor: what a CPU counts is opened by the PMU of its type, as `perf record -e cycles`
 * does. */
static void test_cpu_types(void)
{
	const struct hw_cpu_types types = {
	    .at = {{.name = "cpu_atom", .pmu = 10, .cpus = {numbers + 1, 1, 1}},
		   {.name = "cpu_core", .pmu = 4, .cpus = {numbers, 1, 1}}},
	    .count = 2};
	const uint64_t atom = (uint64_t)10 << 32, core = (uint64_t)4 << 32;
	struct hw_events_options o = target;
	struct pt_error e = {0};
	struct hw_group g = {0};

	check(hw_group_aux_sample(&g, "8000", &e) == 0 && hw_group_sample_event(&g, "cycles", &e) == 0 &&
		  hw_group_sample_event(&g, "r1c0", &e) == 0 &&
		  hw_group_sample_event(&g, "cpu-clock", &e) == 0 && hw_group_finish(&g, &e) == 0,
	      "events to sample");
	o.overwrite = true;
	o.group = g.at;
	o.group_count = g.count;
	o.cpu_types = &types;
	check(open_target(&o, &e) == 0, "they open");
	check(event(PERF_TYPE_HARDWARE, atom, 0) && event(PERF_TYPE_HARDWARE, atom, 0)->cpu == 1 &&
		  !event(PERF_TYPE_HARDWARE, atom, 1),
	      "cycles of cpu_atom, on its CPU alone");
	check(event(PERF_TYPE_HARDWARE, core, 0) && event(PERF_TYPE_HARDWARE, core, 0)->cpu == 0 &&
		  !event(PERF_TYPE_HARDWARE, core, 1) && !event(PERF_TYPE_HARDWARE, 0, 0),
	      "and of cpu_core");
	check(event(10, 0x1c0, 0) && event(10, 0x1c0, 0)->cpu == 1 && event(4, 0x1c0, 0) &&
		  event(4, 0x1c0, 0)->cpu == 0 && !event(4, 0x1c0, 1),
	      "a raw event has the PMU's own type");
	check(event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 1) != NULL, "the kernel's own are on both");
	check(strcmp(ev.attrs[1].name, "cpu_atom/cycles/u") == 0, "they are named as with perf");
	hw_events_close(&ev);
	test_named_pmu(o);
	o.per_thread = true;
	o.inherit = false;
	unmappable_cpu = -2; /* a thread's ring is of CPU -1 */
	check(open_target(&o, &e) == 0, e.message);
	check(event(PERF_TYPE_HARDWARE, 0, 0) != NULL, "a thread's: the kernel chooses");
	unmappable_cpu = -1;
	hw_events_close(&ev);
}

/* How many of thread tid are open: PT, and what records mappings and switches. */
static void count_of(int32_t tid, unsigned *ret_pt, unsigned *ret_sideband)
{
	*ret_pt = *ret_sideband = 0;
	for (size_t i = 0; i < ev.count; i++) {
		*ret_pt += ev.events[i].tid == tid && ev.events[i].kind == HW_EVENT_PT;
		*ret_sideband += ev.events[i].tid == tid && ev.events[i].kind == HW_EVENT_SIDEBAND;
	}
}

/* Threads that began while the events were opened. */
static void test_begun(void)
{
	static int32_t begun_numbers[] = {71, 72, 73};
	const struct hw_list begun = {begun_numbers, 3, 3};
	struct hw_events_options o = target;
	struct hw_group g = {0};
	struct pt_error e = {0};
	unsigned pt, sideband;
	size_t lacked, group = 0;

	check(hw_group_aux_sample(&g, "8000", &e) == 0 && hw_group_sample_event(&g, "cpu-clock", &e) == 0 &&
		  hw_group_finish(&g, &e) == 0,
	      "sampling");
	o.group = g.at;
	o.group_count = g.count;
	check(open_target(&o, &e) == 0, e.message);
	o.tids = &begun;
	check(hw_events_open_begun(&ev, &o, &lacked, &e) == 0 && lacked == 2, e.message);
	count_of(71, &pt, &sideband);
	check(pt == 1 && sideband == 2, "what inherits PT of one CPU gets it of the other");
	count_of(72, &pt, &sideband);
	check(pt == 0 && sideband == 2, "what inherits PT gets none, but its switches are recorded");
	count_of(73, &pt, &sideband);
	check(pt == 2 && sideband == 2, "what inherits nothing gets all");
	for (size_t i = 0; i < ev.count; i++)
		group += ev.events[i].kind == HW_EVENT_GROUP && ev.events[i].tid != 70;
	check(group == 3, "a group's members are with the PT events that are new");
	hw_events_close(&ev);
}

static void test_cgroup(void)
{
	struct hw_events_options o = target;
	struct pt_error e = {0};
	struct opened *pt, *side;

	o.tids = NULL;
	o.inherit = false;
	o.cgroup_fd = 77;
	check(open_target(&o, &e) == 0, "the tasks of a control group");
	for (unsigned i = 0; i < 2; i++) {
		pt = event(8, 0xe601, i);
		side = event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, i);
		check(pt && pt->tid == -77 && pt->cpu == cpus.at[i],
		      "intel_pt is limited to it, on each CPU");
		check(side && side->tid == -1, "what says who runs is not");
	}
	hw_events_close(&ev);
}

static void test_all_cgroups(void)
{
	const struct hw_group_event group = {.name = "cpu-clock", .sample_bytes = 4096, .frequency = 100};
	struct hw_events_options o = target;
	struct pt_error e = {0};

	o.sample_cgroup = true;
	o.group = &group;
	o.group_count = 1;
	check(open_target(&o, &e) == 0, "--all-cgroups");
	check(event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0)->attr.sample_type & PERF_SAMPLE_CGROUP,
	      "in the samples of an event");
	check(!(event(8, 0xe601, 0)->attr.sample_type & PERF_SAMPLE_CGROUP), "not in intel_pt's records");
	hw_events_close(&ev);
	no_sample_cgroup = true;
	check(open_target(&o, &e) < 0 && e.kind == PT_ERR_REFUSED && strstr(e.message, "CONFIG_CGROUP_PERF"),
	      "a kernel that cannot");
	hw_events_close(&ev);
	no_sample_cgroup = false;
}

static void test_actions(void)
{
	struct pt_error e = {0};
	struct hw_group g = {0};
	char terms[64];

	check(hw_group_terms(&g, "cyc,aux-action=start-paused,mtc", terms, &e) == 0 && g.start_paused &&
		  !strcmp(terms, "cyc,mtc"),
	      "-e's part of it");
	/* No tracepoint need be there: software events stand for them. */
	g.actions = true;
	g.count = 2;
	g.at[0] = (struct hw_group_event){.name = "page-faults", .action = HW_AUX_PAUSE};
	g.at[1] = (struct hw_group_event){.name = "context-switches", .action = HW_AUX_RESUME};
	check(hw_group_finish(&g, &e) == 0 && open_group(&g, &e) == 0, "events that pause and resume");
	check(word_at_116(&event(8, 0xe601, 0)->attr) == 1 &&
		  word_at_116(&event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1)->attr) == 2 &&
		  word_at_116(&event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 0)->attr) == 4,
	      "aux_start_paused, aux_pause, aux_resume");
	check(event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1)->group_fd == event(8, 0xe601, 1)->fd,
	      "in its group");
	check(!(event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1)->attr.sample_type & PERF_SAMPLE_AUX),
	      "they sample no AUX data");
	hw_events_close(&ev);
	old_kernel = true;
	e = (struct pt_error){0};
	check(open_group(&g, &e) == -1 && e.kind == PT_ERR_REFUSED && strstr(e.message, "6.13") &&
		  strstr(e.message, "aux-action"),
	      "an old kernel's refusal says what it takes");
	hw_events_close(&ev);
	old_kernel = false;
}

/* What is started or patched on a CPU that is not traced may run on one that is. */
static void test_elsewhere(void)
{
	struct pt_error e = {0};
	struct hw_events_options o = {.cpus = &cpu_1,
				      .online = &cpus,
				      .pt_type = 8,
				      .config = 0xe601,
				      .levels = HW_USER | HW_KERNEL,
				      .pt = true,
				      .kernel_sideband = true,
				      .data_bytes = 65536,
				      .aux_bytes = 131072,
				      .calls = &calls};
	const struct opened *here = NULL, *there = NULL;

	count = 0;
	memset(opened, 0, sizeof opened);
	ev = (struct hw_events){0};
	check(hw_events_open(&ev, &o, &e) == 0, "a CPU of two");
	check(event(8, 0xe601, 0) && event(8, 0xe601, 0)->cpu == 1 && !event(8, 0xe601, 1),
	      "it alone is traced");
	for (unsigned i = 0; i < 2; i++) {
		const struct opened *one = event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, i);

		if (one && one->cpu == 1)
			here = one;
		else if (one)
			there = one;
	}
	check(here && here->attr.task && here->attr.context_switch && here->attr.text_poke, "its sideband");
	check(there && there->cpu == 0 && there->tid == -1 && there->attr.task && there->attr.mmap2 &&
		  there->attr.comm_exec && there->attr.text_poke && !there->attr.context_switch,
	      "the other's: tasks, mappings, the kernel's code, but no switches");
	check(!event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 2), "no more");
	hw_events_close(&ev);
}

/* No ring can be had on a CPU that is not traced: it is done without, and no ring has no memory. */
static void test_no_ring_elsewhere(void)
{
	struct pt_error e = {0};
	struct hw_events_options o = target;
	bool all_there = true;

	o.cpus = &cpu_1;
	o.kernel_sideband = true;
	unmappable_cpu = 0;
	check(open_target(&o, &e) == 0 && ev.ring_count == 1, "a ring that is refused is left out");
	for (size_t i = 0; i < ev.ring_count; i++)
		all_there &= ev.rings[i].ring.page != NULL && ev.rings[i].cpu == 1;
	for (size_t i = 0; i < ev.count; i++)
		all_there &= ev.events[i].cpu == 1 && ev.events[i].ring < ev.ring_count;
	check(all_there && ev.count > 2, "with its events; the others are there");
	hw_events_close(&ev);
	unmappable_cpu = -1;
}

/* Only what is not permitted is left out, and it is counted; what fails for want of something is an error. */
static void test_left_out(void)
{
	static const int wants[] = {EMFILE, ENFILE, ENOMEM};
	static const char *const said[] = {"ulimit", "fs.file-max", "no memory"};
	struct hw_events_options o = target;
	struct pt_error e = {0};
	unsigned left_out = 0;

	o.cpus = &cpu_1;
	o.kernel_sideband = true;
	refused_why = EACCES;
	check(open_target(&o, &e) == 0, "whole-CPU events that are not permitted");
	for (uint32_t a = 0; a < ev.attr_count; a++) {
		left_out += ev.attrs[a].left_out;
		check(!ev.attrs[a].left_out || (ev.attrs[a].optional && ev.attrs[a].why == EACCES), "why");
	}
	check(left_out == 1, "are left out and counted");
	hw_events_close(&ev);
	for (size_t i = 0; i < sizeof wants / sizeof *wants; i++) {
		refused_why = wants[i];
		e = (struct pt_error){0};
		check(open_target(&o, &e) == -1 && e.kind == PT_ERR_REFUSED && strstr(e.message, said[i]),
		      e.message);
		hw_events_close(&ev);
	}
	refused_why = 0;
}

/* Sizes that no memory helps with have a message of their own. */
static void test_sizes(void)
{
	struct hw_events_options o = target;
	struct pt_error e = {0};

	o.aux_bytes = (uint64_t)1 << 48;
	check(open_target(&o, &e) == -1 && strstr(e.message, "268435456 MB") && strstr(e.message, "-m ,2G"),
	      e.message);
	hw_events_close(&ev);
	o.one_entry = true;
	check(open_target(&o, &e) == -1 && strstr(e.message, "contiguous") && strstr(e.message, "-m ,4M"),
	      e.message);
	hw_events_close(&ev);
	o.aux_bytes = 1 << 20;
	unmappable_cpu = 0;
	check(open_target(&o, &e) == -1 && strstr(e.message, "perf_event_mlock_kb"), e.message);
	hw_events_close(&ev);
	unmappable_cpu = -1;
}

static void test_breakpoints(void)
{
	static const char *names[] = {"mem:0x401136:x", "mem:0xffffffff81000000:x"};
	const struct hw_tracepoints two = {names, 2, 2, 2};
	struct hw_events_options o = target;
	struct pt_error e = {0};
	const struct opened *user, *kernel;

	o.breakpoints = &two;
	check(open_target(&o, &e) == 0, "breakpoints");
	user = event(PERF_TYPE_BREAKPOINT, 0, 0);
	kernel = event(PERF_TYPE_BREAKPOINT, 0, 2);
	check(user && user->attr.bp_addr == 0x401136 && user->attr.exclude_kernel &&
		  !user->attr.exclude_user && user->attr.inherit && user->attr.wakeup_events == 1 &&
		  !user->attr.watermark && user->tid == 70,
	      "in a program, of the target and what it starts; each hit wakes");
	check(kernel && kernel->attr.bp_addr == 0xffffffff81000000 && !kernel->attr.exclude_kernel &&
		  kernel->attr.exclude_user,
	      "in the kernel");
	hw_events_start(&ev);
	check(user && user->enabled == 1 && kernel && kernel->enabled == 1, "they start with the trace");
	hw_events_close(&ev);
}

static void test_lost(void)
{
	struct pt_error e = {0};
	struct hw_group g = {0};
	uint64_t id = 0;

	lost_each = 5;
	check(open_group(&g, &e) == 0 && ev.attrs[0].attr.read_format == (PERF_FORMAT_ID | PERF_FORMAT_LOST),
	      "losses are counted");
	check(ev.ring_count == 2 && ev.count == 4 && hw_events_lost(&ev, 1, &id) == 10 && id >= 1000,
	      "and read, of a ring");
	hw_events_close(&ev);
	old_kernel = true;
	check(open_group(&g, &e) == 0 && ev.attrs[0].attr.read_format == PERF_FORMAT_ID &&
		  hw_events_lost(&ev, 0, &id) == 0,
	      "not before Linux 6.0");
	hw_events_close(&ev);
	old_kernel = false;
	lost_each = 0;
}

/* Which other tasks run: one more event per CPU, of the whole CPU, besides the target's own switches. */
static void test_switches(void)
{
	struct pt_error e = {0};
	struct hw_events_options o = target;
	unsigned wide = 0, named = 0, own = 0;
	int fd = memfd_create("container", MFD_CLOEXEC);
	struct ptc_writer *w = ptc_writer_create(fd, NULL, 1, &e);
	struct hw_drain d = {0};

	o.all_switches = true;
	check(open_target(&o, &e) == 0, "switches");
	for (unsigned n = 0; n < 4; n++) {
		struct opened *one = event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, n);

		if (!one || !one->attr.context_switch)
			continue;
		wide += one->tid == -1 && one->cpu >= 0 && !one->attr.inherit && !one->attr.disabled;
		named += one->tid == -1 && one->attr.comm && one->attr.task && !one->attr.mmap;
		own += one->tid == 70 && !one->attr.ksymbol;
	}
	check(wide == 2 && own == 2, "of the target and of each CPU");
	check(named == 2, "who was started during the capture has a name, too");
	check(hw_events_declare(&ev, w, &d, &e) == 0 && d.ring_count == 2 && d.rings[0].all_switches &&
		  d.rings[1].all_switches,
	      "and the rings know");
	free(d.events.ids);
	free(d.events.attrs);
	ptc_writer_destroy(w);
	close(fd);
	hw_events_close(&ev);
}

/* ---- Options and names ---- */

static void refused(int result, const struct pt_error *e, const char *message)
{
	char what[300];

	snprintf(what, sizeof what, "refused with '%s': '%.150s'", message, e->message);
	check(result == -1 && e->kind == PT_ERR_USAGE && strstr(e->message, message), what);
}

static void test_options(void)
{
	struct pt_error e = {0};
	struct hw_group g = {0};
	char terms[64];
	int taken;

	refused(hw_group_aux_sample(&g, "61441", &e), &e, "1 to 61440");
	refused(hw_group_aux_sample(&g, "0", &e), &e, "1 to 61440");
	refused(hw_group_aux_sample(&g, "4x", &e), &e, "1 to 61440");
	check(hw_group_aux_sample(&g, "60K", &e) == 0 && g.sample_bytes == 61440, "60K");
	check(hw_group_aux_sample(&g, NULL, &e) == 0 && g.sample_bytes == 4096, "perf's default");
	check(hw_group_aux_sample(&g, "13", &e) == 0 && g.sample_bytes == 16, "whole words");
	refused(hw_group_frequency(&g, "0", &e), &e, "samples a second");
	refused(hw_group_period(&g, "-1", &e), &e, "number of events");
	refused(hw_group_sample_event(&g, "no-such-event", &e), &e, "no event");
	refused(hw_group_sample_event(&g, "../x:y", &e), &e, "no event");
	check(hw_group_finish(&g, &e) == 0 && g.count == 1 && g.at[0].frequency == 4000,
	      "an event by default");
	g = (struct hw_group){0};
	hw_group_sample_event(&g, "kvm:kvm_exit", &e);
	refused(hw_group_finish(&g, &e), &e, "with --aux-sample");
	hw_group_aux_sample(&g, NULL, &e);
	check(hw_group_finish(&g, &e) == 0 && g.at[0].period == 1, "of a tracepoint each one");
	g.start_paused = true;
	refused(hw_group_finish(&g, &e), &e, "choose one");
	g = (struct hw_group){.start_paused = true};
	refused(hw_group_finish(&g, &e), &e, "nothing would be traced");
	g = (struct hw_group){0};
	check(hw_group_tracepoint(&g, "a:b", &taken, &e) == 0 && !taken, "a plain tracepoint");
	check(hw_group_tracepoint(&g, "a:b/aux-action=resume/", &taken, &e) == 0 && taken &&
		  g.at[0].action == HW_AUX_RESUME && !strcmp(g.at[0].name, "a:b"),
	      "one that resumes");
	refused(hw_group_tracepoint(&g, "a:b/aux-action=stop/", &taken, &e), &e, "aux-action=pause");
	refused(hw_group_tracepoint(&g, "a:b/x", &taken, &e), &e, "aux-action=pause");
	refused(hw_group_terms(&g, "aux-action=pause", terms, &e), &e, "start-paused");
	check(hw_group_terms(&g, "intel_pt/cyc,aux-action=start-paused/u", terms, &e) == 0 &&
		  !strcmp(terms, "intel_pt/cyc/u"),
	      "the last term");
	check(hw_group_terms(&g, "aux-action=start-paused", terms, &e) == 0 && !*terms, "the only term");
}

static void test_names(void)
{
	struct perf_event_attr a = {0};
	struct pt_error e = {0};

	check(hw_event_named(&a, "branches", &e) == 0 && a.type == PERF_TYPE_HARDWARE && a.config == 4,
	      "branches");
	check(hw_event_named(&a, "r1c2", &e) == 0 && a.type == PERF_TYPE_RAW && a.config == 0x1c2, "raw");
	check(hw_event_named(&a, "no:such_tracepoint", &e) == -1 && e.kind == PT_ERR_REFUSED,
	      "no tracepoint");
	check(!hw_event_name_valid("r") && !hw_event_name_valid("r1g") && !hw_event_name_valid(":x") &&
		  !hw_event_name_valid("x:") && !hw_event_name_valid("a/b:c"),
	      "what is no name");
}

int main(void)
{
	test_sampling();
	test_event_by_terms();
	test_cpu_types();
	test_begun();
	test_cgroup();
	test_all_cgroups();
	test_actions();
	test_elsewhere();
	test_no_ring_elsewhere();
	test_left_out();
	test_sizes();
	test_breakpoints();
	test_lost();
	test_switches();
	test_options();
	test_names();
	return sum_up();
}
