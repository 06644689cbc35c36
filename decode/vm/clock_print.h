/*
 * clock_print.h - pt-decode vm-clock: a table of the guests' clocks, from the packets alone.
 */
#ifndef DECODE_VM_CLOCK_PRINT_H
#define DECODE_VM_CLOCK_PRINT_H

#include <stdio.h>

#include "decode/vm/tsc_offset.h"
#include "schema/container.h"

/*
 * Prints one row per span of time, tab-separated: VMCS (the page's number, as perf prints it), the host TSC
 * from which on the row holds, offset (decimal and hexadecimal), ratio, where it is known from, the number
 * of guest TSC packets that agree with it, the largest residual among them, and the slack of the offset.
 * The last two are in TSC ticks.
 *
 * Returns 0; 1 if the container was cut (what lies before the cut was used, and *e says where it is); or -1:
 * PT_ERR_NO_MEMORY, or an error of the container.
 */
int pt_vm_clock_print(struct ptc_reader *r, const struct pt_vm_options *options, FILE *out,
		      struct pt_error *e);

#endif
