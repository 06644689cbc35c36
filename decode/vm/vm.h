/*
 * vm.h - the virtual machines of a trace: their clocks, guest runs and VM exits, as records.
 *
 * In: what streams show (pt_vm_events, output/vm_events.h) and what KVM's tracepoints say. Out: GUEST_RUN,
 * VMEXIT and VM_CLOCK records (records.h).
 *
 * A vCPU is the host's thread that runs it; where the thread is not known, the VMCS. A guest run is the
 * interval from a VM entry to the next VM exit on the same stream. A VM exit's record is the interval from
 * the exit to the thread's next VM entry, on any stream. Where the flow lost sync in between, both intervals
 * end there, and their flags say so.
 *
 * Uncertainty: a transition's TSC is the clock at its packet. With CYC packets that is the time of the
 * packet, as exactly as the clock is; without, the transition lies between it and the next timing packet.
 *
 * The reason of a VM exit, best first: Event Trace, the tracepoint kvm_exit, the function that KVM called
 * (kvm.h).
 */
#ifndef DECODE_VM_VM_H
#define DECODE_VM_VM_H

#include "decode/output/definitions.h"
#include "decode/vm/clocks.h"
#include "decode/vm/tsc_offset.h"
#include "decode/vm/vcpus.h"

struct pt_vm;

/*
 * emit and vcpus are the caller's and outlive it; tolerance and host_khz are the clocks' (clocks.h). options:
 * --tsc-offset, may be NULL. NULL: no memory.
 */
struct pt_vm *pt_vm_create(struct pt_emit *emit, const struct pt_vcpus *vcpus,
			   const struct pt_vm_options *options, uint64_t tolerance, uint64_t host_khz);
void pt_vm_destroy(struct pt_vm *vm); /* NULL is fine */

extern const struct pt_vm_events pt_vm_events; /* arg: struct pt_vm. Failures are emit's */

/* All guest runs and VM exit intervals that are open end, unseen; VM_CLOCK records are written. Failures are
 * emit's. */
void pt_vm_finish(struct pt_vm *vm);

/* ---- Clocks ----------------------------------------------------------------------------------------- */

/* The guests' clocks: they may be given what was found before the decode. */
struct pt_vm_clocks *pt_vm_clocks_of(struct pt_vm *vm);
/* Of the VM exits written so far the one after which it took longest to the next entry. False: there is none
 * whose latency is known. */
bool pt_vm_slowest_exit(const struct pt_vm *vm, uint64_t *ret_exit_tsc, uint64_t *ret_entry_tsc);
/* A value that differs when pt_vm_events' host_time() may know a time that it did not know before. */
uint64_t pt_vm_times_known(const struct pt_vm *vm);
/* The VMCS is one of the VM process pid: known before its first VM entry is decoded. */
void pt_vm_bind(struct pt_vm *vm, uint64_t vmcs, int32_t pid);
/* By how many ticks, at least, --tsc-offset is contradicted by the TSC packets of the VM's guest; 0: it is
 * not. */
uint64_t pt_vm_contradicted(const struct pt_vm *vm, const struct pt_machine *machine);

/* ---- KVM's tracepoints, by samples in a vCPU's thread ------------------------------------------------ */

/* kvm_exit. A field that the tracepoint's format does not have is PTR_UNKNOWN, guest_rip is 0. */
struct pt_vm_exit_sample {
	int32_t tid;
	uint64_t tsc;
	uint64_t reason;	/* exit_reason: bits 15..0 are the VMCS's basic exit reason */
	uint64_t qualification; /* info1: exit qualification */
	uint64_t intr_info;	/* VM-exit interruption information */
	uint64_t guest_rip;
	uint64_t operand; /* of a sample after it: struct ptr_vmexit's */
};
void pt_vm_sample_exit(struct pt_vm *vm, const struct pt_vm_exit_sample *sample);

/* Exit reasons (SDM vol. 3, appendix C) of which a tracepoint says what they were about. */
enum pt_vm_exit_reason {
	PT_VM_EXIT_CPUID = 10,
	PT_VM_EXIT_VMCALL = 18,
	PT_VM_EXIT_RDMSR = 31,
	PT_VM_EXIT_WRMSR = 32,
	PT_VM_EXIT_EPT_VIOLATION = 48,
	PT_VM_EXIT_EPT_MISCONFIG = 49,
	PT_VM_EXIT_RDMSR_IMM = 84,
	PT_VM_EXIT_WRMSR_IMM = 85
};

/* kvm_msr, kvm_page_fault, kvm_fast_mmio, kvm_cpuid, kvm_hypercall: what the exit was about whose
 * kvm_exit came last. Nothing happens when that was not sampled, or had none of the reasons. */
struct pt_vm_operand_sample {
	int32_t tid;
	uint64_t tsc;
	uint64_t reasons[2]; /* enum pt_vm_exit_reason: either */
	uint64_t operand;    /* struct ptr_vmexit's */
};
void pt_vm_sample_operand(struct pt_vm *vm, const struct pt_vm_operand_sample *sample);

/* Interruption information (SDM vol. 3, "VM-Entry Interruption-Information Field"): valid, type, vector. */
#define PT_VM_INFO_VALID ((uint64_t)1 << 31)
enum pt_vm_info {
	PT_VM_INFO_NMI = 2 << 8,
	PT_VM_INFO_EXCEPTION = 3 << 8,
	PT_VM_INFO_SOFTWARE = 4 << 8 /* INT n */
};
/* The thread's next VM entry injects this. */
void pt_vm_sample_inject(struct pt_vm *vm, int32_t tid, uint64_t tsc, uint64_t intr_info);

/* kvm_write_tsc_offset. The vCPU may not have entered its guest yet. */
struct pt_vm_offset_sample {
	int32_t pid, vcpu; /* of the VM process; its number */
	uint64_t tsc;
	int64_t previous, next;
};
void pt_vm_sample_tsc_offset(struct pt_vm *vm, const struct pt_vm_offset_sample *sample);

#endif
