/* flow.c - a flow's runs and slices, and how it loses its way; see flow.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "decode/flow/internal.h"
#include "decode/flow/vm_transition.h"

const char *pt_flow_error_name(enum pt_flow_error_kind kind)
{
	static const char *const name[] = {"bad packet", "no code", "bad instruction", "mismatch",
					   "overflow",	 "lost",    "truncated",       "out of memory"};

	return (unsigned)kind < sizeof name / sizeof *name ? name[kind] : "?";
}

/* ---- Creation, settings, state ---------------------------------------------------------------------- */

struct pt_flow *pt_flow_create(const struct pt_flow_config *config)
{
	struct pt_flow *f = calloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->graph = config->graph;
	f->env = config->env;
	f->env_arg = config->env_arg;
	f->output = config->output;
	f->output_arg = config->output_arg;
	f->errata = config->errata;
	f->no_tnt = config->no_tnt;
	f->stop_tsc = UINT64_MAX;
	f->run.tsc = PT_CLOCK_UNKNOWN;
	f->side.vmcs = PT_VMCS_UNKNOWN;
	pt_clock_init(&f->clock, &config->clock);
	return f;
}

void pt_flow_destroy(struct pt_flow *f)
{
	if (f)
		free(f->places);
	free(f);
}

void pt_flow_set_code(struct pt_flow *f, struct pt_code *user, struct pt_code *kernel)
{
	f->user = user;
	f->kernel = kernel;
}

void pt_flow_set_user_code(struct pt_flow *f, struct pt_code *user)
{
	f->user = user;
}

void pt_flow_set_detail(struct pt_flow *f, enum pt_flow_detail detail)
{
	f->detail = detail;
}

void pt_flow_set_stop(struct pt_flow *f, uint64_t tsc)
{
	f->stop_tsc = tsc;
}

enum pt_flow_state pt_flow_state(const struct pt_flow *f)
{
	return f->state;
}

bool pt_flow_follows(const struct pt_flow *f)
{
	return f->detail == PT_FLOW_FOLLOW;
}

bool pt_flow_in_slice(const struct pt_flow *f)
{
	return f->slice.open;
}

struct pt_code *pt_flow_user_code(const struct pt_flow *f)
{
	return f->user;
}

struct pt_code *pt_flow_kernel_code(const struct pt_flow *f)
{
	return f->kernel;
}

struct pt_code *pt_flow_code(const struct pt_flow *f)
{
	return f->at.code;
}

const struct pt_clock *pt_flow_clock(const struct pt_flow *f)
{
	return &f->clock;
}

uint64_t pt_flow_tsc(const struct pt_flow *f)
{
	return f->clock.tsc;
}

bool pt_flow_in_guest(const struct pt_flow *f)
{
	return f->side.nr;
}

uint64_t pt_flow_cr3(const struct pt_flow *f)
{
	return f->side.cr3;
}

uint64_t pt_flow_vmcs(const struct pt_flow *f)
{
	return f->side.vmcs;
}

bool pt_flow_has_cyc(const struct pt_flow *f)
{
	return f->timing.has_cyc;
}

uint64_t pt_flow_stop_ip(const struct pt_flow *f)
{
	return f->stop_ip;
}

const struct pt_flow_counts *pt_flow_counts(const struct pt_flow *f)
{
	return &f->counts;
}

/* ---- Runs ------------------------------------------------------------------------------------------- */

void pt_flow_deliver_runs(struct pt_flow *f)
{
	uint32_t n = f->undelivered.count;

	f->undelivered.count = 0;
	for (uint32_t i = 0; i < n && !f->graph->bare; i++)
		f->graph->paths[f->undelivered.runs[i].path].times += f->undelivered.runs[i].repeats;
	f->output->runs(f->output_arg, f, f->undelivered.runs, n);
}

void pt_flow_hold(struct pt_flow *f, uint32_t path)
{
	uint32_t count;

	/* It is told of when others have come: until then it is not looked at. */
	if (!f->graph->bare)
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

/* The edges gathered become a path. The next one starts where they end. */
void pt_flow_flush(struct pt_flow *f)
{
	uint32_t path;

	if (!f->path.len)
		return;
	/* Without CYCs short paths are what an MTC has cut off, wherever it came: nothing follows them as a rule. */
	path = pt_graph_path(f->graph,
			     &(struct pt_path_key){.code = f->at.code,
						   .start_ip = f->path.start_ip,
						   .edges = f->path.edges,
						   .count = f->path.len,
						   .mode = f->at.mode},
			     f->timing.has_cyc ? f->path.last : 0);
	f->path.last = path;
	f->path.flushes++;
	f->path.start_ip = f->graph->unnumbered ? 0 : f->graph->edges[f->path.edges[f->path.len - 1]].to;
	f->path.len = 0;
	if (path)
		pt_flow_hold(f, path);
}

/* As pt_flow_flush(), with the straight code behind the last edge, up to ip: execution is not continued from there. */
void pt_flow_flush_tail(struct pt_flow *f, uint64_t ip)
{
	uint64_t at = f->path.len ? f->graph->edges[f->path.edges[f->path.len - 1]].to : f->path.start_ip;
	uint32_t path;

	if (!at || !ip || at == ip || f->graph->unnumbered) {
		pt_flow_flush(f);
		return;
	}
	path = pt_graph_path(f->graph,
			     &(struct pt_path_key){.code = f->at.code,
						   .start_ip = f->path.start_ip,
						   .end_ip = ip,
						   .edges = f->path.edges,
						   .count = f->path.len,
						   .mode = f->at.mode},
			     f->path.last);
	f->path.last = path;
	f->path.flushes++;
	f->path.len = 0;
	f->path.start_ip = ip;
	if (path)
		pt_flow_hold(f, path);
}

/* Ends the run: the clock has moved since the branches before were taken. more_insns: what was executed behind them
 * until now. */
void pt_flow_cut(struct pt_flow *f, uint32_t more_insns)
{
	f->timing.clock_moved = false;
	pt_flow_flush(f);
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
	pt_flow_run_begins(f, f->timing.cyc_fresh, true);
	f->timing.cyc_fresh = false;
}

/* Its branches are not older than tsc. */
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
	/* The clock may have moved since the last packet: direct branches to come are older. */
	begin_slice(f, f->timing.clock_moved ? f->run.tsc : f->clock.tsc);
}

