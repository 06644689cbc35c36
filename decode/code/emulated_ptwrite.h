/*
 * emulated_ptwrite.h - perf's emulated PTWRITE: for processors without the PTWRITE instruction, a value that
 * a function writes into its conditional branches.
 *
 * perf-intel-pt(1), "Emulated PTWRITE": the function begins with a jump over 16 bytes, 0f 0b "perf,ptwrite
 * ". Its next 64 conditional branches are the value's bits, the highest first; taken is 1. They are read from
 * the runs of paths that the flow reports. Interrupts and system calls in between are skipped, where perf
 * gives up. Another indirect branch or return before the 64th bit ends the reading without a value.
 */
#ifndef DECODE_CODE_EMULATED_PTWRITE_H
#define DECODE_CODE_EMULATED_PTWRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/code/graph.h"

struct pt_task; /* sideband/tasks.h; compared only */

/* A stream's. Zeroed: no value is being read. */
struct pt_emulated {
	bool reading;
	bool interrupted; /* the task has left the function, and comes back at `at` */
	uint8_t bits;	  /* read so far */
	uint64_t value;
	uint64_t at; /* where execution continues after the last bit's branch */
	uint64_t ip;
	const struct pt_task *task;
};

/* A value is complete. ip: the first instruction after the jump, which is perf's address of the event. */
typedef void pt_emulated_report_fn(void *arg, uint64_t ip, uint64_t value);

/*
 * Reads one execution of a path by a task (NULL unknown), and reports each value that it completes. To be
 * called while e->reading, and for paths that begin a value (struct pt_path, `emulated`).
 */
void pt_emulated_path(struct pt_emulated *e, struct pt_graph *g, const struct pt_path *path,
		      const struct pt_task *task, pt_emulated_report_fn *report, void *arg);

#endif
