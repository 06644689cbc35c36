/* loops.c - see loops.h. */
#include "queries/annotate/loops.h"

#include <stdlib.h>
#include <string.h>

#include "schema/array.h"

enum { FRAMES_MAX = 4096 /* calls of the function within one another; the outermost are forgotten */ };

/* ---- The graph ---------------------------------------------------------------------------------------- */

/* Where an instruction leads: to the next one, or by a taken branch inside the function. */
struct arrow {
	uint32_t from, to;
	bool back;
};

struct graph {
	struct arrow *out; /* by `from` */
	size_t count, room;
	size_t *first;	   /* of each instruction, and one more */
	uint64_t *outside; /* of each instruction: loops whose body it is not in */
};

/* A branch that goes on in the same call of the function: no call, no return, no interrupt. */
static bool is_jump(const struct branch *b)
{
	return b->kind == PTR_JCC || b->kind == PTR_JMP || b->kind == PTR_JMP_IND;
}

/* Whether the instruction after it ran after it: not so after a jump or a return, and not always after a branch. */
static bool falls_through(const struct fn *f, const struct paths *p, const struct counts *c, uint32_t insn,
			  const struct way **way, const struct way *end)
{
	uint64_t left = 0;

	for (; *way < end && (*way)->insn == insn; (*way)++) {
		const struct branch *b = &p->branches[(*way)->branch];

		if (!branch_interrupts(b) && b->kind != PTR_CALL_DIR && b->kind != PTR_CALL_IND &&
		    b->kind != PTR_SYSCALL && b->kind != PTR_INT)
			left += (*way)->count;
	}
	return f->insns[insn].next != NO_INSN && c->ran[insn] > left;
}

static int add_arrow(struct graph *g, uint32_t from, uint32_t to, struct pt_error *e)
{
	if (pt_array_grow(&g->out, g->count, &g->room, e) < 0)
		return -1;
	g->out[g->count++] = (struct arrow){.from = from, .to = to};
	return 0;
}

static int make_graph(struct graph *g, const struct fn *f, const struct paths *p, const struct counts *c,
		      struct pt_error *e)
{
	const struct way *way = c->ways, *end = c->ways + c->way_count;

	g->first = calloc(f->count + 1, sizeof *g->first);
	g->outside = calloc(f->count, sizeof *g->outside);
	if (!g->first || !g->outside)
		return pt_fail_no_memory(e, "the loops");
	for (uint32_t i = 0; i < f->count; i++) {
		const struct way *at = way;

		g->first[i] = g->count;
		if (falls_through(f, p, c, i, &way, end) && add_arrow(g, i, f->insns[i].next, e) < 0)
			return -1;
		for (; at < way; at++)
			if (at->target != NO_INSN && is_jump(&p->branches[at->branch]) &&
			    add_arrow(g, i, at->target, e) < 0)
				return -1;
	}
	g->first[f->count] = g->count;
	return 0;
}

/* Depth first from `root`; arrows to what is on the way there lead back. */
static void find_back(struct graph *g, uint32_t root, uint8_t *state, size_t *at, uint32_t *stack)
{
	enum { NEW, OPEN, DONE };
	uint32_t depth = 0;

	stack[depth++] = root;
	state[root] = OPEN;
	while (depth) {
		uint32_t insn = stack[depth - 1];
		struct arrow *a = &g->out[g->first[insn] + at[insn]];

		if (g->first[insn] + at[insn] == g->first[insn + 1]) {
			state[insn] = DONE;
			depth--;
			continue;
		}
		at[insn]++;
		a->back = state[a->to] == OPEN;
		if (state[a->to] == NEW) {
			state[a->to] = OPEN;
			stack[depth++] = a->to;
		}
	}
}

