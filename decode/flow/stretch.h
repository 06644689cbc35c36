/*
 * stretch.h - whose the cycles of a stretch of runs are.
 *
 * A run's cyc_count is of all runs since the last one that has one: a stretch. In sums of paths (struct
 * ptr_path_sum) these are shared out by instructions, in parts of a cycle that are whole numbers, so that they
 * may be added up in any order:
 *
 *     runs        a     b     c        d     e
 *     insns       10    20    10       5     5
 *     cyc_count   -     -     80       -     20
 *     shares      20    40    20       10    10
 */
#ifndef DECODE_FLOW_STRETCH_H
#define DECODE_FLOW_STRETCH_H

#include <stdint.h>

/* Of runs of a longer one none gets any (as in pt-load's slices). */
#define PT_STRETCH_RUNS 4096
/* Of a cycle. */
#define PT_CYCLE_SHARES 65536

/* The share of so many of a stretch's all_insns, in parts of a cycle. */
static inline uint64_t pt_cycles_share(uint64_t cycles, uint64_t insns, uint64_t all_insns)
{
	return (uint64_t)((double)insns * ((double)cycles / (double)all_insns) * PT_CYCLE_SHARES + 0.5);
}

#endif
