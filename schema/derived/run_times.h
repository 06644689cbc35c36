/*
 * run_times.h - the times of branches: estimates and bounds, from a stream's runs and their timing packets
 * (records.h).
 *
 * All runs between two timing packets of a stream carry the time of the first. Their branches lie between
 * that and the time of the second: these are the bounds. Branch times inside the interval are interpolated by
 * instruction count. A timing packet that belongs to neither neighbouring branch is taken to lie halfway
 * between them. If tracing was off in the interval, its instructions take the time that they took in the
 * intervals before, and the gaps take the rest, in equal parts.
 *
 * An estimate lies within its bounds, and is not before another one of an earlier branch of the stream. Exact
 * are only the first branches of runs with PTR_TIME_EXACT.
 *
 * Runs come out in the order in which they are put in, that of the record stream: each as soon as its next
 * timing packet is known. At most PTR_TIMES_HELD are held. A run that has to come out before that has no
 * upper bound, and the lower one as estimate.
 */
#ifndef SCHEMA_DERIVED_RUN_TIMES_H
#define SCHEMA_DERIVED_RUN_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#define PTR_TIMES_HELD 32768 /* runs */

struct ptr_timed_run {
	/* To be filled in. */
	uint32_t stream, slice;
	uint32_t timing; /* as in struct ptr_run */
	/* Tracing was off before its first branch. That is also assumed of the first run of a slice, unless
	 * crosses. */
	bool begins;
	bool crosses; /* its first branch is a VM entry or exit: the slice before ended with the same one */
	/* Its last branch is a direct jump or call, which has no packet, and so no time of its own. */
	bool direct_last;
	uint32_t first_insns; /* instructions up to its first branch, inclusive */
	uint64_t insns;	      /* in all of it */
	uint64_t tsc;	      /* PTR_NO_TSC unknown. Not less than that of the stream's run before */
	/* Found. PTR_NO_TSC unknown. */
	uint64_t tsc_est; /* of its first branch; tsc when PTR_TIME_EXACT */
	/* After its last branch: the estimate of the next run's first branch, unless tracing was off in
	 * between. */
	uint64_t tsc_next;
	uint64_t tsc_end;    /* none of its branches is younger */
	uint64_t insns_next; /* instructions from its first branch to where tsc_next is */
	/* Private. */
	uint32_t next;
	bool settled;
	/* The caller's own. */
	union {
		uint64_t u64[12];
		void *p[12];
	} own;
};

struct ptr_times;

struct ptr_times *ptr_times_create(void);    /* NULL: no memory */
void ptr_times_destroy(struct ptr_times *t); /* NULL is fine */

/*
 * Takes a run: *ptr_times_room(), in which what is to be filled in was, and the caller's own, or *run. Before
 * the next one, ptr_times_next() is to be called until it returns NULL. NULL, false: no memory.
 */
struct ptr_timed_run *ptr_times_room(struct ptr_times *t);
bool ptr_times_add(struct ptr_times *t);
bool ptr_times_put(struct ptr_times *t, const struct ptr_timed_run *run);
/* The next run of which the times are known, valid until the next put. NULL: there is none yet. */
const struct ptr_timed_run *ptr_times_next(struct ptr_times *t);
/* The n-th run that is held, from 0 on, of which the caller may change its own; NULL: there are fewer. Valid
 * until the next put. */
struct ptr_timed_run *ptr_times_held(struct ptr_times *t, uint32_t n);
/* No more runs follow: those that are held get the times that are known. */
void ptr_times_settle(struct ptr_times *t);

#endif
