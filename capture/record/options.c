/* options.c - see options.h. */
#include "capture/record/options.h"
#include "capture/record/cgroup.h"
#include "capture/record/proc.h"
#include "schema/array.h"
#include "schema/options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECONDS_MAX 1e9

/* ---- Arguments of options ---- */

/*
 * "512K", "16M", "2G", "8192B", or pages of 4 KB, as perf has it; rounded up to a power of two of at least
 * two pages.
 */
static int size_of(const char *option, const char *text, size_t n, uint64_t *ret, struct pt_error *e)
{
	static const char units[] = "BbKkMmGg";
	const char *unit;
	char *end;
	unsigned long long v = strtoull(text, &end, 10), size = 8192;
	unsigned shift = 12;

	if (end < text + n && (unit = strchr(units, *end))) {
		shift = 10 * (unsigned)((unit - units) / 2);
		end++;
	}
	if (end != text + n || text[0] < '0' || text[0] > '9' || v == 0 || v > (1ull << 36 >> shift))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "%s: '%.*s' is not a size like 512K or 16M, or a number of pages", option,
			       (int)n, text);
	while (size < v << shift)
		size *= 2;
	*ret = size;
	return 0;
}

static int set_buffers(void *arg, const char *text, struct pt_error *e)
{
	struct hw_event_choice *events = &((struct hw_arguments *)arg)->o.events;
	const char *comma = strchr(text, ',');
	size_t n = comma ? (size_t)(comma - text) : strlen(text);

	if (n && size_of("-m", text, n, &events->data_bytes, e))
		return -1;
	return comma ? size_of("-m", comma + 1, strlen(comma + 1), &events->aux_bytes, e) : 0;
}

/* Processes or threads: 0 is none of them. */
static int add_ids(struct hw_list *l, const char *text, const char *option, struct pt_error *e)
{
	if (hw_list_parse(l, text, option, e))
		return -1;
	if (hw_list_has(l, 0))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "%s %s: there is no process 0; the whole machine is -a", option, text);
	return 0;
}

static int set_pids(void *arg, const char *text, struct pt_error *e)
{
	return add_ids(&((struct hw_arguments *)arg)->o.target.pids, text, "-p", e);
}

static int set_tids(void *arg, const char *text, struct pt_error *e)
{
	return add_ids(&((struct hw_arguments *)arg)->o.target.tids, text, "-t", e);
}

static int set_cpus(void *arg, const char *text, struct pt_error *e)
{
	return hw_list_parse(&((struct hw_arguments *)arg)->o.target.cpus, text, "-C", e);
}

static int set_affinity(void *arg, const char *text, struct pt_error *e)
{
	return hw_list_parse(&((struct hw_arguments *)arg)->o.affinity, text, "--affinity", e);
}

static int set_realtime(void *arg, const char *text, struct pt_error *e)
{
	long long priority;

	if (pt_option_number("--realtime", text, 1, 99, &priority, e))
		return -1;
	((struct hw_arguments *)arg)->o.realtime = (int)priority;
	return 0;
}

static int set_user(void *arg, const char *text, struct pt_error *e)
{
	(void)text, (void)e;
	((struct hw_arguments *)arg)->o.events.levels |= HW_USER;
	return 0;
}

static int set_kernel(void *arg, const char *text, struct pt_error *e)
{
	(void)text, (void)e;
	((struct hw_arguments *)arg)->o.events.levels |= HW_KERNEL;
	return 0;
}

static int set_uid(void *arg, const char *text, struct pt_error *e)
{
	return hw_proc_of_user(&((struct hw_arguments *)arg)->o.target.pids, text, e);
}

static int set_delay(void *arg, const char *text, struct pt_error *e)
{
	struct hw_steering *s = &((struct hw_arguments *)arg)->o.steering;
	long long ms;

	if (pt_option_number("-D", text, -1, 1000000000, &ms, e))
		return -1;
	s->delay_ms = ms;
	return 0;
}

