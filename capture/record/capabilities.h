/* capabilities.h - the capabilities of this process, and giving up those that it no longer needs. */
#ifndef CAPTURE_RECORD_CAPABILITIES_H
#define CAPTURE_RECORD_CAPABILITIES_H

#include <stdbool.h>

/* Whether a capability (a number of linux/capability.h) is in effect. */
bool hw_capabilities_have(unsigned capability);

/*
 * Whether perf events of the kernel, of other users and of whole CPUs may be opened: CAP_PERFMON or
 * CAP_SYS_ADMIN.
 */
bool hw_capabilities_may_trace_all(void);

/*
 * Keeps only what reading other processes' files and memory takes: CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE,
 * CAP_CHECKPOINT_RESTORE; and the kernel's addresses: CAP_SYSLOG, without which /proc/vmallocinfo and
 * /proc/modules show none where kptr_restrict is 1. The user remains who it is: this is no sandbox. The
 * others cannot be regained, except CAP_DAC_OVERRIDE, which is not in effect until
 * hw_capabilities_output(). Returns false when the kernel refused.
 */
bool hw_capabilities_drop(void);

/*
 * Of a process that only asks for BPF programs' code: keeps CAP_SYS_ADMIN, CAP_BPF and CAP_SYSLOG. Returns
 * false when the kernel refused.
 */
bool hw_capabilities_for_bpf(void);

/*
 * true: lets an output be opened and get its name also in a folder that root cannot write to without
 * CAP_DAC_OVERRIDE. false: no longer.
 */
void hw_capabilities_output(bool have);

#endif
