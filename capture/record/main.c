/* main.c - pt-capture's own command: options, which engine, what is told at the end. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/commands.h"
#include "capture/record/capture.h"
#include "capture/record/event_name.h"
#include "capture/record/filter.h"
#include "capture/record/group.h"
#include "capture/record/capabilities.h"
#include "schema/output.h"

static const char usage[] =
    "\n"
    "What to trace (one of):\n"
    "  -- PROGRAM [ARGUMENTS]  a program, with all that it starts; with -a, -C, -p or -t: these, for as long "
    "as "
    "it runs\n"
    "  -p, --pid PIDS          processes that run, all their threads, and new ones\n"
    "  -t, --tid TIDS          threads\n"
    "  -a, --all               the whole machine\n"
    "  -C, --cpu CPUS          whole CPUs; with -p, -t or --vm: on these CPUs only\n"
    "      --vm PID|NAME|all   virtual machines, with KVM's tracepoints and the guests' clocks; `--vm list` "
    "lists "
    "them\n"
    "      --sideband-only     no trace: tasks, mappings, code and kernel of a machine, a guest; see "
    "`merge`\n"
    "How:\n"
    "  -e, --event TERMS       perf's terms of intel_pt: cyc,mtc_period=3,noretcomp,psb_period=3,...;\n"
    "                          intel_pt/cyc/u is user space only, k the kernel only\n"
    "  -u, --user; -k, --kernel  these levels only (default: both, where permitted)\n"
    "  -d, --duration SECONDS  stop after so long\n"
    "      --per-thread        a buffer a thread, not a CPU; new threads are not followed\n"
    "  -m, --buffers RECORDS[,AUX]  sizes of a CPU's buffers: 512K,16M\n"
    "  -S, --snapshot          keep only the newest of each buffer; written on SIGUSR2, by --control, and at "
    "the end\n"
    "      --trigger WHAT      a snapshot when: vmexit>100us (an exit from a guest takes longer), "
    "SYSTEM:NAME (a\n"
    "                          tracepoint), exit (the program ends)\n"
    "      --control fifo:PATH[,ACK]  perf's: snapshot, enable, disable, stop, ping\n"
    "      --tracepoint SYSTEM:NAME  record this one, too; may be repeated\n"
    "      --aux-sample[=SIZE]  no trace but SIZE bytes of it (4096; at most 60K) with each sample of an "
    "event:\n"
    "      --sample-event EVENT  which: cycles (else cpu-clock), branches, page-faults, rHEX, "
    "SYSTEM:NAME...\n"
    "  -F, --freq HZ; -c, --count N  samples a second (4000), or one each N events\n"
    "      --tracepoint SYSTEM:NAME/aux-action=pause/ or resume, -e aux-action=start-paused: trace between "
    "them "
    "only\n"
    "                          (Linux 6.13)\n"
    "      --filter FILTER     trace these addresses only, as perf's: 'filter main @/bin/x', 'tracestop f "
    "@/bin/x', of\n"
    "                          the kernel 'filter vfs_read'; or by numbers: 'filter 0xOFFSET/0xSIZE@/bin/x'\n"
    "      --guest-kcore [PID:]FILE, --guest-kallsyms [PID:]FILE  the kernel of a guest, as perf record's "
    "--kcore\n"
    "                          there and /proc/kallsyms have it; PID: the VM's process, where there are "
    "several\n"
    "      --guest-root [PID:]DIR  the guest's root (sshfs -o direct_io): its kernel by proc/kcore and "
    "proc/kallsyms\n"
    "      --guest-image [PID:]FILE:ADDRESS  FILE is what the guest has in its memory at a (linear) address: "
    "firmware,\n"
    "                          a boot loader\n"
    "      --engine ENGINE     perf (Processor Trace), step (single-stepping), auto: step where PT is "
    "missing\n"
    "Output:\n"
    "  -o, --output FILE       write the container to FILE, not to standard output (then the program's own\n"
    "                          standard output goes to standard error)\n"
    "  -z, --level N           zstd level, -7 (fastest) to 19; default 1; less when buffers fill up\n"
    "  -q, --quiet; -v, --verbose\n"
    "Single-stepping:\n"
    "      --truth FILE        also write every taken branch: tid, from, to\n"
    "      --max-steps N       trace N instructions, then let the program go on untraced\n"
    "\n"
    "Ctrl-C ends a capture and keeps it; the program gets the signal first, and has two seconds.\n"
    "Exit status: 0 captured, whatever the program's own status was (it is told, and is in the container); 1 "
    "failed;\n"
    "2 wrong usage; 3 captured, but the kernel lost data (how much is told, where is in the container).\n";

struct arguments {
	struct hw_options o;
	const char *output, *terms, *engine, *truth, *max_steps, *level, *vm;
	struct vms vms;
	struct guest_kernels kernels;
	struct hw_control control;
	struct hw_trigger trigger;
	struct hw_group group;
	char *filter; /* as the kernel takes it */
	bool quiet;
};

