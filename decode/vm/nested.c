/*
 * nested.c - which VMCSs are nested guests'; see internal.h.
 *
 * To the hardware a nested guest is a guest as its hypervisor is, by another VMCS. What KVM does between exit
 * and entry says which of them it was, and will be (arch/x86/kvm/vmx/nested.c).
 */
#include "decode/vm/internal.h"

static void set_nested(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, uint64_t vmcs)
{
	if (vmcs == PT_VMCS_UNKNOWN || vcpu->nested.vmcs == vmcs)
		return;
	vcpu->nested.vmcs = vmcs;
	vm->vmcs_changes++;
}

void pt_vm_left_nested(struct pt_vm *vm, struct pt_vm_vcpu *vcpu)
{
	/* KVM may leave a nested guest that it has only made ready to enter. */
	if (vcpu->host.nested_enter)
		return;
	set_nested(vm, vcpu, vcpu->vmcs);
	vcpu->exit.record.flags |= PTR_VM_NESTED;
	vcpu->nested.now = vcpu->nested.next = true;
}

bool pt_vm_enters_nested(struct pt_vm *vm, struct pt_vm_vcpu *vcpu, uint64_t vmcs)
{
	if (vmcs == PT_VMCS_UNKNOWN)
		return vcpu->nested.next;
	/* Where the entry that KVM made ready for has failed, its hypervisor is entered again. */
	if (vcpu->host.nested_enter && vcpu->exit.open && vcpu->vmcs != vmcs)
		set_nested(vm, vcpu, vmcs);
	return vcpu->nested.vmcs == vmcs;
}

bool pt_vm_is_nested(const struct pt_vm *vm, uint64_t vmcs)
{
	const struct pt_vm_vcpu *vcpu = vmcs == PT_VMCS_UNKNOWN ? NULL : vm->vcpu_list;

	while (vcpu && vcpu->nested.vmcs != vmcs)
		vcpu = vcpu->next;
	return vcpu;
}
