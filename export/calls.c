/* calls.c - see calls.h. */
#include "export/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/call_groups.h"
#include "export/call_shapes.h"
#include "export/db.h"
#include "export/digits.h"
#include "export/thread_paths.h"

enum {
	CHUNK = 8192,	      /* calls in memory at a time */
	WHOLE_CHUNK = 1024,   /* the same, of those without a shape */
	RECENT_RUNS = 1 << 16 /* whose times are at hand; calls from before that store theirs */
};

/* A call in the scratch file. Those that have no shape (SHAPE_NONE) are in the other file, in the same order. */
struct stored {
	uint64_t return_run;
	uint64_t parent; /* number, 0 none */
	uint32_t thread, depth, shape;
	uint32_t cyc, elapsed; /* see struct group_call */
};

struct path {
	uint32_t parent, symbol;
	uint64_t ip; /* 0: the symbol's start */
	uint64_t calls, branches, insns, cycles, elapsed_tsc;
	bool has_cycles, has_elapsed;
	bool
	    shared; /* several threads, or an unknown one, have calls of it: their sums are in thread_paths */
	uint32_t thread; /* the first that had one */
};

/* (thread, depth) to the call seen last, reading backwards. */
struct open_call {
	uint32_t thread, depth;
	uint64_t number; /* 0: a free slot */
};

struct calls {
	sqlite3 *db;
	struct calls_bases bases;
	sqlite3_stmt *insert_path;
	struct call_groups *groups;
	struct call_shapes *shapes;
	int scratch, whole_scratch;
	uint64_t count; /* calls */
	struct path *paths;
	size_t path_count, path_room;
	struct thread_paths *shared;
	uint64_t *symbol_starts;
	size_t symbol_count, symbol_room;
	uint64_t recent[RECENT_RUNS], runs;
	struct open_call *open;
	uint32_t open_mask, open_count;
	struct stored chunk[CHUNK];
	uint32_t held; /* in chunk */
	struct ptr_call whole[WHOLE_CHUNK];
	uint32_t whole_held, whole_at; /* in whole; the next to be read of it */
	uint64_t whole_written;	       /* to the file, in front of what is held; when reading: read */
};

static int no_memory(struct pt_error *e)
{
	return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory for calls");
}

struct calls *calls_create(sqlite3 *db, const int scratch[2], const struct calls_bases *bases,
			   struct pt_error *e)
{
	struct calls *c = calloc(1, sizeof *c);

	if (!c) {
		no_memory(e);
		return NULL;
	}
	c->db = db;
	c->scratch = scratch[0];
	c->whole_scratch = scratch[1];
	c->bases = *bases;
	c->insert_path = db_insert(db, "call_path", 11, e);
	c->groups = c->insert_path ? call_groups_create(db, bases->trace, e) : NULL;
	c->shapes = c->groups ? call_shapes_create(db, bases->trace, e) : NULL;
	c->shared = c->shapes ? thread_paths_create(e) : NULL;
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
	thread_paths_destroy(c->shared);
	free(c->symbol_starts);
	free(c->paths);
	free(c->open);
	free(c);
}

