/*
 * vcpus.h - the vCPUs that a container's META knows (kvm.PID.VCPU.*), and what their threads' names say.
 */
#ifndef DECODE_VM_VCPUS_H
#define DECODE_VM_VCPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/vm/clock.h"
#include "schema/container.h"

struct pt_vcpu {
	int32_t pid, vcpu;
	int32_t tid;   /* -1 unknown */
	uint64_t vmcs; /* PTR_UNKNOWN */
	bool has_offset, has_end;
	int64_t offset, end_offset; /* when the capture began, when it ended */
	uint64_t ratio;		    /* with frac_bits of fraction; 0: not scaled */
	unsigned frac_bits;
};

struct pt_vcpus {
	struct pt_vcpu *at;
	size_t count;
};

/* Fills *ret, which pt_vcpus_deinit() frees. 0, or -1: no memory. Keys that are not understood are left out. */
int pt_vcpus_init(struct pt_vcpus *ret, const struct ptc_meta *meta);
void pt_vcpus_deinit(struct pt_vcpus *v);

/* By thread, by number: NULL when there is none. */
const struct pt_vcpu *pt_vcpus_by_tid(const struct pt_vcpus *v, int32_t tid);
const struct pt_vcpu *pt_vcpus_by_number(const struct pt_vcpus *v, int32_t pid, int32_t vcpu);

/* Tells the clock what KVM said of the vCPU. 0, or -1: no memory. */
int pt_vcpu_apply(const struct pt_vcpu *v, struct pt_vm_clock *c);
/* When all vCPUs of all VMs have the same offset and ratio, any VMCS has them: tells clocks so. 0, or -1: no memory. */
int pt_vcpus_apply_all(const struct pt_vcpus *v, struct pt_vm_clocks *clocks);

/*
 * The vCPU that a thread's name tells, or -1: "CPU 3/KVM" (QEMU), "vcpu3" (cloud-hypervisor), "fc_vcpu 3" (Firecracker),
 * "crosvm_vcpu3", "kvm-vcpu-3" (kvmtool): the number behind "CPU " that "/KVM" or "/TCG" ends, or behind "vcpu".
 */
int32_t pt_vcpu_of_name(const char *comm);

#endif
