/* main.c - pt-capture's own command: which engine, signals, what is printed at the end. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/commands.h"
#include "capture/record/capabilities.h"
#include "capture/record/capture.h"
#include "capture/record/event_name.h"
#include "capture/record/filter.h"
#include "capture/record/options.h"
#include "capture/record/proc.h"
#include "capture/record/trigger_place.h"
#include "schema/output.h"

/* ---- Signals ---- */

static volatile sig_atomic_t stop, stop_signal, want_snapshot;

/* The kernel's own (SI_KERNEL) is the terminal's Ctrl-C, which the program has got, too: 0, to send none. */
static void on_stop(int sig, siginfo_t *info, void *context)
{
	(void)context;
	stop_signal = info->si_code == SI_KERNEL ? 0 : sig;
	stop = stop + 1;
}

static void on_usr2(int sig)
{
	(void)sig;
	want_snapshot = want_snapshot + 1;
}

/* That it comes is enough: it ends the wait for the rings. */
static void on_child(int sig)
{
	(void)sig;
}

static void handle_signals(struct hw_steering *s)
{
	struct sigaction act = {.sa_sigaction = on_stop, .sa_flags = SA_SIGINFO}, hup;

	s->stop = &stop;
	s->stop_signal = &stop_signal;
	s->want_snapshot = &want_snapshot;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	/* Ignored: nohup. */
	if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &act, NULL);
	act.sa_flags = 0;
	act.sa_handler = on_usr2;
	sigaction(SIGUSR2, &act, NULL);
	act.sa_handler = on_child;
	act.sa_flags = SA_RESTART; /* of all calls but epoll_wait() */
	sigaction(SIGCHLD, &act, NULL);
}

/* ---- What is printed ---- */

static void notice(const char *text)
{
	fprintf(stderr, "pt-capture: %s\n", text);
}

static void no_notice(const char *text)
{
	(void)text;
}

static const char *shared_requests(const struct hw_result *r, char *to, size_t room)
{
	snprintf(to, room, "; %u signals that asked for one share another signal's", r->shared_requests);
	return r->shared_requests ? to : "";
}

static void print_result(const struct hw_options *o, const struct hw_result *r)
{
	char text[100];

	if (r->have_status)
		fprintf(stderr, "pt-capture: %s ended with status %d\n", o->target.program[0], r->status);
	else if (r->left_running)
		fprintf(stderr, "pt-capture: %s (process %d) runs on, no longer recorded\n",
			o->target.program[0], (int)r->left_running);
	if (o->events.group->sample_bytes)
		fprintf(stderr, "pt-capture: %" PRIu64 " samples, %" PRIu64 " of them without a trace\n",
			r->samples, r->empty_samples);
	if (o->events.snapshot)
		fprintf(stderr, "pt-capture: %u snapshots%s\n", r->snapshots,
			shared_requests(r, text, sizeof text));
	if (o->guests.vms && o->guests.vms->count)
		fprintf(stderr, "pt-capture: %zu VMs, %zu TSC offsets from KVM's debugfs\n",
			o->guests.vms->count, r->clocks);
	if (o->jit)
		fprintf(stderr, "pt-capture: %.1f KB of code that %u processes made at run time\n",
			(double)r->jit_bytes / 1e3, r->jit_processes);
	if (r->containers > 1)
		fprintf(stderr, "pt-capture: %u containers\n", r->containers);
	fprintf(stderr, "pt-capture: %.1f MB of trace, container of %.1f MB, %u buffers\n",
		(double)r->aux_bytes / 1e6, (double)r->container_bytes / 1e6, r->rings);
	if (!r->aux_bytes && !o->target.sideband_only)
		fputs("pt-capture: nothing was traced: the target did not run while it was recorded, or not "
		      "where "
		      "--all-user, -k, -C or a filter let it be traced\n",
		      stderr);
	if (r->missing_images)
		fprintf(stderr,
			"pt-capture: the code of %" PRIu64 " mappings could not be read; the first: %s\n",
			r->missing_images, r->missing_why);
}

