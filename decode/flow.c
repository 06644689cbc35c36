/* flow.c - see flow.h. */
#include "decode/flow.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CUT_EDGES  12 /* a backward branch ends a path that holds so many */
#define FULL_EDGES 29 /* no room for another arc */

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
	pt_clock_init(&f->clock, clock);
}

/* ---- Runs ------------------------------------------------------------------------------------------- */

static void put_run(struct pt_flow *f, uint64_t cyc, uint64_t insns)
{
	struct pt_flow_run run = {.path = f->run_path,
				  .repeats = f->run_repeats,
				  .tsc = f->run_tsc,
				  .cyc_count = cyc,
				  .insn_count = insns};

	f->graph->paths[run.path].times += run.repeats;
	f->sink->run(f->arg, f, &run);
	f->run_repeats = 0;
}

static void hold(struct pt_flow *f, uint32_t path)
{
	uint32_t count;

	if (f->run_repeats) {
		count = f->graph->paths[path].count;
		if (path == f->run_path && count && (f->run_repeats + 1) * count <= PTR_RUN_BRANCHES) {
			f->run_repeats++;
			return;
		}
		put_run(f, PTR_UNKNOWN, 0);
	}
	f->run_path = path;
	f->run_repeats = 1;
}

/* The edges gathered become a path. The next one starts where they end. */
static void flush(struct pt_flow *f)
{
	uint32_t path;

	if (!f->len)
		return;
	path = pt_graph_path(f->graph, f->code, f->start_ip, f->edges, f->len, 0, f->mode, f->last_path);
	f->last_path = path;
	f->start_ip = f->graph->edges[f->edges[f->len - 1]].to;
	f->len = 0;
	if (path)
		hold(f, path);
}

/* As flush(), with the straight code behind the last edge, up to ip: execution is not continued from there. */
static void flush_tail(struct pt_flow *f, uint64_t ip)
{
	uint64_t at = f->len ? f->graph->edges[f->edges[f->len - 1]].to : f->start_ip;
	uint32_t path;

	if (!at || !ip || at == ip) {
		flush(f);
		return;
	}
	path = pt_graph_path(f->graph, f->code, f->start_ip, f->edges, f->len, ip, f->mode, f->last_path);
	f->last_path = path;
	f->len = 0;
	f->start_ip = ip;
	if (path)
		hold(f, path);
}

/* Ends the run: the clock has moved since the branches before were taken. */
static void cut(struct pt_flow *f)
{
	f->cut = false;
	flush(f);
	if (f->run_repeats) {
		if (f->cyc_fresh) {
			put_run(f, f->clock.cyc - f->cyc_cyc, f->insns - f->cyc_insns);
			f->cyc_cyc = f->clock.cyc;
			f->cyc_insns = f->insns;
		} else {
			put_run(f, PTR_UNKNOWN, 0);
		}
	}
	f->cyc_fresh = false;
	f->run_tsc = f->clock.tsc;
}

static void begin_slice(struct pt_flow *f)
{
	f->in_slice = true;
	f->cut = false;
	f->run_tsc = f->clock.tsc;
	f->slice_insns = f->cyc_insns = f->insns;
	f->slice_cyc = f->cyc_cyc = f->clock.cyc;
	f->sink->begin(f->arg, f, f->clock.tsc);
}

static void end_slice(struct pt_flow *f)
{
	if (!f->in_slice)
		return;
	flush(f);
	if (f->run_repeats)
		put_run(f, PTR_UNKNOWN, 0);
	f->in_slice = false;
	f->sink->end(f->arg, f, f->clock.tsc, f->insns - f->slice_insns,
		     f->has_cyc ? f->clock.cyc - f->slice_cyc : PTR_UNKNOWN);
}

static uint64_t here(const struct pt_flow *f)
{
	return f->state == PT_FLOW_RUNNING && f->position ? f->graph->where[f->position].ip : 0;
}

static void error(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message)
{
	struct pt_flow_error err = {
		.kind = kind, .ip = ip, .aux_offset = f->aux_offset, .tsc = f->clock.tsc, .message = message};

	if (f->state == PT_FLOW_RUNNING)
		flush_tail(f, here(f));
	end_slice(f);
	f->sink->error(f->arg, f, &err);
	f->position = 0;
	f->tnt_n = 0;
	f->fup = f->fup_binds = f->overflow = f->tsx_abort = false;
	f->bottom = f->top;
	f->len = 0;
}

/* As error(), and nothing is certain before the next PSB. Returns false for its callers to return. */
static bool lose(struct pt_flow *f, enum pt_flow_error_kind kind, uint64_t ip, const char *message)
{
	if (f->graph->full) {
		kind = PT_FLOW_FULL;
		message = "out of room for decoded code; what follows is not decoded";
	}
	error(f, kind, ip, message);
	f->state = PT_FLOW_UNSYNCED;
	f->in_psb = false;
	f->bip_bytes = 0;
	return false;
}

