/*
 * test_hw.c - the PMU's terms against what a CPU can do, snapshots of an overwritten ring, triggers,
 * the control FIFO, the descriptor of --ready-fd, whether a thread has ended, check's answers for
 * machines that are described by files.
 */
#include "capture/record/check.h"
#include "capture/record/control.h"
#include "capture/record/pmu.h"
#include "capture/record/proc.h"
#include "capture/record/snapshot.h"
#include "capture/record/trigger.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- A machine in files ------------------------------------------------------------------------------- */

static char root[64];

static void write_file(const char *path, const char *text)
{
	char whole[512];
	FILE *f;

	snprintf(whole, sizeof whole, "%s%s", root, path);
	for (char *p = whole + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(whole, 0700);
		*p = '/';
	}
	f = fopen(whole, "w");
	if (!f || fputs(text, f) < 0 || fclose(f)) {
		perror(whole);
		exit(1);
	}
}

static void describe_icelake(void)
{
	static const char *const files[][2] = {
	    {"type", "8\n"},
	    {"max_nonturbo_ratio", "15\n"},
	    {"tsc_art_ratio", "78:2\n"},
	    {"format/pt", "config:0\n"},
	    {"format/cyc", "config:1\n"},
	    {"format/pwr_evt", "config:4\n"},
	    {"format/ptw", "config:12\n"},
	    {"format/mtc", "config:9\n"},
	    {"format/tsc", "config:10\n"},
	    {"format/noretcomp", "config:11\n"},
	    {"format/branch", "config:13\n"},
	    {"format/mtc_period", "config:14-17\n"},
	    {"format/cyc_thresh", "config:19-22\n"},
	    {"format/psb_period", "config:24-27\n"},
	    {"format/event", "config:31\n"},
	    {"format/odd", "config1:0-3\n"},
	    {"caps/psb_cyc", "1\n"},
	    {"caps/mtc", "1\n"},
	    {"caps/psb_periods", "3f\n"},
	    {"caps/cycle_thresholds", "3f\n"},
	    {"caps/mtc_periods", "249\n"},
	    {"caps/ptwrite", "1\n"},
	    {"caps/power_event_trace", "0\n"},
	};

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char path[256];

		snprintf(path, sizeof path, HW_SYSFS "/%s", files[i][0]);
		write_file(path, files[i][1]);
	}
}

static void refused(const struct hw_pmu *pmu, const char *terms, const char *message)
{
	uint64_t config = hw_pmu_default(pmu), before = config;
	struct pt_error e = {0};
	unsigned levels = 0;
	char what[256];

	snprintf(what, sizeof what, "-e %s is refused", terms);
	check(hw_pmu_terms(pmu, terms, &config, &levels, &e) == -1 && e.kind == PT_ERR_USAGE, what);
	snprintf(what, sizeof what, "-e %s: '%.150s' has '%s'", terms, e.message, message);
	check(strstr(e.message, message) != NULL, what);
	check(config == before && levels == 0, "what is refused changes nothing");
}

