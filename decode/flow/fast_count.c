/*
 * fast_count.c - the packets that running code mostly has, where branches are only counted; see fast.h.
 *
 * Without edges and paths nothing is left of a TNT bit but an arc: where it leads to, how many branches and
 * instructions are on the way, and what becomes of the return stack. All of that is in variables while the
 * loop runs.
 */
#include "decode/flow/fast.h"

/* TNT bits: the next one is the highest, and after the last one comes a 1. */
#define NO_BITS 0x80000000u

/* What of a flow moves with every bit. */
struct walk {
	uint32_t position, top, peak; /* peak: the highest top so far */
	uint64_t branches;	      /* since the run began */
	uint64_t insns;
};

/* ---- Between the flow and the walk ------------------------------------------------------------------ */

/* What lies below the bottom of the stack is no position, so that a return to there is one that leads
 * nowhere. */
static inline void seal(struct pt_flow *f)
{
	f->stack.entries[(f->stack.bottom - 1) % PT_STACK] = 0;
}

static inline void rise(struct pt_flow *f, uint32_t peak)
{
	if (__builtin_expect(peak - f->stack.bottom > PT_STACK_HW, 0)) {
		f->stack.bottom = peak - PT_STACK_HW;
		seal(f);
	}
}

/* Takes over the flow's state, with the branches that it has gathered and the run that it holds back. */
static void enter(struct pt_flow *f, struct walk *ret)
{
	ret->branches = f->path.len;
	if (f->run.repeats)
		ret->branches += (uint64_t)f->graph->path_counts[f->run.path] * f->run.repeats;
	f->path.len = f->run.repeats = 0;
	ret->position = f->at.position;
	ret->top = ret->peak = f->stack.top;
	ret->insns = f->counts.insns;
	seal(f);
}

/* Of an unnumbered graph, the path of one branch. */
#define ONE_BRANCH 2
static inline void put_run(struct pt_flow *f, struct walk *w, uint64_t cyc, uint64_t insns)
{
	f->run.path = ONE_BRANCH;
	f->run.repeats = (uint32_t)w->branches;
	pt_flow_put_run(f, cyc, insns);
	w->branches = 0;
}

static void leave(struct pt_flow *f, struct walk *w)
{
	rise(f, w->peak);
	f->at.position = w->position;
	f->at.decision = f->graph->decisions[w->position];
	f->stack.top = w->top;
	f->counts.insns = w->insns;
	if (w->branches > UINT32_MAX / 2)
		put_run(f, w, PTR_UNKNOWN, 0);
	f->run.path = ONE_BRANCH;
	f->run.repeats = (uint32_t)w->branches;
}

/* ---- Runs ------------------------------------------------------------------------------------------- */

/* The clock has moved: the run ends. insns: executed up to the first branch of the one that begins. */
static inline void end_run(struct pt_flow *f, struct walk *w, uint64_t insns)
{
	if (w->branches) {
		uint64_t cyc = PTR_UNKNOWN, between = 0;

		if (f->timing.cyc_fresh) {
			cyc = f->clock.cyc - f->timing.cyc_cyc;
			between = insns - f->timing.cyc_insns;
			f->timing.cyc_cyc = f->clock.cyc;
			f->timing.cyc_insns = insns;
		}
		put_run(f, w, cyc, between);
	}
	pt_flow_begin_run(f, f->timing.cyc_fresh, true);
	f->timing.clock_moved = f->timing.cyc_fresh = false;
}

/* The same before a TNT whose first bit goes along the arc; direct branches before that bit are of the run
 * that ends. */
static inline void end_run_before_tnt(struct pt_flow *f, struct walk *w, const struct pt_arc *arc,
				      uint32_t bit)
{
	bool sample = f->timing.cyc_fresh && f->cyc_binding.samples < PT_CYC_BINDING_SAMPLES;
	uint32_t direct = arc->n_edges - bit;
	uint64_t insns = w->insns + arc->insns;

	w->branches += direct;
	end_run(f, w, insns);
	if (!bit && f->run.timing)
		f->run.timing = PTR_TIME_CYC;
	w->branches -= direct;
	pt_flow_bind_cyc_to_last(f);
	if (__builtin_expect(sample, 0))
		pt_cyc_binding_sample(&f->cyc_binding, &(struct pt_cyc_sample){.packet = f->counts.packets,
									       .cyc = f->clock.cyc,
									       .first_insns = insns,
									       .last_insns = w->insns});
}

