/* check_conditions.c - the conditions, one after the other; see check.h. */
#include "capture/record/buffer_size.h"
#include "capture/record/capabilities.h"
#include "capture/record/check.h"
#include "capture/record/cpu_types.h"
#include "capture/record/list.h"
#include "capture/record/pmu.h"
#include "capture/record/vm_find.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- A line ---- */

/* A printf() format and its arguments are what was seen. */
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

/* ---- Reading ---- */

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

static bool is_there(const char *root, const char *path)
{
	char whole[512];

	snprintf(whole, sizeof whole, "%s%s", root, path);
	return access(whole, F_OK) == 0;
}

static bool read_yes(const char *root, const char *path)
{
	char text[16];

	return read_text(root, path, text, sizeof text) && (text[0] == 'Y' || text[0] == '1');
}

/* What is free, or can be freed; 0: not known. */
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

/* ---- The processor ---- */

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
}

static void check_time(struct check_result *r, const struct check_cpu *c)
{
	if (!c->invariant_tsc)
		line(r, CHECK_LIMITED, "TSC is invariant",
		     "expect time that jumps when the CPU's frequency changes",
		     "CPUID 80000007H.EDX[8] is 0");
	else
		line(r, CHECK_YES, "TSC is invariant", "", "CPUID 80000007H.EDX[8]");
	if (c->clock > 0)
		line(r, CHECK_YES, "perf's clock is the TSC", "", "it can be converted");
	else if (c->clock < 0)
		line(r, CHECK_YES, "perf's clock is the TSC", "",
		     "no (%s), and so events get CLOCK_MONOTONIC_RAW, which is measured against the TSC",
		     c->hypervisor ? "kvmclock, or the like" : "the TSC was found unstable");
	else
		line(r, CHECK_UNKNOWN, "perf's clock is the TSC", "when perf_event_open is permitted",
		     "not to be seen");
}

/* The types of CPUs; a line only where there are several. */
static void check_cpu_types(struct check_result *r, const char *root)
{
	struct hw_cpu_types types;
	struct pt_error e = {0};
	char dir[512], text[200] = "";
	size_t n = 0;

	snprintf(dir, sizeof dir, "%s" HW_CPU_TYPES_SYSFS, root);
	hw_cpu_types_read(&types, dir, &e);
	for (size_t i = 0; i < types.count && n < sizeof text; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%s: %zu", i ? ", " : "", types.at[i].name,
				      types.at[i].cpus.count);
	if (types.count)
		line(r, CHECK_YES, "CPUs of several types", "", "%s; each type's model is recorded", text);
	hw_cpu_types_deinit(&types);
}

/* ---- The kernel ---- */

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
			     "only MTC and TSC packets have the time; instructions per cycle will be coarse",
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

/* Whether kvm_intel has turned VMX on: with the first VM; since Linux 6.12 when it is loaded. */
static bool vmx_is_on(const char *root)
{
	long users = number(root, "/sys/module/kvm_intel/refcnt", -1);

	return users != 0 || read_yes(root, "/sys/module/kvm/parameters/enable_virt_at_load");
}

static void check_pt_in_vmx(struct check_result *r, const char *root, const struct check_cpu *c, bool kvm)
{
	bool on = kvm && vmx_is_on(root);

	if (!c->vmx) {
		line(r, CHECK_LIMITED, "PT while VMX is on", "", "this CPU shows no VMX: no guests to trace");
	} else if (c->vmx_pt == 0) {
		r->can_trace &= !on;
		line(r, on ? CHECK_NO : CHECK_LIMITED, "PT while VMX is on",
		     "this CPU (a Broadwell?) stops PT while VMX is on: stop all VMs and unload kvm_intel "
		     "before tracing",
		     "IA32_VMX_MISC bit 14 is 0%s",
		     on	   ? " and kvm_intel is in use"
		     : kvm ? ", kvm_intel is loaded"
			   : "");
	} else if (c->vmx_pt < 0) {
		line(r, CHECK_UNKNOWN, "PT while VMX is on", "as root, after modprobe msr",
		     "IA32_VMX_MISC could not be read");
	} else {
		line(r, CHECK_YES, "PT while VMX is on", "", "IA32_VMX_MISC bit 14");
	}
}

static void check_vmx(struct check_result *r, const char *root, const struct check_cpu *c)
{
	bool kvm = is_there(root, "/sys/module/kvm_intel/parameters");
	char mode[16];

	check_pt_in_vmx(r, root, c, kvm);
	if (!kvm)
		return;
	/*
	 * 0: the host traces through its guests; 1: guests have PT of their own, and hide from the host.
	 * Newer kernels have no choice.
	 */
	if (!read_text(root, "/sys/module/kvm_intel/parameters/pt_mode", mode, sizeof mode))
		line(r, CHECK_YES, "KVM lets the host trace guests", "", "kvm_intel has no pt_mode: always");
	else if (mode[0] == '1')
		line(r, CHECK_LIMITED, "KVM lets the host trace guests",
		     "reload kvm_intel with pt_mode=0: now guests are not traced",
		     "pt_mode is 1 (host/guest)");
	else
		line(r, CHECK_YES, "KVM lets the host trace guests", "", "pt_mode is 0 (system)");
}

