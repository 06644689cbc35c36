/* vm_reasons.c - see vm_reasons.h. */
#include "schema/vm_reasons.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *name, *kvm;
} reasons[PT_VM_REASONS] = {
    [0] = {"Exception or non-maskable interrupt (NMI)", "EXCEPTION_NMI"},
    [1] = {"External interrupt", "EXTERNAL_INTERRUPT"},
    [2] = {"Triple fault", "TRIPLE_FAULT"},
    [3] = {"INIT signal", "INIT_SIGNAL"},
    [4] = {"Start-up IPI (SIPI)", "SIPI_SIGNAL"},
    [5] = {"I/O system-management interrupt (SMI)", NULL},
    [6] = {"Other SMI", "OTHER_SMI"},
    [7] = {"Interrupt window", "INTERRUPT_WINDOW"},
    [8] = {"NMI window", "NMI_WINDOW"},
    [9] = {"Task switch", "TASK_SWITCH"},
    [10] = {"CPUID", "CPUID"},
    [11] = {"GETSEC", NULL},
    [12] = {"HLT", "HLT"},
    [13] = {"INVD", "INVD"},
    [14] = {"INVLPG", "INVLPG"},
    [15] = {"RDPMC", "RDPMC"},
    [16] = {"RDTSC", "RDTSC"},
    [17] = {"RSM", NULL},
    [18] = {"VMCALL", "VMCALL"},
    [19] = {"VMCLEAR", "VMCLEAR"},
    [20] = {"VMLAUNCH", "VMLAUNCH"},
    [21] = {"VMPTRLD", "VMPTRLD"},
    [22] = {"VMPTRST", "VMPTRST"},
    [23] = {"VMREAD", "VMREAD"},
    [24] = {"VMRESUME", "VMRESUME"},
    [25] = {"VMWRITE", "VMWRITE"},
    [26] = {"VMXOFF", "VMOFF"},
    [27] = {"VMXON", "VMON"},
    [28] = {"Control-register accesses", "CR_ACCESS"},
    [29] = {"MOV DR", "DR_ACCESS"},
    [30] = {"I/O instruction", "IO_INSTRUCTION"},
    [31] = {"RDMSR", "MSR_READ"},
    [32] = {"WRMSR", "MSR_WRITE"},
    [33] = {"VM-entry failure due to invalid guest state", "INVALID_STATE"},
    [34] = {"VM-entry failure due to MSR loading", "MSR_LOAD_FAIL"},
    [36] = {"MWAIT", "MWAIT_INSTRUCTION"},
    [37] = {"Monitor trap flag", "MONITOR_TRAP_FLAG"},
    [39] = {"MONITOR", "MONITOR_INSTRUCTION"},
    [40] = {"PAUSE", "PAUSE_INSTRUCTION"},
    [41] = {"VM-entry failure due to machine-check event", "MCE_DURING_VMENTRY"},
    [43] = {"TPR below threshold", "TPR_BELOW_THRESHOLD"},
    [44] = {"APIC access", "APIC_ACCESS"},
    [45] = {"Virtualized EOI", "EOI_INDUCED"},
    [46] = {"Access to GDTR or IDTR", "GDTR_IDTR"},
    [47] = {"Access to LDTR or TR", "LDTR_TR"},
    [48] = {"EPT violation", "EPT_VIOLATION"},
    [49] = {"EPT misconfiguration", "EPT_MISCONFIG"},
    [50] = {"INVEPT", "INVEPT"},
    [51] = {"RDTSCP", "RDTSCP"},
    [52] = {"VMX-preemption timer expired", "PREEMPTION_TIMER"},
    [53] = {"INVVPID", "INVVPID"},
    [54] = {"WBINVD or WBNOINVD", "WBINVD"},
    [55] = {"XSETBV", "XSETBV"},
    [56] = {"APIC write", "APIC_WRITE"},
    [57] = {"RDRAND", "RDRAND"},
    [58] = {"INVPCID", "INVPCID"},
    [59] = {"VMFUNC", "VMFUNC"},
    [60] = {"ENCLS", "ENCLS"},
    [61] = {"RDSEED", "RDSEED"},
    [62] = {"Page-modification log full", "PML_FULL"},
    [63] = {"XSAVES", "XSAVES"},
    [64] = {"XRSTORS", "XRSTORS"},
    [65] = {"PCONFIG", NULL},
    [66] = {"SPP-related event", NULL},
    [67] = {"UMWAIT", "UMWAIT"},
    [68] = {"TPAUSE", "TPAUSE"},
    [69] = {"LOADIWKEY", NULL},
    [70] = {"ENCLV", NULL},
    [72] = {"ENQCMD PASID translation failure", NULL},
    [73] = {"ENQCMDS PASID translation failure", NULL},
    [74] = {"Bus lock", "BUS_LOCK"},
    [75] = {"Instruction timeout", "NOTIFY"},
    [76] = {"SEAMCALL", "SEAMCALL"},
    [77] = {"TDCALL", "TDCALL"},
    [78] = {"RDMSRLIST", NULL},
    [79] = {"WRMSRLIST", NULL},
    [84] = {"RDMSR (immediate)", "MSR_READ_IMM"},
    [85] = {"WRMSRNS (immediate)", "MSR_WRITE_IMM"},
};

const char *pt_vm_reason_name(uint64_t reason)
{
	return reason < PT_VM_REASONS ? reasons[reason].name : NULL;
}

const char *pt_vm_reason_kvm_name(uint64_t reason)
{
	return reason < PT_VM_REASONS ? reasons[reason].kvm : NULL;
}

uint64_t pt_vm_reason_find(const char *name)
{
	for (uint64_t i = 0; i < PT_VM_REASONS; i++)
		if (reasons[i].name &&
		    (!strcmp(reasons[i].name, name) || (reasons[i].kvm && !strcmp(reasons[i].kvm, name))))
			return i;
	return UINT64_MAX;
}