/* Bytes, or with a unit. */
static int set_max_size(void *arg, const char *text, struct pt_error *e)
{
	uint64_t *to = &((struct hw_arguments *)arg)->o.steering.max_bytes;
	static const char units[] = "BbKkMmGg";
	const char *unit;
	char *end;
	unsigned long long v = strtoull(text, &end, 10);
	unsigned shift = 0;

	if (*end && (unit = strchr(units, *end))) {
		shift = 10 * (unsigned)((unit - units) / 2);
		end++;
	}
	if (*end || text[0] < '0' || text[0] > '9' || !v || v > UINT64_MAX >> shift)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--max-size %s: not a size like 500M or 2G",
			       text);
	*to = v << shift;
	return 0;
}

static int set_cgroup(void *arg, const char *text, struct pt_error *e)
{
	struct hw_target *t = &((struct hw_arguments *)arg)->o.target;
	int n;

	if (hw_cgroup_name(text, &n, e))
		return -1;
	free(t->cgroup);
	t->cgroup = strndup(text, (size_t)n);
	return t->cgroup ? 0 : pt_fail_no_memory(e, NULL);
}

static int set_switch_output(void *arg, const char *text, struct pt_error *e)
{
	return hw_rotation_parse(&((struct hw_arguments *)arg)->rotation, text, e);
}

static int set_max_files(void *arg, const char *text, struct pt_error *e)
{
	long long n;

	if (pt_option_number("--switch-max-files", text, 1, 1000000, &n, e))
		return -1;
	((struct hw_arguments *)arg)->rotation.max_files = (unsigned)n;
	return 0;
}

static int add_events(void *arg, const char *text, struct pt_error *e)
{
	return event_list_add(&((struct hw_arguments *)arg)->events, text, e);
}

/* Several filters are one, as the kernel takes it. */
static int add_filter(void *arg, const char *text, struct pt_error *e)
{
	struct hw_arguments *a = arg;
	char *joined;

	if (asprintf(&joined, "%s%s%s", a->filter ? a->filter : "", a->filter ? "," : "", text) < 0)
		return pt_fail_no_memory(e, NULL);
	free(a->filter);
	a->filter = joined;
	return 0;
}

static int set_seconds(void *arg, const char *text, struct pt_error *e)
{
	double *seconds = &((struct hw_arguments *)arg)->o.steering.seconds;
	char *end;

	*seconds = strtod(text, &end);
	if (*end || end == text || !(*seconds > 0) || *seconds > SECONDS_MAX)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "-d %s: not a number of seconds", text);
	return 0;
}

/* "[SIZE][e]", as perf's: at least SIZE of each buffer; e, a snapshot at the end, is always done. */
static int set_snapshot(void *arg, const char *text, struct pt_error *e)
{
	struct hw_arguments *a = arg;
	size_t n = text ? strlen(text) : 0;

	a->o.events.snapshot = true;
	if (n && text[n - 1] == 'e')
		n--;
	return n ? size_of("-S", text, n, &a->snapshot_bytes, e) : 0;
}

/* ---- perf's options for what a capture always has, or cannot have ---- */

static int set_nothing(void *arg, const char *text, struct pt_error *e)
{
	(void)arg, (void)text, (void)e;
	return 0;
}

static int refuse_overwrite(void *arg, const char *text, struct pt_error *e)
{
	(void)arg, (void)text;
	return pt_fail(
	    e, PT_ERR_USAGE, PT_NO_OFFSET,
	    "--overwrite: records of tasks and mappings are needed from the beginning on; -S keeps only the "
	    "newest of the trace");
}

static int refuse_no_bpf(void *arg, const char *text, struct pt_error *e)
{
	(void)arg, (void)text;
	return pt_fail(
	    e, PT_ERR_USAGE, PT_NO_OFFSET,
	    "--no-bpf-event: branches in BPF programs could not be decoded without their code; leave it out");
}