/* Prints what was lost, also when quiet. Returns the exit status. */
static int print_losses(const struct hw_losses *l)
{
	if (!l->truncated && !l->partial && !l->records)
		return 0;
	fprintf(stderr,
		"pt-capture: data was lost: %" PRIu64
		" times AUX data (the buffer was full: -m ,SIZE makes it bigger), %" PRIu64
		" pieces with gaps, %" PRIu64 " sideband records (-m SIZE)\n",
		l->truncated, l->partial, l->records);
	return 3;
}

/* Also when quiet. */
static void print_missed(const struct hw_result *r)
{
	if (r->trigger_missed)
		fprintf(stderr,
			"pt-capture: the trigger fired %u times while a container was being completed: no "
			"snapshot\n",
			r->trigger_missed);
}

/* ---- VMs ---- */

static int list_vms(struct pt_error *e)
{
	struct vms vms;

	if (vm_find_all(&vms, "", e))
		return -1;
	for (size_t i = 0; i < vms.count; i++) {
		const struct vm *v = &vms.at[i];

		printf("%d %s (%s), %zu vCPUs:", v->pid, v->name, v->monitor, v->vcpu_count);
		for (size_t k = 0; k < v->vcpu_count; k++) {
			if (v->vcpus[k].tid > 0)
				printf(" %d=%d", v->vcpus[k].number, v->vcpus[k].tid);
			else
				printf(" %d=?", v->vcpus[k].number);
		}
		putchar('\n');
	}
	if (!vms.count)
		fputs("pt-capture: no VM can be seen here; as root, all can\n", stderr);
	vm_free(&vms);
	return output_flush(stdout, "the list", e);
}

/*
 * --vm's VMs, or with -a all that there are: their processes are traced, and the tracepoints that report
 * exits and clocks.
 */
static int add_vms(struct hw_arguments *a, struct vms *vms, struct pt_error *e)
{
	static const char *const tracepoints[] = {"kvm:kvm_entry", "kvm:kvm_exit", "kvm:kvm_write_tsc_offset",
						  "kvm:kvm_msr", "kvm:kvm_page_fault"};
	struct hw_options *o = &a->o;

	if (vm_find_all(vms, "", e) || (a->vm && vm_choose(vms, a->vm, e)))
		return -1;
	for (size_t i = 0; a->vm && !o->target.system_wide && i < vms->count; i++)
		if (hw_list_add(&o->target.pids, vms->at[i].pid, e))
			return -1;
	o->guests.vms = vms;
	for (size_t i = 0; vms->count && i < sizeof tracepoints / sizeof *tracepoints; i++)
		if (hw_options_tracepoint(o, tracepoints[i], e))
			return -1;
	return 0;
}

/* Decides which VM each of the guests' kernels belongs to. */
static int resolve_kernels(struct guest_kernels *kernels, const struct vms *vms, struct pt_error *e)
{
	for (size_t i = 0; i < kernels->count; i++) {
		int32_t pid = kernels->at[i].pid;
		bool known = false;

		for (size_t v = 0; v < vms->count; v++)
			known |= vms->at[v].pid == pid;
		if (pid && !known)
			return pt_fail(
			    e, PT_ERR_REFUSED, PT_NO_OFFSET,
			    "process %d, for which a guest's kernel is given, is no VM of this capture", pid);
		if (!pid && vms->count != 1)
			return pt_fail(
			    e, PT_ERR_USAGE, PT_NO_OFFSET,
			    "there are %zu VMs: say which one the kernel is of, as --guest-kcore PID:FILE",
			    vms->count);
	}
	return kernels->count && vms->count == 1 ? guest_kernels_resolve(kernels, vms->at[0].pid, e) : 0;
}

/* ---- The step engine ---- */

/* Options that only Processor Trace can do. */
static bool needs_pt(const struct hw_arguments *a)
{
	const struct hw_options *o = &a->o;
	const struct hw_target *t = &o->target;

	return a->vm || a->filter || t->system_wide || t->pids.count || t->tids.count || t->cpus.count ||
	       t->per_thread || o->events.tracepoints.count || a->group.count || a->group.sample_bytes ||
	       o->events.snapshot || (o->events.levels & HW_KERNEL) || o->steering.seconds > 0 ||
	       o->steering.delay_ms || o->steering.max_bytes || t->no_inherit || o->steering.control ||
	       o->affinity.count || o->realtime || t->cgroup || hw_rotation_names(&a->rotation);
}