static void test_pmu(void)
{
	struct pt_error e = {0};
	unsigned levels = 0;
	struct hw_pmu pmu;
	uint64_t config;
	char dir[256];

	snprintf(dir, sizeof dir, "%s" HW_SYSFS, root);
	check(hw_pmu_read(&pmu, "/nowhere", &e) == -1 && e.kind == PT_ERR_REFUSED, "no PMU");
	describe_icelake();
	check(hw_pmu_read(&pmu, dir, &e) == 0, "the PMU is read");
	check(pmu.type == 8 && pmu.mtc_periods == 0x249 && pmu.tsc_art_ratio_num == 78, "its values");
	config = hw_pmu_default(&pmu);
	check(config == 0x300e601, "perf's default");
	check(hw_pmu_terms(&pmu, "intel_pt/cyc,mtc_period=9,psb_period=0/uk", &config, &levels, &e) == 0,
	      "terms");
	check(config == 0x26603 && levels == (HW_USER | HW_KERNEL), "and what they make");
	check(hw_pmu_get(&pmu, config, "mtc_period") == 9 && hw_pmu_get(&pmu, config, "none") == 0,
	      "asked back");
	refused(&pmu, "psb_period=15", "psb_period=15: this CPU allows 0-5");
	refused(&pmu, "cyc,cyc_thresh=7", "cyc_thresh=7: this CPU allows 0-5");
	refused(&pmu, "mtc_period=1", "mtc_period=1: this CPU allows 0,3,6,9");
	refused(&pmu, "mtc=0,mtc_period=1", "mtc_period=1: this CPU allows 0,3,6,9");
	refused(&pmu, "mtc_period=16", "can be 0 to 15");
	refused(&pmu, "pwr_evt", "no power events");
	refused(&pmu, "event", "no Event Trace");
	refused(&pmu, "pt=0", "nothing would be traced");
	refused(&pmu, "cycles", "no term 'cycles'; it has: branch, cyc,");
	refused(&pmu, "odd", "no term 'odd'");
	refused(&pmu, "mtc_period=", "not NAME=NUMBER");
	refused(&pmu, "mtc_period=3x", "not NAME=NUMBER");
	refused(&pmu, "mtc_period=-1", "not NAME=NUMBER");
	refused(&pmu, "intel_pt/cyc/h", "not 'h'");
	pmu.mtc = 0;
	refused(&pmu, "mtc=0,mtc_period=3", "mtc_period: this CPU has no MTC packets");
}

/* ---- Snapshots ---------------------------------------------------------------------------------------- */

#define AUX 16384u

static uint8_t aux[AUX];
static struct perf_event_mmap_page page;
static uint64_t written;

/* No byte is 0, and no lap is as another. */
static uint8_t made(uint64_t at)
{
	at = (at + 1) * 0x9E3779B97F4A7C15u;
	return (uint8_t)((at ^ at >> 29) * 0xBF58476D1CE4E5B9u >> 40) | 1;
}

static void write_aux(uint64_t n)
{
	for (; n; n--, written++)
		aux[written % AUX] = made(written);
	page.aux_head = written % AUX;
}

static bool holds(struct hw_snapshot_piece p, uint64_t from)
{
	for (uint64_t i = 0; i < p.bytes; i++, from++)
		if (aux[(p.from + i) % AUX] != made(from))
			return false;
	return true;
}

static void test_snapshot(void)
{
	struct hw_ring r = {.page = &page, .aux = aux, .aux_size = AUX};
	struct hw_snapshot s = {0};
	struct hw_snapshot_piece p;

	p = hw_snapshot_take(&s, &r);
	check(p.bytes == 0, "nothing was written");
	write_aux(100);
	p = hw_snapshot_take(&s, &r);
	check(p.offset == 0 && p.bytes == 100 && !p.gap && holds(p, 0), "the first bytes");
	p = hw_snapshot_take(&s, &r);
	check(p.bytes == 0 && p.offset == 100 && !p.gap, "nothing new");
	write_aux(9000);
	p = hw_snapshot_take(&s, &r);
	check(p.offset == 100 && p.bytes == 9000 && !p.gap && holds(p, 100), "what is new");
	write_aux(12000);
	p = hw_snapshot_take(&s, &r);
	check(p.offset == 9100 && p.bytes == 12000 && !p.gap && holds(p, 9100), "around the end");
	write_aux(3 * AUX + 5);
	p = hw_snapshot_take(&s, &r);
	check(p.gap && p.bytes == AUX && p.offset > 21100 && holds(p, written - AUX),
	      "overwritten: a gap, then all");
	write_aux(7);
	p = hw_snapshot_take(&s, &r);
	check(!p.gap && p.bytes == 7 && holds(p, written - 7), "and on from there");

	memset(&s, 0, sizeof s);
	p = hw_snapshot_take(&s, &r);
	check(p.bytes == AUX && p.offset == 0 && holds(p, written - AUX), "the first, of a full buffer");
}

/*
 * Any lengths between snapshots: all that is still there, no byte of it twice, and a gap where some is gone.
 */
