/* call_memos.c - see call_memos.h. */
#include "decode/output/call_memos.h"

#include <stdlib.h>
#include <string.h>

#include "decode/code/huge_pages.h"
#include "schema/apart.h"
#include "schema/hash.h"
#include "schema/records.h"

#define MEMOS	  (1u << 12) /* 512 KB: they are in the second level's cache */
#define MADE_MAX  9
#define BYTES_MAX 108

/* Two cache lines; of few calls only the first one is read. */
struct memo {
	uint64_t key;  /* 0: free */
	uint8_t count; /* calls */
	bool encoded;  /* all have numbers, and their bytes have room */
	union {
		struct pt_inner_call made[MADE_MAX];
		struct {
			/* Of the first: its number, flags, the branches up to its return. */
			uint32_t call_path;
			uint8_t flags, returns_at;
			uint8_t branches, n; /* as in struct ptr_calls_like */
			uint8_t bytes[BYTES_MAX];
		};
	};
};

_Static_assert(sizeof(struct memo) == 128, "two cache lines");

/* Of so many at least seven of eight are to have been found: else none is looked for in the next runs. What a
 * compiler calls takes as long to remember as to make. */
#define TRIED	1024
#define SKIPPED 32768

struct pt_call_memos {
	struct memo *memos;
	uint32_t tried, found;
	uint32_t skip; /* runs */
};

struct pt_call_memos *pt_call_memos_create(void)
{
	struct pt_call_memos *m = pt_alloc_apart(sizeof *m);

	if (m && (m->memos = pt_table_create(MEMOS, sizeof *m->memos)))
		return m;
	free(m);
	return NULL;
}

void pt_call_memos_destroy(struct pt_call_memos *m)
{
	if (m)
		pt_table_destroy(m->memos, MEMOS, sizeof *m->memos);
	free(m);
}

void pt_call_memos_forget(struct pt_call_memos *m)
{
	memset(m->memos, 0, MEMOS * sizeof *m->memos);
}

bool pt_call_memos_pay(struct pt_call_memos *m)
{
	if (m->skip) {
		m->skip--;
		return false;
	}
	if (m->tried >= TRIED) {
		m->skip = m->found < TRIED / 8 * 7 ? SKIPPED : 0;
		m->tried = m->found = 0;
	}
	return true;
}

/* ---- Adding ----------------------------------------------------------------------------------------- */

static struct ptr_call call_of(const struct pt_inner_run *run, const struct pt_inner_call *inner)
{
	uint64_t branch = run->branch ? run->branch + run->at.begin + inner->returns_at : 0;

	return (struct ptr_call){.thread = run->thread,
				 .stack = run->stack,
				 .call_tsc = run->tsc,
				 .return_tsc = run->tsc,
				 .call_branch = branch ? branch - inner->branches : 0,
				 .return_branch = branch,
				 .branch_count = inner->branches,
				 .insn_count = inner->insns,
				 .cyc_count = run->has_cyc ? 0 : PTR_UNKNOWN,
				 .flags = inner->flags,
				 .depth = run->depth + inner->depth};
}

/* False: no memory. */
static bool add(const struct pt_inner_run *run, const struct pt_inner_call *inner,
		const struct pt_call_sink *to)
{
	struct ptr_call r = call_of(run, inner);
	uint32_t id = inner->call_path == PT_NO_CALL_PATH ? 0 : inner->call_path;

	r.call_path = pt_call_path_number(to->paths, id);
	return ptr_calls_add(to->calls, &r, r.call_path ? 0 : id) == 0;
}

/* ---- Memos ------------------------------------------------------------------------------------------ */

/* Of all that the calls' bytes depend on: their edges, the instructions between them (the code there may have
 * changed), who calls at which depth, whether cycles and branches are known. 64 bits of a hash: two have the
 * same one once in 10^11 traces. */
