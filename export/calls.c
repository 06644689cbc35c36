/* calls.c - see calls.h. */
#include "export/calls.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "export/call_groups.h"
#include "export/call_shapes.h"
#include "export/callers.h"
#include "export/db.h"
#include "export/digits.h"
#include "export/spool.h"
#include "export/thread_paths.h"

enum {
	RECENT_RUNS = 1 << 16, /* whose times are at hand; calls from before that store theirs */
	POLL = 8192	       /* runs with calls between two looks at interrupted() */
};

/* What waits in the scratch file for callers and shapes to be known, in the order of the calls. Of the arrays that there is,
 * one after another: the callers' places, cycles when there are any, or the call when shape is SHAPE_NONE. */
struct stored {
	uint64_t return_run;
	uint32_t thread, shape, path, elapsed; /* see struct group_calls */
	uint32_t n, callers, has_cyc;
	uint32_t rest; /* bytes behind this, of: */
	union {
		struct {
			uint64_t place;
			struct ptr_call call;
		} whole;
		char arrays[SHAPE_CALLS * (sizeof(uint64_t) + sizeof(uint32_t))];
	} u;
};

#define STORED_HEAD offsetof(struct stored, u)

struct path {
	uint32_t parent, symbol;
	uint64_t ip; /* 0: the symbol's start */
	uint64_t calls, branches, insns, cycles, elapsed_tsc;
	bool has_cycles, has_elapsed;
	bool
	    shared; /* several threads, or an unknown one, have calls of it: their sums are in thread_paths */
	uint32_t thread; /* the first that had one */
};

struct calls {
	sqlite3 *db;
	struct calls_bases bases;
	sqlite3_stmt *insert_path;
	struct call_groups *groups;
	struct call_shapes *shapes;
	struct callers *callers;
	uint64_t count; /* calls in the spool */
	struct path *paths;
	size_t path_count, path_room;
	struct thread_paths *shared;
	uint64_t *symbol_starts;
	size_t symbol_count, symbol_room;
	uint64_t recent[RECENT_RUNS], runs;
	/* The calls that return in the run that is read now */
	struct ptr_call held[SHAPE_CALLS];
	uint32_t held_count;
	uint32_t depths[SHAPE_CALLS]; /* of those that wait for callers */
	struct stored stored;	      /* that is written or read */
	struct group_calls group;
	struct spool spool;
};

struct calls *calls_create(sqlite3 *db, const int scratch[2], const struct calls_bases *bases,
			   struct pt_error *e)
{
	struct calls *c = calloc(1, sizeof *c);

	if (!c) {
		pt_fail_no_memory(e, "calls");
		return NULL;
	}
	c->db = db;
	c->spool.scratch = scratch[0];
	c->bases = *bases;
	c->insert_path = db_insert(db, "call_path", 11, e);
	c->groups = c->insert_path ? call_groups_create(db, bases->trace, e) : NULL;
	c->shapes = c->groups ? call_shapes_create(db, bases->trace, e) : NULL;
	c->callers = c->shapes ? callers_create(scratch[1], e) : NULL;
	c->shared = c->callers ? thread_paths_create(e) : NULL;
	if (!c->shared) {
		calls_destroy(c);
		return NULL;
	}
	return c;
}

void calls_destroy(struct calls *c)
{
	if (!c)
		return;
	sqlite3_finalize(c->insert_path);
	call_groups_destroy(c->groups);
	call_shapes_destroy(c->shapes);
	callers_destroy(c->callers);
	thread_paths_destroy(c->shared);
	free(c->symbol_starts);
	free(c->paths);
	free(c);
}

int calls_symbol(struct calls *c, uint64_t start, struct pt_error *e)
{
	if (c->symbol_count + 1 >= c->symbol_room) {
		size_t room = c->symbol_room ? c->symbol_room * 2 : 1024;
		uint64_t *starts = realloc(c->symbol_starts, room * sizeof *starts);

		if (!starts)
			return pt_fail_no_memory(e, "calls");
		c->symbol_starts = starts;
		c->symbol_room = room;
	}
	c->symbol_starts[++c->symbol_count] = start;
	return 0;
}

