/* check.c - see check.h. */
#include "capture/check.h"
#include "capture/commands.h"
#include "capture/hw_capture.h"
#include "capture/hw_pmu.h"
#include "capture/hw_proc.h"
#include "capture/hw_rights.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MSR_IA32_VMX_MISC 0x485 /* SDM vol. 3 appendix A.6; bit 14: PT can be used in VMX operation */

struct check_cpu check_this_cpu(void)
{
	struct check_cpu c = {.vmx_pt = -1};
	unsigned a, b, x, d, name[13] = {0};
	uint64_t misc;
	int fd;

	__cpuid(0, a, name[0], name[2], name[1]);
	c.intel = memcmp(name, "GenuineIntel", 12) == 0;
	__cpuid(1, a, b, x, d);
	c.vmx = x >> 5 & 1;
	c.hypervisor = x >> 31 & 1;
	if (c.intel && __get_cpuid_count(7, 0, &a, &b, &x, &d))
		c.pt = b >> 25 & 1;
	if (__get_cpuid(0x80000007, &a, &b, &x, &d))
		c.invariant_tsc = d >> 8 & 1;
	if (__get_cpuid(0x80000004, &a, &b, &x, &d)) {
		for (unsigned i = 0; i < 3; i++)
			__cpuid(0x80000002 + i, name[4 * i], name[4 * i + 1], name[4 * i + 2],
				name[4 * i + 3]);
		snprintf(c.name, sizeof c.name, "%.48s", (char *)name);
	}
	fd = open("/dev/cpu/0/msr", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (pread(fd, &misc, sizeof misc, MSR_IA32_VMX_MISC) == sizeof misc)
			c.vmx_pt = misc >> 14 & 1;
		close(fd);
	}
	return c;
}

static void line(struct check_result *r, enum check_answer answer, const char *what, const char *remedy,
		 const char *detail, ...) __attribute__((format(printf, 5, 6)));

static void line(struct check_result *r, enum check_answer answer, const char *what, const char *remedy,
		 const char *detail, ...)
{
	struct check_line *l = &r->lines[r->count];
	va_list ap;

	if (r->count == CHECK_LINES)
		return;
	r->count++;
	l->answer = answer;
	snprintf(l->what, sizeof l->what, "%s", what);
	snprintf(l->remedy, sizeof l->remedy, "%s", remedy);
	va_start(ap, detail);
	vsnprintf(l->detail, sizeof l->detail, detail, ap);
	va_end(ap);
}

static bool read_text(const char *root, const char *path, char *to, size_t room)
{
	char whole[512];
	FILE *f;
	bool ok;

	snprintf(whole, sizeof whole, "%s%s", root, path);
	f = fopen(whole, "re");
	ok = f && fgets(to, (int)room, f);
	if (f)
		fclose(f);
	if (ok)
		to[strcspn(to, "\n")] = 0;
	return ok;
}

static long number(const char *root, const char *path, long otherwise)
{
	char text[64];

	return read_text(root, path, text, sizeof text) ? strtol(text, NULL, 10) : otherwise;
}

/* What is free, or soon can be; 0 unknown. */
static unsigned long memory_kb(const char *root)
{
	unsigned long kb = 0;
	char whole[512], text[256];
	FILE *f;

	snprintf(whole, sizeof whole, "%s/proc/meminfo", root);
	f = fopen(whole, "re");
	while (f && !kb && fgets(text, sizeof text, f))
		if (sscanf(text, "MemAvailable: %lu kB", &kb) != 1)
			kb = 0;
	if (f)
		fclose(f);
	return kb;
}

static bool able(void)
{
	return hw_rights_have(CAP_PERFMON) || hw_rights_have(CAP_SYS_ADMIN);
}

/* ---- Conditions --------------------------------------------------------------------------------------- */

static void check_processor(struct check_result *r, const struct check_cpu *c)
{
	if (c->pt)
		line(r, CHECK_YES, "CPU has Processor Trace", "", "%s", c->name);
	else if (c->hypervisor)
		line(r, CHECK_NO, "CPU has Processor Trace",
		     "this is a virtual machine and its hypervisor shows no PT: capture on the host "
		     "(pt-capture --vm), "
		     "and here with --sideband-only; or single-step: pt-capture -- PROGRAM",
		     "CPUID 7.EBX[25] is 0 in a VM on %s", c->name);
	else
		line(r, CHECK_NO, "CPU has Processor Trace",
		     "Intel Core since Broadwell, Xeon since Broadwell-DE have it; without it programs are "
		     "single-stepped: "
		     "pt-capture -- PROGRAM",
		     "CPUID 7.EBX[25] is 0: %s", c->name);
	r->can_trace &= c->pt;
	if (!c->invariant_tsc)
		line(r, CHECK_LIMITED, "TSC is invariant",
		     "expect time that jumps when the CPU's frequency changes",
		     "CPUID 80000007H.EDX[8] is 0");
	else
		line(r, CHECK_YES, "TSC is invariant", "", "CPUID 80000007H.EDX[8]");
}

