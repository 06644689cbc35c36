/* capabilities.c - see capabilities.h. */
#include "capture/record/capabilities.h"

#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool get(uint64_t *effective, uint64_t *permitted)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {0};

	if (syscall(SYS_capget, &h, d))
		return false;
	*effective = d[0].effective | (uint64_t)d[1].effective << 32;
	*permitted = d[0].permitted | (uint64_t)d[1].permitted << 32;
	return true;
}

bool hw_capabilities_have(unsigned capability)
{
	uint64_t effective, permitted;

	return get(&effective, &permitted) && effective >> capability & 1;
}

bool hw_capabilities_may_trace_all(void)
{
	return hw_capabilities_have(CAP_PERFMON) || hw_capabilities_have(CAP_SYS_ADMIN);
}

static bool set(uint64_t effective, uint64_t permitted)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {0};

	for (unsigned i = 0; i < 2; i++) {
		d[i].effective = (uint32_t)(effective >> 32 * i);
		d[i].permitted = (uint32_t)(permitted >> 32 * i);
	}
	return syscall(SYS_capset, &h, d) == 0;
}

#define BIT(capability) ((uint64_t)1 << (capability))

bool hw_capabilities_drop(void)
{
	const uint64_t keep =
	    BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_SYS_PTRACE) | BIT(CAP_CHECKPOINT_RESTORE) | BIT(CAP_SYSLOG);
	uint64_t effective, permitted;

	return get(&effective, &permitted) &&
	       set(effective & keep, permitted & (keep | BIT(CAP_DAC_OVERRIDE))) &&
	       prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

bool hw_capabilities_for_bpf(void)
{
	const uint64_t keep = BIT(CAP_SYS_ADMIN) | BIT(CAP_BPF) | BIT(CAP_SYSLOG);
	uint64_t effective, permitted;

	return get(&effective, &permitted) && set(effective & keep, permitted & keep) &&
	       prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

void hw_capabilities_output(bool have)
{
	uint64_t effective, permitted;

	if (get(&effective, &permitted))
		set((effective & ~BIT(CAP_DAC_OVERRIDE)) | (have ? permitted & BIT(CAP_DAC_OVERRIDE) : 0),
		    permitted);
}
