/*
 * vm_find.h - the virtual machines that run here: processes with a KVM file, their names and vCPU threads.
 *
 * A VM's process has a file "anon_inode:kvm-vm" open, and one "anon_inode:kvm-vcpu:N" for each vCPU. Where
 * /proc/PID/fd cannot be read, a process with the name of a known monitor counts, unless its threads say that
 * QEMU emulates (TCG).
 *
 * KVM's debugfs says which thread a vCPU is (since Linux 5.19), else the thread's name does: "CPU 0/KVM"
 * (QEMU with debug-threads=on, as libvirt starts it), "vcpu0" (cloud-hypervisor), "fc_vcpu 0" (firecracker),
 * "crosvm_vcpu0", "kvm-vcpu-0" (kvmtool).
 */
#ifndef CAPTURE_RECORD_VM_FIND_H
#define CAPTURE_RECORD_VM_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

#define HW_KVM_DEBUGFS "/sys/kernel/debug/kvm"

struct vm_vcpu {
	int32_t number, tid; /* tid -1: not known */
};

struct vm {
	int32_t pid;
	char name[128];	       /* vm_name.h */
	char monitor[20];      /* the process's name */
	struct vm_vcpu *vcpus; /* by number */
	size_t vcpu_count, vcpu_room;
	bool device; /* while they are found: a device's process of another VM in the list */
};

/* By pid. */
struct vms {
	struct vm *at;
	size_t count, room;
};

/*
 * Finds all VMs; free them with vm_free(). root: a folder with /proc and /sys beneath it ("", or a test's).
 * 0, or -1: PT_ERR_NO_MEMORY, and *ret is empty.
 */
int vm_find_all(struct vms *ret, const char *root, struct pt_error *e);
void vm_free(struct vms *v);

/*
 * Keeps those that `which` means: "all", a pid, or a name. 0, or -1: PT_ERR_REFUSED when there is none (the
 * message lists those that there are), or for a name that several have.
 */
int vm_choose(struct vms *v, const char *which, struct pt_error *e);

#endif
