/*
 * clock.h - a guest's TSC brought back to the host's: what is known, else solved from what the trace shows.
 *
 * In VMX non-root operation a TSC packet carries what RDTSC would give there:
 *
 *     guest TSC = (host TSC * ratio >> PT_VM_RATIO_BITS) + offset       (modulo 2^64; a packet has 56 bits of it)
 *
 * while TMA's CTC, MTC and CYC are the host's always (SDM vol. 3, "VMX TSC Manipulation"; "TSC Scaling" for the order of the
 * two). So each guest TSC packet that a TMA follows is an observation of both clocks at once, and one without is
 * a guest TSC whose host TSC lies between two known ones.
 *
 * Each VMCS has a clock: a list of spans, each with an offset and ratio that holds from a host TSC on. What was
 * told (an option, KVM's debugfs, KVM's tracepoint) is believed until an observation contradicts it; an option is
 * believed always. Without any, the first observation gives the offset at ratio 1. An observation that contradicts
 * the span is a change of the offset, or says that the clocks run at different rates: three observations on a line
 * of another slope make it the latter. What is unlike both begins a new span at once.
 *
 * Pure: no I/O, no allocation that is not freed by destroy.
 */
#ifndef DECODE_VM_CLOCK_H
#define DECODE_VM_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/records.h"

#define PT_VM_RATIO_BITS 48 /* as VT-x has it (SDM, "TSC multiplier") */
#define PT_VM_RATIO_ONE	 ((uint64_t)1 << PT_VM_RATIO_BITS)
#define PT_VM_ANY	 UINT64_MAX /* in place of a VMCS: whichever has nothing of its own */

struct pt_vm_span {
	uint64_t from_tsc; /* host TSC from which on it holds; 0: from the beginning */
	uint64_t ratio;	   /* guest ticks a host tick, PT_VM_RATIO_BITS of fraction */
	int64_t offset;
	enum ptr_clock_source source;
	uint64_t observations;	 /* guest TSC packets that it was checked with */
	uint64_t worst_residual; /* of those: guest TSC ticks between packet and prediction, at most */
	uint64_t slack;		 /* the offset is certain up to so many ticks; 0: exact */
	/* host TSC of the last observation that agreed; 0 none. The next span began behind it */
	uint64_t seen_tsc;
};

/* A guest TSC packet, and the host TSC then: host_lo <= it <= host_hi. */
struct pt_vm_observation {
	uint64_t guest_tsc; /* 56 bits */
	uint64_t host_lo, host_hi;
};

struct pt_vm_clock;  /* of one VMCS */
struct pt_vm_clocks; /* of a trace */

/* tolerance: TSC ticks that two exact observations may differ by without being a contradiction: a CTC tick.
 * host_khz: the host's TSC, 0 unknown: KVM's ratios are of whole kHz, which makes a solved one exact.
 * NULL: no memory. */
struct pt_vm_clocks *pt_vm_clocks_create(uint64_t tolerance, uint64_t host_khz);
void pt_vm_clocks_destroy(struct pt_vm_clocks *all); /* NULL is fine */

/* The VMCS's clock, made when it is new, from what is known of PT_VM_ANY. NULL: no memory. */
struct pt_vm_clock *pt_vm_clocks_get(struct pt_vm_clocks *all, uint64_t vmcs);
/* What was told as an option is not what the trace shows: how far off at least, in guest TSC ticks; 0: they agree, or nothing was
 * seen. It needs more than one packet, unless there was only one. */
uint64_t pt_vm_clock_contradicted(const struct pt_vm_clock *c);
/* Each clock that an option was told of has been observed as often as it takes. */
bool pt_vm_clocks_tested(const struct pt_vm_clocks *all);
/* As get, but NULL when it is new. */
const struct pt_vm_clock *pt_vm_clocks_find(const struct pt_vm_clocks *all, uint64_t vmcs);
/* The clocks in the order of first sight: i = 0, 1...; NULL past the last. PT_VM_ANY's is none of them. */
struct pt_vm_clock *pt_vm_clocks_at(struct pt_vm_clocks *all, size_t i);
const struct pt_vm_clock *pt_vm_clocks_any(const struct pt_vm_clocks *all); /* PT_VM_ANY's */
uint64_t pt_vm_clock_vmcs(const struct pt_vm_clock *c);

/*
 * This offset and ratio hold from the host TSC from_tsc on (0: until something else is known). ratio has
 * frac_bits of fraction; 0 is ratio 1. 0, or -1: no memory.
 */
