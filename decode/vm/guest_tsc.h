/*
 * guest_tsc.h - a TSC packet in a guest: the host's TSC when it was sent.
 */
#ifndef DECODE_VM_GUEST_TSC_H
#define DECODE_VM_GUEST_TSC_H

#include "decode/packet/clock.h"
#include "decode/vm/clock.h"

/*
 * The host TSC of a TSC packet in a guest, best first: from its TMA, by the CTC of the stream's clock; from
 * the guest's TSC, by the VMCS's clock c (NULL: none). TMA has 16 bits of the CTC: after a longer sleep of
 * the CPU the guest's TSC says how often they have wrapped around. The stream's clock is that before the
 * packet, and is not changed.
 *
 * *ret_sure: it is from the TMA, and so is an observation of the guest's clock. False: nothing is known.
 */
bool pt_vm_tsc_to_host(const struct pt_clock *clock, const struct pt_vm_clock *c,
		       const struct pt_tsc_packet *tsc, uint64_t *ret_host, bool *ret_sure);

#endif
