/*
 * cyc_binding.h - whether a stream's CYC packets time the first branch of the TNT behind them, or its last.
 *
 * By the SDM ("Cycle Packet Semantics") it is the first. But there are encoders (emulators) that ask the time when
 * a TNT packet is full, and then times by the SDM are late by a packet. Which it is can be seen: cycles go with the
 * instructions between what they time. So cycles of short stretches are compared with both counts of instructions; the
 * SDM's stands unless the other one fits better twice as often.
 */
#ifndef DECODE_FLOW_CYC_BINDING_H
#define DECODE_FLOW_CYC_BINDING_H

#include "decode/flow/internal.h"

enum {
	PT_CYC_BINDING_SAMPLES = 4096, /* taken at most */
	PT_CYC_BINDING_LEAST = 64,     /* before anything is concluded */
	PT_CYC_BINDING_SHORT =
	    256 /* cycles, instructions: longer stretches hold interrupts, string instructions, ... */
};

/* A TNT packet behind a CYC, the packet-th of the stream: cyc is the sum of CYCs with it, first and last the instructions executed up to its first branch
 * and up to the last of the TNT packet before. To be called while samples < PT_CYC_BINDING_SAMPLES. */
void pt_cyc_binding_sample(struct pt_cyc_binding *l, uint64_t packet, uint64_t cyc, uint64_t first,
			   uint64_t last);

#endif
