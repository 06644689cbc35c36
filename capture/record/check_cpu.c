/* check_cpu.c - what this CPU and this kernel say to this process; see check.h. */
#include "capture/record/check.h"
#include "capture/record/clock.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MSR_IA32_VMX_MISC 0x485 /* SDM vol. 3 appendix A.6; bit 14: PT can be used in VMX operation */

/* Opens an event that counts nothing, to see whether it is permitted. */
static int try_event(bool all)
{
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
				    .size = sizeof a,
				    .config = PERF_COUNT_SW_DUMMY,
				    .disabled = 1,
				    .exclude_kernel = !all,
				    .exclude_hv = !all};
	long fd = syscall(SYS_perf_event_open, &a, all ? -1 : 0, all ? 0 : -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static void ask_kernel(struct check_cpu *c)
{
	int own = try_event(false), all = try_event(true);

	c->own = own < 0 ? own : 1;
	c->all = all < 0 ? all : 1;
	c->clock = hw_clock_perf_is_tsc();
	if (own >= 0)
		close(own);
	if (all >= 0)
		close(all);
}

/* Whether PT can be used in VMX operation; -1: the MSR cannot be read. */
static int read_vmx_pt(void)
{
	int fd = open("/dev/cpu/0/msr", O_RDONLY | O_CLOEXEC), ret = -1;
	uint64_t misc;

	if (fd < 0)
		return -1;
	if (pread(fd, &misc, sizeof misc, MSR_IA32_VMX_MISC) == sizeof misc)
		ret = misc >> 14 & 1;
	close(fd);
	return ret;
}

struct check_cpu check_this_cpu(void)
{
	struct check_cpu c = {.vmx_pt = read_vmx_pt()};
	unsigned a, b, x, d, name[13] = {0};

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
	ask_kernel(&c);
	return c;
}
