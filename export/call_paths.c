/* call_paths.c - see call_paths.h. */
#include "export/call_paths.h"

#include <stdbool.h>
#include <stdlib.h>

#include "export/inserter.h"
#include "export/digits.h"
#include "export/paged.h"
#include "export/thread_path_rows.h"
#include "export/thread_paths.h"
#include "schema/array.h"

enum { PATH_PAGES = 4096 /* in memory */ };

struct path {
	uint32_t parent, symbol;
	uint64_t ip; /* 0: the symbol's start */
	uint64_t calls, branches, insns, cycles, elapsed_tsc;
	bool has_cycles, has_elapsed; /* of any call */
	bool shared;	 /* by several threads, or an unknown one: their sums are in thread_paths */
	uint32_t thread; /* of the first call */
};

struct call_paths {
	struct trace_bases bases;
	struct insert *insert;
	struct paged paths; /* number n at n - 1 */
	uint64_t count;
	struct thread_paths *shared;
	struct thread_path_rows *shared_rows;
	uint64_t *symbol_starts; /* number n at n - 1 */
	size_t symbol_count, symbol_room;
};

struct call_paths *call_paths_create(struct inserter *inserter, const int scratch[CALL_PATHS_SCRATCHES],
				     const struct trace_bases *bases, struct pt_error *e)
{
	struct call_paths *c = calloc(1, sizeof *c);

	if (!c) {
		pt_fail_no_memory(e, "call paths");
		return NULL;
	}
	c->bases = *bases;
	c->insert = insert_create(inserter, "call_path", 11, e);
	c->shared_rows = c->insert ? thread_path_rows_create(inserter, bases, e) : NULL;
	c->shared = c->shared_rows ? thread_paths_create(scratch[1], e) : NULL;
	if (c->shared && !paged_init(&c->paths, scratch[0], sizeof(struct path), PATH_PAGES, e))
		return c;
	call_paths_destroy(c);
	return NULL;
}

void call_paths_destroy(struct call_paths *c)
{
	if (!c)
		return;
	insert_destroy(c->insert);
	thread_path_rows_destroy(c->shared_rows);
	thread_paths_destroy(c->shared);
	free(c->symbol_starts);
	paged_deinit(&c->paths);
	free(c);
}

int call_paths_symbol(struct call_paths *c, uint64_t start, struct pt_error *e)
{
	if (pt_array_grow(&c->symbol_starts, c->symbol_count, &c->symbol_room, e))
		return -1;
	c->symbol_starts[c->symbol_count++] = start;
	return 0;
}

int call_paths_add(struct call_paths *c, const struct ptr_call_path *path, struct pt_error *e)
{
	struct path *p;
	bool at_start = path->symbol && c->symbol_starts[path->symbol - 1] == path->ip;

	/* call_shape has two digits for an id. */
	if (c->bases.call_path + (int64_t)c->count + 1 >= DIGITS_MAX)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "too many call paths for one database");
	p = paged_at(&c->paths, c->count++, e);
	if (!p)
		return -1;
	*p = (struct path){.parent = path->parent, .symbol = path->symbol, .ip = at_start ? 0 : path->ip};
	return 0;
}

void call_paths_fetch(struct call_paths *c, uint32_t thread, uint32_t path)
{
	if (!path)
		return;
	paged_fetch(&c->paths, path - 1);
	thread_paths_fetch(c->shared, thread, path);
}

/* Adds calls of a path that several threads have to the sums of their thread. Not inlined: the other
 * calls are many. */
__attribute__((noinline)) static int sum_shared(struct call_paths *c, struct path *p,
						const struct ptr_call_sum *sum, struct pt_error *e)
{
	struct thread_path first = {.thread = p->thread,
				    .path = sum->call_path,
				    .calls = p->calls,
				    .insns = p->insns,
				    .cycles = p->cycles,
				    .elapsed_tsc = p->elapsed_tsc,
				    .has_cycles = p->has_cycles,
				    .has_elapsed = p->has_elapsed};
	struct thread_path more = {.thread = sum->thread,
				   .path = sum->call_path,
				   .calls = sum->calls,
				   .insns = sum->insn_count,
				   .has_cycles = sum->cyc_count != PTR_UNKNOWN,
				   .has_elapsed = sum->elapsed_tsc != PTR_UNKNOWN};

	more.cycles = more.has_cycles ? sum->cyc_count : 0;
	more.elapsed_tsc = more.has_elapsed ? sum->elapsed_tsc : 0;
	/* Until now all were of one thread. */
	if (!p->shared && p->calls && thread_paths_add(c->shared, &first, e) < 0)
		return -1;
	p->shared = true;
	return thread_paths_add(c->shared, &more, e);
}

/*
 * Counts are 64-bit in the stream and in SQLite: sums of what a broken stream claims may wrap, and no more.
 */
int call_paths_add_sum(struct call_paths *c, const struct ptr_call_sum *sum, struct pt_error *e)
{
	struct path *p;

	if (!sum->call_path)
		return 0;
	p = paged_at(&c->paths, sum->call_path - 1, e);
	if (!p)
		return -1;
	if (!p->calls)
		p->thread = sum->thread;
	if ((p->shared || p->thread != sum->thread || !sum->thread) && sum_shared(c, p, sum, e) < 0)
		return -1;
	p->calls += sum->calls;
	p->branches += sum->branch_count;
	p->insns += sum->insn_count;
	if (sum->cyc_count != PTR_UNKNOWN) {
		p->cycles += sum->cyc_count;
		p->has_cycles = true;
	}
	if (sum->elapsed_tsc != PTR_UNKNOWN) {
		p->elapsed_tsc += sum->elapsed_tsc;
		p->has_elapsed = true;
	}
	return 0;
}

int call_paths_sum(struct call_paths *c, const struct ptr_call *call, struct pt_error *e)
{
	const struct ptr_call_sum one = call_paths_sum_of(call);

	return call_paths_add_sum(c, &one, e);
}

static int insert_paths(struct call_paths *c, struct pt_error *e)
{
	struct insert *s = c->insert;

	for (uint64_t i = 0; i < c->count; i++) {
		const struct path *p = paged_at(&c->paths, i, e);

		if (!p)
			return -1;
		insert_int(s, 1, c->bases.call_path + (int64_t)i + 1);
		insert_int(s, 2, c->bases.trace);
		insert_known(s, 3, p->parent, c->bases.call_path + p->parent);
		insert_known(s, 4, p->symbol, c->bases.symbol + p->symbol);
		insert_known(s, 5, p->ip, (int64_t)p->ip);
		insert_int(s, 6, (int64_t)p->calls);
		insert_int(s, 7, (int64_t)p->branches);
		insert_int(s, 8, (int64_t)p->insns);
		insert_known(s, 9, p->has_cycles, (int64_t)p->cycles);
		insert_known(s, 10, p->has_elapsed, (int64_t)p->elapsed_tsc);
		insert_known(s, 11, p->thread && !p->shared, c->bases.thread + p->thread);
		if (insert_run(s, e) < 0)
			return -1;
	}
	return 0;
}

static int insert_thread_paths(struct call_paths *c, struct pt_error *e)
{
	struct thread_path p;
	int more = thread_paths_rewind(c->shared, e);

	while (more >= 0 && (more = thread_paths_next(c->shared, &p, e)) > 0)
		more = thread_path_rows_add(c->shared_rows, &p, e);
	return more < 0 ? -1 : thread_path_rows_finish(c->shared_rows, e);
}

int call_paths_finish(struct call_paths *c, struct pt_error *e)
{
	return insert_paths(c, e) < 0 ? -1 : insert_thread_paths(c, e);
}