static int refuse_call_graph(void *arg, const char *text, struct pt_error *e)
{
	(void)arg, (void)text;
	return pt_fail(
	    e, PT_ERR_USAGE, PT_NO_OFFSET,
	    "-g, --call-graph: the trace has every call, no stack is sampled; see pt-query DB call-tree");
}

static int set_level(void *arg, const char *text, struct pt_error *e)
{
	long long level;

	if (pt_option_number("-z", text, -7, 19, &level, e))
		return -1;
	((struct hw_arguments *)arg)->o.level = (int)level;
	return 0;
}

/* perf's, whose number may be missing. */
static int set_compression(void *arg, const char *text, struct pt_error *e)
{
	return text ? set_level(arg, text, e) : 0;
}

/* ---- Options of samples, snapshots, pause and resume ---- */

static int set_aux_sample(void *arg, const char *text, struct pt_error *e)
{
	return hw_group_aux_sample(&((struct hw_arguments *)arg)->group, text, e);
}

static int set_sample_event(void *arg, const char *text, struct pt_error *e)
{
	return hw_group_sample_event(&((struct hw_arguments *)arg)->group, text, e);
}

static int set_frequency(void *arg, const char *text, struct pt_error *e)
{
	return hw_group_frequency(&((struct hw_arguments *)arg)->group, text, e);
}

static int set_period(void *arg, const char *text, struct pt_error *e)
{
	return hw_group_period(&((struct hw_arguments *)arg)->group, text, e);
}

static int add_event_name(struct hw_tracepoints *t, const char *name, struct pt_error *e)
{
	for (size_t i = 0; i < t->count; i++)
		if (!strcmp(t->at[i], name))
			return 0;
	if (pt_array_grow(&t->at, t->count, &t->room, e))
		return -1;
	t->at[t->count++] = name;
	return 0;
}

int hw_options_tracepoint(struct hw_options *o, const char *name, struct pt_error *e)
{
	return add_event_name(&o->events.tracepoints, name, e);
}

int hw_options_breakpoint(struct hw_options *o, const char *name, struct pt_error *e)
{
	return add_event_name(&o->events.breakpoints, name, e);
}

static int set_tracepoint(void *arg, const char *text, struct pt_error *e)
{
	struct hw_arguments *a = arg;
	int taken;

	if (hw_group_tracepoint(&a->group, text, &taken, e))
		return -1;
	if (taken)
		return 0;
	if (!strchr(text, ':'))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--tracepoint %s: not SYSTEM:NAME, as kvm:kvm_exit", text);
	return hw_options_tracepoint(&a->o, text, e);
}

static int set_trigger(void *arg, const char *text, struct pt_error *e)
{
	struct hw_arguments *a = arg;

	if (hw_trigger_parse(&a->trigger, text, e))
		return -1;
	a->o.steering.trigger = &a->trigger;
	a->o.events.snapshot = true;
	return 0;
}

static int set_trigger_count(void *arg, const char *text, struct pt_error *e)
{
	long long n;

	if (pt_option_number("--trigger-count", text, 0, 1000000, &n, e))
		return -1;
	((struct hw_arguments *)arg)->trigger_count = n;
	return 0;
}

static int set_control(void *arg, const char *text, struct pt_error *e)
{
	struct hw_arguments *a = arg;

	hw_control_close(&a->control);
	if (hw_control_open(&a->control, text, e))
		return -1;
	a->o.steering.control = &a->control;
	return 0;
}

static int set_ready_fd(void *arg, const char *text, struct pt_error *e)
{
	return hw_ready_open(text, &((struct hw_arguments *)arg)->ready_fd, e);
}

/* ---- Options of guests ---- */

static int add_guest_file(struct hw_arguments *a, enum guest_kernel_file which, const char *text,
			  struct pt_error *e)
{
	if (guest_kernels_add(&a->kernels, which, text, e))
		return -1;
	a->o.guests.kernels = &a->kernels;
	return 0;
}