void pt_flow_end_slice(struct pt_flow *f)
{
	if (!f->slice.open)
		return;
	pt_flow_flush(f);
	if (f->run.repeats)
		pt_flow_put_run(f, PTR_UNKNOWN, 0);
	f->slice.open = false;
	pt_flow_deliver(f);
	f->output->end(f->output_arg, f, f->clock.tsc, f->counts.insns - f->slice.insns,
		       f->timing.has_cyc ? f->clock.cyc - f->slice.cyc : PTR_UNKNOWN);
}

/* ---- Detaching from the graph ----------------------------------------------------------------------- */

/* A position, without the graph. */
struct place {
	uint64_t ip;
	struct pt_code *code; /* NULL: none */
	uint8_t mode;	      /* enum insn_mode */
};

struct flow_places {
	struct place here, stack[PT_STACK], host_stack[PT_STACK];
};

static struct place place_of(const struct pt_flow *f, uint32_t position)
{
	const struct pt_where *w = &f->graph->where[position];

	return (struct place){
	    .ip = w->ip, .code = position ? f->graph->codes[w->code] : NULL, .mode = w->mode};
}

static uint32_t position_at(struct pt_flow *f, const struct place *place)
{
	return place->code ? pt_graph_position(f->graph, place->code, place->ip, place->mode) : 0;
}

int pt_flow_detach(struct pt_flow *f, struct pt_error *e)
{
	struct flow_places *places = malloc(sizeof *places);
	uint32_t i;

	if (!places)
		return pt_fail_no_memory(e, NULL);
	f->recorder.memo = NULL;
	pt_flow_flush(f); /* what was executed behind the last edge is the next path's */
	if (f->run.repeats)
		pt_flow_put_run(f, PTR_UNKNOWN, 0);
	pt_flow_deliver(f);
	f->run.path = f->path.last = 0;
	places->here = place_of(f, f->at.position);
	for (i = f->stack.bottom; i != f->stack.top; i++)
		places->stack[i % PT_STACK] = place_of(f, f->stack.entries[i % PT_STACK]);
	for (i = f->host_stack.bottom; i != f->host_stack.top; i++)
		places->host_stack[i % PT_STACK] = place_of(f, f->host_stack.entries[i % PT_STACK]);
	free(f->places);
	f->places = places;
	return 0;
}

void pt_flow_reattach(struct pt_flow *f)
{
	const struct flow_places *places = f->places;
	uint32_t i;

	f->at.position = position_at(f, &places->here);
	f->at.decision = PT_D_UNRESOLVED;
	for (i = f->stack.bottom; i != f->stack.top; i++)
		f->stack.entries[i % PT_STACK] = position_at(f, &places->stack[i % PT_STACK]);
	for (i = f->host_stack.bottom; i != f->host_stack.top; i++)
		f->host_stack.entries[i % PT_STACK] = position_at(f, &places->host_stack[i % PT_STACK]);
	free(f->places);
	f->places = NULL;
}

/* ---- Errors ----------------------------------------------------------------------------------------- */

uint64_t pt_flow_here(const struct pt_flow *f)
{
	return f->state == PT_FLOW_RUNNING && f->at.position ? f->graph->where[f->at.position].ip : 0;
}

void pt_flow_report_error(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message,
			  bool no_image)
{
	struct pt_flow_error err = {.kind = kind,
				    .ip = ip,
				    .aux_offset = f->packet.aux_offset,
				    .tsc = f->clock.tsc,
				    .message = message,
				    .no_image = no_image};

	if (f->state == PT_FLOW_RUNNING)
		pt_flow_flush_tail(f, pt_flow_here(f));
	pt_flow_end_slice(f);
	pt_flow_deliver(f);
	f->output->error(f->output_arg, f, &err);
	f->at.position = 0;
	f->tnt.n = 0;
	f->fup.pending = f->fup.binds = f->overflow.pending = f->fup.tsx_abort = false;
	f->side.changes = f->side.concealed = false;
	f->stack_state.guest_unseen = f->stack_state.stale_hw = true;
	f->stack_state.unsure = false;
	f->stack_state.skipped |= f->detail != PT_FLOW_FOLLOW;
	f->stack.bottom = f->stack.top;
	f->path.len = 0;
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
	f->psb.open = false;
	f->packet.bip_bytes = 0;
	return false;
}

const char *pt_flow_no_code(const struct pt_code *code)
{
	return code->unknown_process ? "it is not known which process runs"
				     : "the container has no code for this address";
}

bool pt_flow_lose_dead(struct pt_flow *f)
{
	const struct pt_where *w = &f->graph->where[f->at.position];
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