static int find_loops(struct loops *l, struct graph *g, const struct fn *f, struct pt_error *e)
{
	uint8_t *state = calloc(f->count, 1);
	uint32_t *stack = calloc(f->count, sizeof *stack);
	size_t *at = calloc(f->count, sizeof *at);
	int ret = state && stack && at ? 0 : pt_fail_no_memory(e, "the loops");

	/* From the entry on; then from what is reached in no other way, in the order of addresses. */
	for (uint32_t i = 0; !ret && i < f->count; i++)
		if (f->insns[i].ip == f->insns[i].start && !state[i])
			find_back(g, i, state, at, stack);
	for (uint32_t i = 0; !ret && i < f->count; i++)
		if (!state[i])
			find_back(g, i, state, at, stack);
	for (size_t i = 0; !ret && i < g->count; i++) {
		uint32_t n = 0;

		if (!g->out[i].back)
			continue;
		while (n < l->count && l->all[n].header != g->out[i].to)
			n++;
		l->more |= n == LOOPS_MAX;
		if (n == l->count && n < LOOPS_MAX)
			l->all[l->count++] = (struct loop){.header = g->out[i].to};
	}
	free(state);
	free(stack);
	free(at);
	return ret;
}

/* The body: the header, and what leads to a back edge of it without passing it. Arrows are searched again and again until
 * none brings more: functions are small, and most arrows lead on to the next instruction. */
static void find_body(const struct loop *loop, uint64_t bit, struct graph *g, const struct fn *f)
{
	bool more = true;

	for (uint32_t i = 0; i < f->count; i++)
		g->outside[i] |= i == loop->header ? 0 : bit;
	while (more) {
		more = false;
		for (size_t i = g->count; i-- > 0;) {
			const struct arrow *a = &g->out[i];
			bool leads = a->to == loop->header ? a->back : !(g->outside[a->to] & bit);

			if (leads && g->outside[a->from] & bit) {
				g->outside[a->from] &= ~bit;
				more = true;
			}
		}
	}
}

static bool is_back(const struct graph *g, uint32_t from, uint32_t to)
{
	if (from == NO_INSN)
		return false;
	for (size_t i = g->first[from]; i < g->first[from + 1]; i++)
		if (g->out[i].to == to)
			return g->out[i].back;
	return false;
}

/* ---- What a path does to trips ------------------------------------------------------------------------ */

enum action { CALLED, LEFT, OUTSIDE, ENTERED, TURNED };

struct step {
	enum action action;
	uint64_t loops; /* OUTSIDE: their bits; ENTERED, TURNED: the loop's number */
};

struct steps {
	struct step *all;
	size_t count, room;
	size_t *first; /* of each path, and one more */
};

static int add_step(struct steps *s, size_t path_first, enum action action, uint64_t loops,
		    struct pt_error *e)
{
	if (action == OUTSIDE &&
	    (!loops || (s->count > path_first && s->all[s->count - 1].action == OUTSIDE &&
			s->all[s->count - 1].loops == loops)))
		return 0;
	if (pt_array_grow(&s->all, s->count, &s->room, e) < 0)
		return -1;
	s->all[s->count++] = (struct step){.action = action, .loops = loops};
	return 0;
}

struct maker {
	const struct loops *loops;
	const struct graph *graph;
	const struct fn *f;
	const struct paths *p;
	struct steps *steps;
	size_t first; /* of the path at hand */
};

/* Execution comes to an instruction, from another one of the function (NO_INSN: by a call). */
static int arrive(struct maker *m, uint32_t from, uint32_t to, struct pt_error *e)
{
	for (uint32_t n = 0; to != NO_INSN && n < m->loops->count; n++)
		if (m->loops->all[n].header == to)
			return add_step(m->steps, m->first, is_back(m->graph, from, to) ? TURNED : ENTERED, n,
					e);
	return 0;
}

/* A taken branch, whatever it is. */
static int take(struct maker *m, uint32_t version, const struct branch *b, struct pt_error *e)
{
	uint32_t from = fn_find(m->f, version, b->from), to = fn_find(m->f, version, b->to);
	bool call = b->kind == PTR_CALL_DIR || b->kind == PTR_CALL_IND;

	/* Goes on where it was interrupted. */
	if (!is_jump(b) && !call && b->kind != PTR_RET)
		return 0;
	if (from != NO_INSN && (b->kind == PTR_RET || (to == NO_INSN && is_jump(b) && b->to_entry)) &&
	    add_step(m->steps, m->first, LEFT, 0, e) < 0)
		return -1;
	if (to == NO_INSN)
		return 0;
	if (call || (from == NO_INSN && is_jump(b) && b->to == m->f->insns[to].start)) {
		if (add_step(m->steps, m->first, CALLED, 0, e) < 0)
			return -1;
		return arrive(m, NO_INSN, to, e);
	}
	return arrive(m, b->kind == PTR_RET ? fn_before(m->f, to) : from, to, e);
}

