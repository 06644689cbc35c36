/* flow.c - a flow's runs and slices, and how it loses its way; see flow.h. */
#include <inttypes.h>
#include <stdio.h>

#include "decode/flow/internal.h"
#include "decode/flow/vm_transition.h"

const char *pt_flow_error_name(enum pt_flow_error_kind kind)
{
	static const char *const name[] = {"bad packet", "no code", "bad instruction", "mismatch",
					   "overflow",	 "lost",    "truncated",       "out of memory"};

	return (unsigned)kind < sizeof name / sizeof *name ? name[kind] : "?";
}

void pt_flow_init(struct pt_flow *f, struct pt_graph *graph, const struct pt_clock_config *clock,
		  const struct pt_flow_sink *sink, void *arg)
{
	memset(f, 0, sizeof *f);
	f->graph = graph;
	f->sink = sink;
	f->arg = arg;
	f->stop_tsc = UINT64_MAX;
	f->run_tsc = PT_CLOCK_UNKNOWN;
	f->vmcs = PT_VMCS_UNKNOWN;
	pt_clock_init(&f->clock, clock);
}

/* ---- Runs ------------------------------------------------------------------------------------------- */

void pt_flow_deliver_runs(struct pt_flow *f)
{
	uint32_t n = f->run_count;

	f->run_count = 0;
	for (uint32_t i = 0; i < n && !f->graph->bare; i++)
		f->graph->paths[f->runs[i].path].times += f->runs[i].repeats;
	f->sink->runs(f->arg, f, f->runs, n);
}

void pt_flow_hold(struct pt_flow *f, uint32_t path)
{
	uint32_t count;

	/* It is told of when others have come: until then it is not looked at. */
	if (!f->graph->bare)
		__builtin_prefetch(&f->graph->paths[path], 1);
	if (f->run_repeats) {
		if (path == f->run_path) {
			count = f->graph->path_counts[path];
			if (count && (f->run_repeats + 1) * count <= PTR_RUN_BRANCHES) {
				f->run_repeats++;
				return;
			}
		}
		pt_flow_put_run(f, PTR_UNKNOWN, 0);
	}
	f->run_path = path;
	f->run_repeats = 1;
}

/* The edges gathered become a path. The next one starts where they end. */
void pt_flow_flush(struct pt_flow *f)
{
	uint32_t path;

	if (!f->len)
		return;
	/* Without CYCs short paths are what an MTC has cut off, wherever it came: nothing follows them as a rule. */
	path = pt_graph_path(f->graph,
			     &(struct pt_path_key){.code = f->code,
						   .start_ip = f->start_ip,
						   .edges = f->edges,
						   .count = f->len,
						   .mode = f->mode},
			     f->has_cyc ? f->last_path : 0);
	f->last_path = path;
	f->flushes++;
	f->start_ip = f->graph->unnumbered ? 0 : f->graph->edges[f->edges[f->len - 1]].to;
	f->len = 0;
	if (path)
		pt_flow_hold(f, path);
}

/* As pt_flow_flush(), with the straight code behind the last edge, up to ip: execution is not continued from there. */
void pt_flow_flush_tail(struct pt_flow *f, uint64_t ip)
{
	uint64_t at = f->len ? f->graph->edges[f->edges[f->len - 1]].to : f->start_ip;
	uint32_t path;

	if (!at || !ip || at == ip || f->graph->unnumbered) {
		pt_flow_flush(f);
		return;
	}
	path = pt_graph_path(f->graph,
			     &(struct pt_path_key){.code = f->code,
						   .start_ip = f->start_ip,
						   .end_ip = ip,
						   .edges = f->edges,
						   .count = f->len,
						   .mode = f->mode},
			     f->last_path);
	f->last_path = path;
	f->flushes++;
	f->len = 0;
	f->start_ip = ip;
	if (path)
		pt_flow_hold(f, path);
}

/* Ends the run: the clock has moved since the branches before were taken. more_insns: what was executed behind them
 * until now. */
void pt_flow_cut(struct pt_flow *f, uint32_t more_insns)
{
	f->cut = false;
	pt_flow_flush(f);
	if (f->run_repeats) {
		if (f->cyc_fresh) {
			pt_flow_put_run(f, f->clock.cyc - f->cyc_cyc, f->insns + more_insns - f->cyc_insns);
			f->cyc_cyc = f->clock.cyc;
			f->cyc_insns = f->insns + more_insns;
		} else {
			pt_flow_put_run(f, PTR_UNKNOWN, 0);
		}
	}
	pt_flow_run_begins(f, f->cyc_fresh, true);
	f->cyc_fresh = false;
}

/* Its branches are not older than tsc. */
static void begin_slice(struct pt_flow *f, uint64_t tsc)
{
	f->in_slice = true;
	f->run_timing = PTR_TIME_BEFORE;
	f->run_tsc = tsc;
	f->slice_insns = f->cyc_insns = f->insns;
	f->slice_cyc = f->cyc_cyc = f->clock.cyc;
	pt_flow_deliver(f);
	f->sink->begin(f->arg, f, tsc);
	if (f->cbr != f->cbr_reported) {
		char fields[24];

		snprintf(fields, sizeof fields, "\"cbr\":%" PRIu32, f->cbr);
		f->cbr_reported = f->cbr;
		f->sink->event(f->arg, f, "cbr", 0, fields);
	}
}

void pt_flow_begin_slice(struct pt_flow *f)
{
	f->cut = false;
	begin_slice(f, f->clock.tsc);
}