static void check_driver(struct check_result *r, const char *root, const struct check_cpu *c)
{
	struct pt_error e = {0};
	struct hw_pmu pmu;
	char dir[512];

	snprintf(dir, sizeof dir, "%s" HW_SYSFS, root);
	if (hw_pmu_read(&pmu, dir, &e) == 0) {
		line(r, CHECK_YES, "kernel has the intel_pt driver", "", "PMU type %u", pmu.type);
		if (!pmu.psb_cyc)
			line(r, CHECK_LIMITED, "CPU counts cycles (CYC)",
			     "only MTC and TSC tell time; instructions per cycle will be coarse",
			     "psb_cyc is 0");
		else
			line(r, CHECK_YES, "CPU counts cycles (CYC)", "", "-e cyc");
		return;
	}
	r->can_trace = 0;
	line(r, CHECK_NO, "kernel has the intel_pt driver",
	     c->pt ? "a kernel with CONFIG_PERF_EVENTS and CONFIG_CPU_SUP_INTEL; look for 'intel_pt' in "
		     "dmesg (a BIOS can have "
		     "taken PT, or VMX be on without it)"
		   : "",
	     "%s is not there", HW_SYSFS);
}

static void check_vmx(struct check_result *r, const char *root, const struct check_cpu *c)
{
	char mode[16];
	bool kvm = read_text(root, "/sys/module/kvm_intel/parameters/pt_mode", mode, sizeof mode);

	if (!c->vmx) {
		line(r, CHECK_LIMITED, "PT while VMX is on", "", "no VMX: no KVM here");
	} else if (c->vmx_pt == 0) {
		r->can_trace &= !kvm;
		line(r, kvm ? CHECK_NO : CHECK_LIMITED, "PT while VMX is on",
		     "this CPU (a Broadwell?) stops PT while VMX is on: unload kvm_intel before tracing",
		     "IA32_VMX_MISC bit 14 is 0%s", kvm ? " and kvm_intel is loaded" : "");
	} else if (c->vmx_pt < 0) {
		line(r, CHECK_UNKNOWN, "PT while VMX is on", "to be told: as root, after modprobe msr",
		     "IA32_VMX_MISC could not be read");
	} else {
		line(r, CHECK_YES, "PT while VMX is on", "", "IA32_VMX_MISC bit 14");
	}
	if (!kvm)
		return;
	/* 0: the host traces through its guests; 1: guests have PT of their own, and hide from the host. */
	if (mode[0] == '1')
		line(r, CHECK_LIMITED, "KVM lets the host trace guests",
		     "reload kvm_intel with pt_mode=0: now guests are not traced",
		     "pt_mode is 1 (host/guest)");
	else
		line(r, CHECK_YES, "KVM lets the host trace guests", "", "pt_mode is 0 (system)");
}

static void check_permission(struct check_result *r, const char *root)
{
	long paranoid = number(root, "/proc/sys/kernel/perf_event_paranoid", 2);

	if (able()) {
		line(r, CHECK_YES, "permission to trace", "",
		     "CAP_PERFMON or root: everything (perf_event_paranoid is %ld)", paranoid);
		return;
	}
	if (paranoid > 2) {
		r->can_trace = 0;
		line(r, CHECK_NO, "permission to trace",
		     "as root: sysctl kernel.perf_event_paranoid=2, or setcap cap_perfmon+ep on pt-capture",
		     "perf_event_paranoid is %ld: nothing without CAP_PERFMON", paranoid);
	} else {
		line(r, paranoid > 0 ? CHECK_LIMITED : CHECK_YES, "permission to trace",
		     paranoid > 0 ? "for the kernel, other users and whole CPUs: root, CAP_PERFMON, or "
				    "sysctl kernel.perf_event_paranoid=-1"
				  : "",
		     "perf_event_paranoid is %ld: your own programs%s", paranoid,
		     paranoid > 1   ? ", user space only"
		     : paranoid > 0 ? ", with the kernel"
				    : ", and whole CPUs");
	}
}

