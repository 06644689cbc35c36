/*
 * clock.h - the clock of one VMCS: how its guest's TSC relates to the host's, which is known, or solved from
 * the trace.
 *
 *     guest TSC = host TSC * ratio + offset        (span.h has it exactly)
 *
 * Only TSC packets show the guest's TSC. The CTC that TMA and MTC packets carry and the cycles of CYC packets
 * are the host's always. So a guest's TSC packet that a TMA follows is an observation of both clocks at once.
 * Without TMA, it is a guest TSC of which the host TSC lies between two known ones.
 *
 * A clock is a list of spans: each has an offset and a ratio, which hold from a host TSC on. They come from,
 * best first:
 *
 * - an option (--tsc-offset). It is never replaced; what contradicts it is counted
 *   (pt_vm_clock_contradicted()).
 * - KVM: its debugfs, in the container's META, or its tracepoint kvm_write_tsc_offset. Valid until an
 *   observation contradicts it.
 * - observations. The first gives the offset at ratio 1. One that the span does not predict means that the
 *   offset has changed, or that the ratio is not 1: it is the ratio when three observations lie on a line of
 *   another slope. An observation that fits neither span nor line begins a new span.
 */
#ifndef DECODE_VM_CLOCK_H
#define DECODE_VM_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/vm/span.h"

/* A guest TSC packet, and bounds of the host TSC when it was sent: host_lo <= host TSC <= host_hi. */
struct pt_vm_observation {
	uint64_t guest_tsc; /* 56 bits */
	uint64_t host_lo, host_hi;
};

/* An offset and ratio that do not come from observations. */
struct pt_vm_known {
	int64_t offset;
	uint64_t ratio; /* with frac_bits of fraction; 0: ratio 1 */
	unsigned frac_bits;
	enum ptr_clock_source source;
};

struct pt_vm_clock; /* made by clocks.h, which has all of a trace */

uint64_t pt_vm_clock_vmcs(const struct pt_vm_clock *c); /* the VMCS's address */

/* ---- What is known ---------------------------------------------------------------------------------- */

/* The values hold from the host TSC from_tsc on, until others are known. With a ratio that no guest can have
 * (span.h) nothing changes. 0, or -1: no memory. */
int pt_vm_clock_know(struct pt_vm_clock *c, uint64_t from_tsc, const struct pt_vm_known *known);
/* True while all that is known is what the container says of all VMs together, of which it may not know
 * each. An observation ends that, or pt_vm_clock_confirm(): the VMCS is of a VM that it knows. */
bool pt_vm_clock_assumed(const struct pt_vm_clock *c);
void pt_vm_clock_confirm(struct pt_vm_clock *c);
/* The offset that holds at the end of the trace (META, kvm_end.*): a solved span that agrees with it takes
 * its exact value. */
void pt_vm_clock_know_end(struct pt_vm_clock *c, int64_t offset);
/* KVM wrote the VMCS's offset at host_tsc: a change that is seen later, or was seen before the decode, took
 * effect here. */
void pt_vm_clock_written(struct pt_vm_clock *c, uint64_t host_tsc);
/*
 * The VMCS belongs to another vCPU from host_tsc on, so the values from before do not hold any more; but a
 * span that is known to begin later does. Returns true when nothing is known from host_tsc on, until
 * pt_vm_clock_know() or an observation.
 */
bool pt_vm_clock_restart(struct pt_vm_clock *c, uint64_t host_tsc);

/* ---- What is observed ------------------------------------------------------------------------------- */

/*
 * Observations come in the order of host time. One that is older than the last (the vCPU has changed its CPU,
 * and the streams are not decoded in step) is compared with the span of its time, and begins none. 0, or -1:
 * no memory.
 */
int pt_vm_clock_observe(struct pt_vm_clock *c, const struct pt_vm_observation *o);

/*
 * How far, at least, observations are off an option's values, in guest TSC ticks. 0: they agree, there are
 * none, or a single one out of several disagrees.
 */
uint64_t pt_vm_clock_contradicted(const struct pt_vm_clock *c);

/* A clock of so many spans gives up: a trace that changes an offset that often is of no use, or malicious. */
#define PT_VM_SPANS_MAX 65536

/* ---- What it says ----------------------------------------------------------------------------------- */

/* True when there were more than PT_VM_SPANS_MAX spans: from *ret_tsc (host TSC) on nothing is known. */
bool pt_vm_clock_gave_up(const struct pt_vm_clock *c, uint64_t *ret_tsc);
/* Oldest first. Valid until the clock changes. */
const struct pt_vm_span *pt_vm_clock_spans(const struct pt_vm_clock *c, size_t *ret_count);
/* True when more observations would not make it better known: it did not come from observations, or two of
 * them agree. */
bool pt_vm_clock_settled(const struct pt_vm_clock *c);

/*
 * The host TSC at a guest TSC. about_tsc is a host TSC near it: it selects the span, and the upper bits when
 * guest_tsc has 56 bits only. PTR_NO_TSC: guest_tsc has 64 bits, and the last span counts that was in force
 * then. False: nothing is known.
 */
bool pt_vm_clock_to_host(const struct pt_vm_clock *c, uint64_t guest_tsc, uint64_t about_tsc, uint64_t *ret);
/*
 * The host TSC of a record that the guest wrote at guest_tsc (64 bits). After a change of the offset several
 * host TSCs may show the same guest TSC: it is the earliest that is not before after_tsc, the host TSC of the
 * record before (0: none). It may be up to a millisecond before that, because records of nested interrupts
 * are out of order. False: nothing is known.
 */
bool pt_vm_clock_to_host_after(const struct pt_vm_clock *c, uint64_t guest_tsc, uint64_t after_tsc,
			       uint64_t *ret);

#endif
