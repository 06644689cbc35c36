/*
 * scan.h - searches PT bytes for guest TSC packets, and gives them to the guests' clocks (clock.h) as
 * observations.
 *
 * Needs neither code nor sideband. PIP says whether the stream is in VMX root or non-root operation (NR),
 * VMCS in whose guest. A TMA says what the CTC was when the guest's TSC was read, and MTC packets carry the
 * host's clock from one TMA to the next. Without TMA the host TSC packets before and after are the bounds.
 *
 * Two use it: `pt-decode vm-clock`, for a whole container; and a decode that has a guest's sideband but not
 * its clock, for as many bytes as it takes to settle the clock, before these are decoded.
 */
#ifndef DECODE_VM_SCAN_H
#define DECODE_VM_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/packet/clock.h"
#include "decode/vm/clocks.h"
#include "schema/container.h"

struct pt_vm_scan;

/* clocks are the caller's, and get what is found. NULL: no memory. */
struct pt_vm_scan *pt_vm_scan_create(const struct pt_clock_config *config, struct pt_vm_clocks *clocks);
void pt_vm_scan_destroy(struct pt_vm_scan *scan); /* NULL is fine */

/*
 * The next bytes of a stream. Bytes that were given before are skipped. Where bytes are missing, and after
 * PTC_AUX_TRUNCATED, it starts again at the next PSB. What is no packet is skipped without an error:
 * reporting it is the decoder's job. Observations are held until pt_vm_scan_flush(). 0, or -1: no memory.
 */
int pt_vm_scan_feed(struct pt_vm_scan *scan, uint32_t stream, const struct ptc_aux *aux);

/* Gives the clocks all observations since the last call, in the order of host time. To be called when all
 * streams have been fed up to nearly the same time. 0, or -1: no memory. */
int pt_vm_scan_flush(struct pt_vm_scan *scan);

/* Where the i-th VMCS (from 0) was observed first: its stream and host TSC. False after the last. Valid after
 * pt_vm_scan_flush(). */
bool pt_vm_scan_first(const struct pt_vm_scan *scan, size_t i, uint64_t *ret_vmcs, uint32_t *ret_stream,
		      uint64_t *ret_host_tsc);

#endif