static int set_guest_kcore(void *arg, const char *text, struct pt_error *e)
{
	return add_guest_file(arg, GUEST_KCORE, text, e);
}

static int set_guest_kallsyms(void *arg, const char *text, struct pt_error *e)
{
	return add_guest_file(arg, GUEST_KALLSYMS, text, e);
}

static int set_guest_root(void *arg, const char *text, struct pt_error *e)
{
	return add_guest_file(arg, GUEST_ROOT, text, e);
}

static int set_guest_image(void *arg, const char *text, struct pt_error *e)
{
	return add_guest_file(arg, GUEST_IMAGE, text, e);
}

/* ---- The table ---- */

#define FLAG(field) PT_OPTION_FLAG(struct hw_arguments, field)
#define TEXT(field) PT_OPTION_TEXT(struct hw_arguments, field)

static const struct pt_option options[] = {
    PT_OPTION_HEADING("What to trace (one of):"),
    PT_OPERAND("-- PROGRAM [ARGUMENTS]",
	       "a program, with all that it starts; with -a, -C, -p or -t: these, for as long as it runs"),
    {.name = "pid",
     .letter = 'p',
     .argument = "PIDS",
     .help = "processes that run, all their threads, and new ones",
     .set = set_pids},
    {.name = "tid", .letter = 't', .argument = "TIDS", .help = "threads", .set = set_tids},
    {.name = "uid",
     .letter = 'u',
     .argument = "USER",
     .help = "all processes that a user has now, by name or number",
     .set = set_uid},
    {.name = "all-cpus", .letter = 'a', .help = "the whole machine", FLAG(o.target.system_wide)},
    {.name = "cpu",
     .letter = 'C',
     .argument = "CPUS",
     .help = "whole CPUs; with -p, -t or --vm: on these CPUs only",
     .set = set_cpus},
    {.name = "cgroup",
     .letter = 'G',
     .argument = "NAME",
     .help =
	 "with -a or -C: the tasks of this control group only, and of those in it: system.slice/x.service",
     .set = set_cgroup},
    {.name = "vm",
     .argument = "PID|NAME|all",
     .help = "virtual machines, with KVM's tracepoints and the guests' clocks; `--vm list` lists them",
     TEXT(vm)},
    {.name = "sideband-only",
     .help = "no trace: tasks, mappings, code and kernel of a machine, a guest; see `merge`",
     FLAG(o.target.sideband_only)},
    PT_OPTION_HEADING("How:"),
    {.name = "event",
     .letter = 'e',
     .argument = "EVENTS",
     .help = "perf's terms of intel_pt: cyc,mtc_period=3,noretcomp,psb_period=3,...; intel_pt/cyc/u is user "
	     "space only, k the kernel only; tracepoints: kvm:kvm_exit, 'kvm:*'. May be repeated",
     .set = add_events},
    {.name = "all-user",
     .help = "user space only (default: user space and kernel, where permitted)",
     .set = set_user},
    {.name = "all-kernel", .letter = 'k', .help = "the kernel only", .set = set_kernel},
    {.name = "delay",
     .letter = 'D',
     .argument = "MS",
     .help = "begin to trace after so many milliseconds; -1: when --control says enable",
     .set = set_delay},
    {.name = "no-inherit",
     .letter = 'i',
     .help = "new threads and children are not traced",
     FLAG(o.target.no_inherit)},
    {.name = "duration",
     .letter = 'd',
     .argument = "SECONDS",
     .help = "stop after this time",
     .set = set_seconds},
    {.name = "per-thread",
     .help = "one buffer per thread, not per CPU; new threads are not followed",
     FLAG(o.target.per_thread)},
    {.name = "buffers",
     .letter = 'm',
     .argument = "RECORDS[,AUX]",
     .help = "sizes of each CPU's buffers: 512K,16M; numbers alone are pages of 4 KB, as perf has it",
     .set = set_buffers},
    {.name = "affinity",
     .argument = "CPUS",
     .help = "pt-capture itself runs on these CPUs only: 0-3,8",
     .set = set_affinity},
    {.name = "realtime",
     .letter = 'r',
     .argument = "PRIORITY",
     .help = "and before other programs (SCHED_FIFO, 1 to 99), as perf's",
     .set = set_realtime},
    {.name = "snapshot",
     .letter = 'S',
     .argument = "[=SIZE]",
     .help = "keep only the newest of each buffer, which has at least SIZE (-SSIZE, --snapshot=SIZE); "
	     "written on SIGUSR2, by "
	     "--control, and at the end",
     .set = set_snapshot},
    {.name = "trigger",
     .argument = "WHAT",
     .help =
	 "a snapshot when: call:FUNCTION, 'ret:FUNCTION>2ms' (it took longer), addr:0xADDRESS, of a process "
	 "(-p) or the kernel; 'vmexit>100us' (an exit from a guest takes longer); SYSTEM:NAME (a "
	 "tracepoint); exit (the program ends)",
     .set = set_trigger},
    {.name = "trigger-count",
     .argument = "N",
     .help = "end when the trigger took N snapshots; 0: not (default 1 for call, ret and addr, else 0)",
     .set = set_trigger_count},
    {.name = "control",
     .argument = "fifo:PATH[,ACK]",
     .help = "perf's, also fd:FD[,ACK]: snapshot, enable, disable, stop, ping",
     .set = set_control},
    {.name = "ready-fd",
     .argument = "FD",
     .help = "write a line to this descriptor, and close it, when recording has begun",
     .set = set_ready_fd},
    {.name = "tracepoint",
     .argument = "SYSTEM:NAME",
     .help = "record this one, too; may be repeated.\n"
	     "SYSTEM:NAME/aux-action=pause/ or resume, -e aux-action=start-paused: trace between them only "
	     "(Linux 6.13)",
     .set = set_tracepoint},
    {.name = "all-cgroups",
     .help =
	 "as perf's: which control group each thread is in that such an event finds (pt-query DB cgroups)",
     FLAG(o.events.cgroups)},
    {.name = "aux-sample",
     .argument = "[=SIZE]",
     .help = "no trace but SIZE bytes of it (4096; at most 60K) with each sample of an event",
     .set = set_aux_sample},
    {.name = "sample-event",
     .argument = "EVENT",
     .help = "which event: cycles (else cpu-clock), branches, page-faults, rHEX, SYSTEM:NAME...",
     .set = set_sample_event},
    {.name = "freq",
     .letter = 'F',
     .argument = "HZ",
     .help = "samples a second (4000)",
     .set = set_frequency},
    {.name = "count", .letter = 'c', .argument = "N", .help = "or a sample each N events", .set = set_period},
    {.name = "jit",
     .help =
	 "also the code that programs make while they run (JavaScript, Java, .NET, ...): their anonymous and "
	 "memfd memory is read again and again, which takes up to a tenth of a CPU",
     FLAG(o.jit)},
    {.name = "filter",
     .argument = "FILTER",
     .help = "trace these addresses only, as perf's: 'filter main @/bin/x', 'tracestop f @/bin/x', of the "
	     "kernel 'filter vfs_read'; or by numbers: 'filter 0xOFFSET/0xSIZE@/bin/x'. May be repeated",
     .set = add_filter},
    {.name = "guest-kcore",
     .argument = "[PID:]FILE",
     .help = "the kernel of a guest, as perf record's --kcore there has it; PID: the VM's process, where "
	     "there are several",
     .set = set_guest_kcore},
    {.name = "guest-kallsyms",
     .argument = "[PID:]FILE",
     .help = "its symbols, /proc/kallsyms there",
     .set = set_guest_kallsyms},
    {.name = "guest-root",
     .argument = "[PID:]DIR",
     .help = "the guest's root (sshfs -o direct_io): its kernel by proc/kcore and proc/kallsyms",
     .set = set_guest_root},
    {.name = "guest-image",
     .argument = "[PID:]FILE:ADDRESS",
     .help = "FILE is what the guest has in its memory at a (linear) address: firmware, a boot loader",
     .set = set_guest_image},
    {.name = "engine",
     .argument = "ENGINE",
     .help = "perf (Processor Trace), step (stepping), auto: step where PT is missing; single-step: an "
	     "instruction at a time",
     TEXT(engine)},
    PT_OPTION_HEADING("Output:"),
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .help = "write the container to FILE, not to standard output (then the program's own standard output is "
	     "written to standard error)",
     TEXT(output)},
    {.name = "level",
     .letter = 'z',
     .argument = "N",
     .help = "zstd level, -7 (fastest) to 19; default 1; less when buffers fill up",
     .set = set_level},
    {.name = "max-size",
     .argument = "SIZE",
     .help = "end when the container, or all of --switch-output, has so many bytes: 500M, 2G; what is in the "
	     "buffers then is still added",
     .set = set_max_size},
    {.name = "switch-output",
     .argument = "[=WHEN]",
     .help = "go on in another container, on SIGUSR2 and after each snapshot of --trigger (signal, the "
	     "default), by "
	     "size (100M; B, K, M, G) or time (30s; s, m, h, d): FILE.YYYYMMDDhhmmsscc, each of which "
	     "decodes alone",
     .set = set_switch_output},
    {.name = "switch-max-files", .argument = "N", .help = "keep the newest N of them", .set = set_max_files},
    {.name = "timestamp-filename",
     .help = "a name with the time also for a single one",
     FLAG(rotation.timestamp)},
    {.name = "no-exit-status",
     .help = "exit with 0 or 3 whatever the program's own status is",
     FLAG(no_exit_status)},
    {.name = "quiet", .letter = 'q', .help = "say nothing but errors", FLAG(o.quiet)},
    {.name = "verbose", .letter = 'v', .help = "say more", FLAG(o.verbose)},
    PT_OPTION_HEADING("perf record's, for what every capture has (they change nothing), or for what is "
		      "called otherwise here:"),
    {.name = "kcore", .help = "the kernel's code, as it runs", .set = set_nothing},
    {.name = "switch-events", .help = "context switches", .set = set_nothing},
    {.name = "timestamp", .letter = 'T', .help = "times of records", .set = set_nothing},
    {.name = "sample-cpu", .help = "their CPUs", .set = set_nothing},
    {.name = "sample-identifier", .help = "which event a record is of", .set = set_nothing},
    {.name = "buildid-all",
     .help = "the code and build ids of all files that are executed",
     .set = set_nothing},
    {.name = "buildid-mmap", .help = "these ids", .set = set_nothing},
    {.name = "no-buildid-cache", .letter = 'N', .help = "no copies in ~/.debug", .set = set_nothing},
    {.name = "no-buildid", .letter = 'B', .help = "no search for build ids after it", .set = set_nothing},
    {.name = "bpf-event", .help = "BPF programs and their code", .set = set_nothing},
    {.name = "namespaces", .help = "namespaces of tasks", .set = set_nothing},
    {.name = "raw-samples", .letter = 'R', .help = "fields of tracepoints", .set = set_nothing},
    {.name = "period", .letter = 'P', .help = "periods of samples", .set = set_nothing},
    {.name = "timestamp-boundary", .help = "when it begins and ends", .set = set_nothing},
    {.name = "exclude-perf", .help = "pt-decode leaves pt-capture out", .set = set_nothing},
    {.name = "tail-synthesize", .help = "what runs is known from the beginning on", .set = set_nothing},
    {.name = "proc-map-timeout",
     .argument = "MS",
     .help = "nothing is given up for time",
     .set = set_nothing},
    {.name = "num-thread-synthesize",
     .argument = "N",
     .help = "threads that look at /proc",
     .set = set_nothing},
    {.name = "threads", .argument = "[=SPEC]", .help = "threads that read", .set = set_nothing},
    {.name = "aio", .argument = "[=N]", .help = "writing while reading", .set = set_nothing},
    {.name = "mmap-flush", .argument = "N", .help = "least bytes that are read at once", .set = set_nothing},
    {.name = "dry-run", .help = "check the options, and end", FLAG(dry_run)},
    {.name = "mmap-pages", .argument = "RECORDS[,AUX]", .help = "-m", .set = set_buffers},
    {.name = "compression-level", .argument = "[=N]", .help = "-z", .set = set_compression},
    {.name = "overwrite", .help = "refused: -S is what keeps the newest", .set = refuse_overwrite},
    {.name = "no-bpf-event", .help = "refused: their code is needed", .set = refuse_no_bpf},
    {.name = "call-graph",
     .letter = 'g',
     .argument = "[=MODE]",
     .help = "refused: the trace has every call",
     .set = refuse_call_graph},
    PT_OPTION_HEADING("Single-stepping:"),
    {.name = "truth",
     .argument = "FILE",
     .help = "also write every taken branch: tid, from, to",
     TEXT(truth)},
    {.name = "max-steps",
     .argument = "N",
     .help = "trace N instructions, then let the program run on untraced",
     TEXT(max_steps)},
    PT_OPTION_END};