static void test_snapshots(uint64_t seed)
{
	struct hw_ring r = {.page = &page, .aux = aux, .aux_size = AUX};
	struct hw_snapshot s = {0};
	uint64_t before, end = 0, n, random = seed * 0x9E3779B97F4A7C15u + 1;
	bool ok = true;

	memset(aux, 0, sizeof aux);
	page.aux_head = written = before = 0;
	for (unsigned i = 0; i < 40 && ok; i++) {
		struct hw_snapshot_piece p;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		/* Little, about a lap, or several. */
		n = random >> 8 & 3;
		n = n == 0 ? random % 300 : n == 1 ? AUX - 5000 + random % 10000 : random % (AUX * 5 / 2);
		write_aux(n);
		p = hw_snapshot_take(&s, &r);
		ok &= p.gap ? p.offset > end : p.offset == end;
		ok &= before == 0 ? p.bytes == (n < AUX ? n : AUX) && !p.gap
		      : p.gap	  ? n > AUX - HW_SNAPSHOT_REF && p.bytes == AUX
				  : n <= AUX && p.bytes % AUX == n % AUX;
		ok &= holds(p, written - p.bytes);
		end = p.offset + p.bytes;
		before = written;
	}
	check(ok, "snapshots at random");
}

/* ---- Triggers and control ----------------------------------------------------------------------------- */

static void test_trigger(void)
{
	static struct hw_trigger t;
	struct pt_error e = {0};

	check(hw_trigger_parse(&t, "vmexit>1.5us", &e) == 0 && t.longer_than_ns == 1500, "vmexit>1.5us");
	check(!hw_trigger_sample(&t, "kvm:kvm_entry", 7, 100), "an entry without an exit");
	check(!hw_trigger_sample(&t, "kvm:kvm_exit", 7, 1000), "an exit");
	check(!hw_trigger_sample(&t, "kvm:kvm_exit", 7 + HW_TRIGGER_TASKS, 1000), "of another vCPU");
	check(!hw_trigger_sample(&t, "kvm:kvm_entry", 7, 2500), "not longer");
	check(hw_trigger_sample(&t, "kvm:kvm_entry", 7 + HW_TRIGGER_TASKS, 2501), "longer");
	check(!hw_trigger_sample(&t, "kvm:kvm_entry", 7 + HW_TRIGGER_TASKS, 9000), "once only");
	t.armed_ns = 20000;
	hw_trigger_sample(&t, "kvm:kvm_exit", 7, 10000);
	check(!hw_trigger_sample(&t, "kvm:kvm_entry", 7, 30000), "it began before the last snapshot");
	check(hw_trigger_parse(&t, "sched:sched_switch", &e) == 0 &&
		  hw_trigger_sample(&t, "sched:sched_switch", 1, 5) &&
		  !hw_trigger_sample(&t, "kvm:kvm_exit", 1, 5),
	      "a tracepoint");
	check(hw_trigger_parse(&t, "exit", &e) == 0 && t.kind == HW_TRIGGER_EXIT, "exit");
	check(hw_trigger_parse(&t, "vmexit>", &e) == -1 && hw_trigger_parse(&t, "vmexit>5", &e) == -1 &&
		  hw_trigger_parse(&t, "vmexit>-5us", &e) == -1 && hw_trigger_parse(&t, "vmexit", &e) == -1,
	      "what is none");
}

static void test_control(void)
{
	struct hw_control c;
	struct pt_error e = {0};
	char text[256], ack[64] = "";
	int fd;

	check(hw_control_open(&c, "pipe:x", &e) == -1 && e.kind == PT_ERR_USAGE, "no FIFO");
	snprintf(text, sizeof text, "%s/ctl", root);
	mkfifo(text, 0600);
	fd = open(text, O_RDWR | O_NONBLOCK);
	snprintf(text, sizeof text, "%s/ack", root);
	mkfifo(text, 0600);
	snprintf(text, sizeof text, "fifo:%s/ctl,%s/ack", root, root);
	check(hw_control_open(&c, text, &e) == 0, "a FIFO");
	check(hw_control_next(&c) == HW_NO_COMMAND, "nothing has come");
	check(write(fd, "snap", 4) == 4 && hw_control_next(&c) == HW_NO_COMMAND, "half a line");
	check(write(fd, "shot\n\nstop\nfly\n", 15) == 15 && hw_control_next(&c) == HW_SNAPSHOT, "snapshot");
	/* NOLINTNEXTLINE(misc-redundant-expression): each call takes a line */
	check(hw_control_next(&c) == HW_STOP && hw_control_next(&c) == HW_UNKNOWN_COMMAND,
	      "stop, and no command");
	hw_control_ack(&c);
	check(read(c.ack, ack, sizeof ack) == 4 && !strcmp(ack, "ack\n"), "ack");
	hw_control_close(&c);
	close(fd);
}

