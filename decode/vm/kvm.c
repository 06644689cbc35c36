/* kvm.c - see kvm.h. */
#include "decode/vm/kvm.h"

#include <stdlib.h>
#include <string.h>

#define H(name, reason)                                                                                      \
	{                                                                                                    \
		name, PT_KVM_HANDLER, reason, PT_KVM_NO_VECTOR                                               \
	}
#define R(name, role)                                                                                        \
	{                                                                                                    \
		name, role, 0, PT_KVM_NO_VECTOR                                                              \
	}
#define V(name, vector)                                                                                      \
	{                                                                                                    \
		name, PT_KVM_ENTRY, 0, vector                                                                \
	}
#define NMI	      2
#define MACHINE_CHECK 18

/* Sorted by name. Vectors: the kernel's arch/x86/include/asm/irq_vectors.h. */
static const struct pt_kvm_function functions[] = {
    V("asm_exc_machine_check", MACHINE_CHECK),
    V("asm_exc_nmi", NMI),
    V("asm_exc_nmi_kvm_vmx", NMI),
    V("asm_exc_nmi_noist", NMI),
    V("asm_sysvec_apic_timer_interrupt", 0xec),
    V("asm_sysvec_call_function", 0xfc),
    V("asm_sysvec_call_function_single", 0xfb),
    V("asm_sysvec_deferred_error", 0xf4),
    V("asm_sysvec_error_interrupt", 0xfe),
    V("asm_sysvec_hyperv_callback", 0xf3),
    V("asm_sysvec_hyperv_reenlightenment", 0xee),
    V("asm_sysvec_hyperv_stimer0", 0xed),
    V("asm_sysvec_irq_work", 0xf6),
    V("asm_sysvec_kvm_posted_intr_ipi", 0xf2),
    V("asm_sysvec_kvm_posted_intr_nested_ipi", 0xf0),
    V("asm_sysvec_kvm_posted_intr_wakeup_ipi", 0xf1),
    V("asm_sysvec_posted_msi_notification", 0xeb),
    V("asm_sysvec_reboot", 0xf8),
    V("asm_sysvec_reschedule_ipi", 0xfd),
    V("asm_sysvec_spurious_apic_interrupt", 0xff),
    V("asm_sysvec_thermal", 0xfa),
    V("asm_sysvec_threshold", 0xf9),
    V("asm_sysvec_x86_platform_ipi", 0xf7),
    H("handle_apic_access", 44),
    H("handle_apic_eoi_induced", 45),
    H("handle_apic_write", 56),
    H("handle_bus_lock_vmexit", 74),
    H("handle_cpuid", 10),
    H("handle_cr", 28),
    H("handle_desc", 46),
    H("handle_dr", 29),
    H("handle_encls", 60),
    H("handle_ept_misconfig", 49),
    H("handle_ept_violation", 48),
    H("handle_exception", 0),
    H("handle_exception_irqoff", 0),
    H("handle_exception_nmi", 0),
    H("handle_exception_nmi_irqoff", 0),
    H("handle_external_interrupt", 1),
    H("handle_external_interrupt_irqoff", 1),
    H("handle_fastpath_hlt", 12),
    H("handle_fastpath_invd", 13),
    H("handle_fastpath_preemption_timer", 52),
    H("handle_fastpath_set_msr_irqoff", 32),
    H("handle_fastpath_wrmsr", 32),
    H("handle_halt", 12),
    H("handle_interrupt_nmi_irqoff", 1),
    H("handle_interrupt_window", 7),
    H("handle_invalid_guest_state", 33),
    H("handle_invd", 13),
    H("handle_invept", 50),
    H("handle_invlpg", 14),
    H("handle_invpcid", 58),
    H("handle_invvpid", 53),
    H("handle_io", 30),
    H("handle_machine_check", 41),
    H("handle_monitor", 39),
    H("handle_monitor_trap", 37),
    H("handle_mwait", 36),
    H("handle_nmi_window", 8),
    H("handle_notify", 75),
    H("handle_pause", 40),
    H("handle_pml_full", 62),
    H("handle_preemption_timer", 52),
    H("handle_rdmsr", 31),
    H("handle_rdpmc", 15),
    H("handle_task_switch", 9),
    H("handle_tpr_below_threshold", 43),
    H("handle_triple_fault", 2),
    H("handle_vmcall", 18),
    H("handle_vmclear", 19),
    H("handle_vmfunc", 59),
    H("handle_vmlaunch", 20),
    H("handle_vmoff", 26),
    H("handle_vmon", 27),
    H("handle_vmptrld", 21),
    H("handle_vmptrst", 22),
    H("handle_vmread", 23),
    H("handle_vmresume", 24),
    H("handle_vmwrite", 25),
    H("handle_vmxoff", 26),
    H("handle_vmxon", 27),
    H("handle_wbinvd", 54),
    H("handle_wrmsr", 32),
    H("handle_xsetbv", 55),
    R("irq_entries_start", PT_KVM_ENTRY_STUBS),
    H("kvm_emulate_cpuid", 10),
    H("kvm_emulate_halt", 12),
    H("kvm_emulate_hypercall", 18),
    H("kvm_emulate_invd", 13),
    H("kvm_emulate_monitor", 39),
    H("kvm_emulate_mwait", 36),
    H("kvm_emulate_rdmsr", 31),
    H("kvm_emulate_rdmsr_imm", 84),
    H("kvm_emulate_rdpmc", 15),
    H("kvm_emulate_wbinvd", 54),
    H("kvm_emulate_wrmsr", 32),
    H("kvm_emulate_wrmsr_imm", 85),
    H("kvm_emulate_xsetbv", 55),
    R("kvm_vcpu_block", PT_KVM_BLOCK),
    R("kvm_vcpu_check_block", PT_KVM_CHECK_BLOCK),
    R("kvm_vcpu_halt", PT_KVM_HALT),
    R("nested_vmx_enter_non_root_mode", PT_KVM_NESTED_ENTER),
    R("nested_vmx_vmexit", PT_KVM_NESTED_EXIT),
    R("vmx_do_interrupt_irqoff", PT_KVM_INTERRUPT),
    R("vmx_do_interrupt_nmi_irqoff", PT_KVM_INTERRUPT),
    {"vmx_do_nmi_irqoff", PT_KVM_HANDLER, 0, NMI},
    {"vmx_handle_nmi", PT_KVM_HANDLER, 0, NMI},
    R("vmx_write_tsc_offset", PT_KVM_WRITE_TSC_OFFSET),
};

struct name {
	const char *text;
	size_t length;
};

static int compare(const void *key, const void *element)
{
	const struct name *n = key;
	const struct pt_kvm_function *f = element;
	int d = strncmp(n->text, f->name, n->length);

	return d ? d : f->name[n->length] ? -1 : 0;
}

unsigned pt_kvm_find(const char *symbol)
{
	struct name n = {symbol, strcspn(symbol, ". \t[")};
	const struct pt_kvm_function *f;

	if (!strncmp(symbol + n.length, ".cold", 5))
		return 0;
	f = bsearch(&n, functions, sizeof functions / sizeof *functions, sizeof *functions, compare);
	return f ? (unsigned)(f - functions) + 1 : 0;
}

const struct pt_kvm_function *pt_kvm_function(unsigned number)
{
	return &functions[number - 1];
}