int pt_vm_clock_know(struct pt_vm_clock *c, uint64_t from_tsc, int64_t offset, uint64_t ratio,
		     unsigned frac_bits, enum ptr_clock_source source);
/* As pt_vm_clock_know(), for each VMCS that nothing else was told of. */
int pt_vm_clocks_know_any(struct pt_vm_clocks *all, int64_t offset, uint64_t ratio, unsigned frac_bits,
			  enum ptr_clock_source source);
/* As pt_vm_clock_know_end(), likewise. */
void pt_vm_clocks_know_end_any(struct pt_vm_clocks *all, int64_t offset);
/* An offset that holds at the trace's end (kvm_end.*): a solved span that agrees with it takes its exact value. */
void pt_vm_clock_know_end(struct pt_vm_clock *c, int64_t offset);
/* KVM wrote this VMCS's offset at host_tsc: a change that shows later, or has shown already behind it, took effect here. */
void pt_vm_clock_written(struct pt_vm_clock *c, uint64_t host_tsc);

/* The VMCS is another VM's from host_tsc on: what was known holds no more, unless a span is known that began since then. Until
 * one is told or observed, nothing is known of that time: true. */
bool pt_vm_clock_restart(struct pt_vm_clock *c, uint64_t host_tsc);

/* 0, or -1: no memory. One that is older than another before it (a vCPU that changes CPUs) checks the span of its time, and
 * begins none. */
int pt_vm_clock_observe(struct pt_vm_clock *c, const struct pt_vm_observation *o);

/* Spans, oldest first. */
const struct pt_vm_span *pt_vm_clock_spans(const struct pt_vm_clock *c, size_t *ret_count);
/* True when it is known as well as a trace can tell: it was told, or two observations agree. */
bool pt_vm_clock_settled(const struct pt_vm_clock *c);

/*
 * The host TSC of a guest's. about_tsc: a host TSC near it, PTR_NO_TSC (UINT64_MAX) when there is none; picks the span when there are
 * several, and the upper bits of a guest TSC of 56. False: nothing is known.
 */
bool pt_vm_clock_to_host(const struct pt_vm_clock *c, uint64_t guest_tsc, uint64_t about_tsc, uint64_t *ret);
/*
 * The host TSC of what the guest wrote at guest_tsc (all 64 bits), where several spans may be meant: the earliest of the
 * times that lie within their own span, but not before after_tsc (0: whenever), which is when the guest wrote what it wrote
 * before that. An answer may lie a millisecond before it: records of nested interrupts are out of order.
 */
bool pt_vm_clock_to_host_after(const struct pt_vm_clock *c, uint64_t guest_tsc, uint64_t after_tsc,
			       uint64_t *ret);
/* True when there are clocks, or one for any, and all are settled. */
bool pt_vm_clocks_settled(const struct pt_vm_clocks *all);
/* Another number than before is a change of which span holds when. */
uint64_t pt_vm_clocks_changes(const struct pt_vm_clocks *all);
/* What was observed will be observed again, in the decode: the counts begin anew, what was learnt stays. */
void pt_vm_clocks_recount(struct pt_vm_clocks *all);
/* By one span, for tests and tables. */
uint64_t pt_vm_span_to_guest(const struct pt_vm_span *s, uint64_t host_tsc);
uint64_t pt_vm_span_to_host(const struct pt_vm_span *s, uint64_t guest_tsc);

/*
 * --tsc-offset: one or several "[VMCS:]OFFSET[*RATIO]", comma-separated. VMCS and OFFSET are decimal or 0x..., VMCS as
 * perf prints it (the page's number: address >> 12), OFFSET signed or its two's complement, RATIO a decimal fraction
 * ("0.66774") or 0x... with 48 bits of fraction. False when the text is not that, or there are more than
 * PT_VM_OPTIONS_MAX. A zeroed struct is empty.
 */
#define PT_VM_OPTIONS_MAX 64
struct pt_vm_options {
	size_t count;
	struct {
		uint64_t vmcs; /* address, or PT_VM_ANY */
		uint64_t ratio;
		int64_t offset;
	} told[PT_VM_OPTIONS_MAX];
};
bool pt_vm_options_add(struct pt_vm_options *o, const char *text);
/* To be called before anything else is told to the clocks. 0, or -1: no memory. */
int pt_vm_options_apply(const struct pt_vm_options *o, struct pt_vm_clocks *clocks);

#endif
