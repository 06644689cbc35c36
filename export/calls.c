/* calls.c - see calls.h. */
#include "export/calls.h"

#include <stdlib.h>
#include <string.h>

#include "export/call_groups.h"
#include "export/call_path_ranks.h"
#include "export/call_shapes.h"
#include "export/call_spool.h"
#include "export/callers.h"
#include "export/digits.h"

enum {
	RECENT_RUNS = 1 << 16, /* runs whose times are kept; calls from before store their own */
	SEARCHES = 4	       /* runs whose calls are held or looked for at a time: more than steps */
};

/* The calls that return in a run. */
struct held_calls {
	struct ptr_call calls[SHAPE_CALLS];
	uint32_t count;
	/* From prepare() on: */
	uint32_t path;		      /* the smallest */
	uint32_t callers;	      /* that are not among them, */
	uint32_t depths[SHAPE_CALLS]; /* at these depths */
	struct shaped_call shaped[SHAPE_CALLS];
	struct shape_key key;
};

struct calls {
	struct trace_bases bases;
	struct call_path_ranks *ranks;
	struct call_groups *groups;
	struct call_shapes *shapes;
	struct callers *callers;
	struct call_spool spool;
	uint64_t count;			    /* calls in the spool */
	uint64_t recent[RECENT_RUNS], runs; /* run n's time at n % RECENT_RUNS; the last run's number */
	/* The calls that return in the present run, number `held` at held % SEARCHES; and in those before it,
	 * which are not stored yet, from number `searched` on. */
	struct held_calls of_runs[SEARCHES];
	uint64_t held, searched;
	uint64_t next;		      /* number of the call whose row comes next */
	struct spooled_calls spooled; /* that are put or got */
	struct group_calls group;
};

struct calls *calls_create(struct inserter *inserter, const int scratch[CALLS_SCRATCHES],
			   const struct trace_bases *bases, struct pt_error *e)
{
	struct calls *c = calloc(1, sizeof *c);

	if (!c) {
		pt_fail_no_memory(e, "calls");
		return NULL;
	}
	c->spool.spool.scratch = scratch[0];
	c->bases = *bases;
	c->groups = call_groups_create(inserter, bases->trace, e);
	c->shapes = c->groups ? call_shapes_create(inserter, scratch[2], bases->trace, e) : NULL;
	c->callers = c->shapes ? callers_create(scratch[1], e) : NULL;
	c->ranks = c->callers ? call_path_ranks_create(inserter, scratch[3], bases, e) : NULL;
	if (c->ranks)
		return c;
	calls_destroy(c);
	return NULL;
}

void calls_destroy(struct calls *c)
{
	if (!c)
		return;
	call_groups_destroy(c->groups);
	call_shapes_destroy(c->shapes);
	callers_destroy(c->callers);
	call_path_ranks_destroy(c->ranks);
	free(c);
}

void calls_run(struct calls *c, uint64_t number, uint64_t tsc)
{
	c->recent[number % RECENT_RUNS] = tsc;
	c->runs = number;
}

/* ---- Adding ------------------------------------------------------------------------------------------ */

/* Whether that is the time of the branch's run. */
static bool is_time_of(const struct calls *c, uint64_t branch, uint64_t tsc)
{
	uint64_t run = branch / PTR_RUN_BRANCHES;

	return run && c->runs - run < RECENT_RUNS && c->recent[run % RECENT_RUNS] == tsc;
}

/* Whether the run that it returns in and a shape say all of it. */
static bool fits_shape(const struct calls *c, const struct ptr_call *r)
{
	uint64_t runs_back = r->return_branch / PTR_RUN_BRANCHES - r->call_branch / PTR_RUN_BRANCHES;

	return r->call_branch && r->return_branch && runs_back < DIGITS_MAX &&
	       r->return_tsc - r->call_tsc < UINT32_MAX && r->branch_count < DIGITS_ONE &&
	       r->insn_count < DIGITS_MAX && r->flags < DIGITS_ONE &&
	       (r->cyc_count == PTR_UNKNOWN || r->cyc_count < DIGITS_MAX - 1) &&
	       is_time_of(c, r->call_branch, r->call_tsc) && is_time_of(c, r->return_branch, r->return_tsc);
}

static int put_whole(struct calls *c, const struct ptr_call *r, struct pt_error *e)
{
	struct spooled_calls *s = &c->spooled;

	s->thread = r->thread;
	s->shape = SHAPE_NONE;
	s->n = s->callers = 1;
	s->has_cyc = false;
	s->whole = *r;
	if (callers_returned(c->callers, r->stack, r->depth, ++c->count, e) < 0 ||
	    callers_wait(c->callers, r->stack, r->depth, &s->places[0], e) < 0)
		return -1;
	return call_spool_put(&c->spool, s, e);
}

/* Fills in the callers, and the depths of the calls whose callers are not in the shape; returns how
 * many such depths. Backwards, because a caller is the next call that returns at one depth less. */
