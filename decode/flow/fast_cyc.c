/*
 * fast_cyc.c - the packets that running code mostly has, by memoized packets; see fast.h.
 *
 * Where a CYC packet times almost each branch packet, most runs are one packet long, and memoized paths
 * (fast.c) hold too little to be worth it. So what is kept is what one packet led to (struct pt_packet_memo):
 * from the decision that it answered to the next decision. The direct branches on the way to that are in it,
 * too, for they belong to the same run (flow.h):
 *
 *     code         jcc ----> jmp ----> jmp ----> jcc ----> call ----> ret
 *                   ^                             ^                    ^
 *     packets     TNT 1                         TNT 2                TNT 3
 *     memos         |---------------------------->|------------------->|
 *
 * While the flow goes along memos, the run that is being gathered is f->packet_memo's path. The flow stands
 * at the decision, with the direct branches before it taken in f->at, f->counts.insns and the stack; but
 * f->path is not kept up. Whoever else is to go on with the flow calls leave_memos() before, which undoes
 * these branches and restores the path.
 */
#include "decode/flow/fast.h"

_Static_assert(sizeof(struct pt_packet_memo) == 64, "a cache line");

/* ---- Direct branches before a decision -------------------------------------------------------------- */

#define LEAD_ARCS 4
/* The direct branches that lead from a position to a decision that waits for a packet. */
struct lead {
	uint32_t from[LEAD_ARCS]; /* positions on the way; the decision is that of the last, `position` */
	uint32_t n_arcs, n_edges, n_push, insns;
	uint32_t position;
	unsigned decision;
};

/* to: the position of the decision, when the flow has been there before; 0 not known. False when there are
 * too many branches, or what tnt.c has to see is on the way. */
static bool lead_from(struct pt_flow *f, uint32_t position, uint32_t to, struct lead *ret)
{
	struct pt_graph *g = f->graph;

	*ret = (struct lead){.position = position};
	while (ret->n_arcs < LEAD_ARCS) {
		const struct pt_arc *arc = &g->positions[position].ind.prefix;

		ret->decision = pt_graph_decision(g, position);
		if (ret->decision == PT_D_DEAD)
			return false;
		if (ret->decision == PT_D_CONT && arc->decision == PT_D_UNRESOLVED &&
		    !pt_graph_follow(g, position, 0))
			return false;
		ret->from[ret->n_arcs++] = position;
		ret->n_edges += arc->n_edges;
		ret->n_push += arc->rise != 0;
		ret->insns += arc->insns;
		ret->position = position;
		if (ret->decision != PT_D_CONT)
			return true;
		position = arc->next;
		if (!to && f->at.code->switch_ip && g->where[position].ip == f->at.code->switch_ip)
			return false;
	}
	return false;
}

/* The flow stands as if there were no memos. */
static void leave_memos(struct pt_flow *f)
{
	const struct pt_packet_memo *m = f->packet_memo;
	const struct pt_graph *g = f->graph;
	struct lead lead;

	lead_from(f, m->base, m->next, &lead);
	f->packet_memo = NULL;
	f->path.start_ip = m->next_start_ip;
	f->path.len = 0;
	if (m->path)
		f->path.len = g->path_counts[m->path] - lead.n_edges;
	if (m->path) {
		f->path.start_ip = g->paths[m->path].start_ip;
		memcpy(f->path.edges, g->path_edges + g->paths[m->path].first,
		       f->path.len * sizeof *f->path.edges);
	}
	f->counts.insns -= lead.insns;
	f->stack.top -= lead.n_push;
	f->at.position = m->base;
	f->at.decision = pt_graph_decision(f->graph, m->base);
}

/* ---- Looking up ------------------------------------------------------------------------------------- */

/* What a memo is looked up by: the packet, where it came, and what the run was then. */
struct key {
	uint32_t position;
	unsigned byte; /* a TNT packet's; 0: a TIP */
	uint64_t to;   /* a TIP's address */
	uint64_t from; /* where the run starts that the packet begins; after_path() of one that goes on */
};

static inline uint64_t after_path(uint32_t path)
{
	return (uint64_t)1 << 62 | path; /* no address */
}

/* caller: the top of the stack when a compressed return is certain to come first, else 0. Where memos that
 * differ in other callers share that slot, two_callers(). */
static inline struct pt_packet_memo *slot(const struct pt_flow *f, const struct key *k, uint32_t caller)
{
	uint64_t x =
	    (k->to ^ k->byte ^ (uint64_t)k->position << 40 ^ (uint64_t)caller << 16) * 0x9e3779b97f4a7c15u;

	x += k->from * 0xd6e8feb86659fd93u;
	return &f->graph->packet_memos[x >> (64 - PT_PACKET_MEMOS_LOG2)];
}

