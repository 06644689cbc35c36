/* fast_cyc.c - running code's usual packets where CYCs time each of them, run by run along strides (code/graph.h); see
 * internal.h. */
#include "decode/flow/internal.h"
#include "decode/flow/cyc_binding.h"

_Static_assert(sizeof(struct pt_packet_memo) == 64, "a cache line");

/*
 * Along a stride the run that is being gathered is f->stride's path. The direct branches that lead from where the packet
 * went to, base, to f->at.position and its decision are in it, and in f->counts.insns and the stack, already, for the timing packet
 * that ends the run comes next as a rule. f->path.edges, len and start_ip are not kept. Whoever else is to go on calls stop().
 */

/* What leads to a decision that waits for a packet. */
#define LEAD_ARCS 4
struct lead {
	uint32_t from[LEAD_ARCS]; /* positions; the last arc[0] leads to the decision, from position */
	uint32_t n_arcs, n_edges, n_push, insns;
	uint32_t position;
	unsigned decision;
};

/* to: the position of the decision, when the flow has gone there before; 0 not known. */
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

/* The flow stands as if there were no strides. */
static void stop(struct pt_flow *f)
{
	const struct pt_packet_memo *s = f->packet_memo;
	const struct pt_graph *g = f->graph;
	struct lead lead;

	lead_from(f, s->base, s->next, &lead);
	f->packet_memo = NULL;
	f->path.start_ip = s->next_start_ip;
	f->path.len = 0;
	if (s->path)
		f->path.len = g->path_counts[s->path] - lead.n_edges;
	if (s->path && !g->unnumbered) {
		f->path.start_ip = g->paths[s->path].start_ip;
		memcpy(f->path.edges, g->path_edges + g->paths[s->path].first,
		       f->path.len * sizeof *f->path.edges);
	}
	f->counts.insns -= lead.insns;
	f->stack.top -= lead.n_push;
	f->at.position = s->base;
	f->at.decision = pt_graph_decision(f->graph, s->base);
}

/* By the packet: a TNT's byte, or a TIP's address with the byte 0; and by what the run begins with. caller: the top of the
 * stack when a compressed return is certain, else 0 at first. */
static inline struct pt_packet_memo *slot(const struct pt_flow *f, uint32_t position, unsigned byte,
					  uint64_t to, uint64_t from, uint32_t caller)
{
	uint64_t x = (to ^ byte ^ (uint64_t)position << 40 ^ (uint64_t)caller << 16) * 0x9e3779b97f4a7c15u;

	x += from * 0xd6e8feb86659fd93u;
	return &f->graph->packet_memos[x >> (64 - PT_PACKET_MEMOS_LOG2)];
}

static inline uint32_t top(const struct pt_flow *f)
{
	return f->stack.entries[(f->stack.top - 1) % PT_STACK];
}

/* For slot(), where one caller does not tell. */
static inline uint32_t callers(uint32_t on_top, uint32_t below)
{
	return (on_top << 12 ^ below) | 1u << 31;
}

static inline bool fits(const struct pt_packet_memo *s, const struct pt_flow *f, unsigned byte, uint64_t to,
			uint64_t from)
{
	return s->position == f->at.position && s->from == from && s->byte == byte && s->to == to;
}

/* The stack is as it was for a TNT's returns. */
static inline bool same_callers(const struct pt_packet_memo *s, const struct pt_flow *f)
{
	for (uint32_t i = 0; s->byte && i < s->pops; i++)
		if (f->stack.entries[(f->stack.top - 1 - i) % PT_STACK] !=
		    s->stack[PT_PACKET_MEMO_STACK - 1 - i])
			return false;
	return true;
}

/* What a stride behind that path begins with: no address. */
static inline uint64_t behind(uint32_t path)
{
	return (uint64_t)1 << 62 | path;
}