static uint32_t find_callers(const struct ptr_call *held, uint32_t n, struct shaped_call *calls,
			     uint32_t *depths)
{
	struct {
		uint32_t depth, at;
	} seen[SHAPE_CALLS]; /* for each depth the call that returned there last, looking backwards */
	uint32_t seen_count = 0, others = 0;

	if (n == 1) {
		calls->caller = 0;
		*depths = held->depth;
		return 1;
	}
	for (uint32_t i = n; i-- > 0;) {
		uint32_t depth = held[i].depth, caller = 0, same = seen_count, k;

		for (k = 0; k < seen_count; k++) {
			if (seen[k].depth == depth - 1)
				caller = seen[k].at - i;
			if (seen[k].depth == depth)
				same = k;
		}
		if (!depth || !caller) {
			for (k = 0; k < others && depths[k] != depth; k++)
				;
			depths[k] = depth;
			others += k == others;
			caller = k ? SHAPE_CALLER_OTHER + k - 1 : 0;
		}
		calls[i].caller = caller;
		seen[same].depth = depth;
		seen[same].at = i;
		seen_count += same == seen_count;
	}
	return others;
}

/* All but the callers. Returns the smallest call path, 0 when none is known. */
static uint32_t fill_shape(const struct ptr_call *held, uint32_t n, struct shaped_call *calls)
{
	uint32_t least = 0;

	for (uint32_t i = 0; i < n; i++)
		if (held[i].call_path && (!least || held[i].call_path < least))
			least = held[i].call_path;
	for (uint32_t i = 0; i < n; i++) {
		const struct ptr_call *r = &held[i];

		calls[i] = (struct shaped_call){.path_add = r->call_path ? r->call_path - least + 1 : 0,
						.runs_back = (uint32_t)(r->return_branch / PTR_RUN_BRANCHES -
									r->call_branch / PTR_RUN_BRANCHES),
						.call_at = r->call_branch % PTR_RUN_BRANCHES,
						.return_at = r->return_branch % PTR_RUN_BRANCHES,
						.branch_count = (uint32_t)r->branch_count,
						.insn_count = (uint32_t)r->insn_count,
						.flags = r->flags};
	}
	return least;
}

/* TSC ticks + 1, 0 when they are not known. */
static uint32_t elapsed_of(const struct ptr_call *r)
{
	bool timed = r->call_tsc != PTR_NO_TSC && r->return_tsc != PTR_NO_TSC;

	return timed ? (uint32_t)(r->return_tsc - r->call_tsc) + 1 : 0;
}

/* They go to the scratch file, of a shape that has a handle. */
static int put_shaped(struct calls *c, const struct held_calls *h, uint32_t shape, struct pt_error *e)
{
	struct spooled_calls *s = &c->spooled;
	uint32_t any_cyc = 0;

	s->return_run = h->calls->return_branch / PTR_RUN_BRANCHES;
	s->return_tsc = h->calls->return_tsc;
	s->thread = h->calls->thread;
	s->shape = shape;
	s->path = h->path;
	s->callers = h->callers;
	s->n = h->count;
	s->elapsed = 0;
	for (uint32_t i = 0; i < h->count; i++) {
		const struct ptr_call *r = &h->calls[i];
		uint32_t elapsed = elapsed_of(r);

		if (elapsed > s->elapsed)
			s->elapsed = elapsed;
		any_cyc |= s->cyc[i] = r->cyc_count == PTR_UNKNOWN ? 0 : (uint32_t)r->cyc_count + 1;
		if (callers_returned(c->callers, r->stack, r->depth, ++c->count, e) < 0)
			return -1;
	}
	for (uint32_t i = 0; i < h->callers; i++)
		if (callers_wait(c->callers, h->calls->stack, h->depths[i], &s->places[i], e) < 0)
			return -1;
	s->has_cyc = any_cyc != 0;
	return call_spool_put(&c->spool, s, e);
}

static struct held_calls *held_at(struct calls *c, uint64_t number)
{
	return &c->of_runs[number % SEARCHES];
}

/* The run that is searched for longest. */
static int put_first(struct calls *c, struct pt_error *e)
{
	const struct held_calls *h = held_at(c, c->searched++);
	uint32_t shape;

	if (call_path_ranks_add(c->ranks, h->path, e) < 0 ||
	    call_shapes_add(c->shapes, h->shaped, h->count, &h->key, &shape, e) < 0)
		return -1;
	if (shape != SHAPE_NONE)
		return put_shaped(c, h, shape, e);
	for (uint32_t i = 0; i < h->count; i++)
		if (put_whole(c, &h->calls[i], e) < 0)
			return -1;
	return 0;
}