void hw_arguments_help(FILE *to)
{
	fputc('\n', to);
	pt_options_print(options, to);
	fputs(
	    "\n"
	    "Ctrl-C ends a capture and keeps it; the program gets the signal first. One that has not ended "
	    "two\n"
	    "seconds later, or by -d's time, runs on and is no longer recorded.\n"
	    "Exit status: the program's own, 128 + its signal when one ended it; else 0 captured; 1 failed;\n"
	    "2 wrong usage; 3 captured, but the kernel lost data (how much is printed, where is in the\n"
	    "container).\n",
	    to);
}

/* ---- All of them ---- */

static int wrong(struct pt_error *e, const char *what)
{
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s", what);
}

static int check_target(const struct hw_arguments *a, struct pt_error *e)
{
	const struct hw_target *t = &a->o.target;
	bool tasks = t->pids.count || t->tids.count;

	if (t->system_wide && tasks)
		return wrong(e, "-a and -p or -t: choose one");
	if (!t->system_wide && !tasks && !t->program && !a->vm)
		return wrong(e, "nothing to trace: pt-capture [options] -- PROGRAM, or -p, -t, -a, -C");
	if (t->cgroup && (!t->system_wide || t->sideband_only))
		return wrong(e, "--cgroup is of whole CPUs: with -a or -C");
	if (t->per_thread && (t->system_wide || t->cpus.count))
		return wrong(e, "--per-thread has no CPUs: without -a and -C");
	return 0;
}