static bool lose_dead(struct pt_flow *f)
{
	const struct pt_where *w = &f->graph->where[f->position];
	uint64_t ip = w->decision_ip;

	switch ((enum pt_dead)w->why) {
	case PT_DEAD_NO_CODE:
		return lose(f, PT_FLOW_NO_CODE, ip, "the container has no code for this address");
	case PT_DEAD_BAD_INSN:
		return lose(f, PT_FLOW_BAD_INSN, ip, "no CPU decodes these bytes as an instruction");
	default:
		return lose(f, PT_FLOW_MISMATCH, ip, "an endless loop without a branch that the trace could tell of");
	}
}

/* ---- Positions -------------------------------------------------------------------------------------- */

static struct pt_code *code_at(struct pt_flow *f, uint64_t ip)
{
	return ip >> 63 && f->kernel ? f->kernel : f->user;
}

/* Stands at ip, reached by the edges gathered (or by none: then start_ip must be set). */
static bool stand(struct pt_flow *f, uint64_t ip)
{
	struct pt_code *code = code_at(f, ip);

	if (code != f->code || f->mode != f->next_mode) {
		flush(f);
		f->code = code;
		f->mode = f->next_mode;
	}
	if (!code)
		return lose(f, PT_FLOW_NO_CODE, ip, "it is not known which process runs");
	f->position = pt_graph_position(f->graph, code, ip, f->mode);
	f->decision = PT_D_UNRESOLVED;
	if (!f->position)
		return lose(f, PT_FLOW_FULL, ip, "");
	return true;
}

static void add_edge(struct pt_flow *f, uint32_t edge)
{
	if (f->len >= FULL_EDGES)
		flush(f);
	if (edge)
		f->edges[f->len++] = edge;
}

static void push(struct pt_flow *f, uint32_t position)
{
	f->stack[f->top++ % PT_STACK] = position;
	if (f->top - f->bottom > 64)
		f->bottom = f->top - 64;
}

static inline void take(struct pt_flow *f, const struct pt_arc *arc)
{
	if (f->len >= FULL_EDGES)
		flush(f);
	memcpy(f->edges + f->len, arc->edges, sizeof arc->edges);
	f->len += arc->n_edges;
	if (arc->n_push)
		push(f, arc->push);
	f->insns += arc->insns;
}

/* Follows what needs no packet. Returns the decision, PT_D_DEAD after an error was told. */
static unsigned settle(struct pt_flow *f)
{
	for (int i = 0;; i++) {
		unsigned d = f->decision;
		const struct pt_arc *arc;

		if (d == PT_D_UNRESOLVED)
			d = f->decision = pt_graph_decision(f->graph, f->position);
		if (d == PT_D_DEAD) {
			const struct pt_where *w = &f->graph->where[f->position];

			if (w->why == PT_DEAD_NO_CODE && f->sink->missing(f->arg, f, w->decision_ip)) {
				f->decision = PT_D_UNRESOLVED;
				continue;
			}
			lose_dead(f);
			return d;
		}
		if (d != PT_D_CONT)
			return d;
		arc = &f->graph->positions[f->position].arc[0];
		if (i > 100000 || (arc->decision == PT_D_UNRESOLVED && !pt_graph_follow(f->graph, f->position, 0))) {
			lose(f, PT_FLOW_MISMATCH, here(f), "an endless loop without a branch that the trace could tell of");
			return PT_D_DEAD;
		}
		take(f, arc);
		f->position = arc->next;
		f->decision = arc->decision;
	}
}

/*
 * Walks block by block to ip, through direct branches only: where a FUP or a PSB says that the flow is.
 * False, with nothing changed but what was walked, when a decision is in the way.
 */
static bool walk_to(struct pt_flow *f, uint64_t ip, enum pt_flow_error_kind *why, uint64_t *where)
{
	struct pt_block *b = pt_graph_block(f->graph, f->code, here(f), f->mode);

	for (int i = 0; b && i < 1 << 20; i++) {
		if (ip >= b->ip && ip <= b->term_ip) {
			int n = pt_graph_insns_before(f->graph, b, ip);

			if (n >= 0) {
				f->insns += (uint32_t)n;
				return stand(f, ip);
			}
		}
		*where = b->term_ip;
		if (b->dead) {
			*why = b->why == PT_DEAD_NO_CODE ? PT_FLOW_NO_CODE : PT_FLOW_BAD_INSN;
			return false;
		}
		f->insns += b->insns;
		if (b->cls == INSN_JMP || b->cls == INSN_CALL) {
			add_edge(f, pt_graph_edge(f->graph, f->code, b->term_ip, b->target, pt_kind_of(b->cls)));
			if (b->cls == INSN_CALL && !b->rel0)
				push(f, pt_graph_position(f->graph, f->code, b->next_ip, f->mode));
			b = pt_graph_block(f->graph, f->code, b->target, f->mode);
		} else if (b->cls == INSN_OTHER || b->cls == INSN_VMENTRY) {
			b = pt_graph_next_block(f->graph, b); /* a VM entry that failed falls through */
		} else {
			f->insns -= b->insns;
			break;
		}
	}
	*why = f->graph->full ? PT_FLOW_FULL : PT_FLOW_MISMATCH;
	return false;
}

