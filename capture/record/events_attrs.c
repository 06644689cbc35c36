/* events_attrs.c - which events a capture has, and their attributes; see events.h. */
#include "capture/record/event_name.h"
#include "capture/record/events_internal.h"
#include "capture/record/pmu.h"
#include "capture/record/sample_id.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- Parts of an attribute ---- */

static struct perf_event_attr base(uint32_t type, uint64_t config)
{
	struct perf_event_attr a = {.type = type,
				    .size = sizeof a,
				    .config = config,
				    .sample_period = 1,
				    .sample_type = HW_SAMPLE_TYPE,
				    .read_format = PERF_FORMAT_ID};

	a.sample_id_all = 1;
	a.exclude_hv = 1;
	return a;
}

static struct perf_event_attr dummy(void)
{
	struct perf_event_attr a = base(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);

	a.exclude_kernel = 1;
	return a;
}

static uint64_t quarter(uint64_t bytes)
{
	return bytes >= 4 ? bytes / 4 : 1;
}

/* The reader is woken when a quarter of the ring is full. */
static void set_wakeup(struct perf_event_attr *a, const struct hw_events_options *o)
{
	a->watermark = 1;
	a->wakeup_watermark = (uint32_t)quarter(o->data_bytes);
}

static void set_levels(struct perf_event_attr *a, unsigned levels)
{
	a->exclude_kernel = !(levels & HW_KERNEL);
	a->exclude_user = !(levels & HW_USER);
}

static void set_cgroup(struct perf_event_attr *a, const struct hw_events_options *o)
{
	if (o->sample_cgroup)
		a->sample_type |= PERF_SAMPLE_CGROUP;
}

static bool is_want(int why)
{
	return why == EMFILE || why == ENFILE || why == ENOMEM;
}

/*
 * Sets those optional bits that this kernel knows and permits, tried one at a time. Returns the number of
 * those that it does not permit; or -1 (e filled): it could not be tried.
 */
static int set_optional(const struct hw_events *ev, struct perf_event_attr *a, bool task, bool kernel,
			int32_t tid, int32_t cpu, struct pt_error *e)
{
	enum { COMM_EXEC, SWITCH, NAMESPACES, CGROUP, KSYMBOL, BPF, TEXT_POKE, BITS };

	int denied = 0;

	for (int bit = 0; bit < BITS; bit++) {
		struct perf_event_attr try = *a;
		int fd;

		if (bit < KSYMBOL ? !task : !kernel)
			continue;
		switch (bit) {
		case COMM_EXEC: try.comm_exec = 1; break;
		case SWITCH: try.context_switch = 1; break;
		case NAMESPACES: try.namespaces = 1; break;
		case CGROUP: try.cgroup = 1; break;
		case KSYMBOL: try.ksymbol = 1; break;
		case BPF: try.bpf_event = 1; break;
		case TEXT_POKE: try.text_poke = 1; break;
		default: break;
		}
		fd = ev->calls->open(&try, tid, cpu, -1);
		if (fd < 0) {
			struct hw_event_attr named = {.name = "dummy", .attr = try};

			if (is_want(errno))
				return hw_event_refused(&named, tid, cpu, e);
			denied += errno == EACCES || errno == EPERM;
			continue;
		}
		close(fd);
		*a = try;
	}
	return denied;
}

static void add_attr(struct hw_events *ev, enum hw_event_kind kind, const char *name,
		     const struct perf_event_attr *attr)
{
	struct hw_event_attr *a = &ev->attrs[ev->attr_count++];

	a->kind = kind;
	snprintf(a->name, sizeof a->name, "%s", name);
	a->attr = *attr;
	a->attr.read_format = ev->read_format;
	/* The events of a ring must have the same clock (perf_event_set_output()). */
	a->attr.use_clockid = ev->raw_clock;
	a->attr.clockid = ev->raw_clock ? CLOCK_MONOTONIC_RAW : 0;
	a->optional = kind == HW_EVENT_KERNEL || kind == HW_EVENT_ELSEWHERE;
}

static const char *suffix(unsigned levels)
{
	return levels == HW_USER ? "u" : levels == HW_KERNEL ? "k" : "";
}

/* ---- The events ---- */

static void add_pt(struct hw_events *ev, const struct hw_events_options *o)
{
	struct perf_event_attr a = base(o->pt_type, o->config);
	char name[96];

	a.disabled = 1;
	a.inherit = o->inherit;
	a.enable_on_exec = o->enable_on_exec;
	set_levels(&a, o->levels);
	a.exclude_hv = a.exclude_kernel;
	set_wakeup(&a, o);
	if (!o->overwrite)
		a.aux_watermark = (uint32_t)quarter(o->aux_bytes);
	if (o->start_paused)
		hw_set_aux_action(&a, HW_AUX_START_PAUSED);
	snprintf(name, sizeof name, "intel_pt//%s", suffix(o->levels));
	add_attr(ev, HW_EVENT_PT, name, &a);
}