static inline uint32_t two_callers(uint32_t top, uint32_t below)
{
	return (top << 12 ^ below) | 1u << 31;
}

static inline bool fits(const struct pt_packet_memo *m, const struct key *k)
{
	return m->position == k->position && m->from == k->from && m->byte == k->byte && m->to == k->to;
}

static inline uint32_t top_of(const struct flow_return_stack *stack)
{
	return stack->entries[(stack->top - 1) % PT_STACK];
}

static inline uint32_t below_top_of(const struct flow_return_stack *stack)
{
	return stack->entries[(stack->top - 2) % PT_STACK];
}

/* The stack is as it was for a TNT's returns. */
static inline bool same_callers(const struct pt_packet_memo *m, const struct pt_flow *f)
{
	for (uint32_t i = 0; m->byte && i < m->pops; i++)
		if (f->stack.entries[(f->stack.top - 1 - i) % PT_STACK] !=
		    m->stack[PT_PACKET_MEMO_STACK - 1 - i])
			return false;
	return true;
}

/* ---- Going along ------------------------------------------------------------------------------------ */

/* The clock has moved: the run, of one path or none (0), ends here. byte: of the TNT that the next one begins
 * with, 0 of a TIP. */
static inline void end_run(struct pt_flow *f, uint32_t path, unsigned byte)
{
	bool cyc = f->timing.cyc_fresh;

	if (__builtin_expect(f->cyc_binding.samples < PT_CYC_BINDING_SAMPLES && cyc && byte, 0)) {
		struct lead lead;

		lead_from(f, f->packet_memo->base, f->packet_memo->next, &lead);
		pt_cyc_binding_sample(&f->cyc_binding,
				      &(struct pt_cyc_sample){.packet = f->counts.packets,
							      .cyc = f->clock.cyc,
							      .first_insns = f->counts.insns,
							      .last_insns = f->counts.insns - lead.insns});
	}
	if (path) {
		uint64_t cyc_count = PTR_UNKNOWN, insns = 0;

		if (cyc) {
			cyc_count = f->clock.cyc - f->timing.cyc_cyc;
			insns = f->counts.insns - f->timing.cyc_insns;
			f->timing.cyc_cyc = f->clock.cyc;
			f->timing.cyc_insns = f->counts.insns;
		}
		f->run.path = path;
		f->run.repeats = 1;
		pt_flow_put_run(f, cyc_count, insns);
	}
	f->timing.clock_moved = f->timing.cyc_fresh = false;
	pt_flow_begin_run(f, cyc, !byte || byte >> (30 - __builtin_clz(byte)) & 1);
	if (byte)
		pt_flow_bind_cyc_to_last(f);
}

/* Takes what the packet led to before, after the end of the run when it is timed. False, with nothing done,
 * when that is not known or the stack is not what it was. */
static inline __attribute__((always_inline)) bool along_memo(struct pt_flow *f, unsigned byte, uint64_t to)
{
	const struct pt_packet_memo *now = f->packet_memo;
	struct key key = {.position = f->at.position,
			  .byte = byte,
			  .to = to,
			  .from = f->timing.clock_moved || !now->path ? now->next_start_ip
								      : after_path(now->path)};
	uint32_t caller = byte && f->at.decision == PT_D_RET ? top_of(&f->stack) : 0, low;
	struct pt_packet_memo *m = slot(f, &key, caller);

	if (!fits(m, &key))
		return false;
	if (m->pops | m->rise) {
		if (!same_callers(m, f)) {
			m = slot(f, &key, two_callers(top_of(&f->stack), below_top_of(&f->stack)));
			if (!fits(m, &key) || !same_callers(m, f))
				return false;
		}
		low = f->stack.top - m->pops;
		if ((int32_t)(low - f->stack.bottom) < 0 ||
		    (int32_t)(f->stack.top + m->rise - f->stack.bottom) > PT_STACK_HW)
			return false;
		for (uint32_t i = 0; i < m->pushes; i++)
			f->stack.entries[(low + i) % PT_STACK] = m->stack[i];
		f->stack.top = low + m->pushes;
	}
	if (f->timing.clock_moved)
		end_run(f, now->path, byte);
	f->counts.insns += m->insns;
	f->at.position = m->next;
	f->at.decision = m->decision;
	f->packet_memo = m;
	return true;
}

/* ---- Recording -------------------------------------------------------------------------------------- */

/* A packet that is not memoized yet, and the flow before it. */
struct beginning {
	bool begins; /* false: what it leads to is not to be kept */
	struct pt_code *code;
	uint64_t insns, from;	      /* from: as in struct key; 0: where the run starts that begins */
	uint32_t caller, two_callers; /* for slot() */
	uint32_t position, bottom;
};