/* ---- TNT -------------------------------------------------------------------------------------------- */

static inline struct pt_jump *jump_of(struct pt_graph *g, uint32_t position, uint64_t to)
{
	uint64_t x = (to ^ (uint64_t)position << 32) * 0x9e3779b97f4a7c15u;

	return &g->jumps[x >> 50];
}

/* A compressed return: its TNT bit was 1. */
static inline bool compressed_ret(struct pt_flow *f, bool *ret_backward)
{
	struct pt_graph *g = f->graph;
	union pt_position *p = &g->positions[f->position];
	uint32_t to;

	take(f, &p->ind.prefix);
	if (__builtin_expect(f->top == f->bottom, 0))
		return lose(f, PT_FLOW_MISMATCH, g->where[f->position].decision_ip,
			    "a compressed return without its call");
	to = f->stack[--f->top % PT_STACK];
	if (to == p->ind.next) {
		f->edges[f->len++] = p->ind.edge;
		f->decision = p->ind.decision;
		*ret_backward = p->ind.backward;
	} else {
		struct pt_jump *j = jump_of(g, f->position, to);

		if (j->position != f->position || j->to != to) {
			const struct pt_where *w = &g->where[f->position];
			uint64_t ip = g->where[to].ip;
			uint32_t edge = pt_graph_edge(g, f->code, w->decision_ip, ip, PTR_RET);

			if (!edge)
				return lose(f, PT_FLOW_FULL, 0, "");
			*j = (struct pt_jump){.to = to,
					      .position = f->position,
					      .edge = edge,
					      .next = to,
					      .decision = pt_graph_decision(g, to),
					      .backward = ip <= w->decision_ip};
		}
		f->edges[f->len++] = j->edge;
		f->decision = j->decision;
		*ret_backward = j->backward;
		p->ind.ip = 0; /* of a TIP: not looked up for this one */
		p->ind.next = to;
		p->ind.edge = j->edge;
		p->ind.backward = j->backward;
		p->ind.decision = j->decision;
	}
	f->position = to;
	return true;
}

/*
 * Consumes f->tnt. The loop over conditional branches is what the speed of the decoder is made of: an arc a bit,
 * and nothing else.
 */
static bool run_tnt(struct pt_flow *f)
{
	struct pt_graph *g = f->graph;
	union pt_position *positions = g->positions;
	uint32_t position = f->position, len = f->len, top = f->top, insns = 0;
	uint64_t bits = f->tnt;
	unsigned n = f->tnt_n, decision;
	bool ok = true, back;

	f->fup = false;
	decision = f->decision;
	if (decision == PT_D_UNRESOLVED)
		decision = pt_graph_decision(g, position);
	while (n) {
		if (__builtin_expect(decision == PT_D_JCC, 1)) {
			const struct pt_arc *arc = &positions[position].arc[bits >> (n - 1) & 1];

			if (__builtin_expect(arc->decision == PT_D_UNRESOLVED, 0)) {
				if (!pt_graph_follow(g, position, bits >> (n - 1) & 1)) {
					ok = false;
					break;
				}
			}
			n--;
			memcpy(f->edges + len, arc->edges, sizeof arc->edges);
			len += arc->n_edges;
			f->stack[top % PT_STACK] = arc->push;
			top += arc->n_push;
			insns += arc->insns;
			position = arc->next;
			decision = arc->decision;
			if (__builtin_expect(len >= CUT_EDGES, 0) && (arc->backward || len >= FULL_EDGES)) {
				f->len = len;
				flush(f);
				len = 0;
			}
			continue;
		}
		/* Everything else goes through the flow's own fields. */
		f->position = position;
		f->decision = decision;
		f->len = len;
		f->top = top;
		if (f->top - f->bottom > 64)
			f->bottom = f->top - 64;
		f->insns += insns;
		insns = 0;
		if (decision == PT_D_RET) {
			if (!(bits >> (n - 1) & 1)) {
				f->tnt_n = 0;
				return lose(f, PT_FLOW_MISMATCH, g->where[position].decision_ip,
					    "a return that the trace says was not taken");
			}
			n--;
			if (!compressed_ret(f, &back))
				return false;
			decision = f->decision;
			if (f->len >= CUT_EDGES && (back || f->len >= FULL_EDGES))
				flush(f);
		} else if (decision == PT_D_CONT || decision == PT_D_DEAD) {
			decision = settle(f);
			if (decision == PT_D_DEAD)
				return false;
		} else if (decision == PT_D_IND) {
			/* A deferred TIP (SDM, "Deferred TIPs"): the bits behind it came first. */
			f->tnt_n = n;
			return true;
		} else if (g->where[position].cls == INSN_VMENTRY) {
			/* It failed and fell through (SDM, VMLAUNCH: VMfail). */
			take(f, &positions[position].ind.prefix);
			if (!stand(f, g->where[position].decision_next))
				return false;
			decision = pt_graph_decision(g, f->position);
		} else {
			f->tnt_n = 0;
			return lose(f, PT_FLOW_MISMATCH, g->where[position].decision_ip,
				    "a TNT bit where the code has a far branch");
		}
		position = f->position;
		len = f->len;
		top = f->top;
	}
	f->position = position;
	f->decision = decision;
	f->len = len;
	f->top = top;
	if (f->top - f->bottom > 64)
		f->bottom = f->top - 64;
	f->insns += insns;
	f->tnt_n = 0;
	if (!ok)
		return lose(f, PT_FLOW_FULL, 0, "");
	if (f->cut)
		cut(f);
	return true;
}

