/* calls.c - see calls.h. */
#include "export/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/db.h"

enum {
	CHUNK = 8192,	      /* calls in memory at a time */
	RECENT_RUNS = 1 << 16 /* whose times are at hand; calls from before that store theirs */
};

struct stored {
	struct ptr_call call;
	uint64_t parent; /* number, 0 none */
	bool store_tsc;	 /* it cannot be had from the calling branch */
};

struct path_sums {
	uint64_t calls, branches, insns, cycles, elapsed_tsc;
	bool has_cycles, has_elapsed;
};

/* (thread, depth) to the call seen last, reading backwards. */
struct open_call {
	uint32_t thread, depth;
	uint64_t number; /* 0: a free slot */
};

struct calls {
	sqlite3 *db;
	struct calls_bases bases;
	sqlite3_stmt *insert_path, *insert_stat, *insert_call;
	int scratch;
	uint64_t count; /* calls */
	struct path_sums *sums;
	size_t path_count, path_room;
	uint64_t recent[RECENT_RUNS], runs;
	struct open_call *open;
	uint32_t open_mask, open_count;
	struct stored chunk[CHUNK];
	uint32_t held; /* in chunk */
};

static int no_memory(struct pt_error *e)
{
	return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory for calls");
}

struct calls *calls_create(sqlite3 *db, int scratch, const struct calls_bases *bases, struct pt_error *e)
{
	struct calls *c = calloc(1, sizeof *c);

