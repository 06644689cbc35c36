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
	struct digits path, step, time, repeats, cyc, insn, back, est;
	uint32_t times; /* numbers in time: that of a run is at its step */
	uint64_t exact; /* bit n: run n is exact */
	uint64_t next;	/* of the last run: tsc_next */
	uint64_t tscs[DIGITS_ROW], ests[DIGITS_ROW], ends[DIGITS_ROW];
	bool whole; /* the only run's cycles and instructions fit no text: */
	uint64_t cyc_whole, insn_whole;
};

struct run_groups *run_groups_create(sqlite3 *db, struct pt_error *e)
{
	struct run_groups *g = calloc(1, sizeof *g);

	if (!g) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	g->insert = db_insert(db, "run_group", 22, e);
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

/* Whether estimates need a text: not when each is its run's tsc, or they lie evenly in time. */
static bool uneven(const struct run_groups *g)
{
	uint64_t span = g->next - g->ests[0], slack = span / 64 > 32 ? span / 64 : 32;
	bool flat = !g->exact && g->tscs[g->n - 1] == g->tsc;

	for (uint32_t i = 0; i < g->n; i++) {
		uint64_t even = flat ? g->ests[0] + span * i / g->n : g->tscs[i];
		uint64_t off = g->ests[i] > even ? g->ests[i] - even : even - g->ests[i];

		if (!(g->exact >> i & 1) && off > (flat ? slack : 64))
			return true;
	}
	return false;
}

/* Bit n: the upper bound of run n is not the next other tsc of the group, but the group's own. */
static uint64_t open_runs(const struct run_groups *g)
{
	uint64_t open = 0, next = PTR_NO_TSC;

	for (uint32_t i = g->n; i--;) {
		if (i + 1 < g->n && g->tscs[i + 1] != g->tscs[i])
			next = g->tscs[i + 1];
		if (next != PTR_NO_TSC && g->ends[i] != next)
			open |= (uint64_t)1 << i;
	}
	return open;
}

static void bind_times(struct run_groups *g)
{
	sqlite3_stmt *s = g->insert;
	bool known = g->tsc != PTR_NO_TSC;
	uint64_t span = g->next - g->ests[0];
	bool text = known && span && uneven(g);
	uint64_t end = g->ends[g->n - 1], open = known ? open_runs(g) : 0;

	db_bind(s, 17, known && g->ests[0] != g->tsc, (int64_t)(g->ests[0] - g->tsc));
	db_bind(s, 18, known, (int64_t)(g->next - g->tsc));
	db_bind(s, 19, known && end != PTR_NO_TSC, (int64_t)(end - g->tsc));
	for (uint32_t i = 0; i < g->n; i++) {
		uint32_t at = 0;

		/* Estimates lie between the first one and the group's end. */
		uint64_t est = g->ests[i] < g->ests[0] ? 0 : g->ests[i] - g->ests[0];

		if (text)
			at = 1 + (uint32_t)((double)(est < span ? est : span) / (double)span * RUN_GROUP_EST);
		digits_set(&g->est, i, at);
	}
	digits_bind(&g->est, g->n, s, 20, 0);
	db_bind(s, 21, g->exact != 0, (int64_t)g->exact);
	db_bind(s, 22, open != 0, (int64_t)open);
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
	digits_bind(&g->step, n, s, 7, 0);
	digits_bind(&g->time, g->times, s, 8, 0);
	digits_bind(&g->repeats, n, s, 9, 0);
	digits_bind(&g->cyc, n, s, 10, 11);
	digits_bind(&g->insn, n, s, 12, 13);
	digits_bind(&g->back, n, s, 14, 0);
	db_bind(s, 15, g->whole, (int64_t)g->cyc_whole);
	db_bind(s, 16, g->whole, (int64_t)g->insn_whole);
	bind_times(g);
	g->n = 0;
	g->exact = 0;
	g->whole = false;
	return db_run(s, e);
}

/* Whether the run's time does not fit into the group. */
static bool other_time(const struct run_groups *g, const struct group_run *r)
{
	return (r->tsc == PTR_NO_TSC) != (g->tsc == PTR_NO_TSC) ||
	       (r->tsc != PTR_NO_TSC && r->tsc - g->tsc >= DIGITS_ONE);
}

int run_groups_add(struct run_groups *g, const struct group_run *r, struct pt_error *e)
{
	bool known = r->cyc_count != PTR_UNKNOWN;
	bool whole = known && (r->cyc_count >= DIGITS_MAX - 1 || r->insn_count >= DIGITS_MAX - 1);
	uint32_t i;

	if (g->n &&
	    (r->slice != g->slice || g->n == DIGITS_ROW || other_time(g, r) || whole || g->whole ||
	     r->id != g->id + (int64_t)g->n) &&
	    run_groups_flush(g, e) < 0)
		return -1;
	if (!g->n) {
		g->id = r->id;
		g->slice = r->slice;
		g->tsc = r->tsc;
		g->times = 0;
	}
	i = g->n++;
	if (!i || r->tsc != g->tscs[i - 1]) {
		digits_set(&g->time, g->times, (uint32_t)(r->tsc - g->tsc));
		g->times++;
	}
	digits_set(&g->path, i, r->path);
	digits_set(&g->step, i, g->times - 1);
	g->exact |= (uint64_t)r->exact << i;
	g->tscs[i] = r->tsc;
	g->ests[i] = r->tsc_est;
	g->next = r->tsc_next;
	g->ends[i] = r->tsc_end;
	digits_set(&g->repeats, i, r->repeats - 1);
	digits_set(&g->cyc, i, known && !whole ? (uint32_t)r->cyc_count + 1 : 0);
	digits_set(&g->insn, i, known && !whole ? (uint32_t)r->insn_count + 1 : 0);
	/* Of a longer stretch the last DIGITS_ONE - 1 runs are kept. */
	digits_set(&g->back, i, !known ? 0 : r->back < DIGITS_ONE ? (uint32_t)r->back : DIGITS_ONE - 1);
	if (whole) {
		g->whole = true;
		g->cyc_whole = r->cyc_count;
		g->insn_whole = r->insn_count;
	}
	return 0;
}