int calls_path(struct calls *c, const struct ptr_record *r, struct pt_error *e)
{
	const struct ptr_call_path *p = &r->call_path;

	/* Two digits of call_shape. */
	if (c->bases.call_path + (int64_t)r->number >= DIGITS_MAX)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "too many call paths for one database");
	if (c->path_count + 1 >= c->path_room) {
		size_t room = c->path_room ? c->path_room * 2 : 1024;
		struct path *paths = realloc(c->paths, room * sizeof *paths);

		if (!paths)
			return pt_fail_no_memory(e, "calls");
		c->paths = paths;
		c->path_room = room;
	}
	c->path_count = r->number;
	c->paths[r->number] =
	    (struct path){.parent = p->parent,
			  .symbol = p->symbol,
			  .ip = p->symbol && c->symbol_starts[p->symbol] == p->ip ? 0 : p->ip};
	return 0;
}

void calls_run(struct calls *c, uint64_t number, uint64_t tsc)
{
	c->recent[number % RECENT_RUNS] = tsc;
	c->runs = number;
}

/* ---- Adding ------------------------------------------------------------------------------------------ */

/* Counts are 64-bit in the stream and in SQLite: sums of what a broken stream claims may wrap, and no more. */
static int sum(struct calls *c, const struct ptr_call *r, struct pt_error *e)
{
	struct path *s = &c->paths[r->call_path];

	if (!s->calls)
		s->thread = r->thread;
	if (!s->shared && (s->thread != r->thread || !r->thread)) {
		struct thread_path first = {.thread = s->thread,
					    .path = r->call_path,
					    .calls = s->calls,
					    .insns = s->insns,
					    .cycles = s->cycles,
					    .has_cycles = s->has_cycles};

		s->shared = true;
		if (s->calls && thread_paths_add(c->shared, &first, e) < 0)
			return -1;
	}
	if (s->shared) {
		struct thread_path one = {.thread = r->thread,
					  .path = r->call_path,
					  .calls = 1,
					  .insns = r->insn_count,
					  .has_cycles = r->cyc_count != PTR_UNKNOWN};

		one.cycles = one.has_cycles ? r->cyc_count : 0;
		if (thread_paths_add(c->shared, &one, e) < 0)
			return -1;
	}
	s->calls++;
	s->branches += r->branch_count;
	s->insns += r->insn_count;
	if (r->cyc_count != PTR_UNKNOWN) {
		s->cycles += r->cyc_count;
		s->has_cycles = true;
	}
	if (r->call_tsc != PTR_NO_TSC && r->return_tsc != PTR_NO_TSC) {
		s->elapsed_tsc += r->return_tsc - r->call_tsc;
		s->has_elapsed = true;
	}
	return 0;
}

/* Whether the branch's run, looked up, will tell that time. */
static bool is_time_of(const struct calls *c, uint64_t branch, uint64_t tsc)
{
	uint64_t run = branch / PTR_RUN_BRANCHES;

	return run && c->runs - run < RECENT_RUNS && c->recent[run % RECENT_RUNS] == tsc;
}

/* Whether all that it is can be told by the run it returns in and a shape. */
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
	struct stored *s = &c->stored;

	s->thread = r->thread;
	s->shape = SHAPE_NONE;
	s->n = s->callers = 1;
	s->has_cyc = 0;
	s->rest = sizeof s->u.whole;
	s->u.whole.call = *r;
	if (callers_returned(c->callers, r->thread, r->depth, ++c->count, e) < 0 ||
	    callers_wait(c->callers, r->thread, r->depth, &s->u.whole.place, e) < 0)
		return -1;
	return spool_write(&c->spool, s, STORED_HEAD + s->rest, e);
}

/* Fills in who calls whom, and the depths of those that have their callers elsewhere; returns how many different ones.
 * Backwards, because a caller is the next call that returns at one depth less. */
