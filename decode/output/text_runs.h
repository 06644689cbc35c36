/*
 * text_runs.h - runs to the lines of pt-decode --text, each branch with its time: estimate, bounds and class.
 *
 * Lines come out in the order of runs and errors, as soon as their times are settled
 * (schema/derived/run_times.h).
 */
#ifndef DECODE_OUTPUT_TEXT_RUNS_H
#define DECODE_OUTPUT_TEXT_RUNS_H

#include "decode/output/definitions.h"

struct pt_text_runs;

/* text is the caller's and must outlive this. NULL: no memory. */
struct pt_text_runs *pt_text_runs_create(const struct pt_graph *graph, const struct pt_text *text);
void pt_text_runs_destroy(struct pt_text_runs *t);
/* False: no memory. */
bool pt_text_runs_put(struct pt_text_runs *t, const struct pt_emit_stream *s, const struct pt_path *path,
		      const struct pt_flow_run *run);
/* kind and message are copied. */
bool pt_text_runs_error(struct pt_text_runs *t, const struct pt_error_line *line);
/* The graph is about to be recycled: what is held needs it no more. False: no memory. */
bool pt_text_runs_recycle(struct pt_text_runs *t);
/* It is the end: prints all that is held. */
void pt_text_runs_settle(struct pt_text_runs *t);

#endif