static void check_permission(struct check_result *r, const char *root, const struct check_cpu *c)
{
	static const char trace_all[] =
	    "for the kernel, other users and whole CPUs: root, CAP_PERFMON, or sysctl "
	    "kernel.perf_event_paranoid=-1";
	long paranoid = number(root, "/proc/sys/kernel/perf_event_paranoid", 2);
	bool privileged = hw_capabilities_may_trace_all();

	if (c->all > 0 || (!c->all && privileged)) {
		line(r, CHECK_YES, "permission to trace", "", "everything (perf_event_paranoid is %ld)",
		     paranoid);
		return;
	}
	/* Above 2 mainline refuses no more than at 2; Debian's and Ubuntu's kernels refuse all. */
	if (c->own < 0 || (!c->own && paranoid > 2)) {
		r->can_trace = 0;
		line(
		    r, CHECK_NO, "permission to trace",
		    paranoid > 2
			? "as root: sysctl kernel.perf_event_paranoid=2, or setcap cap_perfmon+ep on "
			  "pt-capture"
			: "something other than perf_event_paranoid forbids it: a container (podman, docker: "
			  "--cap-add PERFMON --security-opt seccomp=unconfined), or a security module",
		    "perf_event_open: %s; perf_event_paranoid is %ld",
		    strerror(c->own < 0 ? -c->own : EACCES), paranoid);
		return;
	}
	line(r, paranoid > 0 || privileged ? CHECK_LIMITED : CHECK_YES, "permission to trace",
	     privileged ? "this is root of a container only: outside of it, or on the host with CAP_PERFMON"
	     : paranoid > 0 ? trace_all
			    : "",
	     "perf_event_paranoid is %ld: your own programs%s", paranoid,
	     paranoid > 1   ? ", user space only"
	     : paranoid > 0 ? ", with the kernel"
			    : ", and whole CPUs");
}

/*
 * The kernel's rule (perf_mmap()): perf_event_mlock_kb for each CPU that is online, together, and then the
 * process's RLIMIT_MEMLOCK. CAP_IPC_LOCK, or perf_event_paranoid -1, frees from both.
 */
static void check_locked_memory(struct check_result *r, const char *root)
{
	long paranoid = number(root, "/proc/sys/kernel/perf_event_paranoid", 2);
	long kb = number(root, "/proc/sys/kernel/perf_event_mlock_kb", 516);
	bool limited = !hw_capabilities_have(CAP_IPC_LOCK) && paranoid > -1;
	struct rlimit l = {0};

	getrlimit(RLIMIT_MEMLOCK, &l);
	if (limited && l.rlim_cur != RLIM_INFINITY)
		line(r, CHECK_LIMITED, "memory for buffers",
		     "raise kernel.perf_event_mlock_kb, or ulimit -l; or root, or CAP_IPC_LOCK",
		     "perf_event_mlock_kb is %ld per CPU, ulimit -l %llu KB", kb,
		     (unsigned long long)l.rlim_cur / 1024);
	else
		line(r, CHECK_YES, "memory for buffers", "", "not limited");
}

static void check_buffers(struct check_result *r, const char *root)
{
	unsigned long free_kb = memory_kb(root), each_kb;
	char text[4096] = "0";
	struct hw_list cpus = {0};
	struct pt_error e = {0};

	each_kb = !hw_capabilities_may_trace_all() ? HW_DATA_KB_UNPRIVILEGED + HW_AUX_KB_UNPRIVILEGED
						   : HW_DATA_KB + HW_AUX_KB;
	each_kb += 4; /* the control page */
	read_text(root, "/sys/devices/system/cpu/online", text, sizeof text);
	if (hw_list_parse(&cpus, text, "online", &e) || !cpus.count) {
		hw_list_deinit(&cpus);
		return;
	}
	if (free_kb && each_kb * cpus.count > free_kb / 2)
		line(r, CHECK_LIMITED, "buffer sizes", "smaller ones: -m 128K,1M; or fewer CPUs: -C",
		     "%lu KB per CPU by default, %lu MB for all %zu, of %lu MB available", each_kb,
		     each_kb * cpus.count / 1024, cpus.count, free_kb / 1024);
	else
		line(r, CHECK_YES, "buffer sizes", "",
		     "%lu KB per CPU by default, %.1f MB for all %zu (-m changes it)", each_kb,
		     (double)(each_kb * cpus.count) / 1024, cpus.count);
	hw_list_deinit(&cpus);
}

