/*
 * scan.h - searches PT bytes for guest TSC packets, and gives them to the guests' clocks (clock.h) as
 * observations.
 *
 * Needs neither code nor sideband. PIP says whether the stream is in VMX root or non-root operation (NR),
 * VMCS in whose guest. A TMA says what the CTC was when the guest's TSC was read, and MTC packets carry the
 * host's clock from one TMA to the next. Without TMA the host TSC packets before and after are the bounds.
 *
 * A stream, or what follows lost bytes, may begin in a guest: with a guest TSC before the first host
 * TSC. Its TMA and the MTC packets up to that host TSC's TMA say how long ago it was, unless tracing
 * was off or the CPU asleep meanwhile.
 *
 * Two use it: `pt-decode vm-clock`, for a whole container; and a decode that begins in a guest, or
 * has a guest's sideband but not its clock, for as many bytes as it takes to settle the clock, before
 * these are decoded.
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

/*
 * Where the i-th VMCS (from 0) was observed first at a host TSC that is certain, or where there is none, within
 * two. False after the last. Valid after pt_vm_scan_flush().
 */
struct pt_vm_first {
	uint64_t vmcs;
	uint32_t stream;
	uint64_t host_lo, host_hi; /* inclusive */
};
bool pt_vm_scan_first(const struct pt_vm_scan *scan, size_t i, struct pt_vm_first *ret);

/* When the i-th stretch (from 0) of a stream began that begins in a guest. False after the last. */
struct pt_vm_begin {
	uint32_t stream;
	uint64_t guest_tsc; /* its first TSC packet's 56 bits */
	uint64_t host_tsc;  /* at that packet */
};
bool pt_vm_scan_begin(const struct pt_vm_scan *scan, size_t i, struct pt_vm_begin *ret);
/* True while a stream has begun in a guest whose clock is not known, or its first host TSC is yet to
 * come. Valid after pt_vm_scan_flush(). */
bool pt_vm_scan_waits(const struct pt_vm_scan *scan);

#endif