static uint32_t find_callers(const struct ptr_call *held, uint32_t n, struct shaped_call *calls,
			     uint32_t *depths)
{
	struct {
		uint32_t depth, at;
	} seen[SHAPE_CALLS];
	uint32_t seen_count = 0, others = 0, k;

	if (n == 1) {
		calls->caller = 0;
		*depths = held->depth;
		return 1;
	}
	for (uint32_t i = n; i-- > 0;) {
		uint32_t depth = held[i].depth;

		calls[i].caller = 0;
		for (k = 0; depth && k < seen_count; k++)
			if (seen[k].depth == depth - 1)
				calls[i].caller = seen[k].at - i;
		if (!calls[i].caller) {
			for (k = 0; k < others && depths[k] != depth; k++)
				;
			depths[k] = depth;
			others += k == others;
			calls[i].caller = k ? SHAPE_CALLER_OTHER + k - 1 : 0;
		}
		for (k = 0; k < seen_count && seen[k].depth != depth; k++)
			;
		seen[k].depth = depth;
		seen[k].at = i;
		seen_count += k == seen_count;
	}
	return others;
}

/* The smallest call path of them, 0 when none is known. */
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

/* The run's calls go to the scratch file. */
static int put_held(struct calls *c, struct pt_error *e)
{
	uint32_t n = c->held_count, *depths = c->depths, cyc[SHAPE_CALLS], any_cyc = 0;
	const struct ptr_call *first = c->held;
	struct shaped_call calls[SHAPE_CALLS];
	struct stored *s = &c->stored;
	char *p = s->u.arrays;
	uint32_t path;

	if (!n)
		return 0;
	c->held_count = 0;
	path = fill_shape(first, n, calls);
	s->callers = find_callers(first, n, calls, depths);
	if (call_shapes_add(c->shapes, calls, n, &s->shape, e) < 0)
		return -1;
	if (s->shape == SHAPE_NONE) {
		for (uint32_t i = 0; i < n; i++)
			if (put_whole(c, &c->held[i], e) < 0)
				return -1;
		return 0;
	}
	s->return_run = first->return_branch / PTR_RUN_BRANCHES;
	s->thread = first->thread;
	s->path = path;
	s->n = n;
	s->elapsed = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct ptr_call *r = &c->held[i];
		bool timed = r->call_tsc != PTR_NO_TSC && r->return_tsc != PTR_NO_TSC;
		uint32_t elapsed = timed ? (uint32_t)(r->return_tsc - r->call_tsc) + 1 : 0;

		if (elapsed > s->elapsed)
			s->elapsed = elapsed;
		any_cyc |= cyc[i] = r->cyc_count == PTR_UNKNOWN ? 0 : (uint32_t)r->cyc_count + 1;
		if (callers_returned(c->callers, r->thread, r->depth, ++c->count, e) < 0)
			return -1;
	}
	for (uint32_t i = 0; i < s->callers; i++, p += sizeof(uint64_t)) {
		uint64_t place;

		if (callers_wait(c->callers, s->thread, depths[i], &place, e) < 0)
			return -1;
		memcpy(p, &place, sizeof place);
	}
	s->has_cyc = any_cyc != 0;
	if (any_cyc) {
		memcpy(p, cyc, n * sizeof *cyc);
		p += n * sizeof *cyc;
	}
	s->rest = (uint32_t)(p - s->u.arrays);
	return spool_write(&c->spool, s, STORED_HEAD + s->rest, e);
}

int calls_add(struct calls *c, const struct ptr_call *r, struct pt_error *e)
{
	bool fits = fits_shape(c, r);
	const struct ptr_call *first = c->held;

	if (r->call_path && sum(c, r, e) < 0)
		return -1;
	if (c->held_count &&
	    (!fits || c->held_count == SHAPE_CALLS || first->thread != r->thread ||
	     first->return_branch / PTR_RUN_BRANCHES != r->return_branch / PTR_RUN_BRANCHES) &&
	    put_held(c, e) < 0)
		return -1;
	if (!fits)
		return put_whole(c, r, e);
	c->held[c->held_count++] = *r;
	return 0;
}

/* ---- Tables ------------------------------------------------------------------------------------------ */