static bool tnt(struct pt_flow *f, uint64_t bits, unsigned n)
{
	f->psb_only = false;
	if (f->state != PT_FLOW_RUNNING || f->overflow) {
		if (f->state == PT_FLOW_DISABLED)
			return lose(f, PT_FLOW_MISMATCH, 0, "a TNT packet while tracing is disabled");
		return true;
	}
	if (f->tnt_n) /* TIPs are still owed to the bits before */
		return lose(f, PT_FLOW_MISMATCH, f->graph->where[f->position].decision_ip,
			    "a TNT packet where the code has an indirect branch");
	f->tnt = bits;
	f->tnt_n = n;
	return run_tnt(f);
}

/* ---- TIP, FUP --------------------------------------------------------------------------------------- */

/* The clock has moved, and nothing was taken since the last run: what comes is not older than now. */
static void before_tip(struct pt_flow *f)
{
	if (f->cut && !f->len && !f->run_repeats) {
		f->run_tsc = f->clock.tsc;
		if (!f->cyc_fresh)
			f->cut = false;
	}
}

static bool after_tip(struct pt_flow *f)
{
	if (f->tnt_n)
		return run_tnt(f);
	if (f->cut)
		cut(f);
	return true;
}

static bool async_to(struct pt_flow *f, uint64_t ip)
{
	enum ptr_kind kind = f->tsx_abort ? PTR_TX_ABORT : PTR_ASYNC;
	uint32_t edge = pt_graph_edge(f->graph, f->code, f->fup_ip, ip, kind);

	f->fup = f->tsx_abort = false;
	if (!edge)
		return lose(f, PT_FLOW_FULL, ip, "");
	add_edge(f, edge);
	return true;
}

static bool tip(struct pt_flow *f, uint64_t ip)
{
	union pt_position *p;
	const struct pt_where *w;
	unsigned d;
	bool back;

	if (f->state != PT_FLOW_RUNNING)
		return lose(f, PT_FLOW_MISMATCH, ip, "a TIP packet while tracing is disabled");
	if (!ip)
		return lose(f, PT_FLOW_BAD_PACKET, 0, "a TIP packet without an IP");
	before_tip(f);
	if (f->fup) {
		if (!async_to(f, ip) || !stand(f, ip))
			return false;
		return after_tip(f);
	}
	d = settle(f);
	if (d == PT_D_DEAD)
		return false;
	p = &f->graph->positions[f->position];
	w = &f->graph->where[f->position];
	if (d == PT_D_JCC)
		return lose(f, PT_FLOW_MISMATCH, w->decision_ip, "a TIP packet where the code has a conditional branch");
	take(f, &p->ind.prefix);
	if (d == PT_D_RET && f->top != f->bottom)
		f->top--;
	if (d == PT_D_IND && p->ind.calls)
		push(f, p->ind.push);
	if (p->ind.ip == ip && d != PT_D_FAR && f->mode == f->next_mode) {
		f->edges[f->len++] = p->ind.edge;
		f->position = p->ind.next;
		f->decision = p->ind.decision;
		back = p->ind.backward;
	} else {
		struct pt_jump *j = jump_of(f->graph, f->position, ip);

		if (j->position != f->position || j->to != ip || d == PT_D_FAR || f->mode != f->next_mode) {
			uint32_t from = f->position;
			uint32_t edge = pt_graph_edge(f->graph, f->code, w->decision_ip, ip, pt_kind_of(w->cls));

			if (!edge)
				return lose(f, PT_FLOW_FULL, ip, "");
			back = ip <= w->decision_ip;
			f->edges[f->len++] = edge;
			if (!stand(f, ip))
				return false;
			if (d != PT_D_FAR) {
				f->decision = pt_graph_decision(f->graph, f->position);
				*j = (struct pt_jump){.to = ip,
						      .position = from,
						      .edge = edge,
						      .next = f->position,
						      .decision = (uint8_t)f->decision,
						      .backward = back};
			}
		} else {
			f->edges[f->len++] = j->edge;
			f->position = j->next;
			f->decision = j->decision;
			back = j->backward;
		}
		if (d != PT_D_FAR && f->len) {
			p->ind.ip = ip;
			p->ind.edge = f->edges[f->len - 1];
			p->ind.next = f->position;
			p->ind.backward = back;
			p->ind.decision = (uint8_t)f->decision;
		}
	}
	if (f->len >= CUT_EDGES && (back || f->len >= FULL_EDGES))
		flush(f);
	return after_tip(f);
}