static uint64_t key_of(const struct pt_graph *g, const struct pt_inner_run *run)
{
	const uint32_t *edges = g->path_edges + run->at.first + run->at.begin;
	const uint16_t *until = g->path_until + run->at.first + run->at.begin;
	uint32_t n = run->at.end - run->at.begin, before = until[0] * 0x10001u;
	uint64_t from = run->parent | (uint64_t)run->depth << 32,
		 known = (uint64_t)run->has_cyc << 63 | (uint64_t)(run->branch != 0) << 62,
		 h = from ^ known ^ 0xa0761d6478bd642fu;

	for (uint32_t i = 0; i < n; i += 2) {
		bool two = i + 1 < n;
		uint64_t edge = edges[i] | (two ? (uint64_t)edges[i + 1] << 32 : 0);
		uint32_t insns = (until[i] | (two ? (uint32_t)until[i + 1] << 16 : 0)) - before;

		h = pt_hash_fold(h ^ insns, edge ^ 0xe7037ed1a0b428dbu) ^ 0xa0761d6478bd642fu;
	}
	return h | 1;
}

/* The calls, which were added since the mark. False: they have no room, or not all have numbers. */
static bool remember_encoded(struct memo *memo, const struct pt_inner_run *run,
			     const struct pt_inner_call *calls, const struct ptr_calls_mark *mark,
			     const struct pt_call_sink *to)
{
	const struct pt_inner_call first = calls[0], last = calls[memo->count - 1];
	struct ptr_calls_like like;

	if (!ptr_calls_since(to->calls, mark, &like) || like.n > BYTES_MAX)
		return false;
	memo->call_path = pt_call_path_number(to->paths, first.call_path);
	memo->flags = first.flags;
	memo->returns_at = first.returns_at;
	memo->branches = run->branch ? last.returns_at - first.returns_at : 0;
	memo->n = (uint8_t)like.n;
	memcpy(memo->bytes, like.bytes, like.n);
	return true;
}

/* Adds the calls, memo->count; and remembers them encoded if that can be. False: no memory. */
static bool add_all(struct memo *memo, const struct pt_inner_run *run, const struct pt_inner_call *calls,
		    const struct pt_call_sink *to)
{
	const struct ptr_calls_mark mark = ptr_calls_mark(to->calls);

	for (uint32_t i = 0; i < memo->count; i++)
		if (!add(run, &calls[i], to))
			return false;
	memo->encoded = remember_encoded(memo, run, calls, &mark, to);
	return true;
}

/* Adds calls that are not remembered. False: no memory. */
__attribute__((noinline)) static bool make(struct memo *memo, uint64_t key, const struct pt_inner_run *run,
					   const struct pt_call_sink *to, const struct pt_graph *graph)
{
	struct pt_inner_calls inner;

	if (!pt_inner_calls_make(graph, &run->at, run->parent, to, &inner))
		return false;
	memo->count = (uint8_t)inner.count;
	if (!add_all(memo, run, inner.calls, to))
		return false;
	memo->key = memo->encoded || inner.count <= MADE_MAX ? key : 0;
	if (!memo->encoded && memo->key)
		memcpy(memo->made, inner.calls, inner.count * sizeof *inner.calls);
	return true;
}

/* Adds those whose ids are remembered, some of which had no number. False: no memory. */
static bool add_made(struct memo *memo, const struct pt_inner_run *run, const struct pt_call_sink *to)
{
	struct pt_inner_call calls[MADE_MAX];

	memcpy(calls, memo->made, memo->count * sizeof *calls);
	return add_all(memo, run, calls, to);
}

static void add_encoded(const struct memo *memo, const struct pt_inner_run *run, struct ptr_calls *calls)
{
	const struct ptr_calls_like like = {memo->bytes, memo->n, memo->count, memo->branches};
	const struct ptr_call first = {.thread = run->thread,
				       .stack = run->stack,
				       .call_path = memo->call_path,
				       .flags = memo->flags,
				       .return_tsc = run->tsc,
				       .return_branch =
					   run->branch ? run->branch + run->at.begin + memo->returns_at : 0};

	ptr_calls_add_like(calls, &first, &like);
}

bool pt_call_memos_run(struct pt_call_memos *m, const struct pt_inner_run *run, const struct pt_call_sink *to,
		       const struct pt_graph *graph)
{
	uint64_t key = key_of(graph, run);
	struct memo *memo = &m->memos[key >> 32 & (MEMOS - 1)];

	if (memo->key != key) {
		m->tried++;
		return make(memo, key, run, to, graph);
	}
	if (!memo->encoded)
		return add_made(memo, run, to);
	m->tried++;
	m->found++;
	if (ptr_calls_room(to->calls) < memo->count)
		return make(memo, key, run, to, graph);
	add_encoded(memo, run, to->calls);
	return true;
}
