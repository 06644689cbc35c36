/*
 * encoded_runs.h - runs that another thread has encoded, or summed up (struct pt_flow_encoded_runs), to
 * records, sums and call stacks. What emit.c does with runs one by one, for many of them.
 *
 * Beside emit.h, whose part it is. A failure is kept in emit, as those of definitions.h.
 */
#ifndef DECODE_OUTPUT_ENCODED_RUNS_H
#define DECODE_OUTPUT_ENCODED_RUNS_H

#include "decode/output/definitions.h"

/* True: they are put. False: they are to be taken one by one, and nothing was done. */
bool pt_emit_encoded_runs(struct pt_emit_stream *s, const struct pt_flow_encoded_runs *runs);

/* One run: emit.c. */
void pt_emit_run(struct pt_emit_stream *s, const struct pt_flow_run *run);

/* The id of the last branch of the run, which has that number and a path of `count`; 0: it is no record. */
static inline uint64_t pt_emit_last_branch(uint64_t number, uint32_t count, const struct pt_flow_run *run)
{
	return number ? number * PTR_RUN_BRANCHES + (uint64_t)count * run->repeats - 1 : 0;
}

#endif
