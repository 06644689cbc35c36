/* KVM's functions by name: reasons by the SDM's appendix C, names as compilers and kallsyms spell them.
 * Instructions that always exit: as the assembler writes them, reasons by KVM's names for them. */
#include <stdio.h>
#include <string.h>

#include "decode/vm/exit_instruction.h"
#include "decode/vm/kvm.h"
#include "schema/vm_reasons.h"
#include "tests/unit/check.h"

static const struct {
	const char *symbol, *reason; /* the reason's name in KVM's tracepoints */
} handlers[] = {
    {"handle_exception_nmi", "EXCEPTION_NMI"},
    {"handle_external_interrupt_irqoff", "EXTERNAL_INTERRUPT"},
    {"handle_triple_fault", "TRIPLE_FAULT"},
    {"handle_interrupt_window", "INTERRUPT_WINDOW"},
    {"handle_nmi_window", "NMI_WINDOW"},
    {"handle_task_switch", "TASK_SWITCH"},
    {"kvm_emulate_cpuid", "CPUID"},
    {"kvm_emulate_halt", "HLT"},
    {"kvm_emulate_invd", "INVD"},
    {"handle_invlpg", "INVLPG"},
    {"kvm_emulate_rdpmc", "RDPMC"},
    {"kvm_emulate_hypercall", "VMCALL"},
    {"handle_vmclear", "VMCLEAR"},
    {"handle_vmlaunch", "VMLAUNCH"},
    {"handle_vmptrld", "VMPTRLD"},
    {"handle_vmptrst", "VMPTRST"},
    {"handle_vmread", "VMREAD"},
    {"handle_vmresume", "VMRESUME"},
    {"handle_vmwrite", "VMWRITE"},
    {"handle_vmxoff", "VMOFF"},
    {"handle_vmxon", "VMON"},
    {"handle_cr", "CR_ACCESS"},
    {"handle_dr", "DR_ACCESS"},
    {"handle_io", "IO_INSTRUCTION"},
    {"kvm_emulate_rdmsr", "MSR_READ"},
    {"kvm_emulate_wrmsr", "MSR_WRITE"},
    {"kvm_emulate_mwait", "MWAIT_INSTRUCTION"},
    {"handle_monitor_trap", "MONITOR_TRAP_FLAG"},
    {"kvm_emulate_monitor", "MONITOR_INSTRUCTION"},
    {"handle_pause", "PAUSE_INSTRUCTION"},
    {"handle_machine_check", "MCE_DURING_VMENTRY"},
    {"handle_tpr_below_threshold", "TPR_BELOW_THRESHOLD"},
    {"handle_apic_access", "APIC_ACCESS"},
    {"handle_apic_eoi_induced", "EOI_INDUCED"},
    {"handle_desc", "GDTR_IDTR"},
    {"handle_ept_violation", "EPT_VIOLATION"},
    {"handle_ept_misconfig", "EPT_MISCONFIG"},
    {"handle_invept", "INVEPT"},
    {"handle_preemption_timer", "PREEMPTION_TIMER"},
    {"handle_fastpath_preemption_timer", "PREEMPTION_TIMER"},
    {"handle_fastpath_set_msr_irqoff", "MSR_WRITE"},
    {"handle_invvpid", "INVVPID"},
    {"kvm_emulate_wbinvd", "WBINVD"},
    {"kvm_emulate_xsetbv", "XSETBV"},
    {"handle_apic_write", "APIC_WRITE"},
    {"handle_invpcid", "INVPCID"},
    {"handle_vmfunc", "VMFUNC"},
    {"handle_encls", "ENCLS"},
    {"handle_pml_full", "PML_FULL"},
    {"handle_bus_lock_vmexit", "BUS_LOCK"},
    {"handle_notify", "NOTIFY"},
};

/* name, the instruction, KVM's name of the reason; "" none */
#define INSTRUCTIONS(I)                                                                                      \
	I(cpuid, "cpuid", "CPUID")                                                                           \
	I(invd, "invd", "INVD")                                                                              \
	I(xsetbv, "xsetbv", "XSETBV")                                                                        \
	I(vmcall, "vmcall", "VMCALL")                                                                        \
	I(vmlaunch, "vmlaunch", "VMLAUNCH")                                                                  \
	I(vmresume, "vmresume", "VMRESUME")                                                                  \
	I(vmxoff, "vmxoff", "VMOFF")                                                                         \
	I(wbinvd, "wbinvd", "")                                                                              \
	I(rdmsr, "rdmsr", "")                                                                                \
	I(hlt, "hlt", "")                                                                                    \
	I(mwait, "mwait", "")                                                                                \
	I(rdtscp, "rdtscp", "")                                                                              \
	I(xgetbv, "xgetbv", "")
#define PLACE(name, text, reason)                                                                            \
	__asm__(".pushsection .rodata\nbegin_" #name ": " text "\nend_" #name ": nop\n.popsection");         \
	extern const uint8_t begin_##name[], end_##name[];
INSTRUCTIONS(PLACE)

static void check_instruction(const uint8_t *begin, const uint8_t *end, const char *text, const char *reason)
{
	uint64_t got = PT_VM_REASONS;
	unsigned bytes = 0;
	size_t n = (size_t)(end - begin);
	bool exits = pt_vm_exit_instruction(begin, n, &got, &bytes);
	char what[64];

	snprintf(what, sizeof what, "%s: %s", text, *reason ? reason : "does not always exit");
	check(exits == !!*reason && (!exits || (bytes == n && got == pt_vm_reason_find(reason))) &&
		  !pt_vm_exit_instruction(begin, n - 1, &got, &bytes),
	      what);
}

int main(void)
{
	unsigned n;

	for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
		n = pt_kvm_find(handlers[i].symbol);
		check_case(n && pt_kvm_function(n)->role == PT_KVM_HANDLER &&
			       pt_kvm_function(n)->reason == pt_vm_reason_find(handlers[i].reason),
			   handlers[i].symbol, handlers[i].reason);
	}
	for (n = 1; pt_kvm_find(pt_kvm_function(n)->name) == n &&
		    strcmp(pt_kvm_function(n)->name, "x86_entry_from_kvm");
	     n++)
		;
	check(!strcmp(pt_kvm_function(n)->name, "x86_entry_from_kvm") &&
		  pt_kvm_find("x86_entry_from_kvm") == n,
	      "every name is found");
	check(pt_kvm_find("handle_io.constprop.0") == pt_kvm_find("handle_io"), "a compiler's suffix");
	check(pt_kvm_find("handle_io\t[kvm_intel]") == pt_kvm_find("handle_io") &&
		  pt_kvm_find("handle_io [kvm_intel]") == pt_kvm_find("handle_io"),
	      "a module's");
	check(!pt_kvm_find("handle_io.cold"), "a cold part is none");
	check(!pt_kvm_find("vmx_handle_nmi"),
	      "Linux 6.13 and later call it after every exit, to ask whether it is one");
	check(!pt_kvm_find("handle_i") && !pt_kvm_find("handle_iox") && !pt_kvm_find(""),
	      "longer and shorter names are others");
	n = pt_kvm_find("asm_sysvec_apic_timer_interrupt");
	check(n && pt_kvm_function(n)->role == PT_KVM_ENTRY && pt_kvm_function(n)->vector == 236, "a vector");
#define CHECK_ONE(name, text, reason) check_instruction(begin_##name, end_##name, text, reason);
	INSTRUCTIONS(CHECK_ONE)
	return sum_up();
}
