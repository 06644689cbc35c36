/* run_groups.c - see run_groups.h. */
#include "export/run_groups.h"

#include <stdbool.h>
#include <stdlib.h>

#include "export/db.h"
#include "schema/records.h"

struct run_groups {
	sqlite3_stmt *insert;
	int64_t id, slice;
	uint64_t tsc; /* the first run's */
	uint32_t n;
	struct digits path, tsc_add, repeats, cyc, insn, back;
	bool whole; /* one run, whose cycles and instructions are these: */
	uint64_t cyc_whole, insn_whole;
};

struct run_groups *run_groups_create(sqlite3 *db, struct pt_error *e)
{
	struct run_groups *g = calloc(1, sizeof *g);

	if (!g) {
		pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory");
		return NULL;
	}
	g->insert = db_insert(db, "run_group", 16, e);
	if (!g->insert) {
		free(g);
		return NULL;
	}
	return g;
}

void run_groups_destroy(struct run_groups *g)
{
	if (g)
		sqlite3_finalize(g->insert);
	free(g);
}

int run_groups_flush(struct run_groups *g, struct pt_error *e)
{
	sqlite3_stmt *s = g->insert;
	uint32_t n = g->n;

	if (!n)
		return 0;
	sqlite3_bind_int64(s, 1, g->id);
	sqlite3_bind_int64(s, 2, n);
	sqlite3_bind_int64(s, 3, g->slice);
	db_bind(s, 4, g->tsc != PTR_NO_TSC, (int64_t)g->tsc);
	digits_bind(&g->path, n, s, 5, 6);
	digits_bind(&g->tsc_add, n, s, 7, 8);
	digits_bind(&g->repeats, n, s, 9, 0);
	digits_bind(&g->cyc, n, s, 10, 11);
	digits_bind(&g->insn, n, s, 12, 13);
	digits_bind(&g->back, n, s, 14, 0);
	db_bind(s, 15, g->whole, (int64_t)g->cyc_whole);
	db_bind(s, 16, g->whole, (int64_t)g->insn_whole);
	g->n = 0;
	g->whole = false;
	return db_run(s, e);
}

int run_groups_add(struct run_groups *g, const struct group_run *r, struct pt_error *e)
{
	uint64_t tsc_add = r->tsc - g->tsc;
	bool known = r->cyc_count != PTR_UNKNOWN;
	bool whole = known && (r->cyc_count >= DIGITS_MAX - 1 || r->insn_count >= DIGITS_MAX - 1);
	uint32_t i;

	/* An unknown time adds 0 to an unknown one; a known one and an unknown one differ by far too much. */
	if (g->n &&
	    (r->slice != g->slice || g->n == DIGITS_ROW || tsc_add >= DIGITS_MAX ||
	     (r->tsc == PTR_NO_TSC) != (g->tsc == PTR_NO_TSC) || whole || g->whole ||
	     r->id != g->id + (int64_t)g->n) &&
	    run_groups_flush(g, e) < 0)
		return -1;
	if (!g->n) {
		g->id = r->id;
		g->slice = r->slice;
		g->tsc = r->tsc;
		tsc_add = 0;
	}
	i = g->n++;
	digits_set(&g->path, i, r->path);
	digits_set(&g->tsc_add, i, (uint32_t)tsc_add);
	digits_set(&g->repeats, i, r->repeats - 1);
	digits_set(&g->cyc, i, known && !whole ? (uint32_t)r->cyc_count + 1 : 0);
	digits_set(&g->insn, i, known && !whole ? (uint32_t)r->insn_count + 1 : 0);
	/* A stretch of more runs than that is said to have begun no earlier. */
	digits_set(&g->back, i,
		   !known			? 0
		   : r->back < 1 << DIGITS_BITS ? (uint32_t)r->back
						: (1 << DIGITS_BITS) - 1);
	if (whole) {
		g->whole = true;
		g->cyc_whole = r->cyc_count;
		g->insn_whole = r->insn_count;
	}
	return 0;
}
