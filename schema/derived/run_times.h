/*
 * run_times.h - when branches were: from a stream's runs and their timing packets (records.h) to estimates and bounds.
 *
 * All runs between two timing packets of a stream carry the earlier one's time: a stretch. Its branches lie between
 * that and the next packet's time. Where in between is estimated: the time is shared out by the instructions
 * executed, of which half lie before a packet that is of neither branch beside it. Where tracing was off meanwhile, what was executed goes at the pace of the stretches before, and the gaps
 * share the rest. Estimates never leave their bounds and never go back within a stream. Exact is only the first branch
 * of a run with PTR_TIME_EXACT.
 *
 * Runs go in in the order of the record stream and come out in the same order, as soon as the next timing packet is
 * known. No more than PTR_TIMES_HELD are held: what is pushed out by more has no upper bound, and its lower one as
 * estimate.
 */
#ifndef SCHEMA_DERIVED_RUN_TIMES_H
#define SCHEMA_DERIVED_RUN_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#define PTR_TIMES_HELD 32768 /* runs */

struct ptr_timed_run {
	/* The caller's to fill in. */
	uint32_t stream, slice;
	uint32_t timing; /* as in struct ptr_run */
	bool begins;  /* tracing was off before its first branch. It is taken for so in another slice, too, */
	bool crosses; /* but for a VM entry or exit: then this is true */
	/* its last branch is a direct jump or call: nothing in the trace is of its own time */
	bool direct_last;
	uint32_t first_insns; /* up to its first branch, inclusive */
	uint64_t insns;	      /* in all of it */
	uint64_t tsc;	      /* PTR_NO_TSC unknown. Never less than that of the stream's run before */
	/* Found out. PTR_NO_TSC unknown. */
	uint64_t tsc_est; /* of its first branch; tsc when PTR_TIME_EXACT */
	/* behind its last branch: of the next run's first, unless tracing was off in between */
	uint64_t tsc_next;
	uint64_t tsc_end;    /* none of its branches is younger */
	uint64_t insns_next; /* from its first branch to where tsc_next is */
	/* private */
	uint32_t next;
	bool settled;
	/* The caller's own. */
	union {
		uint64_t u64[12];
		void *p[12];
	} own;
};

struct ptr_times;

struct ptr_times *ptr_times_create(void); /* NULL: no memory */
void ptr_times_destroy(struct ptr_times *t);

/* Takes *run. When ptr_times_full(), take all that ptr_times_next() has first. False: no memory for another stream. */
bool ptr_times_put(struct ptr_times *t, const struct ptr_timed_run *run);
/* The next run whose times are settled, valid until the next put; NULL: it is to be waited for, or there is none. */
const struct ptr_timed_run *ptr_times_next(struct ptr_times *t);
/* No more runs of what is held: all of it is settled as well as can be. */
void ptr_times_settle(struct ptr_times *t);

#endif
