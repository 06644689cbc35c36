/* call_groups.c - see call_groups.h. */
#include "export/call_groups.h"

#include <stdbool.h>
#include <stdlib.h>

#include "export/db.h"
#include "export/digits.h"

struct call_groups {
	sqlite3_stmt *insert;
	int64_t trace, id, thread;
	uint64_t run; /* the first call's */
	uint32_t n;
	int64_t elapsed_max; /* -1 none */
	struct digits shape, run_add, cyc, parent, far_parent;
	uint32_t far_count;
	bool is_alone;	       /* one call, and no other fits in: */
	uint64_t parent_whole; /* 0: it does not need this */
	bool is_whole;	       /* its numbers are these: */
	struct ptr_call whole;
};

struct call_groups *call_groups_create(sqlite3 *db, int64_t trace, struct pt_error *e)
{
	struct call_groups *g = calloc(1, sizeof *g);

	if (!g) {
		pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory");
		return NULL;
	}
	g->trace = trace;
	g->insert = db_insert(db, "call_group", 26, e);
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

static bool times_known(const struct ptr_call *c)
{
	return c->call_tsc != PTR_NO_TSC && c->return_tsc != PTR_NO_TSC;
}

static void bind_whole(struct call_groups *g)
{
	const struct ptr_call *c = &g->whole;
	sqlite3_stmt *s = g->insert;
	bool is = g->is_whole;

	db_bind(s, 17, is, 1);
	db_bind(s, 18, is && c->call_path, c->call_path);
	db_bind(s, 19, is && c->call_branch, (int64_t)c->call_branch);
	db_bind(s, 20, is && c->return_branch, (int64_t)c->return_branch);
	db_bind(s, 21, is && c->call_tsc != PTR_NO_TSC, (int64_t)c->call_tsc);
	db_bind(s, 22, is && c->return_tsc != PTR_NO_TSC, (int64_t)c->return_tsc);
	db_bind(s, 23, is, (int64_t)c->branch_count);
	db_bind(s, 24, is, (int64_t)c->insn_count);
	db_bind(s, 25, is && c->cyc_count != PTR_UNKNOWN, (int64_t)c->cyc_count);
	db_bind(s, 26, is, c->flags);
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
	digits_bind(&g->shape, n, s, 6, 7);
	db_bind(s, 8, !g->is_whole, (int64_t)g->run);
	digits_bind(&g->run_add, n, s, 9, 10);
	digits_bind(&g->cyc, n, s, 11, 12);
	digits_bind(&g->parent, n, s, 13, 0);
	if (!g->far_count)
		g->far_parent.any = 0;
	digits_bind(&g->far_parent, g->far_count, s, 14, 15);
	db_bind(s, 16, g->parent_whole, (int64_t)g->parent_whole);
	bind_whole(g);
	g->n = 0;
	g->is_alone = g->is_whole = false;
	return db_run(s, e);
}

/* The next DIGITS_ROW calls are told by how far away they are, others by their place in a list of these. */
static uint32_t parent_digit(struct call_groups *g, const struct group_call *c)
{
	uint32_t k;
	uint64_t far;

	if (c->parent_add < DIGITS_ROW)
		return (uint32_t)c->parent_add;
	far = (uint64_t)(c->id - g->id) + c->parent_add;
	/* From the last on: its callees come before it does. */
	for (k = g->far_count; k-- > 0;)
		if (g->far_parent.number[k] == far)
			return DIGITS_ROW + k;
	k = g->far_count++;
	digits_set(&g->far_parent, k, (uint32_t)far);
	return DIGITS_ROW + k;
}

int call_groups_add(struct call_groups *g, const struct group_call *c, struct pt_error *e)
{
	bool far_away = c->parent_add >= DIGITS_MAX - DIGITS_ROW, alone = c->whole || far_away;
	uint64_t run_add = c->return_run - g->run;
	uint32_t i;

	if (g->n &&
	    (g->thread != c->thread || g->n == DIGITS_ROW || alone || g->is_alone || run_add >= DIGITS_MAX ||
	     c->id != g->id + (int64_t)g->n) &&
	    call_groups_flush(g, e) < 0)
		return -1;
	if (!g->n) {
		g->id = c->id;
		g->thread = c->thread;
		g->run = c->return_run;
		g->elapsed_max = -1;
		g->far_count = 0;
		g->is_alone = alone;
		g->parent_whole = far_away ? c->parent_add : 0;
		run_add = 0;
	}
	i = g->n++;
	digits_set(&g->parent, i, far_away ? 0 : parent_digit(g, c));
	digits_set(&g->shape, i, c->whole ? 0 : c->shape);
	digits_set(&g->run_add, i, c->whole ? 0 : (uint32_t)run_add);
	digits_set(&g->cyc, i, c->whole ? 0 : c->cyc);
	if (c->whole) {
		g->is_whole = true;
		g->whole = *c->whole;
		if (times_known(c->whole))
			g->elapsed_max = (int64_t)(c->whole->return_tsc - c->whole->call_tsc);
	} else if (c->elapsed && (int64_t)c->elapsed - 1 > g->elapsed_max) {
		g->elapsed_max = (int64_t)c->elapsed - 1;
	}
	return 0;
}