/* A packet comes for which there is no memo. The flow leaves memos, and the stack is watched. */
static void begin(struct pt_flow *f, unsigned byte, struct beginning *ret)
{
	struct flow_recorder *r = &f->recorder;
	const struct pt_packet_memo *now = f->packet_memo;
	struct lead lead;
	uint32_t caller = 0, top, below;

	ret->begins = false;
	if (now)
		leave_memos(f);
	if (!(f->timing.clock_moved || now) || f->stack_state.unsure || f->side.changes || f->fup.pending ||
	    f->at.mode != f->at.next_mode)
		return;
	if (!lead_from(f, f->at.position, 0, &lead) ||
	    (lead.decision != PT_D_RET && lead.decision != (byte ? PT_D_JCC : PT_D_IND)))
		return;
	top = top_of(&f->stack);
	below = below_top_of(&f->stack);
	for (uint32_t i = 0; i < lead.n_arcs; i++) {
		const struct pt_arc *arc = &f->graph->positions[lead.from[i]].arc[0];

		if (!arc->rise)
			continue;
		below = top;
		top = arc->push;
	}
	if (lead.decision == PT_D_RET) {
		if (f->stack.top + lead.n_push == f->stack.bottom)
			return;
		if (byte)
			caller = top;
	}
	*ret = (struct beginning){.begins = true,
				  .caller = caller,
				  .two_callers = two_callers(top, below),
				  .code = f->at.code,
				  .insns = f->counts.insns + lead.insns,
				  .from =
				      f->timing.clock_moved || !now || !now->path ? 0 : after_path(now->path),
				  .position = lead.position,
				  .bottom = f->stack.bottom};
	r->top = r->low = r->peak = f->stack.top + lead.n_push;
	r->pops = 0;
}

/* What a packet led to is something that a memo can hold: its run is all in f->path, and a decision comes
 * next. All of it is in one code, whatever has led the flow there. */
static bool can_keep(const struct pt_flow *f, const struct beginning *b, unsigned byte,
		     const struct lead *lead)
{
	const struct flow_recorder *r = &f->recorder;
	const struct pt_where *where = f->graph->where;
	uint32_t last = f->graph->positions[lead->from[lead->n_arcs - 1]].arc[0].n_edges;
	uint32_t len = f->path.len + lead->n_edges - last, pushes = f->stack.top + lead->n_push - r->low;

	if (lead->decision != PT_D_JCC && lead->decision != PT_D_RET && lead->decision != PT_D_IND)
		return false;
	if (where[b->position].code != f->at.code->id || where[f->at.position].code != f->at.code->id)
		return false;
	if ((last && len >= PATH_LEAD_EDGES) || len >= PATH_FULL_EDGES)
		return false;
	return f->stack.top - f->stack.bottom + lead->n_push <= PT_STACK_HW && f->stack.bottom == b->bottom &&
	       pushes <= PT_PACKET_MEMO_STACK && (!byte || r->pops + pushes <= PT_PACKET_MEMO_STACK) &&
	       r->peak - r->top <= UINT8_MAX && f->counts.insns + lead->insns - b->insns <= UINT16_MAX;
}

/* The path of the run so far, with the lead, and where the next one starts. False when the graph is full. */
static bool make_path(struct pt_flow *f, const struct lead *lead, uint32_t *ret_path,
		      uint64_t *ret_next_start_ip)
{
	const struct pt_graph *g = f->graph;
	uint32_t count = f->path.len;

	*ret_path = 0;
	*ret_next_start_ip = f->path.start_ip;
	for (uint32_t i = 0; i < lead->n_arcs; i++) {
		memcpy(f->path.edges + count, g->edge_lists[lead->from[i]].edges,
		       sizeof g->edge_lists->edges);
		count += g->positions[lead->from[i]].arc[0].n_edges;
	}
	if (!count)
		return true;
	*ret_path = pt_graph_path(f->graph,
				  &(struct pt_path_key){.code = f->at.code,
							.start_ip = f->path.start_ip,
							.edges = f->path.edges,
							.count = count,
							.mode = f->at.mode},
				  f->path.last);
	if (!*ret_path)
		return false;
	f->path.last = *ret_path;
	*ret_next_start_ip = g->edges[g->path_edges[g->paths[*ret_path].first + count - 1]].to;
	return true;
}

/* The packet has been taken, and what it led to since its run began is in f->path: that is memoized, and the
 * flow goes on along it. */
