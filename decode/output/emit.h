/*
 * emit.h - what flows report, as records: runs, calls, events, errors.
 *
 * One emitter for all streams of a trace, one context for each stream. It takes what flows report
 * (pt_flow_output, flow/flow.h), feeds the call stacks (calls.h), and writes a record stream
 * (schema/records.h) or lines of text.
 */
#ifndef DECODE_OUTPUT_EMIT_H
#define DECODE_OUTPUT_EMIT_H

#include "decode/output/definitions.h"

extern const struct pt_flow_output pt_emit_output; /* arg: struct pt_emit_stream */

int pt_emit_init(struct pt_emit *m, struct ptr_writer *w, struct pt_graph *graph, struct pt_error *e);
void pt_emit_deinit(struct pt_emit *m);
/* From now on, before anything is reported, less is written than all. 0, or -1 (PT_ERR_NO_MEMORY). */
int pt_emit_less(struct pt_emit *m, enum ptr_detail base, struct pt_error *e);
/* machine, task or host_task of the stream have changed. */
void pt_emit_who(struct pt_emit_stream *s);
/* The stream is over: what was held is written. */
void pt_emit_stream_end(struct pt_emit_stream *s);
/* The graph is about to be recycled: nothing is held of its paths any more. What is written is the same as
 * without. */
void pt_emit_recycle(struct pt_emit *m);
/* All calls that are still open end, unreturned; text that is held is printed. */
void pt_emit_finish(struct pt_emit *m);

#endif