void pt_flow_resume_slice(struct pt_flow *f)
{
	/* The clock may have moved since the last packet: direct branches to come are older. */
	begin_slice(f, f->cut ? f->run_tsc : f->clock.tsc);
}

void pt_flow_end_slice(struct pt_flow *f)
{
	if (!f->in_slice)
		return;
	pt_flow_flush(f);
	if (f->run_repeats)
		pt_flow_put_run(f, PTR_UNKNOWN, 0);
	f->in_slice = false;
	pt_flow_deliver(f);
	f->sink->end(f->arg, f, f->clock.tsc, f->insns - f->slice_insns,
		     f->has_cyc ? f->clock.cyc - f->slice_cyc : PTR_UNKNOWN);
}

static void leave(const struct pt_flow *f, uint32_t position, struct pt_flow_place *ret)
{
	const struct pt_where *w = &f->graph->where[position];

	*ret = (struct pt_flow_place){
	    .ip = w->ip, .code = position ? f->graph->codes[w->code] : NULL, .mode = w->mode};
}

static uint32_t come_back(struct pt_flow *f, const struct pt_flow_place *place)
{
	return place->code ? pt_graph_position(f->graph, place->code, place->ip, place->mode) : 0;
}

void pt_flow_detach(struct pt_flow *f, struct pt_flow_places *ret)
{
	uint32_t i;

	f->trail.to = NULL;
	pt_flow_flush(f); /* what was executed behind the last edge is the next path's */
	if (f->run_repeats)
		pt_flow_put_run(f, PTR_UNKNOWN, 0);
	pt_flow_deliver(f);
	f->run_path = f->last_path = 0;
	leave(f, f->position, &ret->here);
	for (i = f->bottom; i != f->top; i++)
		leave(f, f->stack[i % PT_STACK], &ret->stack[i % PT_STACK]);
	for (i = f->host_stack.bottom; i != f->host_stack.top; i++)
		leave(f, f->host_stack.stack[i % PT_STACK], &ret->host_stack[i % PT_STACK]);
}

void pt_flow_reattach(struct pt_flow *f, const struct pt_flow_places *places)
{
	uint32_t i;

	f->position = come_back(f, &places->here);
	f->decision = PT_D_UNRESOLVED;
	for (i = f->bottom; i != f->top; i++)
		f->stack[i % PT_STACK] = come_back(f, &places->stack[i % PT_STACK]);
	for (i = f->host_stack.bottom; i != f->host_stack.top; i++)
		f->host_stack.stack[i % PT_STACK] = come_back(f, &places->host_stack[i % PT_STACK]);
}

uint64_t pt_flow_here(const struct pt_flow *f)
{
	return f->state == PT_FLOW_RUNNING && f->position ? f->graph->where[f->position].ip : 0;
}

void pt_flow_report_error(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message,
			  bool no_image)
{
	struct pt_flow_error err = {.kind = kind,
				    .ip = ip,
				    .aux_offset = f->aux_offset,
				    .tsc = f->clock.tsc,
				    .message = message,
				    .no_image = no_image};

	if (f->state == PT_FLOW_RUNNING)
		pt_flow_flush_tail(f, pt_flow_here(f));
	pt_flow_end_slice(f);
	pt_flow_deliver(f);
	f->sink->error(f->arg, f, &err);
	f->position = 0;
	f->tnt_n = 0;
	f->fup = f->fup_binds = f->overflow = f->tsx_abort = false;
	f->side_changes = f->concealed = false;
	f->guest_no_image = f->forgot = true;
	f->unsure = false;
	f->skipped |= f->skip;
	f->bottom = f->top;
	f->len = 0;
}

void pt_flow_err(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message)
{
	pt_flow_report_error(f, kind, ip, message, false);
}

/* As pt_flow_err(), and nothing is certain before the next PSB; or, when it is only that the code is another one than
 * what ran, before the next change between user, kernel, host and guest. Returns false for its callers to return. */
bool pt_flow_lose(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message)
{
	if (f->graph->full) {
		kind = PT_FLOW_FULL;
		message = "out of room for decoded code; what follows is not decoded";
	}
	if (kind == PT_FLOW_MISMATCH && f->state == PT_FLOW_RUNNING && f->kernel)
		return pt_flow_lose_image(f, kind, ip, message, true);
	pt_flow_err(f, kind, ip, message);
	f->state = PT_FLOW_UNSYNCED;
	f->in_psb = false;
	f->bip_bytes = 0;
	return false;
}

const char *pt_flow_no_code(const struct pt_code *code)
{
	return code->unknown_process ? "it is not known which process runs"
				     : "the container has no code for this address";
}

bool pt_flow_lose_dead(struct pt_flow *f)
{
	const struct pt_where *w = &f->graph->where[f->position];
	uint64_t ip = w->decision_ip;

	switch ((enum pt_dead)w->why) {
	case PT_DEAD_NO_CODE:
		return pt_flow_lose_image(f, PT_FLOW_NO_CODE, ip, pt_flow_no_code(f->graph->codes[w->code]),
					  false);
	case PT_DEAD_BAD_INSN:
		return pt_flow_lose_image(f, PT_FLOW_BAD_INSN, ip,
					  "no CPU decodes these bytes as an instruction", true);
	case PT_DEAD_SEGMENT:
		return pt_flow_lose_image(
		    f, PT_FLOW_NO_CODE, ip,
		    "a 16-bit branch across 64 KB: where to depends on the code segment's base, which "
		    "is not in the trace",
		    false);
	default:
		return pt_flow_lose_image(f, PT_FLOW_MISMATCH, ip,
					  "an endless loop without a branch that the trace could tell of",
					  true);
	}
}