/*
 * PT, sideband and module_load on each CPU; of a process, the first two for each thread on each CPU, and
 * its whole-CPU event and module_load on each. The capture raises the soft limit by itself.
 */
static void check_descriptors(struct check_result *r, const char *root)
{
	struct hw_list cpus = {0};
	struct pt_error e = {0};
	struct rlimit l = {0};
	char text[4096] = "0";
	unsigned long machine, nr_open = (unsigned long)number(root, "/proc/sys/fs/nr_open", 1048576), most;

	read_text(root, "/sys/devices/system/cpu/online", text, sizeof text);
	if (getrlimit(RLIMIT_NOFILE, &l) || hw_list_parse(&cpus, text, "online", &e) || !cpus.count) {
		hw_list_deinit(&cpus);
		return;
	}
	most = hw_capabilities_have(CAP_SYS_RESOURCE) ? nr_open : (unsigned long)l.rlim_max;
	machine = 3 * cpus.count + HW_SPARE_FILES;
	line(r, machine <= most ? CHECK_YES : CHECK_LIMITED, "open files",
	     machine <= most ? "" : "raise the hard limit (ulimit -Hn), or trace fewer CPUs: -C",
	     "the machine takes %lu, a process %zu and %zu for each thread; the limit is %lu", machine,
	     2 * cpus.count + HW_SPARE_FILES, 2 * cpus.count, most);
	hw_list_deinit(&cpus);
}

/* ---- Files ---- */

/* missing, denied: the remedies when the file is not there, and when it cannot be read. */
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
		line(r, hw_capabilities_may_trace_all() ? CHECK_LIMITED : CHECK_UNKNOWN, what, denied,
		     "%s cannot be read by this user", path);
	} else {
		line(r, CHECK_LIMITED, what, missing, "%s: %s", path, strerror(errno));
	}
}

/*
 * Whether kallsyms has addresses for this user. Its first symbols are those of per-CPU data, which begin at
 * 0.
 */
static bool shows_addresses(const char *root)
{
	char whole[512], text[1024];
	bool shown = false;
	FILE *f;

	snprintf(whole, sizeof whole, "%s/proc/kallsyms", root);
	f = fopen(whole, "re");
	while (f && !shown && fgets(text, sizeof text, f))
		shown = strtoull(text, NULL, 16) >> 63;
	if (f)
		fclose(f);
	return shown;
}

static void check_kernel_files(struct check_result *r, const char *root)
{
	bool privileged = hw_capabilities_may_trace_all();
	char text[512];

	check_file(
	    r, root, "/proc/kcore", "kernel's code", "a kernel with CONFIG_PROC_KCORE, not locked down",
	    privileged ? "needs CAP_SYS_RAWIO, and a kernel that is not locked down; user space can be "
			 "decoded without"
		       : "as root; user space can be decoded without");
	if (number(root, "/proc/sys/kernel/kptr_restrict", 1) >= 2)
		line(r, CHECK_LIMITED, "kernel's symbols", "sysctl kernel.kptr_restrict=1",
		     "kptr_restrict is 2");
	else if (read_text(root, "/proc/kallsyms", text, sizeof text) && !shows_addresses(root))
		line(r, privileged ? CHECK_LIMITED : CHECK_UNKNOWN, "kernel's symbols",
		     privileged ? "needs CAP_SYSLOG" : "as root",
		     "/proc/kallsyms shows no addresses to this user");
	else
		check_file(r, root, "/proc/kallsyms", "kernel's symbols", "a kernel with CONFIG_KALLSYMS",
			   "as root");
}

static void check_guest_files(struct check_result *r, const char *root)
{
	static const char before_tracefs[] =
	    "/sys/kernel/debug/tracing/events/kvm"; /* where older systems have it */

	check_file(r, root, HW_KVM_DEBUGFS, "guests' TSC offsets (debugfs)",
		   "when guests are to be traced: modprobe kvm_intel; mount -t debugfs none "
		   "/sys/kernel/debug. Without, offsets are solved from the trace",
		   "as root; without, offsets are solved from the trace");
	check_file(r, root,
		   is_there(root, before_tracefs) ? before_tracefs : "/sys/kernel/tracing/events/kvm",
		   "KVM's tracepoints",
		   "when guests are to be traced: modprobe kvm_intel. Without, exit reasons are inferred",
		   "as root; without, exit reasons are inferred");
}

void check_all(struct check_result *ret, const char *root, const struct check_cpu *cpu)
{
	*ret = (struct check_result){.can_trace = 1};
	check_processor(ret, cpu);
	check_cpu_types(ret, root);
	check_time(ret, cpu);
	check_driver(ret, root, cpu);
	check_vmx(ret, root, cpu);
	check_permission(ret, root, cpu);
	check_locked_memory(ret, root);
	check_buffers(ret, root);
	check_descriptors(ret, root);
	check_kernel_files(ret, root);
	check_guest_files(ret, root);
}