int calls_symbol(struct calls *c, uint64_t start, struct pt_error *e)
{
	if (c->symbol_count + 1 >= c->symbol_room) {
		size_t room = c->symbol_room ? c->symbol_room * 2 : 1024;
		uint64_t *starts = realloc(c->symbol_starts, room * sizeof *starts);

		if (!starts)
			return no_memory(e);
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
			return no_memory(e);
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

/* ---- The scratch file -------------------------------------------------------------------------------- */

static int scratch_write(int scratch, const void *from, size_t bytes, uint64_t at, struct pt_error *e)
{
	const char *p = from;
	off_t offset = (off_t)at;

	while (bytes) {
		ssize_t done = pwrite(scratch, p, bytes, offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return pt_fail_errno(e, "writing the scratch file of calls");
		p += done;
		bytes -= (size_t)done;
		offset += done;
	}
	return 0;
}

static int scratch_read(int scratch, void *to, size_t bytes, uint64_t at, struct pt_error *e)
{
	char *p = to;
	off_t offset = (off_t)at;

	while (bytes) {
		ssize_t done = pread(scratch, p, bytes, offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return pt_fail_errno(e, "reading the scratch file of calls");
		p += done;
		bytes -= (size_t)done;
		offset += done;
	}
	return 0;
}

static int chunk_write(struct calls *c, size_t n, uint64_t at, struct pt_error *e)
{
	return scratch_write(c->scratch, c->chunk, n * sizeof *c->chunk, at * sizeof *c->chunk, e);
}

static int chunk_read(struct calls *c, size_t n, uint64_t at, struct pt_error *e)
{
	return scratch_read(c->scratch, c->chunk, n * sizeof *c->chunk, at * sizeof *c->chunk, e);
}

static int whole_flush(struct calls *c, struct pt_error *e)
{
	uint64_t at = c->whole_written * sizeof *c->whole;

	c->whole_written += c->whole_held;
	return scratch_write(c->whole_scratch, c->whole, c->whole_held * sizeof *c->whole, at, e);
}

static int whole_add(struct calls *c, const struct ptr_call *r, struct pt_error *e)
{
	if (c->whole_held == WHOLE_CHUNK) {
		if (whole_flush(c, e) < 0)
			return -1;
		c->whole_held = 0;
	}
	c->whole[c->whole_held++] = *r;
	return 0;
}

/* The next one, in the order of whole_add(), behind which everything must have been flushed. total: how many there are. */
static struct ptr_call *whole_next(struct calls *c, uint64_t total, struct pt_error *e)
{
	if (c->whole_at == c->whole_held) {
		uint64_t left = total - c->whole_written;

		c->whole_held = left < WHOLE_CHUNK ? (uint32_t)left : WHOLE_CHUNK;
		c->whole_at = 0;
		if (scratch_read(c->whole_scratch, c->whole, c->whole_held * sizeof *c->whole,
				 c->whole_written * sizeof *c->whole, e) < 0)
			return NULL;
		c->whole_written += c->whole_held;
	}
	return &c->whole[c->whole_at++];
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

/* SHAPE_NONE: it needs whole numbers. */
static int find_shape(struct calls *c, const struct ptr_call *r, uint32_t *ret, struct pt_error *e)
{
	uint64_t runs_back = r->return_branch / PTR_RUN_BRANCHES - r->call_branch / PTR_RUN_BRANCHES;
	uint64_t elapsed = r->return_tsc - r->call_tsc;

	*ret = SHAPE_NONE;
	if (!r->call_branch || !r->return_branch || runs_back >= DIGITS_MAX || elapsed >= UINT32_MAX ||
	    r->branch_count >= DIGITS_ONE || r->insn_count >= DIGITS_MAX || r->flags >= DIGITS_ONE ||
	    (r->cyc_count != PTR_UNKNOWN && r->cyc_count >= DIGITS_MAX - 1) ||
	    !is_time_of(c, r->call_branch, r->call_tsc) || !is_time_of(c, r->return_branch, r->return_tsc))
		return 0;
	return call_shapes_add(
	    c->shapes,
	    &(struct call_shape){.call_path = r->call_path ? (uint32_t)c->bases.call_path + r->call_path : 0,
				 .runs_back = (uint32_t)runs_back,
				 .call_at = r->call_branch % PTR_RUN_BRANCHES,
				 .return_at = r->return_branch % PTR_RUN_BRANCHES,
				 .branch_count = (uint32_t)r->branch_count,
				 .insn_count = (uint32_t)r->insn_count,
				 .flags = r->flags},
	    ret, e);
}

int calls_add(struct calls *c, const struct ptr_call *r, struct pt_error *e)
{
	struct stored *s = &c->chunk[c->held++];

	*s = (struct stored){.return_run = r->return_branch / PTR_RUN_BRANCHES,
			     .thread = r->thread,
			     .depth = r->depth,
			     .cyc = r->cyc_count == PTR_UNKNOWN ? 0 : (uint32_t)r->cyc_count + 1,
			     .elapsed = r->call_tsc == PTR_NO_TSC || r->return_tsc == PTR_NO_TSC
					    ? 0
					    : (uint32_t)(r->return_tsc - r->call_tsc) + 1};
	if ((r->call_path && sum(c, r, e) < 0) || find_shape(c, r, &s->shape, e) < 0 ||
	    (s->shape == SHAPE_NONE && whole_add(c, r, e) < 0))
		return -1;
	if (c->held < CHUNK)
		return 0;
	if (chunk_write(c, CHUNK, c->count, e) < 0)
		return -1;
	c->count += CHUNK;
	c->held = 0;
	return 0;
}

/* ---- Callers ----------------------------------------------------------------------------------------- */

static struct open_call *open_slot(struct calls *c, uint32_t thread, uint32_t depth)
{
	uint32_t i =
	    (uint32_t)((thread * 0x9e3779b97f4a7c15u + depth) * 0x9fb21c651e98df25u >> 32) & c->open_mask;

	while (c->open[i].number && (c->open[i].thread != thread || c->open[i].depth != depth))
		i = (i + 1) & c->open_mask;
	return &c->open[i];
}

static int open_grow(struct calls *c, struct pt_error *e)
{
	struct open_call *old = c->open;
	uint32_t old_room = old ? c->open_mask + 1 : 0, room = old ? old_room * 4 : 1024;

	c->open = calloc(room, sizeof *c->open);
	if (!c->open) {
		c->open = old;
		return no_memory(e);
	}
	c->open_mask = room - 1;
	for (uint32_t i = 0; i < old_room; i++) {
		if (old[i].number)
			*open_slot(c, old[i].thread, old[i].depth) = old[i];
	}
	free(old);
	return 0;
}

/* The caller of a call is the next one of its thread that returns at one depth less. */
static int find_parents(struct calls *c, struct stored *s, size_t n, uint64_t first_number,
			struct pt_error *e)
{
	for (size_t i = n; i-- > 0;) {
		struct open_call *slot;

		if ((!c->open || c->open_count > c->open_mask / 2) && open_grow(c, e) < 0)
			return -1;
		if (s[i].depth)
			s[i].parent = open_slot(c, s[i].thread, s[i].depth - 1)->number;
		slot = open_slot(c, s[i].thread, s[i].depth);
		c->open_count += !slot->number;
		*slot = (struct open_call){
		    .thread = s[i].thread, .depth = s[i].depth, .number = first_number + i};
	}
	return 0;
}

static int insert(struct calls *c, const struct stored *s, uint64_t number, uint64_t wholes,
		  struct pt_error *e)
{
	uint64_t branch_base = (uint64_t)c->bases.run * PTR_RUN_BRANCHES;
	struct group_call g = {.id = c->bases.call + (int64_t)number,
			       .thread = s->thread ? c->bases.thread + s->thread : 0,
			       .parent_add = s->parent ? s->parent - number : 0,
			       .return_run = (uint64_t)c->bases.run + s->return_run,
			       .cyc = s->cyc,
			       .elapsed = s->elapsed};

	if (s->shape == SHAPE_NONE) {
		struct ptr_call *whole = whole_next(c, wholes, e);

		if (!whole)
			return -1;
		whole->call_path += whole->call_path ? (uint32_t)c->bases.call_path : 0;
		whole->call_branch += whole->call_branch ? branch_base : 0;
		whole->return_branch += whole->return_branch ? branch_base : 0;
		g.whole = whole;
	} else {
		g.shape = call_shapes_id(c->shapes, s->shape);
	}
	return call_groups_add(c->groups, &g, e);
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
	uint64_t at, wholes = c->whole_written + c->whole_held;
	uint32_t n;

	if (whole_flush(c, e) < 0 || call_shapes_finish(c->shapes, e) < 0 ||
	    find_parents(c, c->chunk, c->held, c->count + 1, e) < 0)
		return -1;
	c->whole_written = 0;
	c->whole_at = c->whole_held = 0;
	/* What is held need not go through the file when it is all. */
	if (c->count && chunk_write(c, c->held, c->count, e) < 0)
		return -1;
	for (at = c->count; at; at -= CHUNK) {
		if (chunk_read(c, CHUNK, at - CHUNK, e) < 0 ||
		    find_parents(c, c->chunk, CHUNK, at - CHUNK + 1, e) < 0 ||
		    chunk_write(c, CHUNK, at - CHUNK, e) < 0)
			return -1;
	}
	for (at = 0; at <= c->count; at += CHUNK) {
		n = at < c->count ? CHUNK : c->held;
		if (interrupted && interrupted())
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "interrupted");
		if (c->count && chunk_read(c, n, at, e) < 0)
			return -1;
		for (uint32_t i = 0; i < n; i++) {
			if (insert(c, &c->chunk[i], at + i + 1, wholes, e) < 0)
				return -1;
		}
	}
	if (call_groups_flush(c->groups, e) < 0 || insert_paths(c, e) < 0)
		return -1;
	return insert_thread_paths(c, e);
}
