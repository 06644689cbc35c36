/* commands.h - what pt-decode can do with a container, one file each. */
#ifndef DECODE_COMMANDS_H
#define DECODE_COMMANDS_H

#include <stdio.h>

#include "decode/output/emit.h"
#include "schema/container.h"

/* --packets: a line a packet: offset in the stream's AUX bytes (hexadecimal), name, payload. Returns 0, or -1;
 * *ret_errors counts the places that are no packets. */
int pt_packets_print(struct ptc_reader *r, FILE *out, uint64_t *ret_errors, struct pt_error *e);

/* vm-clock: a table of the guests' clocks, tab-separated, from the packets alone: VMCS (the page's number, as perf has
 * it), the host TSC from which on a row holds, offset, ratio, where it is known from, guest TSC packets that speak
 * for it, the worst residual and the slack of the offset in TSC ticks. Returns 0; 1 when the container was cut (what is
 * before the cut was used, *e says where); or -1. */
struct pt_vm_options;
int pt_vm_clock_print(struct ptc_reader *r, const struct pt_vm_options *options, FILE *out,
		      struct pt_error *e);

/* --text: prints a line a branch with the given fields. */
struct pt_lines;
/* fields: comma-separated names; NULL for the usual ones. NULL with PT_ERR_USAGE when one is unknown. */
struct pt_lines *pt_lines_create(FILE *out, const char *fields, struct pt_error *e);
void pt_lines_destroy(struct pt_lines *l);
const struct pt_text *pt_lines_text(struct pt_lines *l);
/* The names that fields may have, for --help. */
const char *pt_lines_fields(void);

#endif
