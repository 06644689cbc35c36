/*
 * guest_tsc.h - a guest's TSC packet in a stream: what the host's TSC was then.
 */
#ifndef DECODE_VM_GUEST_TSC_H
#define DECODE_VM_GUEST_TSC_H

#include "decode/packet/clock.h"
#include "decode/vm/clock.h"

/*
 * The host TSC at a TSC packet in a guest, best first: by its TMA, from what the stream's clock knows of the
 * CTC; by the guest's clock. Where a CPU slept for longer than the 16 bits of the CTC tell, the guest's
 * clock says how often they came round. c may be NULL: no clock. The stream's clock stays as it is.
 *
 * *ret_sure: it is the TMA's, and so an observation of the guest's clock. False: nothing is known.
 */
bool pt_vm_tsc_to_host(const struct pt_clock *clock, const struct pt_vm_clock *c,
		       const struct pt_tsc_packet *tsc, uint64_t *ret_host, bool *ret_sure);

#endif
