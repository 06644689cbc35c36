/*
 * vm_reasons.h - the names of VM exits: basic exit reasons by the SDM (volume 3, appendix C, "VMX
 * basic exit reasons") and as KVM's tracepoints and trace-cmd print them (the kernel's
 * arch/x86/include/uapi/asm/vmx.h).
 */
#ifndef SCHEMA_VM_REASONS_H
#define SCHEMA_VM_REASONS_H

#include <stdint.h>

/* The basic exit reason is bits 15..0 of the VMCS's exit reason. All names are NULL for one that is
 * not defined. */
enum { PT_VM_REASONS = 86 /* all known ones are below */ };

/* "External interrupt", "EPT violation", ... */
const char *pt_vm_reason_name(uint64_t reason);
/* "EXTERNAL_INTERRUPT", "EPT_VIOLATION", ...; NULL, too, when KVM has none for it. */
const char *pt_vm_reason_kvm_name(uint64_t reason);
/* The reason of either name, exactly; UINT64_MAX when there is none. */
uint64_t pt_vm_reason_find(const char *name);

#endif