static void test_control_fds(void)
{
	struct pt_error e = {0};
	struct hw_control c;
	int ctl[2] = {-1, -1}, ack[2] = {-1, -1};
	char text[64], got[8] = "";

	check(pipe(ctl) == 0 && pipe(ack) == 0, "pipes");
	snprintf(text, sizeof text, "fd:%d,%d", ctl[0], ack[1]);
	check(hw_control_open(&c, text, &e) == 0, "descriptors");
	check(hw_control_next(&c) == HW_NO_COMMAND, "it does not wait for a command");
	check(write(ctl[1], "ping\n", 5) == 5 && hw_control_next(&c) == HW_PING, "a command");
	hw_control_ack(&c);
	check(read(ack[0], got, sizeof got) == 4 && !strcmp(got, "ack\n"), "its answer");
	hw_control_close(&c);
	check(read(ack[0], got, 1) == 0, "closed");
	close(ctl[1]);
	close(ack[0]);
	snprintf(text, sizeof text, "fd:%d", ctl[0]);
	check(hw_control_open(&c, text, &e) == -1 && e.kind == PT_ERR_USAGE, "one that is not open");
	check(hw_control_open(&c, "fd:", &e) == -1 && hw_control_open(&c, "fd:0,", &e) == -1 &&
		  hw_control_open(&c, "fd:-1", &e) == -1,
	      "what is no number");
}

static void test_ready(void)
{
	struct pt_error e = {0};
	int p[2], fd = -1;
	char text[16], got[16] = "";

	hw_ready_put(&fd);
	check(hw_ready_open("1x", &fd, &e) == -1 && e.kind == PT_ERR_USAGE && fd == -1, "no number");
	check(pipe(p) == 0, "a pipe");
	snprintf(text, sizeof text, "%d", p[1]);
	check(hw_ready_open(text, &fd, &e) == 0 && fd == p[1] && fcntl(fd, F_GETFD) == FD_CLOEXEC,
	      "the traced program does not get it");
	hw_ready_put(&fd);
	check(fd == -1 && read(p[0], got, sizeof got) == 6 && !strcmp(got, "ready\n") &&
		  read(p[0], got, 1) == 0,
	      "a line, and the end");
	close(p[0]);
}

/* A child that has ended, and is not waited for, is there, but has ended. */
static void test_has_ended(void)
{
	int p[2];
	pid_t pid;
	char byte;

	check(pipe2(p, O_CLOEXEC) == 0, "a pipe");
	pid = fork();
	if (pid == 0) {
		close(p[1]);
		_exit(read(p[0], &byte, 1) < 0 ? 1 : 0);
	}
	close(p[0]);
	check(pid > 0 && !hw_proc_has_ended(pid) && !hw_proc_has_ended(getpid()), "those that run");
	close(p[1]);
	waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
	check(kill(pid, 0) == 0 && hw_proc_has_ended(pid), "one that has an exit status only");
	waitpid(pid, NULL, 0);
	check(hw_proc_has_ended(pid), "and none");
}

/* ---- check -------------------------------------------------------------------------------------------- */

static const struct check_line *line(const struct check_result *r, const char *what)
{
	for (unsigned i = 0; i < r->count; i++)
		if (strstr(r->lines[i].what, what))
			return &r->lines[i];
	return NULL;
}

