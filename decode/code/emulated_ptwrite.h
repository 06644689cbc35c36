/*
 * emulated_ptwrite.h - perf's emulated PTWRITE: a value that a function writes into its conditional branches, for processors that
 * have no PTWRITE instruction.
 *
 * perf-intel-pt(1), "Emulated PTWRITE": the function begins with a jump over 16 bytes, 0f 0b "perf,ptwrite  ". Its next 64
 * conditional branches are the value's bits, the highest first: 1 is taken. They are found in the runs of paths, behind the flow.
 * An interrupt, or a system call's way through the kernel, in between is looked past, where perf gives up; another
 * indirect branch or return before the 64th bit ends it, untold.
 */
#ifndef DECODE_CODE_EMULATED_PTWRITE_H
#define DECODE_CODE_EMULATED_PTWRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/code/graph.h"

struct pt_task;

/* The direct jump from `from` to `to` is one that such a function begins with. */
bool pt_emulated_begins(struct img_space *space, uint64_t from, uint64_t to);

/* A stream's. Zeroed: none is being read. */
struct pt_emulated {
	bool reading, interrupted; /* and waiting for `at` to come again */
	uint8_t bits;
	uint64_t value;
	uint64_t at; /* where execution went on behind the last bit's branch */
	uint64_t ip;
	const struct pt_task *task;
};

/* A value is complete. ip: the first instruction behind the jump, which is perf's address of the event. */
typedef void pt_emulated_report_fn(void *arg, uint64_t ip, uint64_t value);

/* One execution of a path by a task (NULL unknown): tells of each value that it completes. To be called while e->reading, and
 * for paths that begin one (pt_path, `emulated`). */
void pt_emulated_path(struct pt_emulated *e, struct pt_graph *g, const struct pt_path *path,
		      const struct pt_task *task, pt_emulated_report_fn *tell, void *arg);

#endif