static int make_path(struct maker *m, const struct code_path *path, struct pt_error *e)
{
	m->first = m->steps->count;
	for (uint32_t i = 0; i <= path->branches; i++) {
		struct stretch s = stretch_of(m->f, m->p, path, i);
		uint32_t insn = s.first, last = NO_INSN;

		for (uint32_t n = 0; n < s.n && insn != NO_INSN; n++) {
			if (n && arrive(m, last, insn, e) < 0)
				return -1;
			if (add_step(m->steps, m->first, OUTSIDE, m->graph->outside[insn], e) < 0)
				return -1;
			last = insn;
			insn = m->f->insns[insn].next;
		}
		/* No branch, and it goes on: at the path's end, or where it was interrupted. */
		if (last != NO_INSN && (!s.branch || branch_interrupts(s.branch)) &&
		    arrive(m, last, insn, e) < 0)
			return -1;
		if (s.branch && take(m, path->version, s.branch, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- Trips -------------------------------------------------------------------------------------------- */

/* A call of the function. */
struct frame {
	uint64_t trips[LOOPS_MAX]; /* of the loops that it is in; 0: it is not */
	uint64_t cut;		   /* loops whose beginning was not seen */
};

struct walker {
	struct loops *loops;
	const struct steps *steps;
	struct frame *frames;
	size_t depth, room;
};

static int by_trips(const void *a, const void *b)
{
	const struct trips *x = a, *y = b;

	return x->count < y->count ? -1 : x->count > y->count;
}

/* Equal counts become one. */
static void merge_trips(struct loop *loop)
{
	size_t n = 0;

	if (!loop->trip_count)
		return;
	qsort(loop->trips, loop->trip_count, sizeof *loop->trips, by_trips);
	for (size_t i = 1; i < loop->trip_count; i++) {
		if (loop->trips[i].count == loop->trips[n].count)
			loop->trips[n].times += loop->trips[i].times;
		else
			loop->trips[++n] = loop->trips[i];
	}
	loop->trip_count = n + 1;
}

/* The frame is outside the loop now. seen: and its beginning was seen, if its own frame says nothing else. */
static int end_loop(struct walker *w, struct frame *frame, uint32_t n, bool seen, struct pt_error *e)
{
	struct loop *loop = &w->loops->all[n];
	uint64_t count = frame->trips[n];
	bool cut = frame->cut >> n & 1;

	frame->trips[n] = 0;
	frame->cut &= ~(1ull << n);
	if (!count)
		return 0;
	if (cut || !seen) {
		loop->cut++;
		return 0;
	}
	loop->entered++;
	if (loop->trip_count && loop->trips[loop->trip_count - 1].count == count) {
		loop->trips[loop->trip_count - 1].times++;
		return 0;
	}
	if (loop->trip_count == loop->trip_room)
		merge_trips(loop);
	if (pt_array_grow(&loop->trips, loop->trip_count, &loop->trip_room, e) < 0)
		return -1;
	loop->trips[loop->trip_count++] = (struct trips){.count = count, .times = 1};
	return 0;
}

static int end_loops(struct walker *w, struct frame *frame, uint64_t bits, bool seen, struct pt_error *e)
{
	for (uint32_t n = 0; n < w->loops->count; n++)
		if (bits >> n & 1 && end_loop(w, frame, n, seen, e) < 0)
			return -1;
	return 0;
}

/* All calls end, unseen. */
static int end_frames(struct walker *w, struct pt_error *e)
{
	for (; w->depth; w->depth--)
		if (end_loops(w, &w->frames[w->depth - 1], UINT64_MAX, false, e) < 0)
			return -1;
	return 0;
}

static int push(struct walker *w, struct pt_error *e)
{
	if (w->depth == FRAMES_MAX) {
		if (end_loops(w, w->frames, UINT64_MAX, false, e) < 0)
			return -1;
		memmove(w->frames, w->frames + 1, --w->depth * sizeof *w->frames);
	}
	if (pt_array_grow(&w->frames, w->depth, &w->room, e) < 0)
		return -1;
	w->frames[w->depth++] = (struct frame){0};
	return 0;
}

static int do_step(struct walker *w, const struct step *s, struct pt_error *e)
{
	struct frame *frame;
	uint32_t n = (uint32_t)s->loops;

	/* Without one it was called before tracing began. */
	if ((s->action == CALLED || !w->depth) && push(w, e) < 0)
		return -1;
	frame = &w->frames[w->depth - 1];
	switch (s->action) {
	case CALLED: return 0;
	case LEFT: w->depth--; return end_loops(w, frame, UINT64_MAX, true, e);
	case OUTSIDE: return end_loops(w, frame, s->loops, true, e);
	case ENTERED:
		if (end_loop(w, frame, n, true, e) < 0)
			return -1;
		frame->trips[n] = 1;
		return 0;
	case TURNED:
		if (!frame->trips[n]++)
			frame->cut |= 1ull << n;
		return 0;
	}
	return 0;
}

static int on_run(void *arg, const struct path_run *r, struct pt_error *e)
{
	struct walker *w = arg;

	if ((r->first || r->cut) && end_frames(w, e) < 0)
		return -1;
	for (uint32_t k = 0; k < r->repeats; k++)
		for (size_t i = w->steps->first[r->path]; i < w->steps->first[r->path + 1]; i++)
			if (do_step(w, &w->steps->all[i], e) < 0)
				return -1;
	return 0;
}

static void sum_up(struct loop *loop)
{
	uint64_t seen = 0;

	loop->median = 0;
	merge_trips(loop);
	if (!loop->trip_count)
		return;
	loop->min = loop->trips[0].count;
	loop->max = loop->trips[loop->trip_count - 1].count;
	for (size_t i = 0; i < loop->trip_count && !loop->median; i++) {
		seen += loop->trips[i].times;
		if (seen >= (loop->entered + 1) / 2)
			loop->median = loop->trips[i].count;
	}
}

int loop_add(struct loop *loop, const struct loop *other, struct pt_error *e)
{
	for (size_t i = 0; i < other->trip_count; i++) {
		if (pt_array_grow(&loop->trips, loop->trip_count, &loop->trip_room, e) < 0)
			return -1;
		loop->trips[loop->trip_count++] = other->trips[i];
	}
	loop->entered += other->entered;
	loop->cut += other->cut;
	sum_up(loop);
	return 0;
}

static int count_trips(struct loops *l, sqlite3 *db, const struct paths *p, struct maker *m,
		       const char *thread, struct pt_error *e)
{
	struct walker w = {.loops = l, .steps = m->steps};
	int ret = 0;

	m->steps->first = calloc(p->count + 1, sizeof *m->steps->first);
	if (!m->steps->first)
		return pt_fail_no_memory(e, "the loops");
	for (size_t i = 0; !ret && i < p->count; i++) {
		m->steps->first[i] = m->steps->count;
		ret = make_path(m, &p->all[i], e);
	}
	m->steps->first[p->count] = m->steps->count;
	if (!ret)
		ret = paths_walk(p, db, m->f, thread, on_run, &w, e);
	if (!ret)
		ret = end_frames(&w, e);
	for (uint32_t n = 0; !ret && n < l->count; n++)
		sum_up(&l->all[n]);
	free(w.frames);
	return ret;
}

int loops_init(struct loops *l, sqlite3 *db, const struct fn *f, const struct paths *p,
	       const struct counts *c, const char *thread, struct pt_error *e)
{
	struct graph g = {0};
	struct steps steps = {0};
	struct maker m = {.loops = l, .graph = &g, .f = f, .p = p, .steps = &steps};
	int ret;

	*l = (struct loops){0};
	ret = make_graph(&g, f, p, c, e) < 0 || find_loops(l, &g, f, e) < 0 ? -1 : 0;
	for (uint32_t n = 0; !ret && n < l->count; n++)
		find_body(&l->all[n], 1ull << n, &g, f);
	if (!ret && l->count)
		ret = count_trips(l, db, p, &m, thread, e);
	free(g.out);
	free(g.first);
	free(g.outside);
	free(steps.all);
	free(steps.first);
	return ret;
}

void loops_deinit(struct loops *l)
{
	for (uint32_t n = 0; n < l->count; n++)
		free(l->all[n].trips);
}