static void keep(struct pt_flow *f, const struct beginning *b, unsigned byte, uint64_t to)
{
	struct flow_recorder *r = &f->recorder;
	struct pt_graph *g = f->graph;
	struct pt_packet_memo *m;
	struct lead lead;
	struct key key = {.position = b->position, .byte = byte, .to = to};
	uint64_t next_start_ip;
	uint32_t path, pushes;

	if (!b->begins || f->at.code != b->code || f->at.mode != f->at.next_mode || f->run.repeats ||
	    f->stack_state.unsure || !lead_from(f, f->at.position, 0, &lead) || !can_keep(f, b, byte, &lead))
		return;
	key.from = b->from ? b->from : f->path.start_ip;
	if (!make_path(f, &lead, &path, &next_start_ip))
		return;
	for (uint32_t i = 0; i < lead.n_arcs; i++) {
		const struct pt_arc *arc = &g->positions[lead.from[i]].arc[0];

		if (arc->rise)
			pt_flow_stack_push(f, arc->push);
	}
	pushes = f->stack.top - r->low;
	m = slot(f, &key, b->caller);
	if (r->pops && fits(m, &key))
		m = slot(f, &key, b->two_callers);
	*m = (struct pt_packet_memo){.from = key.from,
				     .next_start_ip = next_start_ip,
				     .to = to,
				     .position = b->position,
				     .path = path,
				     .base = f->at.position,
				     .next = lead.position,
				     .insns = (uint16_t)(f->counts.insns + lead.insns - b->insns),
				     .byte = (uint8_t)byte,
				     .decision = (uint8_t)lead.decision,
				     .pops = (uint8_t)r->pops,
				     .pushes = (uint8_t)pushes,
				     .rise = (uint8_t)(r->peak - r->top)};
	for (uint32_t i = 0; i < pushes; i++)
		m->stack[i] = f->stack.entries[(r->low + i) % PT_STACK];
	for (uint32_t i = 0; byte && i < r->pops; i++)
		m->stack[PT_PACKET_MEMO_STACK - 1 - i] = r->popped[i];
	f->counts.insns += lead.insns;
	f->path.len = 0;
	f->at.position = lead.position;
	f->at.decision = lead.decision;
	f->packet_memo = m;
}

/* ---- The loop --------------------------------------------------------------------------------------- */

/* A TNT packet without a memo. False when the fast loop ends after it. */
static bool take_tnt(struct pt_flow *f, unsigned byte)
{
	struct beginning b;
	uint32_t paths_ended;

	f->tnt = short_tnt(byte);
	f->fup.pending = false;
	begin(f, byte, &b);
	if (f->timing.clock_moved && pt_flow_time_tnt(f) != PT_TNT_DONE)
		return false;
	paths_ended = f->path.ended;
	if (f->timing.clock_moved)
		b.begins = false;
	if ((f->tnt.n && !pt_flow_run_tnt(f)) || f->tnt.n)
		return false;
	if (f->path.ended == paths_ended)
		keep(f, &b, byte, 0);
	return true;
}

/* A TIP packet without a memo. */
static bool take_tip(struct pt_flow *f, uint64_t ip)
{
	struct beginning b;
	uint32_t paths_ended;
	bool timed;

	begin(f, 0, &b);
	timed = f->timing.clock_moved;
	paths_ended = f->path.ended;
	if (!pt_flow_on_tip(f, ip) || f->tnt.n)
		return false;
	if (timed ? f->path.len == 1 : f->path.ended == paths_ended)
		keep(f, &b, 0, ip);
	return true;
}

const uint8_t *pt_flow_fast_cyc(struct pt_flow *f, const uint8_t *p, const uint8_t *fast_end,
				uint64_t aux_offset)
{
	const uint8_t *begin = p;

	f->packet_memo = NULL;
	if (f->graph->cache_full)
		return p;
	while (p < fast_end) {
		unsigned b = *p;

		if (is_cyc(b)) {
			if (!take_cyc(f, &p))
				break;
		} else if (is_short_tnt(b)) {
			p++;
			f->counts.packets++;
			if (f->packet_memo && along_memo(f, b, 0))
				continue;
			f->packet.aux_offset = aux_offset + (uint64_t)(p - 1 - begin);
			if (!take_tnt(f, b) || f->graph->cache_full)
				break;
		} else if (is_short_tip(b)) {
			const uint8_t *packet = p;

			p = take_ip(f, p);
			f->counts.packets++;
			if (f->packet_memo && along_memo(f, 0, f->packet.last_ip))
				continue;
			f->packet.aux_offset = aux_offset + (uint64_t)(packet - begin);
			if (!take_tip(f, f->packet.last_ip) || f->graph->cache_full)
				break;
		} else if (b == MTC_BYTE) {
			bool more = take_mtc(f, p);

			p += 2;
			if (!more)
				break;
		} else {
			break;
		}
	}
	if (f->packet_memo)
		leave_memos(f);
	return p;
}