/*
 * TIP.PGD: tracing stops with a branch. With a FUP before, from there. Else with the next one that the code has: an
 * indirect or far one; or, when an IP filter ends, the direct one that goes to the packet's IP.
 */
static bool tip_pgd(struct pt_flow *f, uint64_t ip)
{
	uint64_t from = 0;
	enum ptr_kind kind = PTR_TRACE_END;
	uint32_t edge;

	f->overflow = false;
	if (f->state != PT_FLOW_RUNNING) {
		if (f->state == PT_FLOW_DISABLED) /* told twice: nothing was executed between */
			return true;
		return lose(f, PT_FLOW_MISMATCH, ip, "a TIP.PGD packet before a PSB");
	}
	before_tip(f);
	if (f->fup) {
		if (!async_to(f, 0))
			return false;
	} else {
		struct pt_block *b = pt_graph_block(f->graph, f->code, here(f), f->mode);
		struct pt_block *first_jcc = NULL;

		for (int i = 0; b && i < 1 << 16; i++) {
			if (b->dead)
				break;
			if (b->cls == INSN_JCC && !first_jcc)
				first_jcc = b;
			if ((b->cls == INSN_JCC || b->cls == INSN_JMP || b->cls == INSN_CALL) && ip && b->target == ip) {
				from = b->term_ip;
				kind = pt_kind_of(b->cls);
				f->insns += b->insns;
				break;
			}
			if (b->cls == INSN_JCC)
				break;
			f->insns += b->insns;
			if (b->cls == INSN_JMP || b->cls == INSN_CALL) {
				add_edge(f, pt_graph_edge(f->graph, f->code, b->term_ip, b->target, pt_kind_of(b->cls)));
				if (b->cls == INSN_CALL && !b->rel0)
					push(f, pt_graph_position(f->graph, f->code, b->next_ip, f->mode));
				b = pt_graph_block(f->graph, f->code, b->target, f->mode);
				continue;
			}
			if (b->cls == INSN_OTHER) {
				b = pt_graph_next_block(f->graph, b);
				continue;
			}
			from = b->term_ip;
			kind = pt_kind_of(b->cls);
			if (b->cls == INSN_RET && f->top != f->bottom)
				f->top--;
			if (b->cls == INSN_CALL_IND)
				push(f, pt_graph_position(f->graph, f->code, b->next_ip, f->mode));
			break;
		}
		if (!from && ip)
			return lose(f, PT_FLOW_MISMATCH, ip, "a TIP.PGD packet where the code has no branch to its IP");
		if (!from && (!b || b->dead))
			return lose(f, PT_FLOW_NO_CODE, b ? b->term_ip : 0,
				    "the container has no code for the branch that ended tracing");
		if (!from) {
			/* Suppressed IP at a conditional branch: tracing was stopped from outside (TraceEn, a switch of
			 * CR3), somewhere before it. */
			from = 0;
		}
		edge = pt_graph_edge(f->graph, f->code, from, 0, kind);
		if (!edge)
			return lose(f, PT_FLOW_FULL, ip, "");
		add_edge(f, edge);
	}
	if (f->len)
		f->stop_ip = f->graph->edges[f->edges[f->len - 1]].from;
	flush(f);
	f->start_ip = 0;
	f->state = PT_FLOW_DISABLED;
	f->position = 0;
	f->tnt_n = 0;
	f->cut = true;
	cut(f);
	return true;
}

static bool tip_pge(struct pt_flow *f, uint64_t ip)
{
	uint32_t edge;

	f->overflow = false;
	/* Erratum BDM70 and its like: a PSB+ before a TIP.PGE may hold a FUP although tracing is still disabled. */
	if (f->state == PT_FLOW_RUNNING && f->psb_only)
		f->state = PT_FLOW_DISABLED;
	if (f->state == PT_FLOW_RUNNING)
		return lose(f, PT_FLOW_MISMATCH, here(f), "a TIP.PGE packet while tracing is enabled");
	if (!ip)
		return lose(f, PT_FLOW_BAD_PACKET, 0, "a TIP.PGE packet without an IP");
	f->state = PT_FLOW_RUNNING;
	f->mode = f->next_mode;
	f->code = code_at(f, ip);
	if (!f->code)
		return lose(f, PT_FLOW_NO_CODE, ip, "it is not known which process runs");
	if (!f->in_slice)
		begin_slice(f);
	before_tip(f);
	f->start_ip = 0;
	edge = pt_graph_edge(f->graph, f->code, 0, ip, PTR_TRACE_BEGIN);
	if (!edge)
		return lose(f, PT_FLOW_FULL, ip, "");
	add_edge(f, edge);
	if (!stand(f, ip))
		return false;
	return after_tip(f);
}

