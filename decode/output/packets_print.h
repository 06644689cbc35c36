/*
 * packets_print.h - pt-decode --packets: one line per packet.
 */
#ifndef DECODE_OUTPUT_PACKETS_PRINT_H
#define DECODE_OUTPUT_PACKETS_PRINT_H

#include <stdio.h>

#include "schema/container.h"

/*
 * Prints the offset in the stream's AUX data (hexadecimal), the packet's name and its payload. *ret_errors
 * counts the places that hold no packets. Returns 0, or -1: PT_ERR_NO_MEMORY, or an error of ptc_next() or
 * ptc_parse_aux().
 */
int pt_packets_print(struct ptc_reader *r, FILE *out, uint64_t *ret_errors, struct pt_error *e);

#endif