/* All calls of the run have come: it is searched, and those before it are a step further. */
static int end_run(struct calls *c, struct pt_error *e)
{
	struct held_calls *h = held_at(c, c->held);
	uint64_t n = c->held;

	if (!h->count)
		return 0;
	h->path = fill_shape(h->calls, h->count, h->shaped);
	h->callers = find_callers(h->calls, h->count, h->shaped, h->depths);
	call_shapes_begin(c->shapes, h->shaped, h->count, &h->key);
	if (n >= c->searched + 1)
		call_shapes_fetch(c->shapes, &held_at(c, n - 1)->key);
	if (n >= c->searched + 2 && put_first(c, e) < 0)
		return -1;
	held_at(c, ++c->held)->count = 0;
	return 0;
}

/* No calls are held after that. */
static int put_held(struct calls *c, struct pt_error *e)
{
	if (end_run(c, e) < 0)
		return -1;
	while (c->searched < c->held)
		if (put_first(c, e) < 0)
			return -1;
	return 0;
}

int calls_add(struct calls *c, const struct ptr_call *call, struct pt_error *e)
{
	struct held_calls *h = held_at(c, c->held);
	const struct ptr_call *first = h->calls;

	if (!fits_shape(c, call))
		return put_held(c, e) < 0 ? -1 : put_whole(c, call, e);
	if (h->count &&
	    (h->count == SHAPE_CALLS || first->thread != call->thread || first->stack != call->stack ||
	     first->return_branch / PTR_RUN_BRANCHES != call->return_branch / PTR_RUN_BRANCHES)) {
		if (end_run(c, e) < 0)
			return -1;
		h = held_at(c, c->held);
	}
	h->calls[h->count++] = *call;
	return 0;
}

/* ---- Tables ------------------------------------------------------------------------------------------ */

/* Fills in the callers of the group's calls. */
static int get_callers(struct calls *c, const struct spooled_calls *s, struct pt_error *e)
{
	struct group_calls *g = &c->group;

	g->callers = s->callers;
	for (uint32_t i = 0; i < s->callers; i++) {
		if (callers_get(c->callers, s->places[i], &g->caller[i], e) < 0)
			return -1;
		g->caller[i] += g->caller[i] ? (uint64_t)c->bases.call : 0;
	}
	return 0;
}

/* A call that fits no shape, with the database's numbers. */
static void rebase(const struct trace_bases *bases, struct ptr_call *r)
{
	uint64_t branch_base = (uint64_t)bases->run * PTR_RUN_BRANCHES;

	r->call_path += r->call_path ? (uint32_t)bases->call_path : 0;
	r->call_branch += r->call_branch ? branch_base : 0;
	r->return_branch += r->return_branch ? branch_base : 0;
}

/* The next calls of the scratch file. *number: that of the first, and then of the first after them. */
static int insert(struct calls *c, uint64_t *number, struct pt_error *e)
{
	struct spooled_calls *s = &c->spooled;
	struct group_calls *g = &c->group;
	bool whole;

	if (call_spool_get(&c->spool, s, e) < 0 || get_callers(c, s, e) < 0)
		return -1;
	whole = s->shape == SHAPE_NONE;
	g->id = c->bases.call + (int64_t)*number;
	g->n = s->n;
	g->thread = s->thread ? c->bases.thread + s->thread : 0;
	g->return_run = (uint64_t)c->bases.run + s->return_run;
	g->path = s->path ? (uint32_t)c->bases.call_path + s->path : 0;
	g->elapsed = s->elapsed;
	g->return_tsc = s->return_tsc;
	g->cyc = s->has_cyc ? s->cyc : NULL;
	g->whole = whole ? &s->whole : NULL;
	if (whole)
		rebase(&c->bases, &s->whole);
	else
		g->shape = call_shapes_number(c->shapes, s->shape);
	*number += s->n;
	return call_path_ranks_code(c->ranks, whole ? 0 : s->path, &g->path_code, e) < 0
		   ? -1
		   : call_groups_add(c->groups, g, e);
}

int calls_rank(struct calls *c, struct pt_error *e)
{
	c->next = 1;
	return put_held(c, e) < 0 || call_shapes_finish(c->shapes, e) < 0 ||
		       call_path_ranks_finish(c->ranks, e) < 0 || call_spool_rewind(&c->spool, e) < 0
		   ? -1
		   : 0;
}

static int make(void *arg, struct pt_error *e)
{
	struct calls *c = arg;
	uint64_t until = call_groups_bytes(c->groups) + ROW_TURN_BYTES;

	while (c->next <= c->count && call_groups_bytes(c->groups) < until)
		if (insert(c, &c->next, e) < 0)
			return -1;
	return c->next <= c->count ? 1 : call_groups_flush(c->groups, e);
}

static void keep(void *arg, struct kept_rows *rows)
{
	const struct calls *c = arg;

	call_groups_keep(c->groups, rows);
}

struct row_maker calls_maker(struct calls *c)
{
	return (struct row_maker){make, keep, c};
}
