/*
 * test_vm_nested.c - which VMCS is nested guests', by what KVM did between exit and entry: also where an entry
 * that KVM made ready for failed, or was left before it was made, and where the trace begins in a nested guest.
 */
#include <stdlib.h>

#include "decode/vm/internal.h"
#include "tests/unit/check.h"

enum { OWN = 0x1000, NESTED = 0x2000 }; /* VMCSs: the hypervisor's, its guests' */

static struct pt_vm vm;
static struct pt_vm_vcpu vcpu;

/* The guest with that VMCS was left. */
static void leave(uint64_t vmcs)
{
	vcpu.vmcs = vmcs;
	vcpu.nested.now = vcpu.nested.vmcs == vmcs;
	vcpu.host = (struct pt_vm_host){0};
	vcpu.exit.open = true;
	vcpu.exit.record.flags = 0;
}

static void begin(void)
{
	vm = (struct pt_vm){.vcpu_list = &vcpu};
	vcpu = (struct pt_vm_vcpu){.vmcs = PT_VMCS_UNKNOWN, .nested.vmcs = PT_VMCS_UNKNOWN};
}

/* As of nested_vmx_enter_non_root_mode(). */
static void make_ready(void)
{
	vcpu.nested.next = vcpu.host.nested_enter = true;
}

/* KVM has freed it, and another VM has it as its own. */
static void test_used_again(void)
{
	struct pt_vm_vcpu other = {.vmcs = PT_VMCS_UNKNOWN, .nested.vmcs = PT_VMCS_UNKNOWN};

	begin();
	vcpu.next = &other;
	vm.clocks = pt_vm_clocks_create(0, 0);
	leave(NESTED);
	pt_vm_left_nested(&vm, &vcpu);
	pt_vm_use_vmcs(&vm, NESTED, &vcpu, 10);
	check(pt_vm_is_nested(&vm, NESTED), "nested guests'");
	pt_vm_use_vmcs(&vm, NESTED, &other, 20);
	check(!pt_vm_is_nested(&vm, NESTED), "another vCPU's by then: not nested");
	pt_vm_clocks_destroy(vm.clocks);
	free(vm.uses.items);
}

int main(void)
{
	begin();
	check(!pt_vm_enters_nested(&vm, &vcpu, OWN), "nothing is known: none");
	leave(OWN);
	make_ready();
	check(pt_vm_enters_nested(&vm, &vcpu, NESTED) && pt_vm_is_nested(&vm, NESTED) && vm.vmcs_changes == 1,
	      "KVM made ready for it, and another VMCS is entered");
	check(!pt_vm_is_nested(&vm, OWN) && !pt_vm_is_nested(&vm, PT_VMCS_UNKNOWN), "no other one");
	leave(NESTED);
	pt_vm_left_nested(&vm, &vcpu);
	check(vcpu.nested.next && vcpu.exit.record.flags == PTR_VM_NESTED && vm.vmcs_changes == 1,
	      "the exit is a nested guest's, which is entered again");
	check(pt_vm_enters_nested(&vm, &vcpu, NESTED), "without its hypervisor");
	check(!pt_vm_enters_nested(&vm, &vcpu, OWN), "its hypervisor's VMCS is not nested");

	begin();
	leave(OWN);
	make_ready();
	check(!pt_vm_enters_nested(&vm, &vcpu, OWN) && !pt_vm_is_nested(&vm, OWN),
	      "an entry that failed: the hypervisor goes on");
	leave(OWN);
	make_ready();
	pt_vm_left_nested(&vm, &vcpu);
	check(!pt_vm_is_nested(&vm, OWN) && !vcpu.exit.record.flags,
	      "left before it was entered: the exit was the hypervisor's");

	begin();
	leave(NESTED);
	pt_vm_left_nested(&vm, &vcpu);
	check(pt_vm_is_nested(&vm, NESTED) && vcpu.exit.record.flags == PTR_VM_NESTED,
	      "a trace that begins in a nested guest: from its first exit on");

	test_used_again();

	begin();
	check(!pt_vm_enters_nested(&vm, &vcpu, PT_VMCS_UNKNOWN), "without VMCS packets: not by itself");
	make_ready();
	check(pt_vm_enters_nested(&vm, &vcpu, PT_VMCS_UNKNOWN) && !pt_vm_is_nested(&vm, PT_VMCS_UNKNOWN),
	      "but when KVM made ready for it");
	return sum_up();
}