	if (!c) {
		no_memory(e);
		return NULL;
	}
	c->db = db;
	c->scratch = scratch;
	c->bases = *bases;
	c->insert_path = db_insert(db, "call_path", 5, e);
	c->insert_stat = c->insert_path ? db_insert(db, "call_path_stat", 6, e) : NULL;
	c->insert_call = c->insert_stat ? db_insert(db, "call", 14, e) : NULL;
	if (!c->insert_call) {
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
	sqlite3_finalize(c->insert_stat);
	sqlite3_finalize(c->insert_call);
	free(c->sums);
	free(c->open);
	free(c);
}

static void bind(sqlite3_stmt *s, int at, bool known, int64_t value)
{
	if (known)
		sqlite3_bind_int64(s, at, value);
	else
		sqlite3_bind_null(s, at);
}

int calls_path(struct calls *c, const struct ptr_record *r, struct pt_error *e)
{
	const struct ptr_call_path *p = &r->call_path;

	if (c->path_count + 1 >= c->path_room) {
		size_t room = c->path_room ? c->path_room * 2 : 1024;
		struct path_sums *sums = realloc(c->sums, room * sizeof *sums);

		if (!sums)
			return no_memory(e);
		memset(sums + c->path_room, 0, (room - c->path_room) * sizeof *sums);
		c->sums = sums;
		c->path_room = room;
	}
	c->path_count = r->number;
	sqlite3_bind_int64(c->insert_path, 1, c->bases.call_path + (int64_t)r->number);
	sqlite3_bind_int64(c->insert_path, 2, c->bases.trace);
	bind(c->insert_path, 3, p->parent, c->bases.call_path + p->parent);
	bind(c->insert_path, 4, p->symbol, c->bases.symbol + p->symbol);
	bind(c->insert_path, 5, p->ip, (int64_t)p->ip);
	return db_run(c->insert_path, e);
}

void calls_run(struct calls *c, uint64_t number, uint64_t tsc)
{
	c->recent[number % RECENT_RUNS] = tsc;
	c->runs = number;
}

/* ---- The scratch file -------------------------------------------------------------------------------- */

static int scratch_write(struct calls *c, const struct stored *s, size_t n, uint64_t at, struct pt_error *e)
{
	const char *p = (const char *)s;
	size_t bytes = n * sizeof *s;
	off_t offset = (off_t)(at * sizeof *s);

	while (bytes) {
		ssize_t done = pwrite(c->scratch, p, bytes, offset);

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

static int scratch_read(struct calls *c, struct stored *s, size_t n, uint64_t at, struct pt_error *e)
{
	char *p = (char *)s;
	size_t bytes = n * sizeof *s;
	off_t offset = (off_t)(at * sizeof *s);

	while (bytes) {
		ssize_t done = pread(c->scratch, p, bytes, offset);

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

/* Counts are 64-bit in the stream and in SQLite: sums of what a broken stream claims may wrap, and no more. */
static void sum(struct calls *c, const struct ptr_call *r)
{
	struct path_sums *s = &c->sums[r->call_path];

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
}

int calls_add(struct calls *c, const struct ptr_call *r, struct pt_error *e)
{
	uint64_t run = r->call_branch / PTR_RUN_BRANCHES;
	struct stored *s = &c->chunk[c->held++];

	s->call = *r;
	s->parent = 0;
	s->store_tsc = r->call_tsc != PTR_NO_TSC && (!r->call_branch || c->runs - run >= RECENT_RUNS ||
						     c->recent[run % RECENT_RUNS] != r->call_tsc);
	if (r->call_path)
		sum(c, r);
	if (c->held < CHUNK)
		return 0;
	if (scratch_write(c, c->chunk, CHUNK, c->count, e) < 0)
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
		if (s[i].call.depth)
			s[i].parent = open_slot(c, s[i].call.thread, s[i].call.depth - 1)->number;
		slot = open_slot(c, s[i].call.thread, s[i].call.depth);
		c->open_count += !slot->number;
		*slot = (struct open_call){
		    .thread = s[i].call.thread, .depth = s[i].call.depth, .number = first_number + i};
	}
	return 0;
}

static int insert(struct calls *c, const struct stored *stored, uint64_t number, struct pt_error *e)
{
	const struct ptr_call *r = &stored->call;
	sqlite3_stmt *s = c->insert_call;
	bool timed = r->call_tsc != PTR_NO_TSC && r->return_tsc != PTR_NO_TSC;
	int64_t run_base = c->bases.run * PTR_RUN_BRANCHES;

	sqlite3_bind_int64(s, 1, c->bases.call + (int64_t)number);
	sqlite3_bind_int64(s, 2, c->bases.trace);
	bind(s, 3, r->thread, c->bases.thread + r->thread);
	bind(s, 4, r->call_path, c->bases.call_path + r->call_path);
	bind(s, 5, r->call_branch, run_base + (int64_t)r->call_branch);
	bind(s, 6, r->return_branch,
	     r->call_branch ? (int64_t)(r->return_branch - r->call_branch)
			    : run_base + (int64_t)r->return_branch);
	bind(s, 7, stored->store_tsc, (int64_t)r->call_tsc);
	bind(s, 8, timed, (int64_t)(r->return_tsc - r->call_tsc));
	sqlite3_bind_int64(s, 9, (int64_t)r->branch_count);
	sqlite3_bind_int64(s, 10, (int64_t)r->insn_count);
	bind(s, 11, r->cyc_count != PTR_UNKNOWN, (int64_t)r->cyc_count);
	sqlite3_bind_int64(s, 12, r->flags);
	sqlite3_bind_int64(s, 13, r->depth);
	bind(s, 14, stored->parent, (int64_t)(stored->parent - number));
	return db_run(s, e);
}

static int insert_stats(struct calls *c, struct pt_error *e)
{
	sqlite3_stmt *s = c->insert_stat;

	for (size_t i = 1; i <= c->path_count; i++) {
		const struct path_sums *p = &c->sums[i];

		sqlite3_bind_int64(s, 1, c->bases.call_path + (int64_t)i);
		sqlite3_bind_int64(s, 2, (int64_t)p->calls);
		sqlite3_bind_int64(s, 3, (int64_t)p->branches);
		sqlite3_bind_int64(s, 4, (int64_t)p->insns);
		bind(s, 5, p->has_cycles, (int64_t)p->cycles);
		bind(s, 6, p->has_elapsed, (int64_t)p->elapsed_tsc);
		if (p->calls && db_run(s, e) < 0)
			return -1;
	}
	return 0;
}

int calls_finish(struct calls *c, bool (*interrupted)(void), struct pt_error *e)
{
	uint64_t at;
	uint32_t n;

	if (find_parents(c, c->chunk, c->held, c->count + 1, e) < 0)
		return -1;
	/* What is held need not go through the file when it is all. */
	if (c->count && scratch_write(c, c->chunk, c->held, c->count, e) < 0)
		return -1;
	for (at = c->count; at; at -= CHUNK) {
		if (scratch_read(c, c->chunk, CHUNK, at - CHUNK, e) < 0 ||
		    find_parents(c, c->chunk, CHUNK, at - CHUNK + 1, e) < 0 ||
		    scratch_write(c, c->chunk, CHUNK, at - CHUNK, e) < 0)
			return -1;
	}
	for (at = 0; at <= c->count; at += CHUNK) {
		n = at < c->count ? CHUNK : c->held;
		if (interrupted && interrupted())
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "interrupted");
		if (c->count && scratch_read(c, c->chunk, n, at, e) < 0)
			return -1;
		for (uint32_t i = 0; i < n; i++) {
			if (insert(c, &c->chunk[i], at + i + 1, e) < 0)
				return -1;
		}
	}
	return insert_stats(c, e);
}