static volatile sig_atomic_t stop, stop_signal, want_snapshot;

static void on_signal(int sig)
{
	stop_signal = sig;
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

static void notice(const char *text)
{
	fprintf(stderr, "pt-capture: %s\n", text);
}

static void no_notice(const char *text)
{
	(void)text;
}

/* "512K", "16M", "2G", or bytes: rounded up to a power of two of at least two pages. */
static int size_of(const char *text, size_t n, uint64_t *ret, struct pt_error *e)
{
	char *end;
	unsigned long long v = strtoull(text, &end, 10), size = 8192;
	unsigned shift = 0;

	if (end < text + n && strchr("kKmMgG", *end)) {
		shift = *end == 'k' || *end == 'K' ? 10 : *end == 'm' || *end == 'M' ? 20 : 30;
		end++;
	}
	if (end != text + n || v == 0 || v > (1ull << 36 >> shift))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "-m: '%.*s' is not a size like 512K or 16M",
			       (int)n, text);
	while (size < v << shift)
		size *= 2;
	*ret = size;
	return 0;
}

static int sizes(struct hw_options *o, const char *text, struct pt_error *e)
{
	const char *comma = strchr(text, ',');
	size_t n = comma ? (size_t)(comma - text) : strlen(text);

	if (n && size_of(text, n, &o->data_bytes, e))
		return -1;
	return comma ? size_of(comma + 1, strlen(comma + 1), &o->aux_bytes, e) : 0;
}

static int add_tracepoint(struct hw_options *o, const char *name, struct pt_error *e)
{
	const char **grown;

	for (size_t i = 0; i < o->tracepoint_count; i++)
		if (!strcmp(o->tracepoints[i], name))
			return 0;
	grown = realloc(o->tracepoints, (o->tracepoint_count + 1) * sizeof *grown);
	if (!grown)
		return pt_fail_no_memory(e, NULL);
	o->tracepoints = grown;
	grown[o->tracepoint_count++] = name;
	return 0;
}

