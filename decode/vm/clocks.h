/*
 * clocks.h - the guests' clocks of a trace (clock.h), by VMCS.
 */
#ifndef DECODE_VM_CLOCKS_H
#define DECODE_VM_CLOCKS_H

#include "decode/vm/clock.h"

/* In place of a VMCS: each VMCS of which nothing else is known. */
#define PT_VM_ANY UINT64_MAX

struct pt_vm_clocks;

/*
 * tolerance: TSC ticks by which two exact observations may differ without contradicting one another: those of
 * a CTC tick. host_khz: the host's TSC frequency, 0 unknown. KVM's guests have whole kHz, which makes a
 * solved ratio exact. NULL: no memory.
 */
struct pt_vm_clocks *pt_vm_clocks_create(uint64_t tolerance, uint64_t host_khz);
void pt_vm_clocks_destroy(struct pt_vm_clocks *all); /* NULL is fine */

/* The VMCS's clock. A new one starts with what is known of PT_VM_ANY. It lives as long as all. NULL: no
 * memory. */
struct pt_vm_clock *pt_vm_clocks_get(struct pt_vm_clocks *all, uint64_t vmcs);
/* The same, but NULL when there is none yet. */
const struct pt_vm_clock *pt_vm_clocks_find(const struct pt_vm_clocks *all, uint64_t vmcs);
/* The clocks in the order in which they were made: i = 0, 1, ...; NULL after the last. PT_VM_ANY's is not
 * among them. */
struct pt_vm_clock *pt_vm_clocks_at(struct pt_vm_clocks *all, size_t i);
const struct pt_vm_clock *pt_vm_clocks_any(const struct pt_vm_clocks *all); /* PT_VM_ANY's */

/*
 * pt_vm_clock_know() and pt_vm_clock_know_end() for each VMCS of which nothing is known. 0, or -1: no memory.
 */
int pt_vm_clocks_know_any(struct pt_vm_clocks *all, const struct pt_vm_known *known);
void pt_vm_clocks_know_end_any(struct pt_vm_clocks *all, int64_t offset);

/* True when there are clocks, or values for PT_VM_ANY, and all are settled. */
bool pt_vm_clocks_settled(const struct pt_vm_clocks *all);
/* True when there are enough observations of each clock that an option gives to say whether they contradict
 * it. */
bool pt_vm_clocks_tested(const struct pt_vm_clocks *all);
/* A number that changes when a span is added or begins at another time: times that were computed before may
 * be wrong. */
uint64_t pt_vm_clocks_changes(const struct pt_vm_clocks *all);
/* A value that differs when a clock has become known or settled, or is no longer. (A hash: of two states that
 * follow one another it is never the same by more than chance.) */
uint64_t pt_vm_clocks_known(const struct pt_vm_clocks *all);
/* All observations will be made a second time, by the decode: the spans' counts of them begin at 0, the
 * values are kept. */
void pt_vm_clocks_recount(struct pt_vm_clocks *all);

#endif