/* The next from the scratch file, its first call's number, which goes on. */
static int insert(struct calls *c, uint64_t *number, struct pt_error *e)
{
	struct stored *s = &c->stored;
	struct ptr_call *whole = &s->u.whole.call;
	struct group_calls *g = &c->group;
	uint32_t cyc[SHAPE_CALLS];
	uint64_t place;

	if (spool_read(&c->spool, s, STORED_HEAD, e) < 0 || spool_read(&c->spool, &s->u, s->rest, e) < 0)
		return -1;
	g->id = c->bases.call + (int64_t)*number;
	g->n = s->n;
	g->thread = s->thread ? c->bases.thread + s->thread : 0;
	g->return_run = (uint64_t)c->bases.run + s->return_run;
	g->path = s->path ? (uint32_t)c->bases.call_path + s->path : 0;
	g->elapsed = s->elapsed;
	g->callers = s->callers;
	g->cyc = NULL;
	g->whole = NULL;
	for (uint32_t i = 0; i < s->callers; i++) {
		memcpy(&place, s->u.arrays + i * sizeof place, sizeof place);
		if (callers_get(c->callers, place, &g->caller[i], e) < 0)
			return -1;
		g->caller[i] += g->caller[i] ? (uint64_t)c->bases.call : 0;
	}
	if (s->shape == SHAPE_NONE) {
		uint64_t branch_base = (uint64_t)c->bases.run * PTR_RUN_BRANCHES;

		whole->call_path += whole->call_path ? (uint32_t)c->bases.call_path : 0;
		whole->call_branch += whole->call_branch ? branch_base : 0;
		whole->return_branch += whole->return_branch ? branch_base : 0;
		g->whole = whole;
	} else {
		g->shape = call_shapes_number(c->shapes, s->shape);
	}
	if (s->has_cyc) {
		memcpy(cyc, s->u.arrays + s->callers * sizeof place, s->n * sizeof *cyc);
		g->cyc = cyc;
	}
	*number += s->n;
	return call_groups_add(c->groups, g, e);
}

static int insert_paths(struct calls *c, struct pt_error *e)
{
	sqlite3_stmt *s = c->insert_path;

	for (size_t i = 1; i <= c->path_count; i++) {
		const struct path *p = &c->paths[i];

		sqlite3_bind_int64(s, 1, c->bases.call_path + (int64_t)i);
		sqlite3_bind_int64(s, 2, c->bases.trace);
		db_bind(s, 3, p->parent, c->bases.call_path + p->parent);
		db_bind(s, 4, p->symbol, c->bases.symbol + p->symbol);
		db_bind(s, 5, p->ip, (int64_t)p->ip);
		sqlite3_bind_int64(s, 6, (int64_t)p->calls);
		sqlite3_bind_int64(s, 7, (int64_t)p->branches);
		sqlite3_bind_int64(s, 8, (int64_t)p->insns);
		db_bind(s, 9, p->has_cycles, (int64_t)p->cycles);
		db_bind(s, 10, p->has_elapsed, (int64_t)p->elapsed_tsc);
		db_bind(s, 11, p->thread && !p->shared, c->bases.thread + p->thread);
		if (db_run(s, e) < 0)
			return -1;
	}
	return 0;
}

static int insert_thread_paths(struct calls *c, struct pt_error *e)
{
	sqlite3_stmt *s = db_insert(c->db, "thread_path", 6, e);
	struct thread_path *p;
	size_t n = thread_paths_sorted(c->shared, &p);
	int ret = s ? 0 : -1;

	for (size_t i = 0; !ret && i < n; i++) {
		sqlite3_bind_int64(s, 1, c->bases.trace);
		db_bind(s, 2, p[i].thread, c->bases.thread + p[i].thread);
		sqlite3_bind_int64(s, 3, c->bases.call_path + p[i].path);
		sqlite3_bind_int64(s, 4, (int64_t)p[i].calls);
		sqlite3_bind_int64(s, 5, (int64_t)p[i].insns);
		db_bind(s, 6, p[i].has_cycles, (int64_t)p[i].cycles);
		ret = db_run(s, e);
	}
	sqlite3_finalize(s);
	return ret;
}

int calls_finish(struct calls *c, bool (*interrupted)(void), struct pt_error *e)
{
	if (put_held(c, e) < 0 || call_shapes_finish(c->shapes, e) < 0 || spool_rewind(&c->spool, e) < 0)
		return -1;
	for (uint64_t number = 1, runs = 0; number <= c->count; runs++) {
		if (!(runs % POLL) && interrupted && interrupted())
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "interrupted");
		if (insert(c, &number, e) < 0)
			return -1;
	}
	if (call_groups_flush(c->groups, e) < 0 || insert_paths(c, e) < 0)
		return -1;
	return insert_thread_paths(c, e);
}