static int parse(int argc, char **argv, struct arguments *a, struct pt_error *e)
{
	enum {
		PER_THREAD = 256,
		TRACEPOINT,
		ENGINE,
		TRUTH,
		MAX_STEPS,
		VM,
		SIDEBAND_ONLY,
		TRIGGER,
		CONTROL,
		FILTER,
		KCORE,
		IMAGE,
		KALLSYMS,
		GUEST_ROOT_DIR,
		AUX_SAMPLE,
		SAMPLE_EVENT
	};
	static const struct option longs[] = {{"pid", required_argument, NULL, 'p'},
					      {"tid", required_argument, NULL, 't'},
					      {"all", no_argument, NULL, 'a'},
					      {"cpu", required_argument, NULL, 'C'},
					      {"event", required_argument, NULL, 'e'},
					      {"user", no_argument, NULL, 'u'},
					      {"kernel", no_argument, NULL, 'k'},
					      {"duration", required_argument, NULL, 'd'},
					      {"per-thread", no_argument, NULL, PER_THREAD},
					      {"buffers", required_argument, NULL, 'm'},
					      {"tracepoint", required_argument, NULL, TRACEPOINT},
					      {"engine", required_argument, NULL, ENGINE},
					      {"output", required_argument, NULL, 'o'},
					      {"level", required_argument, NULL, 'z'},
					      {"quiet", no_argument, NULL, 'q'},
					      {"verbose", no_argument, NULL, 'v'},
					      {"snapshot", no_argument, NULL, 'S'},
					      {"trigger", required_argument, NULL, TRIGGER},
					      {"control", required_argument, NULL, CONTROL},
					      {"filter", required_argument, NULL, FILTER},
					      {"guest-kcore", required_argument, NULL, KCORE},
					      {"guest-kallsyms", required_argument, NULL, KALLSYMS},
					      {"guest-root", required_argument, NULL, GUEST_ROOT_DIR},
					      {"guest-image", required_argument, NULL, IMAGE},
					      {"aux-sample", optional_argument, NULL, AUX_SAMPLE},
					      {"sample-event", required_argument, NULL, SAMPLE_EVENT},
					      {"freq", required_argument, NULL, 'F'},
					      {"count", required_argument, NULL, 'c'},
					      {"vm", required_argument, NULL, VM},
					      {"sideband-only", no_argument, NULL, SIDEBAND_ONLY},
					      {"truth", required_argument, NULL, TRUTH},
					      {"max-steps", required_argument, NULL, MAX_STEPS},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	struct hw_options *o = &a->o;
	char *end;
	int c, taken;

	optind = 1;
	while ((c = getopt_long(argc, argv, "+p:t:aC:e:ukd:m:So:z:F:c:qvh", longs, NULL)) != -1) {
		switch (c) {
		case 'p':
			if (hw_list_parse(&o->pids, optarg, "-p", e))
				return -1;
			break;
		case 't':
			if (hw_list_parse(&o->tids, optarg, "-t", e))
				return -1;
			break;
		case 'a': o->system_wide = true; break;
		case 'C':
			if (hw_list_parse(&o->cpus, optarg, "-C", e))
				return -1;
			break;
		case 'e': a->terms = optarg; break;
		case 'u': o->levels |= HW_USER; break;
		case 'k': o->levels |= HW_KERNEL; break;
		case 'd':
			o->seconds = strtod(optarg, &end);
			if (*end || end == optarg || !(o->seconds > 0) || o->seconds > 1e9)
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "-d %s: not a number of seconds", optarg);
			break;
		case PER_THREAD: o->per_thread = true; break;
		case 'm':
			if (sizes(o, optarg, e))
				return -1;
			break;
		case AUX_SAMPLE:
			if (hw_group_aux_sample(&a->group, optarg, e))
				return -1;
			break;
		case SAMPLE_EVENT:
			if (hw_group_sample_event(&a->group, optarg, e))
				return -1;
			break;
		case 'F':
			if (hw_group_frequency(&a->group, optarg, e))
				return -1;
			break;
		case 'c':
			if (hw_group_period(&a->group, optarg, e))
				return -1;
			break;
		case TRACEPOINT:
			if (hw_group_tracepoint(&a->group, optarg, &taken, e))
				return -1;
			if (taken)
				break;
			if (!strchr(optarg, ':'))
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "--tracepoint %s: not SYSTEM:NAME, as kvm:kvm_exit", optarg);
			if (add_tracepoint(o, optarg, e))
				return -1;
			break;
		case 'S': o->snapshot = true; break;
		case TRIGGER:
			if (hw_trigger_parse(&a->trigger, optarg, e))
				return -1;
			o->trigger = &a->trigger;
			o->snapshot = true;
			break;
		case CONTROL:
			hw_control_close(&a->control);
			if (hw_control_open(&a->control, optarg, e))
				return -1;
			o->control = &a->control;
			break;
		case FILTER: o->filter = optarg; break;
		case KCORE:
		case KALLSYMS:
		case GUEST_ROOT_DIR:
		case IMAGE:
			if (guest_kernels_add(&a->kernels,
					      c == KCORE      ? GUEST_KCORE
					      : c == IMAGE    ? GUEST_IMAGE
					      : c == KALLSYMS ? GUEST_KALLSYMS
							      : GUEST_ROOT,
					      optarg, e))
				return -1;
			o->kernels = &a->kernels;
			break;
		case VM: a->vm = optarg; break;
		case SIDEBAND_ONLY: o->sideband_only = true; break;
		case ENGINE: a->engine = optarg; break;
		case 'o': a->output = optarg; break;
		case 'z':
			o->level = (int)strtol(optarg, &end, 10);
			a->level = optarg;
			if (*end || end == optarg || o->level < -7 || o->level > 19)
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "-z %s: not a level from -7 to 19", optarg);
			break;
		case 'q': a->quiet = o->quiet = true; break;
		case 'v': o->verbose = true; break;
		case TRUTH: a->truth = optarg; break;
		case MAX_STEPS: a->max_steps = optarg; break;
		case 'h': fputs(usage, stdout); return 1;
		default: return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "see 'pt-capture --help'");
		}
	}
	o->program = optind < argc ? argv + optind : NULL;
	if ((o->cpus.count && !o->pids.count && !o->tids.count && !a->vm) ||
	    (o->sideband_only && !o->pids.count && !o->tids.count))
		o->system_wide = true;
	return 0;
}