static int check_rotation(const struct hw_arguments *a, struct pt_error *e)
{
	const struct hw_rotation *r = &a->rotation;

	if (hw_rotation_names(r) && (!a->output || !strcmp(a->output, "-")))
		return wrong(e, "--switch-output and --timestamp-filename write files: name one with -o");
	if (r->max_files && r->by == HW_ROTATE_NEVER)
		return wrong(e, "--switch-max-files counts what --switch-output writes: give that, too");
	if (r->by != HW_ROTATE_NEVER && a->o.jit)
		return wrong(e, "--switch-output and --jit: code that was made before a container begins "
				"would be missing "
				"from it; choose one");
	return 0;
}

/* Options that do not fit together. */
static int check(const struct hw_arguments *a, struct pt_error *e)
{
	const struct hw_options *o = &a->o;
	bool sideband_only = o->target.sideband_only;

	if (check_target(a, e))
		return -1;
	if (sideband_only && (a->terms || a->vm || o->events.levels))
		return wrong(e, "--sideband-only traces nothing: without -e, --all-user, -k and --vm");
	if (sideband_only && a->filter)
		return wrong(e, "--sideband-only traces nothing to be filtered");
	if (o->guests.kernels && !a->vm && (!o->target.system_wide || sideband_only))
		return wrong(e,
			     "--guest-kcore, --guest-kallsyms, --guest-root and --guest-image are for VMs: "
			     "with --vm or -a");
	if (a->trigger_count >= 0 && !a->trigger.kind)
		return wrong(e, "--trigger-count counts what --trigger takes: give one");
	if (check_rotation(a, e))
		return -1;
	if (a->group.sample_bytes && o->events.snapshot)
		return wrong(e, "--aux-sample and snapshots: both read the buffer; choose one");
	if (sideband_only && (a->group.sample_bytes || a->group.count))
		return wrong(e, "--sideband-only traces nothing to be sampled, paused or resumed");
	if (a->engine && strcmp(a->engine, "auto") && strcmp(a->engine, "perf") &&
	    strcmp(a->engine, "step") && strcmp(a->engine, "single-step"))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--engine %s: it can be auto, perf, step or single-step", a->engine);
	return 0;
}

