/*
 * clock_internal.h - the clock of a VMCS, which clock.c (what is known), solve.c (what is observed) and
 * clocks.c (all of a trace) share; clock.h is the contract.
 */
#ifndef DECODE_VM_CLOCK_INTERNAL_H
#define DECODE_VM_CLOCK_INTERNAL_H

#include "decode/vm/clock.h"

/* What an observation says about the offset at a given ratio: it lies in [lo, hi]. */
struct pt_vm_range {
	int64_t lo, hi;
};

/* Ratios from lo to hi, inclusive; none when lo > hi. */
struct pt_vm_slopes {
	uint64_t lo, hi;
};

/* The line through the last span's first observation, in a plane of host and guest TSC. Its slope is the
 * ratio. */
struct pt_vm_line {
	struct pt_vm_observation first, last;
	struct pt_vm_slopes loose; /* that all observations allow within the clock's tolerance */
	struct pt_vm_slopes tight; /* within a rounding error; none when there is no such slope */
	uint64_t points;
	bool open; /* observations may still give the slope */
};

/* How the last span is being solved. */
struct pt_vm_solution {
	struct pt_vm_range offset;
	struct pt_vm_line line;
	bool ratio_known;     /* not from observations: the line is not open */
	bool ratio_estimated; /* the span's ratio is the line's, and more observations make it better */
	bool in_doubt;	      /* the last observation fits the line only: the next one decides */
};

struct pt_vm_clock {
	struct pt_vm_clock *next;
	uint64_t vmcs;
	uint64_t tolerance, host_khz;
	struct pt_vm_span *spans;
	size_t count, room;
	struct pt_vm_solution solution;
	bool was_settled; /* when its observations were last counted anew */
	struct {
		bool known;
		int64_t offset;
	} end;		      /* of the trace */
	uint64_t written_tsc; /* the last write of the offset; 0 none */
	struct {
		uint64_t observations, contradictions;
		uint64_t off_by; /* guest TSC ticks, by the best of the contradictions */
	} option;
	struct {
		bool set;
		uint64_t tsc; /* since then the last span does not hold */
	} expired;
	bool assumed;	/* pt_vm_clock_assumed() */
	bool gave_up;	/* there were more spans than PT_VM_SPANS_MAX: expired for good */
	uint64_t moves; /* how often a span was found to begin at another time, or to have expired */
};

static inline struct pt_vm_span *pt_vm_last_span(const struct pt_vm_clock *c)
{
	return c->count ? &c->spans[c->count - 1] : NULL;
}

/* True when there may be no more spans: from host_tsc on the clock is unknown. */
bool pt_vm_clock_give_up(struct pt_vm_clock *c, uint64_t host_tsc);
/* Another span, zeroed; those there were may move. NULL: no memory. */
struct pt_vm_span *pt_vm_add_span(struct pt_vm_clock *c);

struct pt_vm_clock *pt_vm_clock_create(uint64_t vmcs, uint64_t tolerance,
				       uint64_t host_khz); /* NULL: no memory */
void pt_vm_clock_destroy(struct pt_vm_clock *c);	   /* NULL is fine */

#endif