/* The clock has moved: the run ends here. byte: of the TNT that the next one begins with, 0 of a TIP. */
static inline void end_run(struct pt_flow *f, uint32_t path, unsigned byte)
{
	bool fresh = f->timing.cyc_fresh;

	if (__builtin_expect(f->cyc_binding.samples < PT_CYC_BINDING_SAMPLES && f->timing.cyc_fresh && byte,
			     0)) {
		struct lead lead;

		lead_from(f, f->packet_memo->base, f->packet_memo->next, &lead);
		pt_cyc_binding_sample(&f->cyc_binding, f->counts.packets, f->clock.cyc, f->counts.insns,
				      f->counts.insns - lead.insns);
	}
	if (path) {
		uint64_t cyc = PTR_UNKNOWN, insns = 0;

		if (f->timing.cyc_fresh) {
			cyc = f->clock.cyc - f->timing.cyc_cyc;
			insns = f->counts.insns - f->timing.cyc_insns;
			f->timing.cyc_cyc = f->clock.cyc;
			f->timing.cyc_insns = f->counts.insns;
		}
		f->run.path = path;
		f->run.repeats = 1;
		pt_flow_put_run(f, cyc, insns);
	}
	f->timing.clock_moved = f->timing.cyc_fresh = false;
	pt_flow_run_begins(f, fresh, !byte || byte >> (30 - __builtin_clz(byte)) & 1);
	if (byte)
		pt_flow_bind_cyc_to_last(f);
}

/* Goes along the stride of the packet, behind the end of the run when it is timed. False, with nothing done, when none is
 * known or the stack is not what it was. */
static inline __attribute__((always_inline)) bool packet_memo(struct pt_flow *f, unsigned byte, uint64_t to)
{
	const struct pt_packet_memo *now = f->packet_memo;
	uint64_t from = f->timing.clock_moved || !now->path ? now->next_start_ip : behind(now->path);
	uint32_t caller = byte && f->at.decision == PT_D_RET ? top(f) : 0, low;
	struct pt_packet_memo *s = slot(f, f->at.position, byte, to, from, caller);

	if (!fits(s, f, byte, to, from))
		return false;
	if (s->pops | s->rise) {
		if (!same_callers(s, f)) {
			s = slot(f, f->at.position, byte, to, from,
				 callers(top(f), f->stack.entries[(f->stack.top - 2) % PT_STACK]));
			if (!fits(s, f, byte, to, from) || !same_callers(s, f))
				return false;
		}
		low = f->stack.top - s->pops;
		if ((int32_t)(low - f->stack.bottom) < 0 ||
		    (int32_t)(f->stack.top + s->rise - f->stack.bottom) > 64)
			return false;
		for (uint32_t i = 0; i < s->pushes; i++)
			f->stack.entries[(low + i) % PT_STACK] = s->stack[i];
		f->stack.top = low + s->pushes;
	}
	if (f->timing.clock_moved)
		end_run(f, now->path, byte);
	f->counts.insns += s->insns;
	f->at.position = s->next;
	f->at.decision = s->decision;
	f->packet_memo = s;
	return true;
}

/* What begin() keeps. */
struct beginning {
	bool begins; /* a stride */
	struct pt_code *code;
	uint64_t insns, from;	  /* from: 0, where the run starts */
	uint32_t caller, callers; /* for slot() */
	uint32_t position, bottom;
};