/* What depends on the kernel's answers, and on kernels. */
static void test_check_kernel(struct check_cpu cpu)
{
	static const struct {
		const char *paranoid;
		int own, all;
		enum check_answer answer;
		const char *word; /* in the remedy */
	} permissions[] = {
	    {"2\n", 1, 1, CHECK_YES, ""},
	    {"4\n", 1, 1, CHECK_YES, ""},
	    {"2\n", 1, -EACCES, CHECK_LIMITED, "CAP_PERFMON"},
	    /* Mainline, which knows no 3. */
	    {"3\n", 1, -EACCES, CHECK_LIMITED, "CAP_PERFMON"},
	    /* Debian's. */
	    {"3\n", -EACCES, -EACCES, CHECK_NO, "sysctl kernel.perf_event_paranoid=2"},
	    /* A container's filter, for its root, too. */
	    {"1\n", -EPERM, -EPERM, CHECK_NO, "seccomp"},
	    {"-1\n", -EPERM, -EPERM, CHECK_NO, "seccomp"},
	};
	const struct check_line *l;
	struct check_result r;
	char path[128];

	for (size_t i = 0; i < sizeof permissions / sizeof *permissions; i++) {
		write_file("/proc/sys/kernel/perf_event_paranoid", permissions[i].paranoid);
		cpu.own = permissions[i].own;
		cpu.all = permissions[i].all;
		check_all(&r, root, &cpu);
		check((l = line(&r, "permission")) && l->answer == permissions[i].answer &&
			  strstr(l->remedy, permissions[i].word) && r.can_trace == (l->answer != CHECK_NO),
		      "permission by what the kernel permits");
	}
	cpu.own = cpu.all = cpu.clock = 1;
	write_file("/proc/kallsyms", "0000000000000000 A fixed_percpu_data\n0000000000000000 T _text\n");
	check_all(&r, root, &cpu);
	check((l = line(&r, "symbols")) && l->answer != CHECK_YES && l->remedy[0], "hidden addresses");
	check((l = line(&r, "clock")) && l->answer == CHECK_YES, "perf's clock is the TSC");
	write_file("/proc/kallsyms", "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _text\n");
	write_file("/proc/sys/kernel/kptr_restrict", "2\n");
	cpu.clock = -1;
	cpu.hypervisor = 1;
	check_all(&r, root, &cpu);
	check((l = line(&r, "symbols")) && l->answer == CHECK_LIMITED && strstr(l->remedy, "kptr_restrict"),
	      "kptr_restrict 2");
	check((l = line(&r, "clock")) && l->answer == CHECK_YES && strstr(l->detail, "kvmclock") &&
		  strstr(l->detail, "CLOCK_MONOTONIC_RAW"),
	      "a guest with kvmclock");
	write_file("/proc/sys/kernel/kptr_restrict", "0\n");
	snprintf(path, sizeof path, "%s/sys/module/kvm_intel/parameters/pt_mode", root);
	check(unlink(path) == 0, "a kernel that has no pt_mode any more");
	check_all(&r, root, &cpu);
	check((l = line(&r, "symbols")) && l->answer == CHECK_YES, "addresses that are shown");
	check((l = line(&r, "trace guests")) && l->answer == CHECK_YES && strstr(l->detail, "no pt_mode"),
	      "KVM without pt_mode traces guests");
	write_file("/sys/kernel/debug/tracing/events/kvm/enable", "0\n");
	check_all(&r, root, &cpu);
	check((l = line(&r, "tracepoints")) && l->answer == CHECK_YES, "tracefs at its old place");
}

