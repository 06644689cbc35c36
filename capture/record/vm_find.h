/*
 * vm_find.h - virtual machines that run here: processes with a KVM file, their names and vCPU threads, and what KVM's
 * debugfs tells of their clocks.
 *
 * A VM's process has a file "anon_inode:kvm-vm" open, and one "anon_inode:kvm-vcpu:N" for each vCPU. Where /proc/PID/fd cannot be
 * read, a process with the name of a known monitor counts, unless its threads say that QEMU emulates (TCG).
 *
 * Its name is that which the monitor's own tools have for it, by its command line: QEMU's -name [guest=]NAME, cloud-hypervisor's
 * --api-socket [path=]PATH (it has no names), firecracker's --id, crosvm's and kvmtool's --name. Without, and of every other monitor,
 * it is the process's own name.
 *
 * Which thread a vCPU is KVM's debugfs tells (since Linux 5.19), else the thread's name: "CPU 0/KVM" (QEMU with debug-threads=on, as
 * libvirt starts it), "vcpu0" (cloud-hypervisor), "fc_vcpu 0" (firecracker), "crosvm_vcpu0", "kvm-vcpu-0" (kvmtool).
 */
#ifndef CAPTURE_RECORD_VM_FIND_H
#define CAPTURE_RECORD_VM_FIND_H

#include <stddef.h>
#include <stdint.h>

#include "capture/record/proc.h"
#include "schema/container.h"

struct vm_vcpu {
	int32_t number, tid; /* tid -1: not known */
};

struct vm {
	int32_t pid;
	char name[128];
	char monitor[20]; /* the process's name */
	struct vm_vcpu *vcpus;
	size_t vcpu_count;
};

struct vms {
	struct vm *at;
	size_t count;
};

/* All VMs. root: where /proc and /sys are ("", or a test's folder). 0, or -1: PT_ERR_NO_MEMORY. */
int vm_find_all(struct vms *ret, const char *root, struct pt_error *e);
void vm_free(struct vms *v);

/* Keeps those that `which` means: "all", a pid, or a name. 0, or -1: PT_ERR_REFUSED when there is none (the message lists
 * those that there are), or a name that several have. */
int vm_choose(struct vms *v, const char *which, struct pt_error *e);

/*
 * KVM's debugfs (kvm/PID-FD/vcpuN/tsc-offset, tsc-scaling-ratio, tsc-scaling-ratio-frac-bits), opened before privileges are
 * dropped. vm_clocks_put(), for two
 * times, writes META PREFIX.PID.VCPU.tid, .tsc_offset, .tsc_ratio, .tsc_frac_bits as they are then ("kvm" at a
 * capture's beginning, "kvm_end" at its end); *ret_seen: offsets that could be read. -1: the writer's errors.
 */
struct vm_clocks;
struct vm_clocks *vm_clocks_open(const struct vms *v); /* NULL: no memory */
int vm_clocks_put(struct vm_clocks *c, struct ptc_writer *w, const char *prefix, size_t *ret_seen,
		  struct pt_error *e);
void vm_clocks_close(struct vm_clocks *c); /* NULL is fine */

#endif
