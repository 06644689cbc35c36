/*
 * vm.h - virtual machines of a trace: their clocks, their stays in a guest and round trips out of it, as records.
 *
 * Is told what streams show (flow/vm_transition.h) and what KVM's tracepoints and the CPU's Event Trace add, and writes GUEST_RUN,
 * ROUND_TRIP and VM_CLOCK records (records.h).
 *
 * A vCPU is the host's thread that enters; a VMCS where that is not known. A stay begins with an entry and ends with the
 * exit behind it on the same stream; a round trip ends with the thread's next entry on any stream. Where the flow was
 * lost in between, both end there, and say so.
 *
 * Uncertainty: a transition's TSC is the clock at its packet. With CYC packets that is the time of the packet, as exactly as the
 * clock is; without, the transition lies between that and the next timing packet.
 *
 * Why the guest was left, best first: Event Trace, kvm_exit, the function that KVM called (kvm.h).
 */
#ifndef DECODE_VM_VM_H
#define DECODE_VM_VM_H

#include "decode/output/emit.h"
#include "decode/vm/clock.h"
#include "decode/flow/vm_transition.h"
#include "decode/vm/vcpus.h"

struct pt_vm;

/* emit and vcpus are the caller's and outlive it; tolerance and host_khz are the clocks' (clock.h). options may be
 * NULL. NULL: no memory. */
struct pt_vm *pt_vm_create(struct pt_emit *emit, const struct pt_vcpus *vcpus,
			   const struct pt_vm_options *options, uint64_t tolerance, uint64_t host_khz);
void pt_vm_destroy(struct pt_vm *vm); /* NULL is fine */

extern const struct pt_vm_events pt_vm_events; /* arg: struct pt_vm */

/* The guests' clocks: what was found out before the decode may be told to them. */
struct pt_vm_clocks *pt_vm_clocks_of(struct pt_vm *vm);

/* The VMCS is one of the VM process pid's: known from elsewhere, before its first entry was decoded. */
void pt_vm_bind(struct pt_vm *vm, uint64_t vmcs, int32_t pid);

/* The TSC packets of a VM's guest contradict --tsc-offset: by how many ticks at least; 0: they do not. */
uint64_t pt_vm_contradicted(const struct pt_vm *vm, const struct pt_machine *machine);

/* The trace is over: what is open ends, unseen; VM_CLOCK records are written. Failures are emit's. */
void pt_vm_finish(struct pt_vm *vm);

/* A sample of KVM's tracepoints in thread tid at tsc. kvm_exit: the exit reason as the tracepoint has it, its qualification
 * (info1), interruption information (intr_info) and guest_rip; PTR_UNKNOWN each (guest_rip: 0) when the format has none. */
struct pt_vm_exit_sample {
	int32_t tid;
	uint64_t tsc, reason, qualification, intr_info, guest_rip;
};
void pt_vm_sample_exit(struct pt_vm *vm, const struct pt_vm_exit_sample *sample);
/* What is injected by the next entry: interruption information (SDM, "VM-entry interruption-information field"): valid, type,
 * vector. */
enum pt_vm_info {
	PT_VM_INFO_NMI = 2 << 8,
	PT_VM_INFO_EXCEPTION = 3 << 8,
	PT_VM_INFO_SOFTWARE = 4 << 8 /* INT n */
};
#define PT_VM_INFO_VALID ((uint64_t)1 << 31)
void pt_vm_sample_inject(struct pt_vm *vm, int32_t tid, uint64_t tsc, uint64_t intr_info);
/* kvm_write_tsc_offset: vCPU `vcpu` of the VM process pid, which may not have entered its guest yet. */
void pt_vm_sample_tsc_offset(struct pt_vm *vm, int32_t pid, int32_t vcpu, uint64_t tsc, int64_t previous,
			     int64_t next);

#endif