/* -e's other events; and takes aux-action out of its terms. */
static int split_terms(struct hw_arguments *a, struct pt_error *e)
{
	for (size_t i = 0; i < a->events.sampler_count; i++)
		if (hw_group_event(&a->group, a->events.samplers[i], e))
			return -1;
	if (a->events.dummy && !a->events.terms)
		a->o.target.sideband_only = true;
	for (size_t i = 0; i < a->events.name_count; i++)
		if (set_tracepoint(a, a->events.names[i], e))
			return -1;
	if (!a->events.terms)
		return 0;
	a->terms = malloc(strlen(a->events.terms) + 1);
	return a->terms ? hw_group_terms(&a->group, a->events.terms, a->terms, e)
			: pt_fail_no_memory(e, NULL);
}

int hw_arguments_parse(struct hw_arguments *a, int argc, char **argv, struct pt_error *e)
{
	const struct pt_command_line line = {
	    .program = "pt-capture", .options = options, .stop_at_operand = true};
	struct hw_target *t = &a->o.target;
	int operand, r;

	*a = (struct hw_arguments){
	    .o.level = 1, .trigger_count = -1, .control = {.fd = -1, .ack = -1}, .ready_fd = -1};
	a->o.steering.ready_fd = &a->ready_fd;
	a->o.events.group = &a->group;
	r = pt_options_parse(&line, argc, argv, a, &operand, e);
	if (r)
		return r;
	t->program = operand < argc ? argv + operand : NULL;
	if (split_terms(a, e))
		return -1;
	if (!t->pids.count && !t->tids.count && ((t->cpus.count && !a->vm) || t->sideband_only))
		t->system_wide = true;
	if (a->o.events.snapshot && !a->o.events.aux_bytes)
		a->o.events.aux_bytes = a->snapshot_bytes;
	if (check(a, e))
		return -1;
	if (a->trigger_count >= 0)
		a->trigger.max = (unsigned)a->trigger_count;
	return hw_group_finish(&a->group, e);
}

void hw_arguments_deinit(struct hw_arguments *a)
{
	hw_list_deinit(&a->o.target.pids);
	hw_list_deinit(&a->o.target.tids);
	hw_list_deinit(&a->o.target.cpus);
	hw_list_deinit(&a->o.affinity);
	free(a->o.target.cgroup);
	free(a->o.events.tracepoints.at);
	free(a->o.events.breakpoints.at);
	free(a->terms);
	free(a->filter);
	event_list_deinit(&a->events);
	hw_control_close(&a->control);
	hw_rotation_deinit(&a->rotation);
	if (a->ready_fd >= 0)
		close(a->ready_fd);
}
