/* kvm.c - see kvm.h. */
#include "decode/vm/kvm.h"

#include <stdlib.h>
#include <string.h>

#define HANDLER(name, reason)                                                                                \
	{                                                                                                    \
		name, PT_KVM_HANDLER, reason, PT_KVM_NO_VECTOR                                               \
	}
#define ROLE(name, role)                                                                                     \
	{                                                                                                    \
		name, role, 0, PT_KVM_NO_VECTOR                                                              \
	}
#define ENTRY(name, vector)                                                                                  \
	{                                                                                                    \
		name, PT_KVM_ENTRY, 0, vector                                                                \
	}
#define NMI	      2
#define MACHINE_CHECK 18

/* Sorted by name. Vectors: the kernel's arch/x86/include/asm/irq_vectors.h. */
static const struct pt_kvm_function functions[] = {
    ROLE("__nested_vmx_vmexit", PT_KVM_NESTED_EXIT), /* Linux 7.2: nested_vmx_vmexit() calls it, and others */
    ENTRY("asm_exc_machine_check", MACHINE_CHECK),
    ENTRY("asm_exc_nmi", NMI),
    ENTRY("asm_exc_nmi_kvm_vmx", NMI),
    ENTRY("asm_exc_nmi_noist", NMI),
    ENTRY("asm_sysvec_apic_timer_interrupt", 0xec),
    ENTRY("asm_sysvec_call_function", 0xfc),
    ENTRY("asm_sysvec_call_function_single", 0xfb),
    ENTRY("asm_sysvec_deferred_error", 0xf4),
    ENTRY("asm_sysvec_error_interrupt", 0xfe),
    ENTRY("asm_sysvec_hyperv_callback", 0xf3),
    ENTRY("asm_sysvec_hyperv_reenlightenment", 0xee),
    ENTRY("asm_sysvec_hyperv_stimer0", 0xed),
    ENTRY("asm_sysvec_irq_work", 0xf6),
    ENTRY("asm_sysvec_kvm_posted_intr_ipi", 0xf2),
    ENTRY("asm_sysvec_kvm_posted_intr_nested_ipi", 0xf0),
    ENTRY("asm_sysvec_kvm_posted_intr_wakeup_ipi", 0xf1),
    ENTRY("asm_sysvec_posted_msi_notification", 0xeb),
    ENTRY("asm_sysvec_reboot", 0xf8),
    ENTRY("asm_sysvec_reschedule_ipi", 0xfd),
    ENTRY("asm_sysvec_spurious_apic_interrupt", 0xff),
    ENTRY("asm_sysvec_thermal", 0xfa),
    ENTRY("asm_sysvec_threshold", 0xf9),
    ENTRY("asm_sysvec_x86_platform_ipi", 0xf7),
    HANDLER("handle_apic_access", 44),
    HANDLER("handle_apic_eoi_induced", 45),
    HANDLER("handle_apic_write", 56),
    HANDLER("handle_bus_lock_vmexit", 74),
    HANDLER("handle_cpuid", 10),
    HANDLER("handle_cr", 28),
    HANDLER("handle_desc", 46),
    HANDLER("handle_dr", 29),
    HANDLER("handle_encls", 60),
    HANDLER("handle_ept_misconfig", 49),
    HANDLER("handle_ept_violation", 48),
    HANDLER("handle_exception", 0),
    HANDLER("handle_exception_irqoff", 0),
    HANDLER("handle_exception_nmi", 0),
    HANDLER("handle_exception_nmi_irqoff", 0),
    HANDLER("handle_external_interrupt", 1),
    HANDLER("handle_external_interrupt_irqoff", 1),
    HANDLER("handle_fastpath_hlt", 12),
    HANDLER("handle_fastpath_invd", 13),
    HANDLER("handle_fastpath_preemption_timer", 52),
    HANDLER("handle_fastpath_set_msr_irqoff", 32),
    HANDLER("handle_fastpath_wrmsr", 32),
    HANDLER("handle_halt", 12),
    HANDLER("handle_interrupt_nmi_irqoff", 1),
    HANDLER("handle_interrupt_window", 7),
    HANDLER("handle_invalid_guest_state", 33),
    HANDLER("handle_invd", 13),
    HANDLER("handle_invept", 50),
    HANDLER("handle_invlpg", 14),
    HANDLER("handle_invpcid", 58),
    HANDLER("handle_invvpid", 53),
    HANDLER("handle_io", 30),
    HANDLER("handle_machine_check", 41),
    HANDLER("handle_monitor", 39),
    HANDLER("handle_monitor_trap", 37),
    HANDLER("handle_mwait", 36),
    HANDLER("handle_nmi_window", 8),
    HANDLER("handle_notify", 75),
    HANDLER("handle_pause", 40),
    HANDLER("handle_pml_full", 62),
    HANDLER("handle_preemption_timer", 52),
    HANDLER("handle_rdmsr", 31),
    HANDLER("handle_rdpmc", 15),
    HANDLER("handle_task_switch", 9),
    HANDLER("handle_tpr_below_threshold", 43),
    HANDLER("handle_triple_fault", 2),
    HANDLER("handle_vmcall", 18),
    HANDLER("handle_vmclear", 19),
    HANDLER("handle_vmfunc", 59),
    HANDLER("handle_vmlaunch", 20),
    HANDLER("handle_vmoff", 26),
    HANDLER("handle_vmon", 27),
    HANDLER("handle_vmptrld", 21),
    HANDLER("handle_vmptrst", 22),
    HANDLER("handle_vmread", 23),
    HANDLER("handle_vmresume", 24),
    HANDLER("handle_vmwrite", 25),
    HANDLER("handle_vmxoff", 26),
    HANDLER("handle_vmxon", 27),
    HANDLER("handle_wbinvd", 54),
    HANDLER("handle_wrmsr", 32),
    HANDLER("handle_xsetbv", 55),
    ROLE("irq_entries_start", PT_KVM_ENTRY_STUBS),
    HANDLER("kvm_emulate_cpuid", 10),
    HANDLER("kvm_emulate_halt", 12),
    HANDLER("kvm_emulate_hypercall", 18),
    HANDLER("kvm_emulate_invd", 13),
    HANDLER("kvm_emulate_monitor", 39),
    HANDLER("kvm_emulate_mwait", 36),
    HANDLER("kvm_emulate_rdmsr", 31),
    HANDLER("kvm_emulate_rdmsr_imm", 84),
    HANDLER("kvm_emulate_rdpmc", 15),
    HANDLER("kvm_emulate_wbinvd", 54),
    HANDLER("kvm_emulate_wrmsr", 32),
    HANDLER("kvm_emulate_wrmsr_imm", 85),
    HANDLER("kvm_emulate_xsetbv", 55),
    ROLE("kvm_vcpu_block", PT_KVM_BLOCK),
    ROLE("kvm_vcpu_check_block", PT_KVM_CHECK_BLOCK),
    ROLE("kvm_vcpu_halt", PT_KVM_HALT),
    ROLE("nested_vmx_enter_non_root_mode", PT_KVM_NESTED_ENTER),
    ROLE("nested_vmx_exit_reflected", PT_KVM_NESTED_REFLECT), /* before Linux 5.8 */
    ROLE("nested_vmx_reflect_vmexit", PT_KVM_NESTED_REFLECT),
    ROLE("nested_vmx_vmexit", PT_KVM_NESTED_EXIT),
    ROLE("vmx_do_interrupt_irqoff", PT_KVM_INTERRUPT),
    ROLE("vmx_do_interrupt_nmi_irqoff", PT_KVM_INTERRUPT),
    {"vmx_do_nmi_irqoff", PT_KVM_HANDLER, 0, NMI},
    ROLE("vmx_write_tsc_offset", PT_KVM_WRITE_TSC_OFFSET),
    ROLE("x86_entry_from_kvm", PT_KVM_INTERRUPT),
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