static int check(const struct arguments *a, struct pt_error *e)
{
	const struct hw_options *o = &a->o;

	if (o->system_wide && (o->pids.count || o->tids.count))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "-a and -p or -t: choose one");
	if (!o->system_wide && !o->pids.count && !o->tids.count && !o->program && !a->vm)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "nothing to trace: pt-capture [options] -- PROGRAM, or -p, -t, -a, -C");
	if (o->per_thread && (o->system_wide || o->cpus.count))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--per-thread has no CPUs: without -a and -C");
	if (o->sideband_only && (a->terms || a->vm || o->levels))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--sideband-only traces nothing: without -e, -u, -k and --vm");
	if (o->sideband_only && o->filter)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--sideband-only traces nothing to be filtered");
	if (o->kernels && !a->vm && (!o->system_wide || o->sideband_only))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--guest-kcore, --guest-kallsyms, --guest-root and --guest-image are for VMs: "
			       "with --vm or -a");
	if (a->group.sample_bytes && o->snapshot)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--aux-sample and snapshots: both read the buffer; choose one");
	if (o->sideband_only && (a->group.sample_bytes || a->group.count))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--sideband-only traces nothing to be sampled, paused or resumed");
	if (a->engine && strcmp(a->engine, "auto") && strcmp(a->engine, "perf") && strcmp(a->engine, "step"))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--engine %s: it can be auto, perf or step",
			       a->engine);
	return 0;
}

/* ---- The step engine in its place --------------------------------------------------------------------- */

static int step_instead(const struct arguments *a, const char *why, struct pt_error *e)
{
	const struct hw_options *o = &a->o;
	char *argv[32];
	int argc = 0, status;
	size_t n = 0;
	char **whole;

	if (a->vm || o->system_wide || o->pids.count || o->tids.count || o->cpus.count || o->per_thread ||
	    o->seconds > 0 || o->tracepoint_count || a->group.count || a->group.sample_bytes || o->snapshot ||
	    o->control || o->filter || (o->levels & HW_KERNEL))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s; without Processor Trace only a program's user space can be traced: "
			       "pt-capture -- PROGRAM",
			       why);
	argv[argc++] = "pt-capture";
	if (a->output) {
		argv[argc++] = "-o";
		argv[argc++] = (char *)a->output;
	}
	if (a->terms) {
		argv[argc++] = "-e";
		argv[argc++] = (char *)a->terms;
	}
	if (a->truth) {
		argv[argc++] = "--truth";
		argv[argc++] = (char *)a->truth;
	}
	if (a->max_steps) {
		argv[argc++] = "--max-steps";
		argv[argc++] = (char *)a->max_steps;
	}
	if (a->level) {
		argv[argc++] = "-z";
		argv[argc++] = (char *)a->level;
	}
	if (a->quiet)
		argv[argc++] = "-q";
	if (o->verbose)
		argv[argc++] = "-v";
	argv[argc++] = "--";
	while (o->program[n])
		n++;
	whole = calloc((size_t)argc + n + 1, sizeof *whole);
	if (!whole)
		return pt_fail_no_memory(e, NULL);
	memcpy(whole, argv, (size_t)argc * sizeof *argv);
	memcpy(whole + argc, o->program, n * sizeof *argv);
	status = cmd_step(argc + (int)n, whole);
	free(whole);
	return status;
}

/* ---- Processor Trace ---------------------------------------------------------------------------------- */