static void test_check(void)
{
	struct check_cpu cpu = {
	    .intel = 1, .pt = 1, .invariant_tsc = 1, .vmx = 1, .vmx_pt = 1, .name = "a CPU"};
	const struct check_line *l;
	struct check_result r;

	write_file("/sys/module/kvm_intel/parameters/pt_mode", "0\n");
	write_file("/proc/sys/kernel/perf_event_paranoid", "1\n");
	check_all(&r, root, &cpu);
	check(r.can_trace == 1, "a machine that can");
	check((l = line(&r, "driver")) && l->answer == CHECK_YES, "has the driver");
	check((l = line(&r, "VMX")) && l->answer == CHECK_YES, "PT with VMX");
	check(!line(&r, "several types"), "one type of CPUs");
	write_file("/sys/bus/event_source/devices/cpu_core/type", "4\n");
	write_file("/sys/bus/event_source/devices/cpu_core/cpus", "0-1\n");
	write_file("/sys/bus/event_source/devices/cpu_atom/type", "10\n");
	write_file("/sys/bus/event_source/devices/cpu_atom/cpus", "2-9\n");
	check_all(&r, root, &cpu);
	check((l = line(&r, "several types")) && l->answer == CHECK_YES &&
		  strstr(l->detail, "cpu_atom: 8, cpu_core: 2"),
	      "two types");
	/* 4 buffers of 4.5 MB are not much of 1 GB, and too much of 1 MB. */
	write_file("/sys/devices/system/cpu/online", "0-3\n");
	write_file("/proc/meminfo", "MemTotal:  2000000 kB\nMemFree:  10 kB\nMemAvailable:  1000000 kB\n");
	check_all(&r, root, &cpu);
	check((l = line(&r, "buffer sizes")) && l->answer == CHECK_YES && strstr(l->detail, "for all 4"),
	      "buffers");
	check((l = line(&r, "open files")) &&
		  strstr(l->detail, "the machine takes 268, a process 264 and 8 for each"),
	      "descriptors of 4 CPUs");
	check(line(&r, "memory for buffers") != NULL, "their limits, root's too");
	write_file("/proc/meminfo", "MemTotal:  2000000 kB\nMemFree:  10 kB\nMemAvailable:  1000 kB\n");
	check_all(&r, root, &cpu);
	check((l = line(&r, "buffer sizes")) && l->answer == CHECK_LIMITED && strstr(l->remedy, "-m"),
	      "buffers too big");
	cpu.vmx_pt = 0;
	check_all(&r, root, &cpu);
	check((l = line(&r, "VMX")) && l->answer == CHECK_NO && strstr(l->remedy, "kvm_intel") &&
		  !r.can_trace,
	      "a Broadwell with kvm_intel loaded");
	/* It turns VMX on when there is a VM, or, with enable_virt_at_load, at once. */
	write_file("/sys/module/kvm_intel/refcnt", "0\n");
	check_all(&r, root, &cpu);
	check((l = line(&r, "VMX")) && l->answer == CHECK_LIMITED && r.can_trace, "a Broadwell without VMs");
	write_file("/sys/module/kvm_intel/refcnt", "2\n");
	check_all(&r, root, &cpu);
	check((l = line(&r, "VMX")) && l->answer == CHECK_NO && !r.can_trace, "a Broadwell with VMs");
	write_file("/sys/module/kvm_intel/refcnt", "0\n");
	write_file("/sys/module/kvm/parameters/enable_virt_at_load", "Y\n");
	check_all(&r, root, &cpu);
	check((l = line(&r, "VMX")) && l->answer == CHECK_NO, "a Broadwell with VMX on from the beginning");
	cpu.vmx_pt = 1;
	test_check_kernel(cpu);
	cpu.vmx_pt = -1;
	write_file("/sys/module/kvm_intel/parameters/pt_mode", "1\n");
	check_all(&r, root, &cpu);
	check((l = line(&r, "VMX")) && l->answer == CHECK_UNKNOWN && l->remedy[0], "what could not be seen");
	check((l = line(&r, "trace guests")) && l->answer == CHECK_LIMITED, "pt_mode 1");
	cpu.pt = 0;
	cpu.hypervisor = 1;
	check_all(&r, root, &cpu);
	check((l = line(&r, "CPU has")) && l->answer == CHECK_NO && strstr(l->remedy, "--sideband-only") &&
		  !r.can_trace,
	      "inside a VM without PT");
	for (unsigned i = 0; i < r.count; i++)
		check(r.lines[i].answer != CHECK_NO || r.lines[i].remedy[0] ||
			  strstr(r.lines[i].what, "driver"),
		      "every NO has a remedy");
}

int main(void)
{
	char command[128];

	snprintf(root, sizeof root, "%s/test_hw.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (strlen(root) + 1 >= sizeof root || !mkdtemp(root)) {
		snprintf(root, sizeof root, "/tmp/test_hw.XXXXXX");
		if (!mkdtemp(root)) {
			perror(root);
			return 1;
		}
	}
	test_pmu();
	test_snapshot();
	for (uint64_t seed = 1; seed <= 300; seed++)
		test_snapshots(seed);
	test_trigger();
	test_control();
	test_control_fds();
	test_ready();
	test_has_ended();
	test_check();
	snprintf(command, sizeof command, "rm -rf '%s'", root);
	if (system(command))
		return 1;
	return sum_up();
}
