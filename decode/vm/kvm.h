/*
 * kvm.h - KVM's functions, by name: why a VM exit happened, and what the host did until the next VM entry.
 *
 * vmx_handle_exit() calls one handler per exit reason, from the table kvm_vmx_exit_handlers (the kernel's
 * arch/x86/kvm/vmx/vmx.c, Linux 4.19 to 7.2; nested_vmx's handlers likewise). Before it, with interrupts
 * off, vmx_handle_exit_irqoff() hands interrupts, NMIs and machine checks on to the host's own entries, and
 * the fastpath handles MSR writes, the preemption timer and halts. So the first of these functions in the
 * host's trace after a VM exit says the reason. The numbers of reasons are the SDM's (vol. 3, appendix C).
 */
#ifndef DECODE_VM_KVM_H
#define DECODE_VM_KVM_H

#include <stddef.h>
#include <stdint.h>

enum pt_kvm_role {
	PT_KVM_NOTHING,
	PT_KVM_HANDLER, /* called for exits of `reason` */
	/* Hands the interrupt or NMI that caused the exit on to the host's entry, which is called next:
	 * reason 1, or 0 when that is the NMI's. */
	PT_KVM_INTERRUPT,
	PT_KVM_ENTRY,	    /* an interrupt's entry: its vector */
	PT_KVM_ENTRY_STUBS, /* entries of device interrupts, one per vector from 32 on: the IP says which */
	PT_KVM_HALT,	    /* kvm_vcpu_halt(): polls, then blocks */
	PT_KVM_CHECK_BLOCK, /* kvm_vcpu_check_block(): asks whether the halted vCPU has been woken */
	PT_KVM_BLOCK,	    /* kvm_vcpu_block() */
	PT_KVM_WRITE_TSC_OFFSET,
	PT_KVM_NESTED_ENTER,   /* the next entry is into a nested guest */
	PT_KVM_NESTED_REFLECT, /* the guest that was left is a nested one: its hypervisor may be asked */
	PT_KVM_NESTED_EXIT     /* the next entry is into the nested guest's hypervisor */
};

struct pt_kvm_function {
	const char *name;
	uint8_t role;	 /* enum pt_kvm_role */
	uint8_t reason;	 /* PT_KVM_HANDLER */
	uint16_t vector; /* PT_KVM_ENTRY, and handlers that are for one vector: else PT_KVM_NO_VECTOR */
};
#define PT_KVM_NO_VECTOR 0xffff

/*
 * The function's number, from 1 on; 0: none of them. A symbol's suffix that a compiler adds (".constprop.0",
 * ".isra.1", ".part.2") is not part of the name, nor is a module's ("\t[kvm_intel]"); ".cold" parts are no
 * functions.
 */
unsigned pt_kvm_find(const char *symbol);
const struct pt_kvm_function *pt_kvm_function(unsigned number); /* of one that was found */

#endif
