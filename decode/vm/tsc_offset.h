/*
 * tsc_offset.h - pt-decode --tsc-offset: the guests' clocks as the user gives them.
 */
#ifndef DECODE_VM_TSC_OFFSET_H
#define DECODE_VM_TSC_OFFSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/vm/clocks.h"

#define PT_VM_OPTIONS_MAX 64

/* Zeroed, it is empty. */
struct pt_vm_options {
	size_t count;
	struct pt_vm_option {
		uint64_t vmcs; /* its address, or PT_VM_ANY */
		uint64_t ratio;
		int64_t offset;
	} given[PT_VM_OPTIONS_MAX];
};

/*
 * Adds one or several "[VMCS:]OFFSET[*RATIO]", comma-separated. VMCS is the page's number (address >> 12), as
 * perf prints it; OFFSET is signed or its two's complement; both are decimal or 0x.... RATIO is a decimal
 * fraction ("0.66774"), or 0x... with PT_VM_RATIO_BITS of fraction. False when the text is not that, or there
 * are more than PT_VM_OPTIONS_MAX.
 */
bool pt_vm_options_add(struct pt_vm_options *o, const char *text);
/* Before anything else is known of the clocks. 0, or -1: no memory. */
int pt_vm_options_apply(const struct pt_vm_options *o, struct pt_vm_clocks *clocks);

#endif