/* ---- TNT -------------------------------------------------------------------------------------------- */

static inline bool tnt_decides(unsigned decision)
{
	return decision - PT_D_JCC <= PT_D_RET - PT_D_JCC;
}

/* Whether a TNT bit says what happens next. Goes on to where one does before, if the way is known and
 * short. */
static inline bool reach_tnt_decision(struct pt_flow *f, struct walk *w)
{
	const struct pt_graph *g = f->graph;

	for (unsigned i = 0; g->decisions[w->position] == PT_D_CONT && i < 8; i++) {
		const struct pt_arc *arc = &g->positions[w->position].arc[0];

		if (!arc->next || g->where[arc->next].ip == f->at.code->switch_ip)
			break;
		if (arc->rise)
			f->stack.entries[w->top++ % PT_STACK] = arc->push;
		w->peak = (int32_t)(w->top - w->peak) > 0 ? w->top : w->peak;
		w->branches += arc->n_edges;
		w->insns += arc->insns;
		w->position = arc->next;
	}
	return tnt_decides(g->decisions[w->position]);
}

/*
 * Goes along the arcs of the bits, as long as bits say what happens. False at an arc that is not known, with
 * all before it taken. What the speed of counting is made of: each position is loaded when the one before is
 * known, and nothing else waits.
 */
static inline __attribute__((always_inline)) bool walk_tnt(struct pt_flow *f, struct walk *w, uint32_t *left)
{
	const uint8_t *decisions = f->graph->decisions;
	const char *positions = (const char *)f->graph->positions;
	uint32_t *stack = f->stack.entries, position = w->position, top = w->top, peak = w->peak,
		 bits = *left;
	uint64_t branches = w->branches, insns = w->insns;
	bool known = true;

	do {
		const char *half = positions + (bits >> 31) * sizeof(struct pt_arc);
		const struct pt_arc *arc;
		uint32_t next;

		/* This sum does not wait for the position: compilers would make it last. */
		__asm__("" : "+r"(half));
		arc = (const struct pt_arc *)(half + (size_t)position * sizeof(union pt_position));
		next = arc->next;
		/* The CPU's guess which of the three it is costs less than to do what all of them would. */
		if (arc->rise < 0)
			next = stack[(top - 1) % PT_STACK];
		if (__builtin_expect(!next, 0)) {
			known = false;
			break;
		}
		if (arc->rise > 0) {
			stack[top % PT_STACK] = arc->push;
			peak = (int32_t)(top + 1 - peak) > 0 ? top + 1 : peak;
		}
		top += (uint32_t)arc->rise;
		branches += arc->n_edges;
		insns += arc->insns;
		position = next;
		bits <<= 1;
	} while (bits != NO_BITS && tnt_decides(decisions[position]));
	*w = (struct walk){position, top, peak, branches, insns};
	*left = bits;
	return known;
}

/* All bits of a TNT. False where the graph does not say how to go on: what is left is in *bits. */
static inline bool take_tnt(struct pt_flow *f, struct walk *w, uint32_t *bits)
{
	f->fup.pending = false;
	if (!reach_tnt_decision(f, w))
		return false;
	if (f->timing.clock_moved) {
		uint32_t bit = *bits >> 31;
		const struct pt_arc *arc = &f->graph->positions[w->position].arc[bit];

		if (arc->decision == PT_D_UNRESOLVED || (arc->rise < 0 && w->top == f->stack.bottom))
			return false;
		end_run_before_tnt(f, w, arc, bit);
	}
	while (walk_tnt(f, w, bits)) {
		if (*bits == NO_BITS) {
			rise(f, w->peak);
			return true;
		}
		if (!reach_tnt_decision(f, w))
			break;
	}
	rise(f, w->peak);
	return false;
}