static void started(void *ready_fd)
{
	hw_ready_put(ready_fd);
}

/* why: for the message when that cannot be. */
static int capture_by_steps(const struct hw_arguments *a, const char *why, struct pt_error *e)
{
	struct step_command c = {.program = a->o.target.program,
				 .output = a->output,
				 .terms = a->terms,
				 .truth = a->truth,
				 .started = started,
				 .started_arg = a->o.steering.ready_fd,
				 .level = a->o.level,
				 .quiet = a->o.quiet,
				 .single = a->engine && !strcmp(a->engine, "single-step"),
				 .no_exit_status = a->no_exit_status};
	char *end;

	if (needs_pt(a))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s; without Processor Trace only a program's user space can be traced: "
			       "pt-capture -- PROGRAM",
			       why);
	if (a->max_steps) {
		c.max_steps = strtoull(a->max_steps, &end, 0);
		if (*end || !c.max_steps)
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--max-steps %s: not a number above 0",
				       a->max_steps);
	}
	return step_capture(&c, e);
}

/* ---- Processor Trace ---- */

static int choose_config(struct hw_arguments *a, const struct hw_pmu *pmu, struct pt_error *e)
{
	struct hw_event_choice *events = &a->o.events;

	events->config = pmu ? hw_pmu_default(pmu) : 0;
	/* A sample decodes from its first PSB on: as many of them as possible, as perf has it. */
	if (a->group.sample_bytes && pmu && pmu->psb_cyc &&
	    hw_pmu_terms(pmu, "psb_period=0", &events->config, &events->levels, e))
		return -1;
	return a->terms ? hw_pmu_terms(pmu, a->terms, &events->config, &events->levels, e) : 0;
}

/* *ret: the filter as the kernel takes it, to be freed; NULL: none. */
static int choose_filter(struct hw_arguments *a, const struct hw_pmu *pmu, char **ret, struct pt_error *e)
{
	if (!a->filter)
		return 0;
	if (!pmu || !pmu->num_address_ranges)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "--filter: this CPU's Processor Trace has no address filters "
			       "(" HW_SYSFS "/caps/num_address_ranges)");
	*ret = hw_filter_resolve(a->filter, "/proc/kallsyms", e);
	if (!*ret)
		return -1;
	a->o.events.filter = *ret;
	if (a->o.verbose)
		fprintf(stderr, "pt-capture: filter: %s\n", *ret);
	return 0;
}

/*
 * Adds the trigger's tracepoints. What was asked for by name must be there; only VMs' tracepoints, which
 * add_vms() adds later, may be missing.
 */
static int choose_tracepoints(struct hw_arguments *a, struct pt_error *e)
{
	const char *names[2];
	size_t count = hw_trigger_tracepoints(&a->trigger, names);
	struct perf_event_attr attr;

	for (size_t i = 0; i < count; i++)
		if (hw_options_tracepoint(&a->o, names[i], e))
			return -1;
	for (size_t i = 0; i < a->o.events.tracepoints.count; i++)
		if (hw_event_named(&attr, a->o.events.tracepoints.at[i], e))
			return -1;
	a->o.events.tracepoints.named = a->o.events.tracepoints.count;
	return 0;
}

/* The process that a trigger's function is of; 0: none, the kernel's only. */
static int trigger_process(const struct hw_target *t, int32_t *ret, struct pt_error *e)
{
	*ret = t->pids.count ? t->pids.at[0] : t->tids.count ? hw_proc_of_thread(t->tids.at[0]) : 0;
	if (*ret < 0)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "there is no thread %d", t->tids.at[0]);
	if (t->pids.count > 1)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--trigger: a function or an address is one process's: give one with -p");
	return 0;
}

/* A trigger's breakpoints. */
static int choose_breakpoints(struct hw_arguments *a, struct pt_error *e)
{
	struct hw_trigger *t = &a->trigger;
	int32_t pid;

	if (!hw_trigger_is_breakpoint(t))
		return 0;
	if (trigger_process(&a->o.target, &pid, e) || hw_trigger_place(t, pid, e))
		return -1;
	for (size_t i = 0; i < t->count; i++) {
		if (a->o.verbose)
			fprintf(stderr, "pt-capture: trigger: %s\n", t->at[i].name);
		if (hw_options_breakpoint(&a->o, t->at[i].name, e))
			return -1;
	}
	return 0;
}

