/* runs.c - taken branches become paths, paths become runs, runs become slices; see internal.h. */
#include "decode/flow/internal.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Paths ------------------------------------------------------------------------------------------ */

void pt_flow_hold_path(struct pt_flow *f, uint32_t path)
{
	uint32_t count;

	/* The path is looked at when it is reported, several runs later. */
	__builtin_prefetch(&f->graph->paths[path], 1);
	if (f->run.repeats) {
		if (path == f->run.path) {
			count = f->graph->path_counts[path];
			if (count && (f->run.repeats + 1) * count <= PTR_RUN_BRANCHES) {
				f->run.repeats++;
				return;
			}
		}
		pt_flow_put_run(f, PTR_UNKNOWN, 0);
	}
	f->run.path = path;
	f->run.repeats = 1;
}

/* end_ip: of the straight code after the last edge, 0: the path ends with its last edge. */
static inline void end_path(struct pt_flow *f, uint64_t end_ip, uint32_t after)
{
	uint32_t path = pt_graph_path(f->graph,
				      &(struct pt_path_key){.code = f->at.code,
							    .start_ip = f->path.start_ip,
							    .end_ip = end_ip,
							    .edges = f->path.edges,
							    .count = f->path.len,
							    .mode = f->at.mode},
				      after);

	f->path.last = path;
	f->path.ended++;
	f->path.start_ip = end_ip ? end_ip : f->graph->edges[f->path.edges[f->path.len - 1]].to;
	f->path.len = 0;
	if (path)
		pt_flow_hold_path(f, path);
}

void pt_flow_end_path(struct pt_flow *f)
{
	/* Without CYCs a short path is where an MTC has ended a run, at any place: nothing regular follows
	 * it. */
	if (f->path.len)
		end_path(f, 0, f->clock.has_cyc ? f->path.last : 0);
}

void pt_flow_end_path_at(struct pt_flow *f, uint64_t ip)
{
	uint64_t at = f->path.len ? f->graph->edges[f->path.edges[f->path.len - 1]].to : f->path.start_ip;

	if (!at || !ip || at == ip)
		pt_flow_end_path(f);
	else
		end_path(f, ip, f->path.last);
}

void pt_flow_add_edge(struct pt_flow *f, uint32_t edge)
{
	pt_flow_path_keep_room(f);
	if (edge)
		f->path.edges[f->path.len++] = edge;
}

/* ---- Runs ------------------------------------------------------------------------------------------- */

void pt_flow_deliver_runs(struct pt_flow *f)
{
	uint32_t n = f->undelivered.count;

	f->undelivered.count = 0;
	for (uint32_t i = 0; i < n; i++)
		pt_graph_count_run(f->graph, f->undelivered.runs[i].path, f->undelivered.runs[i].repeats);
	f->output->runs(f->output_arg, f, f->undelivered.runs, n);
}

void pt_flow_end_run(struct pt_flow *f, uint32_t more_insns)
{
	f->timing.clock_moved = false;
	pt_flow_end_path(f);
	if (f->run.repeats) {
		if (f->timing.cyc_fresh) {
			pt_flow_put_run(f, f->clock.cyc - f->timing.cyc_cyc,
					f->counts.insns + more_insns - f->timing.cyc_insns);
			f->timing.cyc_cyc = f->clock.cyc;
			f->timing.cyc_insns = f->counts.insns + more_insns;
		} else {
			pt_flow_put_run(f, PTR_UNKNOWN, 0);
		}
	}
	pt_flow_begin_run(f, f->timing.cyc_fresh, true);
	f->timing.cyc_fresh = false;
}

void pt_flow_end_run_before_last(struct pt_flow *f, bool taken)
{
	uint32_t edge;

	if (!taken || !f->path.len) {
		pt_flow_end_run(f, 0);
		f->run.timing = f->run.timing ? PTR_TIME_CYC : PTR_TIME_BEFORE;
		return;
	}
	edge = f->path.edges[--f->path.len];
	pt_flow_end_run(f, 0);
	f->path.edges[f->path.len++] = edge;
}

/* ---- Slices ----------------------------------------------------------------------------------------- */

/* tsc: the slice's branches are not earlier. */
static void begin_slice(struct pt_flow *f, uint64_t tsc)
{
	f->slice.open = true;
	f->run.timing = PTR_TIME_BEFORE;
	f->run.tsc = tsc;
	f->slice.insns = f->timing.cyc_insns = f->counts.insns;
	f->slice.cyc = f->timing.cyc_cyc = f->clock.cyc;
	pt_flow_deliver(f);
	f->output->begin(f->output_arg, f, tsc, f->at.code, f->path.start_ip);
	if (f->cbr.ratio != f->cbr.reported) {
		char fields[24];

		snprintf(fields, sizeof fields, "\"cbr\":%" PRIu32, f->cbr.ratio);
		f->cbr.reported = f->cbr.ratio;
		f->output->event(f->output_arg, f, "cbr", 0, fields);
	}
}

void pt_flow_begin_slice(struct pt_flow *f)
{
	f->timing.clock_moved = false;
	begin_slice(f, f->clock.tsc);
}

void pt_flow_resume_slice(struct pt_flow *f)
{
	/* The clock may have moved since the last packet: direct branches to come are earlier. */
	begin_slice(f, f->timing.clock_moved ? f->run.tsc : f->clock.tsc);
}

void pt_flow_end_slice(struct pt_flow *f)
{
	if (!f->slice.open)
		return;
	pt_flow_end_path(f);
	if (f->run.repeats)
		pt_flow_put_run(f, PTR_UNKNOWN, 0);
	f->slice.open = false;
	pt_flow_deliver(f);
	f->output->end(f->output_arg, f, f->clock.tsc, f->counts.insns - f->slice.insns,
		       f->clock.has_cyc ? f->clock.cyc - f->slice.cyc : PTR_UNKNOWN);
}

void pt_flow_interrupt(struct pt_flow *f, bool end_slice)
{
	pt_flow_stop_recording(f);
	if (f->state == PT_FLOW_RUNNING)
		pt_flow_end_path_at(f, pt_flow_here(f));
	if (f->run.repeats) /* what reads it finds the code as it was */
		pt_flow_put_run(f, PTR_UNKNOWN, 0);
	if (end_slice) {
		pt_flow_end_slice(f);
		f->stack.user.known = f->stack.user.unseen = false;
	}
	pt_flow_deliver(f);
}