static bool sync_at(struct pt_flow *f, uint64_t ip)
{
	f->state = PT_FLOW_RUNNING;
	f->overflow = false;
	f->mode = f->next_mode;
	f->code = code_at(f, ip);
	f->len = 0;
	f->start_ip = ip;
	if (!f->code)
		return lose(f, PT_FLOW_NO_CODE, ip, "it is not known which process runs");
	if (!f->in_slice)
		begin_slice(f);
	return stand(f, ip);
}

static bool fup(struct pt_flow *f, uint64_t ip)
{
	enum pt_flow_error_kind why = PT_FLOW_MISMATCH;
	uint64_t where = 0;

	if (f->in_psb) {
		f->psb_ip = ip;
		f->psb_fup = ip != 0;
		return true;
	}
	if (f->state == PT_FLOW_UNSYNCED)
		return true;
	if (f->overflow) { /* tracing goes on from here */
		f->overflow = false;
		return ip ? sync_at(f, ip) : true;
	}
	if (f->state != PT_FLOW_RUNNING || !ip) {
		f->fup_binds = false;
		return true; /* of a packet that may come while disabled */
	}
	if (f->tnt_n)
		return lose(f, PT_FLOW_MISMATCH, here(f), "a FUP packet where a TIP is owed");
	if (!walk_to(f, ip, &why, &where)) {
		if (f->state == PT_FLOW_UNSYNCED)
			return false;
		return lose(f, why, where ? where : ip, why == PT_FLOW_NO_CODE ?
			    "the container has no code for this address" : "the code does not lead to the FUP's IP");
	}
	if (f->fup_binds && !f->tsx_abort) {
		f->fup_binds = false;
		return true;
	}
	f->fup_binds = false;
	f->fup = true;
	f->fup_ip = ip;
	return true;
}

/* ---- PSB+ ------------------------------------------------------------------------------------------- */

static void psb(struct pt_flow *f)
{
	f->psbs++;
	f->in_psb = true;
	f->psb_fup = false;
	f->last_ip = 0;
	f->bip_bytes = 0;
	f->fup = false;
}

static bool psbend(struct pt_flow *f)
{
	enum pt_flow_error_kind why = PT_FLOW_MISMATCH;
	uint64_t where = 0;

	if (!f->in_psb)
		return true;
	f->in_psb = false;
	f->ever = true;
	f->bottom = f->top; /* SDM: PSB clears the CPU's call stack */
	if (f->state == PT_FLOW_RUNNING && !f->overflow) {
		if (!f->psb_fup) {
			error(f, PT_FLOW_MISMATCH, here(f), "a PSB says that tracing is disabled, without a TIP.PGD before");
			f->state = PT_FLOW_DISABLED;
			return true;
		}
		if (f->tnt_n || !walk_to(f, f->psb_ip, &why, &where)) {
			if (f->state == PT_FLOW_RUNNING)
				error(f, why, where ? where : f->psb_ip, "the code does not lead to the PSB's IP");
			return sync_at(f, f->psb_ip);
		}
		/* A run ends at a PSB, so that the segments between PSBs can be decoded apart. */
		flush_tail(f, f->psb_ip);
		f->cyc_fresh = false;
		cut(f);
		return true;
	}
	f->overflow = false;
	if (f->psb_fup) {
		f->psb_only = true;
		return sync_at(f, f->psb_ip);
	}
	f->state = PT_FLOW_DISABLED;
	return true;
}

static void overflow(struct pt_flow *f)
{
	bool synced = f->state != PT_FLOW_UNSYNCED;

	f->in_psb = false;
	f->bip_bytes = 0;
	error(f, PT_FLOW_OVERFLOW, here(f), "the CPU's trace buffer overflowed");
	pt_clock_lost(&f->clock);
	f->last_ip = 0;
	if (synced || f->ever) {
		f->state = PT_FLOW_DISABLED; /* until FUP (enabled) or TIP.PGE */
		f->overflow = true;
	}
}

/* ---- Packets ---------------------------------------------------------------------------------------- */