/* A packet comes: whatever it leads to may become a stride. Ends the one that the flow goes along. */
static void begin(struct pt_flow *f, unsigned byte, struct beginning *ret)
{
	struct pt_path_memo_recorder *r = &f->recorder;
	const struct pt_packet_memo *now = f->packet_memo;
	struct lead lead;
	uint32_t caller = 0, on_top, below;

	ret->begins = false;
	if (now)
		stop(f);
	if (!(f->timing.clock_moved || now) || f->stack_state.unsure || f->side.changes || f->fup.pending ||
	    f->at.mode != f->at.next_mode)
		return;
	if (!lead_from(f, f->at.position, 0, &lead) ||
	    (lead.decision != PT_D_RET && lead.decision != (byte ? PT_D_JCC : PT_D_IND)))
		return;
	on_top = top(f);
	below = f->stack.entries[(f->stack.top - 2) % PT_STACK];
	for (uint32_t i = 0; i < lead.n_arcs; i++) {
		const struct pt_arc *arc = &f->graph->positions[lead.from[i]].arc[0];

		if (!arc->rise)
			continue;
		below = on_top;
		on_top = arc->push;
	}
	if (lead.decision == PT_D_RET) {
		if (f->stack.top + lead.n_push == f->stack.bottom)
			return;
		if (byte)
			caller = on_top;
	}
	*ret = (struct beginning){.begins = true,
				  .caller = caller,
				  .callers = callers(on_top, below),
				  .code = f->at.code,
				  .insns = f->counts.insns + lead.insns,
				  .from = f->timing.clock_moved || !now || !now->path ? 0 : behind(now->path),
				  .position = lead.position,
				  .bottom = f->stack.bottom};
	r->top = r->low = r->peak = f->stack.top + lead.n_push;
	r->pops = 0;
}

/* The packet has been taken, and what it led to since its run began is in f->path.edges: that is a stride, and the flow goes on
 * along it. */
static void keep(struct pt_flow *f, const struct beginning *b, unsigned byte, uint64_t to)
{
	struct pt_path_memo_recorder *r = &f->recorder;
	struct pt_graph *g = f->graph;
	struct pt_packet_memo *s;
	struct lead lead;
	uint64_t next_start_ip = f->path.start_ip, from, insns;
	uint32_t path = 0, count, pushes, last;

	if (!b->begins || f->at.code != b->code || f->at.mode != f->at.next_mode || f->run.repeats ||
	    f->stack_state.unsure || !lead_from(f, f->at.position, 0, &lead))
		return;
	from = b->from ? b->from : f->path.start_ip;
	last = g->positions[lead.from[lead.n_arcs - 1]].arc[0].n_edges;
	if ((lead.decision != PT_D_JCC && lead.decision != PT_D_RET && lead.decision != PT_D_IND) ||
	    (last && f->path.len + lead.n_edges - last >= LEAD_EDGES) ||
	    f->path.len + lead.n_edges - last >= FULL_EDGES ||
	    f->stack.top - f->stack.bottom + lead.n_push > 64 || f->stack.bottom != b->bottom)
		return;
	pushes = f->stack.top + lead.n_push - r->low;
	insns = f->counts.insns + lead.insns - b->insns;
	if (pushes > PT_PACKET_MEMO_STACK || (byte && r->pops + pushes > PT_PACKET_MEMO_STACK) ||
	    r->peak - r->top > UINT8_MAX || insns > UINT16_MAX)
		return;
	count = f->path.len;
	for (uint32_t i = 0; i < lead.n_arcs; i++) {
		memcpy(f->path.edges + count, g->edge_lists[lead.from[i]].prefix,
		       sizeof g->edge_lists->prefix);
		count += g->positions[lead.from[i]].arc[0].n_edges;
	}
	if (count) {
		path = pt_graph_path(g,
				     &(struct pt_path_key){.code = f->at.code,
							   .start_ip = f->path.start_ip,
							   .edges = f->path.edges,
							   .count = count,
							   .mode = f->at.mode},
				     f->path.last);
		if (!path)
			return;
		f->path.last = path;
		next_start_ip =
		    g->unnumbered ? 0 : g->edges[g->path_edges[g->paths[path].first + count - 1]].to;
	}
	for (uint32_t i = 0; i < lead.n_arcs; i++) {
		const struct pt_arc *arc = &g->positions[lead.from[i]].arc[0];

		if (arc->rise)
			pt_flow_push(f, arc->push);
	}
	s = slot(f, b->position, byte, to, from, b->caller);
	if (r->pops && s->position == b->position && s->from == from && s->byte == byte && s->to == to)
		s = slot(f, b->position, byte, to, from, b->callers);
	*s = (struct pt_packet_memo){.from = from,
				     .next_start_ip = next_start_ip,
				     .to = to,
				     .position = b->position,
				     .path = path,
				     .base = f->at.position,
				     .next = lead.position,
				     .insns = (uint16_t)insns,
				     .byte = (uint8_t)byte,
				     .decision = (uint8_t)lead.decision,
				     .pops = (uint8_t)r->pops,
				     .pushes = (uint8_t)pushes,
				     .rise = (uint8_t)(r->peak - r->top)};
	for (uint32_t i = 0; i < pushes; i++)
		s->stack[i] = f->stack.entries[(r->low + i) % PT_STACK];
	for (uint32_t i = 0; byte && i < r->pops; i++)
		s->stack[PT_PACKET_MEMO_STACK - 1 - i] = r->popped[i];
	f->counts.insns += lead.insns;
	f->path.len = 0;
	f->at.position = lead.position;
	f->at.decision = lead.decision;
	f->packet_memo = s;
}