static bool may_go_on(const struct pt_flow *f, bool ok)
{
	return ok && !f->tnt.n && !f->graph->cache_full && pt_flow_countable(f);
}

/* What is left of a TNT, by tnt.c. False when the fast loop ends after it. */
static __attribute__((noinline)) bool take_tnt_slowly(struct pt_flow *f, struct walk *w, uint32_t bits)
{
	bool ok;

	leave(f, w);
	f->tnt.n = 31u - (unsigned)__builtin_ctz(bits);
	f->tnt.bits = bits >> (32 - f->tnt.n);
	ok = may_go_on(f, pt_flow_run_tnt(f));
	enter(f, w);
	return ok;
}

/* ---- TIP -------------------------------------------------------------------------------------------- */

/* A TIP, by ip.c. */
static __attribute__((noinline)) bool take_tip_slowly(struct pt_flow *f, struct walk *w, uint64_t ip)
{
	bool ok;

	leave(f, w);
	ok = may_go_on(f, pt_flow_on_tip(f, ip));
	enter(f, w);
	return ok;
}

/* A TIP of an indirect branch to where it went before, or of a return to its caller. False, with nothing
 * taken, for all others. */
static inline bool take_tip(struct pt_flow *f, struct walk *w, uint64_t ip)
{
	const struct pt_graph *g = f->graph;
	const union pt_position *p = &g->positions[w->position];
	uint32_t next, top = w->top, peak;

	if (f->fup.pending)
		return false;
	if (p->ind.prefix.rise)
		f->stack.entries[top++ % PT_STACK] = p->ind.prefix.push;
	peak = top;
	if (g->decisions[w->position] == PT_D_RET) {
		next = f->stack.entries[--top % PT_STACK];
		if (!next || g->where[next].ip != ip)
			return false;
	} else if (g->decisions[w->position] == PT_D_IND) {
		next = p->ind.next;
		if (p->ind.ip != ip) {
			const struct pt_jump *j = pt_flow_jump_slot(f->graph, w->position, ip);

			if (j->position != w->position || j->to != ip)
				return false;
			next = j->next;
		}
		if (p->ind.calls)
			f->stack.entries[top++ % PT_STACK] = g->edge_lists[w->position].push;
		peak = top;
	} else {
		return false;
	}
	w->top = top;
	if ((int32_t)(peak - w->peak) > 0)
		w->peak = peak;
	rise(f, w->peak);
	w->branches += p->ind.prefix.n_edges;
	w->insns += p->ind.prefix.insns;
	if (f->timing.clock_moved)
		end_run(f, w, w->insns);
	w->branches++;
	w->position = next;
	return true;
}

/* ---- The loop --------------------------------------------------------------------------------------- */

const uint8_t *pt_flow_fast_count(struct pt_flow *f, const uint8_t *p, const uint8_t *fast_end,
				  uint64_t aux_offset)
{
	const uint8_t *begin = p;
	struct walk w;

	if (f->graph->cache_full)
		return p;
	enter(f, &w);
	while (p < fast_end) {
		unsigned b = *p;

		if (is_short_tnt(b)) {
			/* The stop bit falls off, and one after the last bit takes its place. */
			uint32_t bits = (b | 1u) << (__builtin_clz(b) + 1);

			f->counts.packets++;
			p++;
			if (take_tnt(f, &w, &bits))
				continue;
			f->packet.aux_offset = aux_offset + (uint64_t)(p - 1 - begin);
			if (!take_tnt_slowly(f, &w, bits))
				break;
		} else if (is_cyc(b) && f->timing.has_cyc) {
			if (!take_cyc(f, &p))
				break;
		} else if (is_short_tip(b)) {
			const uint8_t *packet = p;

			p = take_ip(f, p);
			f->counts.packets++;
			if (take_tip(f, &w, f->packet.last_ip))
				continue;
			f->packet.aux_offset = aux_offset + (uint64_t)(packet - begin);
			if (!take_tip_slowly(f, &w, f->packet.last_ip))
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
	leave(f, &w);
	return p;
}