/* The kernel's rule (perf_mmap()): perf_event_mlock_kb for each CPU that is online, together, and then the process's RLIMIT_MEMLOCK. */
static void check_buffers(struct check_result *r, const char *root)
{
	long paranoid = number(root, "/proc/sys/kernel/perf_event_paranoid", 2);
	long kb = number(root, "/proc/sys/kernel/perf_event_mlock_kb", 516);
	bool limited = !able() && paranoid > -1;
	unsigned long each =
			  limited ? HW_DATA_KB_UNPRIVILEGED + HW_AUX_KB_UNPRIVILEGED : HW_DATA_KB + HW_AUX_KB,
		      free_kb;
	char text[4096] = "0";
	struct hw_list cpus = {0};
	struct pt_error e = {0};
	struct rlimit l = {0};

	getrlimit(RLIMIT_MEMLOCK, &l);
	if (limited && l.rlim_cur != RLIM_INFINITY)
		line(r, CHECK_LIMITED, "memory for buffers",
		     "raise kernel.perf_event_mlock_kb, or ulimit -l, or be root",
		     "perf_event_mlock_kb is %ld a CPU, ulimit -l %llu KB", kb,
		     (unsigned long long)l.rlim_cur / 1024);
	else
		line(r, CHECK_YES, "memory for buffers", "", "not limited");
	read_text(root, "/sys/devices/system/cpu/online", text, sizeof text);
	if (hw_list_parse(&cpus, text, "online", &e) || !cpus.count) {
		free(cpus.at);
		return;
	}
	each += 4;
	free_kb = memory_kb(root);
	if (free_kb && each * cpus.count > free_kb / 2)
		line(r, CHECK_LIMITED, "buffer sizes", "smaller ones: -m 128K,1M; or fewer CPUs: -C",
		     "%lu KB a CPU by default, %lu MB for all %zu, of %lu MB available", each,
		     each * cpus.count / 1024, cpus.count, free_kb / 1024);
	else
		line(r, CHECK_YES, "buffer sizes", "",
		     "%lu KB a CPU by default, %.1f MB for all %zu (-m changes it)", each,
		     (double)(each * cpus.count) / 1024, cpus.count);
	free(cpus.at);
}

static void check_file(struct check_result *r, const char *root, const char *path, const char *what,
		       const char *missing, const char *denied)
{
	char whole[512];
	int fd;

	snprintf(whole, sizeof whole, "%s%s", root, path);
	fd = open(whole, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0) {
		close(fd);
		line(r, CHECK_YES, what, "", "%s can be read", path);
	} else if (errno == EACCES || errno == EPERM) {
		line(r, able() ? CHECK_LIMITED : CHECK_UNKNOWN, what, denied,
		     "%s cannot be read by this user", path);
	} else {
		line(r, CHECK_LIMITED, what, missing, "%s: %s", path, strerror(errno));
	}
}

void check_all(struct check_result *ret, const char *root, const struct check_cpu *cpu)
{
	char text[256];

	*ret = (struct check_result){.can_trace = 1};
	check_processor(ret, cpu);
	check_driver(ret, root, cpu);
	check_vmx(ret, root, cpu);
	check_permission(ret, root);
	check_buffers(ret, root);
	check_file(ret, root, "/proc/kcore", "kernel's code",
		   "a kernel with CONFIG_PROC_KCORE, not locked down",
		   "as root; user space can be decoded without");
	if (number(root, "/proc/sys/kernel/kptr_restrict", 1) >= 2)
		line(ret, CHECK_LIMITED, "kernel's symbols", "sysctl kernel.kptr_restrict=1",
		     "kptr_restrict is 2");
	else if (read_text(root, "/proc/kallsyms", text, sizeof text) && strtoull(text, NULL, 16) == 0 &&
		 !able())
		line(ret, CHECK_UNKNOWN, "kernel's symbols", "as root",
		     "/proc/kallsyms shows no addresses to this user");
	else
		check_file(ret, root, "/proc/kallsyms", "kernel's symbols", "a kernel with CONFIG_KALLSYMS",
			   "as root");
	check_file(ret, root, "/sys/kernel/debug/kvm", "guests' TSC offsets (debugfs)",
		   "when guests are to be traced: modprobe kvm_intel; mount -t debugfs none "
		   "/sys/kernel/debug. Without, "
		   "offsets are solved from the trace",
		   "as root; without, offsets are solved from the trace");
	check_file(ret, root, "/sys/kernel/tracing/events/kvm", "KVM's tracepoints",
		   "when guests are to be traced: modprobe kvm_intel. Without, exit reasons are inferred",
		   "as root; without, exit reasons are inferred");
}

void check_print(const struct check_result *r, FILE *to)
{
	static const char *const words[] = {"yes", "NO", "limited", "unknown"};

	for (unsigned i = 0; i < r->count; i++) {
		const struct check_line *l = &r->lines[i];

		fprintf(to, "%-8s %-32s %s\n", words[l->answer], l->what, l->detail);
		if (l->remedy[0])
			fprintf(to, "%-8s %-32s -> %s\n", "", "", l->remedy);
	}
	fprintf(to, "%s\n",
		r->can_trace ? "Processor Trace can be used here."
			     : "Processor Trace cannot be used here; pt-capture -- PROGRAM single-steps.");
}

int cmd_check(int argc, char **argv)
{
	struct check_cpu cpu = check_this_cpu();
	struct check_result r;

	if (argc > 1) {
		bool help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;

		fputs("usage: pt-capture check\n"
		      "Tells, a line a condition, whether Processor Trace works on this machine, and what to "
		      "do where not.\n"
		      "Exit status: 0 it works; 1 it does not.\n",
		      help ? stdout : stderr);
		return help ? 0 : 2;
	}
	check_all(&r, "", &cpu);
	check_print(&r, stdout);
	return fflush(stdout) || !r.can_trace ? 1 : 0;
}
