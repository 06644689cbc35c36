/*
 * span.h - the relation between a guest's TSC and the host's, while it does not change.
 *
 * In VMX non-root operation RDTSC returns, and so a TSC packet carries (SDM vol. 3, "Time-Stamp Counter
 * Offset and Multiplier", and for packets "VMX TSC Manipulation"):
 *
 *     guest TSC = (host TSC * ratio >> PT_VM_RATIO_BITS) + offset
 *
 * modulo 2^64; a packet has the lower 56 bits of it.
 *
 * The ratio is the VMCS's TSC multiplier, the offset its TSC offset. Pure functions.
 */
#ifndef DECODE_VM_SPAN_H
#define DECODE_VM_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/records.h"

#define PT_VM_RATIO_BITS 48 /* of fraction, as the TSC multiplier has them */
#define PT_VM_RATIO_ONE	 ((uint64_t)1 << PT_VM_RATIO_BITS)
/* Inclusive: no guest's TSC runs slower or faster than that. */
#define PT_VM_RATIO_MIN (PT_VM_RATIO_ONE / 64)
#define PT_VM_RATIO_MAX (PT_VM_RATIO_ONE * 64)

/* A span of host time in which one offset and ratio hold. It ends where the next one begins. */
struct pt_vm_span {
	uint64_t from_tsc; /* host TSC at which it begins; 0: from the beginning of the trace */
	uint64_t ratio;	   /* guest ticks per host tick, with PT_VM_RATIO_BITS of fraction */
	int64_t offset;	   /* guest TSC ticks */
	enum ptr_clock_source source;
	uint64_t observations;	 /* guest TSC packets that were compared with it */
	uint64_t worst_residual; /* of these: the most guest TSC ticks between packet and prediction */
	uint64_t slack;		 /* the offset is certain to that many ticks; 0: exact */
	/* host TSC of the last observation that agreed: the next span began after it; 0 none */
	uint64_t seen_tsc;
};

/* The guest's TSC at a host TSC: all 64 bits. */
uint64_t pt_vm_span_to_guest(const struct pt_vm_span *s, uint64_t host_tsc);
/* The first host TSC at which the guest's is guest_tsc. */
uint64_t pt_vm_span_to_host(const struct pt_vm_span *s, uint64_t guest_tsc);
/* The same, where guest_tsc has 56 bits only: the one that is nearest to the host TSC about_tsc. */
uint64_t pt_vm_span_to_host_near(const struct pt_vm_span *s, uint64_t guest_tsc, uint64_t about_tsc);

/* Gives a ratio with frac_bits of fraction PT_VM_RATIO_BITS of them; 0 is ratio 1. False: it is not from
 * PT_VM_RATIO_MIN to PT_VM_RATIO_MAX. */
bool pt_vm_ratio(uint64_t ratio, unsigned frac_bits, uint64_t *ret);

/* host_tsc * ratio. */
uint64_t pt_vm_scale(uint64_t host_tsc, uint64_t ratio);
/* A difference of TSCs of which the lower 56 bits are known: the one that is nearest to 0. */
int64_t pt_vm_extend56(uint64_t difference);

#endif
