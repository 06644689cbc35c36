/*
 * cyc_binding.h - which branch of a TNT packet is timed by the CYC packet before it: the first or the last.
 *
 * By the SDM ("Cycle Packet Semantics") it is the first:
 *
 *     packets      CYC 1    TNT 1    CYC 2    TNT 2
 *     branches              a b c             d e f
 *     SDM          CYC 1 is when a retired, CYC 2 when d did
 *     emulators    CYC 1 is when c retired, CYC 2 when f did
 *
 * There are encoders (emulators) that look at the clock when a TNT packet is full, not when its first branch
 * retires. Then times by the SDM are late by a packet. Which it is shows: cycles are in proportion to the
 * instructions between the branches that they time. So the cycles of short stretches are compared with both
 * counts of instructions. The SDM's reading stands unless the other one fits better more than twice as often.
 */
#ifndef DECODE_FLOW_CYC_BINDING_H
#define DECODE_FLOW_CYC_BINDING_H

#include <stdbool.h>
#include <stdint.h>

enum {
	PT_CYC_BINDING_SAMPLES = 4096, /* that are taken, at most */
	PT_CYC_BINDING_LEAST = 64,     /* before anything is concluded */
	/* cycles, instructions: longer stretches have interrupts, string instructions, ... in them */
	PT_CYC_BINDING_SHORT = 256
};

/* A CYC packet and the TNT packet after it. */
struct pt_cyc_sample {
	uint64_t packet;      /* the TNT's number in the stream */
	uint64_t cyc;	      /* the sum of all CYC packets, with this one */
	uint64_t first_insns; /* instructions executed up to the TNT's first branch */
	uint64_t last_insns;  /* and up to the last one of the TNT before */
};

/* What the samples have shown so far. Zeroed at first. */
struct pt_cyc_binding {
	bool times_last;	       /* the conclusion: a CYC times the last branch */
	uint32_t samples;	       /* taken so far */
	uint32_t for_first, for_last;  /* of these, how many fit better */
	uint32_t in_a_row;	       /* of these, the last ones with nothing but CYC and TNT between them */
	uint64_t insn_sum, cyc_sum;    /* by the SDM's reading: the rate */
	struct pt_cyc_sample previous; /* and its cyc less that of the one before it: */
	uint64_t previous_cycles;
};

/* To be called while samples < PT_CYC_BINDING_SAMPLES. */
void pt_cyc_binding_sample(struct pt_cyc_binding *b, const struct pt_cyc_sample *s);

#endif
