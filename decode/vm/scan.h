/*
 * scan.h - looks through PT bytes for guest TSC packets, and tells the guests' clocks (clock.h) of them.
 *
 * Needs no code and no sideband: PIP says which side a stream is on (NR), VMCS whose guest, TMA what the host's clock was
 * when the guest's TSC was read; MTC carries the host's clock from one TMA to the next. Without TMA the host TSC
 * packets before and behind are bounds.
 *
 * Two use it: `pt-decode vm-clock`, over a whole container; and a decode that has a guest's sideband but was not
 * told the guest's clock, over as many bytes as it takes to settle it, before it decodes them.
 */
#ifndef DECODE_VM_SCAN_H
#define DECODE_VM_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/packet/clock.h"
#include "decode/vm/clock.h"

struct pt_vm_scan;

/* clocks: the caller's; they are told of what is found. NULL: no memory. */
struct pt_vm_scan *pt_vm_scan_create(const struct pt_clock_config *config, struct pt_vm_clocks *clocks);
void pt_vm_scan_destroy(struct pt_vm_scan *scan); /* NULL is fine */

/*
 * The next bytes of a stream, at aux_offset. What overlaps the bytes before is skipped; where bytes are missing, and
 * lost behind them (PTC_AUX_TRUNCATED), it begins anew at the next PSB. What is no packet is skipped, too: to say so is the decoder's job.
 * Observations are held until pt_vm_scan_flush(). 0, or -1: no memory.
 */
int pt_vm_scan_feed(struct pt_vm_scan *scan, uint32_t stream, uint64_t aux_offset, const uint8_t *bytes,
		    uint64_t size, bool lost_after);

/* Tells the clocks of all that was found since the last call, in the order of host time. Call it when all streams have
 * been fed up to the same time, or nearly. 0, or -1: no memory. */
int pt_vm_scan_flush(struct pt_vm_scan *scan);

/* Where the i-th VMCS (from 0) was first observed: false past the last. Valid behind pt_vm_scan_flush(). */
bool pt_vm_scan_first(const struct pt_vm_scan *scan, size_t i, uint64_t *ret_vmcs, uint32_t *ret_stream,
		      uint64_t *ret_host_tsc);

/* Guest TSC packets found so far, also those that gave no observation for want of any host time. */
uint64_t pt_vm_scan_guest_tscs(const struct pt_vm_scan *scan);

#endif