static int tell(const struct arguments *a, const struct hw_result *r)
{
	bool gaps = r->losses.truncated || r->losses.partial || r->losses.records;

	if (!a->quiet) {
		if (r->have_status)
			fprintf(stderr, "pt-capture: %s ended with status %d\n", a->o.program[0], r->status);
		if (a->group.sample_bytes)
			fprintf(stderr,
				"pt-capture: %" PRIu64 " samples, %" PRIu64 " of them without a trace\n",
				r->samples, r->empty_samples);
		if (a->o.snapshot)
			fprintf(stderr, "pt-capture: %u snapshots\n", r->snapshots);
		if (a->o.vms && a->o.vms->count)
			fprintf(stderr, "pt-capture: %zu VMs, %zu TSC offsets from KVM's debugfs\n",
				a->o.vms->count, r->clocks);
		fprintf(stderr, "pt-capture: %.1f MB of trace, container of %.1f MB, %u buffers\n",
			(double)r->aux_bytes / 1e6, (double)r->container_bytes / 1e6, r->rings);
		if (r->missing_images)
			fprintf(stderr,
				"pt-capture: the code of %" PRIu64
				" mappings could not be read; the first: %s\n",
				r->missing_images, r->missing_why);
	}
	if (gaps)
		fprintf(stderr,
			"pt-capture: data was lost: %" PRIu64
			" times AUX data (the buffer was full: -m ,SIZE makes it "
			"bigger), %" PRIu64 " pieces with gaps, %" PRIu64 " sideband records (-m SIZE)\n",
			r->losses.truncated, r->losses.partial, r->losses.records);
	return gaps ? 3 : 0;
}

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
		fputs("pt-capture: no VM is to be seen here; as root, all are\n", stderr);
	vm_free(&vms);
	return fflush(stdout) ? pt_fail_errno(e, "cannot write the list") : 0;
}

/* --vm's VMs, or with -a all that there are: their pids, and what tells of exits and clocks. */
static int add_vms(struct arguments *a, struct pt_error *e)
{
	static const char *const tracepoints[] = {"kvm:kvm_entry", "kvm:kvm_exit",
						  "kvm:kvm_write_tsc_offset"};
	struct hw_options *o = &a->o;

	if (vm_find_all(&a->vms, "", e) || (a->vm && vm_choose(&a->vms, a->vm, e)))
		return -1;
	for (size_t i = 0; a->vm && !o->system_wide && i < a->vms.count; i++)
		if (hw_list_add(&o->pids, a->vms.at[i].pid, e))
			return -1;
	o->vms = &a->vms;
	for (size_t i = 0; a->vms.count && i < sizeof tracepoints / sizeof *tracepoints; i++)
		if (add_tracepoint(o, tracepoints[i], e))
			return -1;
	return 0;
}

/* The tracepoints that tell when to take a snapshot. What was asked for by name has to be there; only what tells of VMs
 * unasked may be missing. */
static int add_trigger(struct arguments *a, struct pt_error *e)
{
	struct perf_event_attr attr;

	if (a->trigger.kind == HW_TRIGGER_TRACEPOINT && add_tracepoint(&a->o, a->trigger.tracepoint, e))
		return -1;
	if (a->trigger.kind == HW_TRIGGER_VMEXIT &&
	    (add_tracepoint(&a->o, "kvm:kvm_entry", e) || add_tracepoint(&a->o, "kvm:kvm_exit", e)))
		return -1;
	for (size_t i = 0; i < a->o.tracepoint_count; i++)
		if (hw_event_named(&attr, a->o.tracepoints[i], e))
			return -1;
	return 0;
}

/* Whose kernels the files are. */
static int resolve_kernels(struct arguments *a, struct pt_error *e)
{
	for (size_t i = 0; i < a->kernels.count; i++) {
		bool known = false;

		for (size_t v = 0; v < a->vms.count; v++)
			known |= a->vms.at[v].pid == a->kernels.at[i].pid;
		if (a->kernels.at[i].pid && !known)
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
				       "process %d, whose guest's kernel is given, is no VM of this capture",
				       a->kernels.at[i].pid);
		if (!a->kernels.at[i].pid && a->vms.count != 1)
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
				       "there are %zu VMs: say whose kernel it is, as --guest-kcore PID:FILE",
				       a->vms.count);
	}
	return a->kernels.count && a->vms.count == 1 ? guest_kernels_resolve(&a->kernels, a->vms.at[0].pid, e)
						     : 0;
}