/*
 * The event of each type's PMU. A hardware event has the PMU's number above its own (PERF_PMU_TYPE_SHIFT,
 * Linux 5.13), a raw one in place of PERF_TYPE_RAW.
 */
static int add_by_type(struct hw_events *ev, const struct hw_events_options *o,
		       const struct hw_group_event *g, const struct perf_event_attr *a, struct pt_error *e)
{
	for (size_t i = 0; i < o->cpu_types->count; i++) {
		const struct hw_cpu_type *type = &o->cpu_types->at[i];
		struct perf_event_attr typed = *a;
		char name[96];

		if (g->pmu[0] && strcmp(g->pmu, type->name) != 0)
			continue;
		if (ev->attr_count == HW_DRAIN_ATTRS)
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "too many events");
		if (a->type == PERF_TYPE_RAW)
			typed.type = type->pmu;
		else
			typed.config |= (uint64_t)type->pmu << 32;
		snprintf(name, sizeof name, "%s/%.48s/%s", type->name, g->name, suffix(o->levels));
		add_attr(ev, HW_EVENT_GROUP, name, &typed);
		ev->attrs[ev->attr_count - 1].cpus = &type->cpus;
	}
	return 0;
}

/* Whether the event's PMU is there, and can be chosen. */
static int check_pmu(const struct hw_events_options *o, const struct hw_group_event *g, uint32_t type,
		     struct pt_error *e)
{
	bool counted = type == PERF_TYPE_HARDWARE || type == PERF_TYPE_RAW, there = false;

	for (size_t i = 0; o->cpu_types && i < o->cpu_types->count; i++)
		there |= !strcmp(g->pmu, o->cpu_types->at[i].name);
	if (!counted)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s/%s/: that is no event that a CPU counts",
			       g->pmu, g->name);
	if (!there)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s/%s/: this processor has no such type of CPUs; without %s/ it is of all",
			       g->pmu, g->name, g->pmu);
	if (o->per_thread)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "%s/%s/ and --per-thread: a thread's buffer is of all types of CPUs", g->pmu,
			       g->name);
	return 0;
}

/* An event in the PT event's group, which counts when the PT event does. */
static int add_group_event(struct hw_events *ev, const struct hw_events_options *o,
			   const struct hw_group_event *g, struct pt_error *e)
{
	struct perf_event_attr a = base(0, 0);
	char name[sizeof g->name + 2];

	if (ev->attr_count == HW_DRAIN_ATTRS)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "too many events");
	if (hw_event_named(&a, g->name, e) || (g->pmu[0] && check_pmu(o, g, a.type, e)))
		return -1;
	a.inherit = o->inherit;
	set_cgroup(&a, o);
	snprintf(name, sizeof name, "%s", g->name);
	if (a.type == PERF_TYPE_TRACEPOINT) {
		a.sample_type |= PERF_SAMPLE_RAW;
		a.exclude_hv = 0;
	} else {
		set_levels(&a, o->levels);
		if (o->levels != (HW_USER | HW_KERNEL))
			snprintf(name, sizeof name, "%s:%s", g->name, suffix(o->levels));
	}
	if (g->sample_bytes) {
		a.sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_AUX;
		a.aux_sample_size = g->sample_bytes;
		a.freq = !g->period;
		if (a.freq)
			a.sample_freq = g->frequency;
		else
			a.sample_period = g->period;
	}
	hw_set_aux_action(&a, g->action);
	set_wakeup(&a, o);
	if (!o->per_thread && o->cpu_types && (a.type == PERF_TYPE_HARDWARE || a.type == PERF_TYPE_RAW))
		return add_by_type(ev, o, g, &a, e);
	add_attr(ev, HW_EVENT_GROUP, name, &a);
	return 0;
}

static int add_sideband(struct hw_events *ev, const struct hw_events_options *o, struct pt_error *e)
{
	int32_t tid = o->tids ? o->tids->at[0] : -1, cpu = o->per_thread ? -1 : o->cpus->at[0];
	struct perf_event_attr a = dummy();

	a.inherit = o->inherit;
	set_wakeup(&a, o);
	a.mmap = a.mmap2 = a.comm = a.task = 1;
	if (set_optional(ev, &a, true, o->tids == NULL && o->kernel_sideband, tid, cpu, e) < 0)
		return -1;
	a.disabled = a.enable_on_exec = o->enable_on_exec;
	add_attr(ev, HW_EVENT_SIDEBAND, "dummy:u", &a);
	if (!o->per_thread && o->cpus->count < o->online->count) {
		a.context_switch = 0;
		add_attr(ev, HW_EVENT_ELSEWHERE, "dummy:u (other CPUs)", &a);
	}
	return 0;
}