static void event(struct pt_flow *f, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

#include <stdarg.h>
static void event(struct pt_flow *f, const char *name, const char *format, ...)
{
	char fields[256];
	va_list ap;

	if (f->state == PT_FLOW_UNSYNCED)
		return;
	va_start(ap, format);
	vsnprintf(fields, sizeof fields, format, ap);
	va_end(ap);
	f->sink->event(f->arg, f, name, here(f), fields);
}

static void clock_moved(struct pt_flow *f, uint64_t before)
{
	if (f->clock.tsc != before)
		f->cut = true;
}

/* It takes effect with the IP packet that follows; in PSB+ it tells of the mode at the FUP. */
static void mode_exec(struct pt_flow *f, unsigned bits)
{
	f->exec = bits;
	f->next_mode = bits & PT_EXEC_CSL ? INSN_64 : bits & PT_EXEC_CSD ? INSN_32 : INSN_16;
}

static bool handle(struct pt_flow *f, const struct pt_packet *k)
{
	uint64_t ip = 0, before = f->clock.tsc;

	switch ((enum pt_type)k->type) {
	case PT_FUP:
	case PT_TIP:
	case PT_TIP_PGE:
	case PT_TIP_PGD:
		if (k->n)
			ip = f->last_ip = pt_ip(f->last_ip, k->n, k->a);
		if (k->type == PT_FUP)
			return fup(f, ip);
		if (f->state == PT_FLOW_UNSYNCED)
			return true;
		if (k->type == PT_TIP_PGE)
			return tip_pge(f, ip);
		f->psb_only = false;
		return k->type == PT_TIP ? tip(f, ip) : tip_pgd(f, ip);
	case PT_TNT_8:
	case PT_TNT_64:
		return tnt(f, k->a, k->n);
	case PT_CYC:
		f->has_cyc = true;
		pt_clock_cyc(&f->clock, k->a);
		f->cut = f->cyc_fresh = true;
		return true;
	case PT_PAD:
		return true;
	default:
		break;
	}
	f->cyc_fresh = false;
	switch ((enum pt_type)k->type) {
	case PT_MTC:
		pt_clock_mtc(&f->clock, (uint32_t)k->a);
		clock_moved(f, before);
		return true;
	case PT_TSC:
		pt_clock_tsc(&f->clock, k->a);
		clock_moved(f, before);
		return true;
	case PT_TMA:
		pt_clock_tma(&f->clock, (uint32_t)k->a, k->b);
		return true;
	case PT_CBR:
		pt_clock_cbr(&f->clock, (uint32_t)k->a);
		if (f->cbr != k->a && f->in_slice)
			event(f, "cbr", "\"cbr\":%" PRIu64, k->a);
		f->cbr = (uint32_t)k->a;
		return true;
	case PT_PSB:
		psb(f);
		return true;
	case PT_PSBEND:
		return psbend(f);
	case PT_OVF:
		overflow(f);
		return true;
	case PT_MODE_EXEC:
		mode_exec(f, k->n);
		return true;
	case PT_MODE_TSX:
		if (!f->in_psb) {
			f->fup_binds = true;
			f->tsx_abort = k->n & PT_TSX_ABORT;
			event(f, "tsx", "\"intx\":%d,\"abort\":%d", !!(k->n & PT_TSX_INTX), !!(k->n & PT_TSX_ABORT));
		}
		return true;
	case PT_PIP:
		f->cr3 = k->a;
		f->nr = k->b;
		return true;
	case PT_VMCS:
		f->vmcs = k->a;
		return true;
	case PT_STOP:
		event(f, "tracestop", "%s", "");
		return true;
	case PT_PTW:
		f->fup_binds = k->ip;
		event(f, "ptwrite", "\"payload\":%" PRIu64 ",\"bytes\":%u", k->a, k->n);
		return true;
	case PT_EXSTOP:
		f->fup_binds = k->ip;
		event(f, "exstop", "\"ip\":%d", k->ip);
		return true;
	case PT_MWAIT:
		event(f, "mwait", "\"hints\":%" PRIu64 ",\"extensions\":%u", k->a, k->b);
		return true;
	case PT_PWRE:
		event(f, "pwre", "\"cstate\":%u,\"subcstate\":%u,\"hw\":%u", (unsigned)k->a >> 12 & 15,
		      (unsigned)k->a >> 8 & 15, (unsigned)k->a >> 7 & 1);
		return true;
	case PT_PWRX:
		event(f, "pwrx", "\"last_cstate\":%u,\"deepest_cstate\":%u,\"wake_reason\":%u", (unsigned)k->a & 15,
		      (unsigned)k->a >> 4 & 15, (unsigned)k->a >> 8 & 15);
		return true;
	case PT_CFE:
		/* A FUP behind it is an event's source when a TIP follows (SDM, "CFE"). */
		event(f, "cfe", "\"type\":%u,\"vector\":%u", (unsigned)k->a, k->b);
		return true;
	case PT_EVD:
		event(f, "evd", "\"type\":%u,\"payload\":%" PRIu64, k->b, k->a);
		return true;
	case PT_MNT:
		event(f, "mnt", "\"payload\":%" PRIu64, k->a);
		return true;
	case PT_BBP:
		f->bip_bytes = k->n;
		return true;
	case PT_BIP:
		event(f, "bip", "\"id\":%u,\"payload\":%" PRIu64, k->b, k->a);
		return true;
	case PT_BEP:
		f->bip_bytes = 0;
		f->fup_binds = k->ip;
		return true;
	default:
		return lose(f, PT_FLOW_BAD_PACKET, 0, "a packet that this decoder does not know");
	}
}

enum pt_flow_feed pt_flow_feed(struct pt_flow *f, const uint8_t *p, const uint8_t *end, uint64_t aux_offset, bool last,
			       const uint8_t **ret)
{
	const uint8_t *begin = p;
	struct pt_packet k;

	while (p < end) {
		int n;

		if (f->state == PT_FLOW_UNSYNCED && !f->in_psb) {
			const uint8_t *next = pt_find_psb(p, end);

			if (!next) {
				/* Keep what may be the beginning of one. */
				p = !last && end - p >= PT_PACKET_MAX ? end - (PT_PACKET_MAX - 1) : last ? end : p;
				break;
			}
			p = next;
		}
		if (__builtin_expect(f->state == PT_FLOW_RUNNING && !f->bip_bytes && !f->tnt_n && !f->in_psb &&
					     !f->psb_only, 1)) {
			/* The two that most bytes are. */
			const uint8_t *fast_end = end - PT_PACKET_MAX;

			while (p < fast_end) {
				unsigned b = *p;

				if (!(b & 1) && b > 2) {
					unsigned bits = 30u - (unsigned)__builtin_clz(b);

					f->aux_offset = aux_offset + (uint64_t)(p - begin);
					f->tnt = b >> 1 & ((1u << bits) - 1);
					f->tnt_n = bits;
					f->packets++;
					p++;
					if (!run_tnt(f) || f->tnt_n)
						break;
				} else if ((b & 7) == 3) {
					p++;
					f->packets++;
					f->has_cyc = true;
					pt_clock_cyc(&f->clock, b >> 3);
					f->cut = f->cyc_fresh = true;
				} else if ((b & 0x1f) == 0x0d && b != 0x0d && !(b & 0x80)) {
					/* TIP with 2, 4 or 6 bytes of IP. */
					unsigned ipbytes = b >> 5;
					uint64_t v;

					memcpy(&v, p + 1, sizeof v);
					v &= UINT64_MAX >> (64 - 16 * ipbytes);
					f->aux_offset = aux_offset + (uint64_t)(p - begin);
					f->last_ip = pt_ip(f->last_ip, ipbytes, v);
					f->packets++;
					p += 1 + 2 * ipbytes;
					if (!tip(f, f->last_ip) || f->tnt_n)
						break;
				} else if (b == 0x59) {
					uint64_t before = f->clock.tsc;

					pt_clock_mtc(&f->clock, p[1]);
					clock_moved(f, before);
					f->cyc_fresh = false;
					f->packets++;
					p += 2;
					if (f->clock.tsc >= f->stop_tsc)
						break;
				} else {
					break;
				}
			}
			if (f->state != PT_FLOW_RUNNING)
				continue;
			if (f->clock.tsc >= f->stop_tsc && f->clock.tsc != PT_CLOCK_UNKNOWN && !f->tnt_n) {
				*ret = p;
				return PT_FEED_TIME;
			}
			if (p >= end)
				break;
		}
		n = pt_packet_decode(p, end, f->bip_bytes, &k);
		f->aux_offset = aux_offset + (uint64_t)(p - begin);
		if (n == PT_NEED_MORE_BYTES) {
			if (last) {
				lose(f, PT_FLOW_CUT, here(f), "the trace ends inside a packet");
				p = end;
			}
			break;
		}
		if (n < 0) {
			lose(f, PT_FLOW_BAD_PACKET, here(f), "no packet begins with these bytes");
			p++;
			continue;
		}
		p += n;
		f->packets++;
		handle(f, &k);
		if (f->clock.tsc >= f->stop_tsc && f->clock.tsc != PT_CLOCK_UNKNOWN && !f->tnt_n) {
			*ret = p;
			return PT_FEED_TIME;
		}
	}
	*ret = p;
	return PT_FEED_MORE;
}

void pt_flow_lost(struct pt_flow *f, uint64_t aux_offset, const char *message)
{
	f->aux_offset = aux_offset;
	lose(f, PT_FLOW_LOST, here(f), message);
	pt_clock_lost(&f->clock);
	f->last_ip = 0;
}

void pt_flow_finish(struct pt_flow *f)
{
	if (f->state == PT_FLOW_RUNNING)
		flush_tail(f, here(f));
	end_slice(f);
	f->state = PT_FLOW_UNSYNCED;
}

void pt_flow_pause(struct pt_flow *f, bool end)
{
	if (f->state == PT_FLOW_RUNNING)
		flush_tail(f, here(f));
	if (end)
		end_slice(f);
}

void pt_flow_resume(struct pt_flow *f)
{
	uint32_t i;

	for (i = f->bottom; i != f->top; i++) {
		const struct pt_where *w = &f->graph->where[f->stack[i % PT_STACK]];
		struct pt_code *code = f->graph->codes[w->code];

		f->stack[i % PT_STACK] = pt_graph_position(f->graph, code, w->ip, w->mode);
	}
	if (f->state != PT_FLOW_RUNNING)
		return;
	if (!f->in_slice)
		begin_slice(f);
	f->start_ip = here(f);
	f->code = NULL;
	stand(f, f->start_ip);
}