static int capture(struct arguments *a, const struct hw_pmu *pmu, struct pt_error *e)
{
	struct sigaction act = {.sa_handler = on_signal};
	struct hw_result result;
	struct output out = {0};

	a->o.config = pmu ? hw_pmu_default(pmu) : 0;
	a->o.group = a->group.at;
	a->o.group_count = a->group.count;
	a->o.start_paused = a->group.start_paused;
	/* A sample decodes from its first PSB on: as perf, as many of them as can be. */
	if (a->group.sample_bytes && pmu && pmu->psb_cyc &&
	    hw_pmu_terms(pmu, "psb_period=0", &a->o.config, &a->o.levels, e))
		return -1;
	if (a->terms && hw_pmu_terms(pmu, a->terms, &a->o.config, &a->o.levels, e))
		return -1;
	if (a->truth || a->max_steps)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--truth and --max-steps are for --engine step");
	if (a->o.filter && (!pmu || !pmu->num_address_ranges))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "--filter: this CPU's Processor Trace has no address filters "
			       "(" HW_SYSFS "/caps/num_address_ranges)");
	if (a->o.filter) {
		a->filter = hw_filter_resolve(a->o.filter, "/proc/kallsyms", e);
		if (!a->filter)
			return -1;
		a->o.filter = a->filter;
		if (a->o.verbose)
			fprintf(stderr, "pt-capture: filter: %s\n", a->filter);
	}
	if (add_trigger(a, e) || ((a->vm || (pmu && a->o.system_wide)) && add_vms(a, e)))
		return -1;
	if (resolve_kernels(a, e))
		return -1;
	if (output_open_capture(&out, a->output, "a container", e) < 0)
		return -1;
	a->o.stdout_to_stderr = out.fd == STDOUT_FILENO;
	a->o.stop = &stop;
	a->o.stop_signal = &stop_signal;
	a->o.want_snapshot = &want_snapshot;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	act.sa_handler = on_usr2;
	sigaction(SIGUSR2, &act, NULL);
	act.sa_handler = on_child;
	act.sa_flags = SA_RESTART; /* but poll() */
	sigaction(SIGCHLD, &act, NULL);
	if (hw_capture(&a->o, pmu, out.fd, a->quiet ? no_notice : notice, &result, e)) {
		hw_capabilities_output();
		output_abort(&out);
		return -1;
	}
	hw_capabilities_output();
	if (output_commit(&out, e))
		return -1;
	return tell(a, &result);
}

int cmd_capture(int argc, char **argv)
{
	struct arguments a = {.o.level = 1, .control = {.fd = -1, .ack = -1}};
	struct pt_error e = {0};
	struct hw_pmu pmu;
	char *terms = NULL;
	int r = parse(argc, argv, &a, &e);

	if (r > 0) {
		r = 0;
		goto done; /* help was asked for */
	}
	if (r == 0 && a.terms) {
		terms = malloc(strlen(a.terms) + 1);
		r = terms ? hw_group_terms(&a.group, a.terms, terms, &e) : pt_fail_no_memory(&e, NULL);
		a.terms = terms;
	}
	if (r == 0)
		r = check(&a, &e);
	if (r == 0)
		r = hw_group_finish(&a.group, &e);
	if (r == 0 && a.vm && !strcmp(a.vm, "list")) {
		r = list_vms(&e);
	} else if (r == 0) {
		if (a.o.sideband_only)
			r = capture(&a, NULL, &e);
		else if (a.engine && !strcmp(a.engine, "step"))
			r = step_instead(&a, "--engine step", &e);
		else if (hw_pmu_read(&pmu, HW_SYSFS, &e) == 0)
			r = capture(&a, &pmu, &e);
		else if (a.engine && !strcmp(a.engine, "perf"))
			r = -1;
		else {
			struct pt_error why = e;

			e = (struct pt_error){0};
			r = step_instead(&a, why.message, &e);
		}
	}
done:
	free(terms);
	free(a.filter);
	free(a.o.pids.at);
	free(a.o.tids.at);
	free(a.o.cpus.at);
	free(a.o.tracepoints);
	vm_free(&a.vms);
	hw_control_close(&a.control);
	return r < 0 ? command_failed(&e) : r;
}