/* A TNT packet. False when the fast loop ends behind it. */
static bool slow_tnt(struct pt_flow *f, unsigned byte)
{
	struct beginning b;
	uint32_t flushes;

	f->tnt.n = 30u - (unsigned)__builtin_clz(byte);
	f->tnt.bits = byte >> 1 & ((1u << f->tnt.n) - 1);
	f->fup.pending = false;
	begin(f, byte, &b);
	if (f->timing.clock_moved && pt_flow_time_tnt(f) != PT_RAN_ALL)
		return false;
	flushes = f->path.flushes;
	if (f->timing.clock_moved)
		b.begins = false;
	if ((f->tnt.n && !pt_flow_run_tnt(f)) || f->tnt.n)
		return false;
	if (f->path.flushes == flushes)
		keep(f, &b, byte, 0);
	return true;
}

/* A TIP packet. */
static bool slow_tip(struct pt_flow *f, uint64_t ip)
{
	struct beginning b;
	uint32_t flushes;
	bool timed;

	begin(f, 0, &b);
	timed = f->timing.clock_moved;
	flushes = f->path.flushes;
	if (!pt_flow_on_tip(f, ip) || f->tnt.n)
		return false;
	if (timed ? f->path.len == 1 : f->path.flushes == flushes)
		keep(f, &b, 0, ip);
	return true;
}

const uint8_t *pt_flow_timed(struct pt_flow *f, const uint8_t *p, const uint8_t *fast_end,
			     uint64_t aux_offset)
{
	const uint8_t *begins = p;

	f->packet_memo = NULL;
	if (f->graph->cache_full)
		return p;
	while (p < fast_end) {
		unsigned b = *p;

		if ((b & 3) == 3) {
			if (!pt_flow_take_cyc(f, &p))
				break;
		} else if (!(b & 1) && b > 2) {
			p++;
			f->counts.packets++;
			if (f->packet_memo && packet_memo(f, b, 0))
				continue;
			f->packet.aux_offset = aux_offset + (uint64_t)(p - 1 - begins);
			if (!slow_tnt(f, b) || f->graph->cache_full)
				break;
		} else if (pt_flow_short_tip(b)) {
			const uint8_t *packet = p;

			p = pt_flow_take_ip(f, p);
			f->counts.packets++;
			if (f->packet_memo && packet_memo(f, 0, f->packet.last_ip))
				continue;
			f->packet.aux_offset = aux_offset + (uint64_t)(packet - begins);
			if (!slow_tip(f, f->packet.last_ip) || f->graph->cache_full)
				break;
		} else if (b == PT_MTC_BYTE) {
			bool more = pt_flow_take_mtc(f, p);

			p += 2;
			if (!more)
				break;
		} else {
			break;
		}
	}
	if (f->packet_memo)
		stop(f);
	return p;
}
