/* call_groups.c - see call_groups.h. */
#include "export/call_groups.h"

#include <stdlib.h>

#include "export/db.h"
#include "export/digits.h"
#include "schema/records.h"

struct call_groups {
	sqlite3_stmt *insert;
	int64_t trace, id, thread, run; /* the first call's */
	uint32_t n;
	int64_t elapsed_max; /* -1 none */
	struct digits call_path, run_add, return_at, runs_back, call_at, elapsed, branches, insns, cyc, flags,
	    parent;
	bool is_whole; /* one call, whose numbers are these: */
	struct group_call whole;
};

struct call_groups *call_groups_create(sqlite3 *db, int64_t trace, struct pt_error *e)
{
	struct call_groups *g = calloc(1, sizeof *g);

	if (!g) {
		pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory");
		return NULL;
	}
	g->trace = trace;
	g->insert = db_insert(db, "call_group", 33, e);
	if (!g->insert) {
		free(g);
		return NULL;
	}
	return g;
}

void call_groups_destroy(struct call_groups *g)
{
	if (g)
		sqlite3_finalize(g->insert);
	free(g);
}

static bool times_known(const struct group_call *c)
{
	return c->call_tsc != PTR_NO_TSC && c->return_tsc != PTR_NO_TSC;
}

static void bind_whole(struct call_groups *g)
{
	const struct group_call *c = &g->whole;
	sqlite3_stmt *s = g->insert;
	bool is = g->is_whole;

	db_bind(s, 25, is, 1);
	db_bind(s, 26, is && c->call_branch, (int64_t)c->call_branch);
	db_bind(s, 27, is && c->return_branch, (int64_t)c->return_branch);
	db_bind(s, 28, is && c->call_tsc != PTR_NO_TSC, (int64_t)c->call_tsc);
	db_bind(s, 29, is && c->return_tsc != PTR_NO_TSC, (int64_t)c->return_tsc);
	db_bind(s, 30, is, (int64_t)c->branch_count);
	db_bind(s, 31, is, (int64_t)c->insn_count);
	db_bind(s, 32, is && c->cyc_count != PTR_UNKNOWN, (int64_t)c->cyc_count);
	db_bind(s, 33, is && c->parent_add, (int64_t)c->parent_add);
}

int call_groups_flush(struct call_groups *g, struct pt_error *e)
{
	sqlite3_stmt *s = g->insert;
	uint32_t n = g->n;

	if (!n)
		return 0;
	sqlite3_bind_int64(s, 1, g->id);
	sqlite3_bind_int64(s, 2, n);
	sqlite3_bind_int64(s, 3, g->trace);
	db_bind(s, 4, g->thread, g->thread);
	db_bind(s, 5, g->elapsed_max >= 0, g->elapsed_max);
	digits_bind(&g->call_path, n, s, 6, 7);
	db_bind(s, 8, !g->is_whole, g->run);
	digits_bind(&g->run_add, n, s, 9, 10);
	digits_bind(&g->return_at, n, s, 11, 0);
	digits_bind(&g->runs_back, n, s, 12, 13);
	digits_bind(&g->call_at, n, s, 14, 0);
	digits_bind(&g->elapsed, n, s, 15, 16);
	digits_bind(&g->branches, n, s, 17, 0);
	digits_bind(&g->insns, n, s, 18, 19);
	digits_bind(&g->cyc, n, s, 20, 21);
	digits_bind(&g->flags, n, s, 22, 0);
	digits_bind(&g->parent, n, s, 23, 24);
	bind_whole(g);
	g->n = 0;
	g->is_whole = false;
	return db_run(s, e);
}

/* Whether it needs whole numbers. */
static bool needs_whole(const struct group_call *c)
{
	uint64_t elapsed = c->return_tsc - c->call_tsc;
	uint64_t runs_back = c->return_branch / PTR_RUN_BRANCHES - c->call_branch / PTR_RUN_BRANCHES;

	return !c->times_of_branches || !c->call_branch || !c->return_branch || runs_back >= DIGITS_MAX ||
	       (times_known(c) && elapsed >= DIGITS_MAX - 1) || c->branch_count >= 1 << DIGITS_BITS ||
	       c->insn_count >= DIGITS_MAX ||
	       (c->cyc_count != PTR_UNKNOWN && c->cyc_count >= DIGITS_MAX - 1) || c->parent_add >= DIGITS_MAX;
}

int call_groups_add(struct call_groups *g, const struct group_call *c, struct pt_error *e)
{
	int64_t run = (int64_t)(c->return_branch / PTR_RUN_BRANCHES);
	bool is_whole = needs_whole(c);
	uint64_t run_add = (uint64_t)(run - g->run),
		 elapsed = times_known(c) ? c->return_tsc - c->call_tsc + 1 : 0;
	uint32_t i;

	if (g->n &&
	    (g->thread != c->thread || g->n == DIGITS_ROW || run_add >= DIGITS_MAX || is_whole ||
	     g->is_whole || c->id != g->id + (int64_t)g->n) &&
	    call_groups_flush(g, e) < 0)
		return -1;
	if (!g->n) {
		g->id = c->id;
		g->thread = c->thread;
		g->run = run;
		g->elapsed_max = -1;
		run_add = 0;
	}
	i = g->n++;
	digits_set(&g->call_path, i, (uint32_t)c->call_path);
	digits_set(&g->flags, i, c->flags);
	if (is_whole) {
		g->is_whole = true;
		g->whole = *c;
		run_add = 0;
	}
	digits_set(&g->run_add, i, (uint32_t)run_add);
	digits_set(&g->return_at, i, is_whole ? 0 : c->return_branch % PTR_RUN_BRANCHES);
	digits_set(&g->runs_back, i,
		   is_whole ? 0 : (uint32_t)(run - (int64_t)(c->call_branch / PTR_RUN_BRANCHES)));
	digits_set(&g->call_at, i, is_whole ? 0 : c->call_branch % PTR_RUN_BRANCHES);
	digits_set(&g->elapsed, i, is_whole ? 0 : (uint32_t)elapsed);
	digits_set(&g->branches, i, is_whole ? 0 : (uint32_t)c->branch_count);
	digits_set(&g->insns, i, is_whole ? 0 : (uint32_t)c->insn_count);
	digits_set(&g->cyc, i, is_whole || c->cyc_count == PTR_UNKNOWN ? 0 : (uint32_t)c->cyc_count + 1);
	digits_set(&g->parent, i, is_whole ? 0 : (uint32_t)c->parent_add);
	if (elapsed && (int64_t)elapsed - 1 > g->elapsed_max)
		g->elapsed_max = (int64_t)elapsed - 1;
	return 0;
}
