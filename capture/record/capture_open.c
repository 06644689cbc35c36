/* capture_open.c - the threads of the target, and their events. */
#include "capture/record/buffer_size.h"
#include "capture/record/capabilities.h"
#include "capture/record/capture_internal.h"
#include "capture/record/cgroup.h"
#include "capture/record/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int capture_find_threads(struct capture *c, struct pt_error *e)
{
	const struct hw_list *pids = &c->o->target.pids, *tids = &c->o->target.tids;
	size_t before;

	for (size_t i = 0; i < tids->count; i++)
		if (hw_list_add(&c->tids, tids->at[i], e))
			return -1;
	for (size_t i = 0; i < pids->count; i++)
		if (hw_proc_children(&c->children, pids->at[i], e))
			return -1;
	/* Again until no new one turns up: a thread that is made while they are listed may be missed. */
	do {
		before = c->tids.count;
		for (size_t i = 0; i < pids->count; i++)
			if (hw_proc_threads(&c->tids, pids->at[i], e))
				return -1;
	} while (c->tids.count != before);
	for (size_t i = 0; i < tids->count; i++)
		if (hw_proc_of_thread(tids->at[i]) < 0)
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "there is no thread %d", tids->at[i]);
	return 0;
}

static int check_cpus(const struct capture *c, struct pt_error *e)
{
	const struct hw_list *cpus = &c->o->target.cpus;

	for (size_t i = 0; i < cpus->count; i++)
		if (!hw_list_has(&c->online, cpus->at[i]))
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "-C: CPU %d is not online",
				       cpus->at[i]);
	return 0;
}

static int open_cgroup(struct capture *c, struct pt_error *e)
{
	if (!c->o->target.cgroup || c->cgroup_fd)
		return 0;
	c->cgroup_fd = hw_cgroup_open("/proc/self/mounts", c->o->target.cgroup, e);
	return c->cgroup_fd < 0 ? -1 : 0;
}

/* privileged: all tasks and the kernel may be traced. */
static void choose_buffers(struct hw_events_options *eo, const struct hw_event_choice *choice,
			   bool privileged)
{
	bool sampled = choice->group->sample_bytes;

	eo->data_bytes = choice->data_bytes		? choice->data_bytes
			 : !privileged			? HW_DATA_KB_UNPRIVILEGED * 1024
			 : sampled && !choice->snapshot ? HW_DATA_KB_SAMPLED * 1024
							: HW_DATA_KB * 1024;
	eo->aux_bytes =
	    choice->aux_bytes ? choice->aux_bytes : (privileged ? HW_AUX_KB : HW_AUX_KB_UNPRIVILEGED) * 1024;
	eo->overwrite = choice->snapshot || sampled;
}

static void set_levels(struct hw_events_options *eo, unsigned levels, bool privileged)
{
	eo->levels = levels;
	eo->kernel_sideband = levels & HW_KERNEL && privileged;
}

/* What was left out, by the name of its event. */
static void say_left_out(const struct capture *c)
{
	char text[300];

	for (uint32_t a = 0; a < c->ev.attr_count; a++) {
		const struct hw_event_attr *attr = &c->ev.attrs[a];

		if (!attr->left_out)
			continue;
		snprintf(text, sizeof text,
			 "%u events %s are not permitted (%s): what they would record is missing",
			 attr->left_out, attr->name, strerror(attr->why));
		c->notice(text);
	}
	if (c->o->target.system_wide && hw_proc_in_pid_namespace())
		c->notice(
		    "processes outside of this container's PID namespace are not known: see --pid=host");
}

int capture_open_events(struct capture *c, struct pt_error *e)
{
	const struct hw_target *target = &c->o->target;
	const struct hw_event_choice *choice = &c->o->events;
	bool privileged = hw_capabilities_may_trace_all();
	int32_t child = c->child.pid;
	struct hw_list child_only = {&child, 1, 1};
	struct hw_events_options eo = {
	    .tids = c->tids.count	  ? &c->tids
		    : target->system_wide ? NULL
					  : &child_only,
	    .cpus = target->cpus.count ? &target->cpus : &c->online,
	    .online = &c->online,
	    .per_thread = target->per_thread,
	    .inherit = !target->per_thread && !target->system_wide && !target->no_inherit,
	    .enable_on_exec =
		target->program && !target->system_wide && !c->tids.count && !c->o->steering.delay_ms,
	    .pt = !target->sideband_only,
	    .pt_type = c->pmu ? c->pmu->type : 0,
	    .config = choice->config,
	    .one_entry = c->pmu && c->pmu->one_entry,
	    .start_paused = choice->group->start_paused,
	    .group = choice->group->at,
	    .group_count = choice->group->count,
	    .cpu_types = c->cpu_types.count ? &c->cpu_types : NULL,
	    .all_switches = privileged && !target->per_thread && !target->sideband_only,
	    .tracepoints = &choice->tracepoints,
	    .sample_cgroup = choice->cgroups,
	    .breakpoints = &choice->breakpoints};
	int r;

	if (check_cpus(c, e) || open_cgroup(c, e) || hw_cpu_types_read(&c->cpu_types, HW_CPU_TYPES_SYSFS, e))
		return -1;
	c->clock = hw_clock_choose();
	eo.raw_clock = c->clock.raw;
	if (target->sideband_only && privileged)
		c->own_pokes = hw_own_pokes_open(&c->online, c->clock.raw);
	eo.cgroup_fd = c->cgroup_fd;
	choose_buffers(&eo, choice, privileged);
	set_levels(&eo, choice->levels ? choice->levels : HW_USER | HW_KERNEL, privileged);
	r = hw_events_open(&c->ev, &eo, e);
	if (r < 0 && !choice->levels && e->kind == PT_ERR_REFUSED && !privileged && !target->system_wide) {
		/* The kernel was not asked for by name: user space alone will do. */
		struct pt_error again = {0};

		hw_events_close(&c->ev);
		set_levels(&eo, HW_USER, privileged);
		r = hw_events_open(&c->ev, &eo, &again);
		if (r < 0)
			*e = again;
		else
			c->notice("only user space is traced: the kernel needs root, CAP_PERFMON or a "
				  "perf_event_paranoid of 1 or less");
	}
	c->levels = eo.levels;
	if (r == 0 && eo.inherit && target->pids.count)
		r = capture_open_begun(c, &eo, e);
	if (r == 0)
		say_left_out(c);
	return r;
}

int capture_set_filters(struct capture *c, struct pt_error *e)
{
	const struct hw_trigger *trigger = c->o->steering.trigger;
	const char *filter = c->o->events.filter, *stop = trigger ? trigger->stop : "";
	struct pt_error why = {0};
	char *both, text[200];
	int r;

	if (stop[0] && c->pmu && c->pmu->num_address_ranges) {
		if (asprintf(&both, "%s%s%s", filter ? filter : "", filter ? "," : "", stop) < 0)
			return pt_fail_no_memory(e, "filters");
		r = hw_events_filter(&c->ev, both, &why);
		free(both);
		if (r == 0)
			return 0;
	}
	if (trigger && hw_trigger_is_breakpoint(trigger) && c->o->verbose) {
		snprintf(text, sizeof text, "the trace ends when the trigger is seen, a little after it: %s",
			 why.message[0] ? "the kernel takes no PT filter there"
					: "the CPU does not stop it by itself");
		c->notice(text);
	}
	return filter ? hw_events_filter(&c->ev, filter, e) : 0;
}