/* The last container gets its name. */
static int name_output(struct hw_arguments *a, struct output *out, struct pt_error *e)
{
	const char *name;

	if (!hw_rotation_names(&a->rotation))
		return output_commit(out, e);
	if (hw_rotation_next(&a->rotation, true, &name, e)) {
		output_abort(out);
		return -1;
	}
	if (!a->o.quiet)
		fprintf(stderr, "pt-capture: %s is complete\n", name);
	return 0;
}

/* Into a->output, which is there when it is whole. Returns the exit status, or -1. */
static int record(struct hw_arguments *a, const struct hw_pmu *pmu, struct pt_error *e)
{
	struct hw_result result;
	struct output out = {0};
	int r;

	if (output_open_capture(&out, a->output, "a container", e) < 0)
		return -1;
	if (hw_rotation_names(&a->rotation) && !out.path) {
		output_abort(&out);
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "-o %s: --switch-output and --timestamp-filename write files: name one",
			       a->output);
	}
	a->rotation.out = &out;
	a->rotation.path = a->output;
	a->o.steering.rotation = &a->rotation;
	a->o.stdout_to_stderr = out.fd == STDOUT_FILENO;
	handle_signals(&a->o.steering);
	r = hw_capture(&a->o, pmu, out.fd, a->o.quiet ? no_notice : notice, &result, e);
	hw_capabilities_output(true);
	if (r) {
		output_abort(&out);
		return -1;
	}
	if (name_output(a, &out, e))
		return -1;
	if (!a->o.quiet)
		print_result(&a->o, &result);
	print_missed(&result);
	r = print_losses(&result.losses);
	return result.have_status && result.status && !a->no_exit_status ? result.status : r;
}

/* pmu: NULL with --sideband-only. Returns the exit status, or -1. */
static int capture_by_pt(struct hw_arguments *a, const struct hw_pmu *pmu, struct pt_error *e)
{
	struct vms vms = {0};
	char *filter = NULL;
	int r = choose_config(a, pmu, e);

	if (r == 0 && (a->truth || a->max_steps))
		r = pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--truth and --max-steps are for --engine step");
	if (r == 0)
		r = choose_filter(a, pmu, &filter, e);
	if (r == 0)
		r = choose_tracepoints(a, e);
	if (r == 0)
		r = choose_breakpoints(a, e);
	if (r == 0 && (a->vm || (pmu && a->o.target.system_wide)))
		r = add_vms(a, &vms, e);
	if (r == 0)
		r = resolve_kernels(&a->kernels, &vms, e);
	if (r == 0)
		r = record(a, pmu, e);
	a->o.guests.vms = NULL;
	a->o.events.filter = NULL;
	vm_free(&vms);
	free(filter);
	return r;
}

/* ---- The command ---- */

/* By the engine that was asked for, or that there is. */
static int capture(struct hw_arguments *a, struct pt_error *e)
{
	struct pt_error why = {0};
	struct hw_pmu pmu;

	if (a->o.target.sideband_only)
		return capture_by_pt(a, NULL, e);
	if (a->engine && (!strcmp(a->engine, "step") || !strcmp(a->engine, "single-step")))
		return capture_by_steps(a, "--engine step", e);
	if (hw_pmu_read(&pmu, HW_SYSFS, &why) == 0)
		return capture_by_pt(a, &pmu, e);
	if (!a->engine || strcmp(a->engine, "perf") != 0)
		return capture_by_steps(a, why.message, e);
	*e = why;
	return -1;
}

int cmd_capture(int argc, char **argv)
{
	struct pt_error e = {0};
	struct hw_arguments a;
	int r = hw_arguments_parse(&a, argc, argv, &e);

	if (r > 0) {
		hw_arguments_help(stdout);
		r = 0;
	} else if (r == 0 && a.dry_run) {
		r = 0;
	} else if (r == 0 && a.vm && !strcmp(a.vm, "list")) {
		r = list_vms(&e);
	} else if (r == 0) {
		r = capture(&a, &e);
	}
	hw_arguments_deinit(&a);
	return r < 0 ? command_failed(&e) : r;
}
