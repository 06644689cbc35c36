/*
 * sums.h - what of a trace is summed up and not written (schema/records.h, "Detail"): executions of paths,
 * calls of call paths, and at the level "sums" what threads did on CPUs.
 *
 * Below emit.h and calls.h, which ask pt_emit_writes() (definitions.h) and come here with the rest, but for
 * calls (call_sums.h). Memory grows with distinct paths, call paths and threads, and not with time. All
 * functions keep a failure in emit, as those of definitions.h.
 */
#ifndef DECODE_OUTPUT_SUMS_H
#define DECODE_OUTPUT_SUMS_H

#include "decode/output/definitions.h"

struct pt_sums;
struct pt_stretch;

struct pt_sums *pt_sums_create(struct pt_emit *emit); /* NULL: no memory */
void pt_sums_destroy(struct pt_sums *sums);	      /* NULL is fine */

/* Runs that may be summed up soon: their sums are fetched into the caches. */
void pt_sums_fetch(const struct pt_sums *sums, const struct pt_flow_run *runs, uint32_t n);
/* A run that is not written. Its interrupts are, where the level has them. */
void pt_sums_run(struct pt_sums *sums, struct pt_emit_stream *s, const struct pt_flow_run *run);
/* Of runs that another thread has summed up, all but the first one: at the level "sums". */
void pt_sums_runs(struct pt_sums *sums, struct pt_emit_stream *s, const struct pt_flow_encoded_runs *runs);
/* A run that is written: a stretch of cycles (struct ptr_run) of which a part was summed up is nobody's.
 * False: it ends such a one. */
bool pt_sums_written_run(struct pt_sums *sums, struct pt_emit_stream *s, const struct pt_flow_run *run);
/* A moment at which calls begin or end: a RUN without branches. Its number, 0 after a failure. */
uint64_t pt_sums_moment(struct pt_sums *sums, const struct pt_emit_stream *s, uint64_t tsc);

/* At the level "sums": the slice of what the stream's thread does on its CPU, of which that is a part
 * that begins now; and how that part ended. */
uint32_t pt_sums_slice(struct pt_sums *sums, const struct ptr_slice *slice);
void pt_sums_slice_end(struct pt_sums *sums, const struct ptr_slice_end *end);

/* The stream's thread begins something new: no stretch goes on. */
void pt_sums_begin(struct pt_sums *sums, struct pt_emit_stream *s);
/* The graph is about to be recycled: the sums of its paths are kept by their record numbers. */
void pt_sums_recycle(struct pt_sums *sums);
/* Paths are about to lose their record numbers: their sums are written. */
void pt_sums_forget_numbers(struct pt_sums *sums);
/* All sums are written. */
void pt_sums_finish(struct pt_sums *sums);

#endif
