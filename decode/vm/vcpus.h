/*
 * vcpus.h - the vCPUs that the capture knew (META, kvm.PID.VCPU.*), and the numbers that threads' names have.
 */
#ifndef DECODE_VM_VCPUS_H
#define DECODE_VM_VCPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/vm/clocks.h"
#include "schema/container.h"

struct pt_vcpu {
	int32_t pid, vcpu; /* of the VM process; its number */
	int32_t tid;	   /* -1 unknown */
	uint64_t vmcs;	   /* its address; PTR_UNKNOWN */
	struct {
		bool known;
		int64_t offset;
	} begin, end;	    /* the TSC offset when the capture began, when it ended */
	uint64_t ratio;	    /* with frac_bits of fraction; 0: not scaled */
	unsigned frac_bits; /* the ratio's */
	bool bad_ratio;	    /* META's ratio is none that a guest can have: begin, end are unknown */
};

struct pt_vcpus {
	struct pt_vcpu *items;
	size_t count, room;
};

/*
 * Fills *ret, which pt_vcpus_deinit() frees. Keys that are not understood are left out. 0, or -1: no memory.
 */
int pt_vcpus_init(struct pt_vcpus *ret, const struct ptc_meta *meta);
void pt_vcpus_deinit(struct pt_vcpus *v);

/* By thread; by VM process and number. NULL when there is none. */
const struct pt_vcpu *pt_vcpus_by_tid(const struct pt_vcpus *v, int32_t tid);
const struct pt_vcpu *pt_vcpus_by_number(const struct pt_vcpus *v, int32_t pid, int32_t vcpu);

/* Whether there is one of the VM process. */
bool pt_vcpus_have_vm(const struct pt_vcpus *v, int32_t pid);

/* Gives the clock what KVM's debugfs said about the vCPU. 0, or -1: no memory. */
int pt_vcpu_apply(const struct pt_vcpu *v, struct pt_vm_clock *c);
/* If all vCPUs of all VMs have the same offset and ratio, each VMCS has them: gives them to clocks. 0, or -1:
 * no memory. */
int pt_vcpus_apply_all(const struct pt_vcpus *v, struct pt_vm_clocks *clocks);

/*
 * The number of the vCPU that the thread of this name runs, or -1: "CPU 3/KVM" (QEMU), "vcpu3"
 * (cloud-hypervisor), "fc_vcpu 3" (Firecracker), "crosvm_vcpu3", "kvm-vcpu-3" (kvmtool). It lies between "CPU
 * " and "/KVM" or "/TCG", or after "vcpu".
 */
int32_t pt_vcpu_of_name(const char *comm);

#endif