static int add_whole_cpu(struct hw_events *ev, const struct hw_events_options *o, struct pt_error *e)
{
	struct perf_event_attr a = dummy();
	int denied;

	set_wakeup(&a, o);
	denied = set_optional(ev, &a, o->all_switches, o->kernel_sideband, -1, o->online->at[0], e);
	if (denied < 0)
		return -1;
	a.comm_exec = a.namespaces = a.cgroup = 0; /* of the target: HW_EVENT_SIDEBAND's */
	/* Names of the threads that run instead: COMM, and FORK, by which a thread inherits its name. The
	 * target's own come twice, one right after the other, which changes nothing. */
	a.comm = a.task = a.context_switch;
	/* One that is not permitted is counted when it is opened. */
	if (a.ksymbol || a.bpf_event || a.text_poke || a.context_switch || denied)
		add_attr(ev, HW_EVENT_KERNEL, "dummy:u (whole CPU)", &a);
	return 0;
}

/* One that is not there, or not to be seen, is left out, unless the user named it. */
static int add_tracepoint(struct hw_events *ev, const struct hw_events_options *o, const char *event,
			  bool named, enum hw_event_kind kind, struct pt_error *e)
{
	unsigned long long config;
	struct perf_event_attr a = {0};

	if (ev->attr_count == HW_DRAIN_ATTRS)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "too many events: %d at most", HW_DRAIN_ATTRS);
	if (!hw_tracepoint_id(event, &config))
		return named ? hw_event_named(&a, event, e) : 0;
	a = base(PERF_TYPE_TRACEPOINT, config);
	a.sample_type |= PERF_SAMPLE_RAW;
	if (kind == HW_EVENT_TRACE)
		set_cgroup(&a, o);
	a.exclude_hv = 0;
	a.inherit = kind == HW_EVENT_TRACE && o->inherit && o->tids;
	set_wakeup(&a, o);
	a.disabled = kind == HW_EVENT_TRACE;
	a.enable_on_exec = a.disabled && o->enable_on_exec;
	add_attr(ev, kind, event, &a);
	ev->attrs[ev->attr_count - 1].optional = !named;
	return 0;
}

/* Each hit is to be seen at once. */
static int add_breakpoint(struct hw_events *ev, const struct hw_events_options *o, const char *name,
			  struct pt_error *e)
{
	struct perf_event_attr a = base(0, 0);

	if (ev->attr_count == HW_DRAIN_ATTRS)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "too many events");
	if (hw_event_named(&a, name, e))
		return -1;
	set_levels(&a, a.bp_addr >> 63 ? HW_KERNEL : HW_USER);
	a.exclude_hv = 0; /* the kernel wants it so of an address of its own */
	a.inherit = o->inherit && o->tids;
	a.wakeup_events = 1;
	a.disabled = 1;
	a.enable_on_exec = o->enable_on_exec;
	add_attr(ev, HW_EVENT_TRIGGER, name, &a);
	return 0;
}

/* Whether the kernel can put control groups into samples. */
static int check_cgroup(const struct hw_events *ev, const struct hw_events_options *o, struct pt_error *e)
{
	struct perf_event_attr a = dummy();
	int fd;

	set_cgroup(&a, o);
	fd = ev->calls->open(&a, o->tids ? o->tids->at[0] : -1, o->per_thread ? -1 : o->cpus->at[0], -1);
	if (fd < 0 && errno == EINVAL)
		return pt_fail(
		    e, PT_ERR_REFUSED, PT_NO_OFFSET,
		    "--all-cgroups: this kernel has no control groups in samples (CONFIG_CGROUP_PERF)");
	if (fd >= 0)
		close(fd);
	return 0;
}

/* PERF_FORMAT_LOST, where the kernel has it (Linux 6.0). */
static uint64_t read_format(const struct hw_events *ev, const struct hw_events_options *o)
{
	int32_t tid = o->tids ? o->tids->at[0] : -1, cpu = o->per_thread ? -1 : o->cpus->at[0];
	struct perf_event_attr a = dummy();
	int fd;

	a.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
	fd = ev->calls->open(&a, tid, cpu, -1);
	if (fd < 0)
		return PERF_FORMAT_ID;
	close(fd);
	return a.read_format;
}

int hw_events_make_attrs(struct hw_events *ev, const struct hw_events_options *o, struct pt_error *e)
{
	if (o->sample_cgroup && check_cgroup(ev, o, e))
		return -1;
	ev->read_format = read_format(ev, o);
	if (o->pt) {
		add_pt(ev, o);
		for (size_t i = 0; i < o->group_count; i++)
			if (add_group_event(ev, o, &o->group[i], e))
				return -1;
	}
	if (add_sideband(ev, o, e))
		return -1;
	if (o->tids && (o->kernel_sideband || o->all_switches) && add_whole_cpu(ev, o, e))
		return -1;
	/* No KSYMBOL record reports modules. */
	if (o->kernel_sideband && add_tracepoint(ev, o, "module:module_load", false, HW_EVENT_KERNEL, e))
		return -1;
	for (size_t i = 0; o->tracepoints && i < o->tracepoints->count; i++)
		if (add_tracepoint(ev, o, o->tracepoints->at[i], i < o->tracepoints->named, HW_EVENT_TRACE,
				   e))
			return -1;
	for (size_t i = 0; o->breakpoints && i < o->breakpoints->count; i++)
		if (add_breakpoint(ev, o, o->breakpoints->at[i], e))
			return -1;
	return 0;
}
