/* call_groups.c - see call_groups.h. */
#include "export/call_groups.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "export/call_path_ranks.h"
#include "export/inserter.h"
#include "export/digits.h"

enum {
	POSITIONS = 128, /* in a row: runs, with those without calls in between */
	CALLS = DIGITS_ROW * SHAPE_CALLS,
	FAR_CALLERS = DIGITS_ROW * SHAPE_CALLS,
	NEAR = 64, /* a caller that is less than that after the run's last call is stored as the difference */
	TOP_BITS = 19
};

/* Of calls whose times are known: the longest one's TSC ticks, -1: there are none; when the first began,
 * and the last returned. */
struct call_times {
	int64_t elapsed_max, from, to;
};

struct call_groups {
	struct insert *insert, *insert_whole;
	int64_t trace, id, thread;
	uint64_t run;	/* the first one */
	uint32_t runs;	/* of DIGITS_ROW */
	uint32_t calls; /* in them */
	struct call_times times;
	uint32_t run_add[DIGITS_ROW], shape[DIGITS_ROW], path[DIGITS_ROW], code[DIGITS_ROW],
	    caller[DIGITS_ROW], before[DIGITS_ROW];
	uint32_t cyc[CALLS];
	uint32_t far[FAR_CALLERS], far_top[FAR_CALLERS], far_count;
	/* While the statement runs: texts of cyc, and of far and far_top */
	char text[2][CALLS * DIGITS_BYTES];
	char far_text[2][FAR_CALLERS * DIGITS_BYTES];
};

struct call_groups *call_groups_create(struct inserter *inserter, int64_t trace, struct pt_error *e)
{
	struct call_groups *g = calloc(1, sizeof *g);

	if (!g) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	g->trace = trace;
	g->insert = insert_create(inserter, "call_group", 22, e);
	g->insert_whole = g->insert ? insert_create(inserter, "call_whole", 12, e) : NULL;
	if (g->insert_whole)
		return g;
	call_groups_destroy(g);
	return NULL;
}

void call_groups_destroy(struct call_groups *g)
{
	if (!g)
		return;
	insert_destroy(g->insert);
	insert_destroy(g->insert_whole);
	free(g);
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

static const struct call_times no_times = {.elapsed_max = -1, .from = INT64_MAX};

/* (A broken stream's times may be any.) */
static void add_times(struct call_times *t, uint64_t call_tsc, uint64_t return_tsc)
{
	int64_t from = (int64_t)call_tsc, to = (int64_t)return_tsc;
	int64_t elapsed = (int64_t)(return_tsc - call_tsc);

	if (elapsed > t->elapsed_max)
		t->elapsed_max = elapsed;
	if (from < t->from)
		t->from = from;
	if (to > t->to)
		t->to = to;
}

static int bits_of(int64_t ticks)
{
	return ticks > 0 ? 64 - __builtin_clzll((uint64_t)ticks) : 0;
}

static void bind_head(struct call_groups *g, int64_t id, uint32_t calls, int64_t thread,
		      const struct call_times *t)
{
	const int64_t span = (int64_t)((uint64_t)t->to - (uint64_t)t->from);
	bool timed = t->elapsed_max >= 0;
	struct insert *s = g->insert;

	insert_int(s, 1, id);
	insert_int(s, 2, calls);
	insert_int(s, 4, g->trace);
	insert_known(s, 5, thread, thread);
	insert_known(s, 6, timed, t->elapsed_max);
	insert_known(s, 7, timed, 64 * bits_of(t->elapsed_max) + bits_of(span));
	insert_known(s, 8, timed, t->from);
	insert_known(s, 9, timed, span);
}

/* Empty positions for runs without calls may take less room than run_add. True: they are in `to`, and
 * *n counts them, too. */
static bool spread(const struct call_groups *g, uint32_t to[][POSITIONS], uint32_t *n)
{
	uint32_t span = g->run_add[g->runs - 1] + 1;

	if (span > POSITIONS || span * 3 > g->runs * 4)
		return false;
	for (uint32_t i = 1; i < g->runs; i++)
		if (g->run_add[i] == g->run_add[i - 1])
			return false;
	for (uint32_t i = 0; i < g->runs; i++) {
		uint32_t at = g->run_add[i];

		to[0][at] = g->shape[i];
		to[1][at] = g->path[i];
		to[2][at] = g->caller[i];
		to[3][at] = g->before[i];
	}
	*n = span;
	return true;
}

static uint32_t bytes_of(const uint32_t *numbers, uint32_t n)
{
	uint32_t bytes = 0, any = 0;

	for (uint32_t i = 0; i < n; i++) {
		bytes += digit_bytes(numbers[i]);
		any |= numbers[i];
	}
	return !any ? 0 : any >> DIGITS_BITS ? 2 * bytes : bytes;
}

/* Call paths become what is shorter: the differences to the least one, which is returned; or codes, and
 * CALL_PATH_CODES - 1 added to those that have none: 0. */
static uint32_t shorten_paths(struct call_groups *g)
{
	uint32_t least = UINT32_MAX, codes[DIGITS_ROW];

	for (uint32_t i = 0; i < g->runs; i++) {
		if (g->path[i] && g->path[i] < least)
			least = g->path[i];
		codes[i] = g->code[i] || !g->path[i] ? g->code[i] : g->path[i] + CALL_PATH_CODES - 1;
	}
	/* In a run without any call path all path_adds of the shape are 0. */
	for (uint32_t i = 0; i < g->runs; i++)
		g->path[i] = g->path[i] ? g->path[i] - least : 0;
	if (bytes_of(g->path, g->runs) <= bytes_of(codes, g->runs))
		return least == UINT32_MAX ? 0 : least;
	memcpy(g->path, codes, sizeof codes);
	return 0;
}

int call_groups_flush(struct call_groups *g, struct pt_error *e)
{
	struct insert *s = g->insert;
	uint32_t columns[5][POSITIONS] = {{0}}, n = g->runs, least;
	char text[7][POSITIONS * DIGITS_BYTES];

	if (!n)
		return 0;
	least = shorten_paths(g);
	bind_head(g, g->id, g->calls, g->thread, &g->times);
	if (!spread(g, columns, &n)) {
		memcpy(columns[0], g->shape, n * sizeof *g->shape);
		memcpy(columns[1], g->path, n * sizeof *g->path);
		memcpy(columns[2], g->caller, n * sizeof *g->caller);
		memcpy(columns[3], g->before, n * sizeof *g->before);
		for (uint32_t i = 0; i < n; i++)
			columns[4][i] = g->run_add[i] + 1;
	}
	insert_int(s, 3, n);
	insert_int(s, 10, (int64_t)g->run);
	digits_bind_array(columns[4], n, 0, s, 11, text[0]);
	digits_bind_array(columns[0], n, 0, s, 12, text[1]);
	digits_bind_array(columns[0], n, DIGITS_BITS, s, 13, text[2]);
	insert_known(s, 14, least, least);
	digits_bind_array(columns[1], n, 0, s, 15, text[3]);
	digits_bind_array(columns[1], n, DIGITS_BITS, s, 16, text[4]);
	digits_bind_array(columns[3], n, 0, s, 17, text[5]);
	digits_bind_array(columns[2], n, 0, s, 18, text[6]);
	digits_bind_array(g->far, g->far_count, 0, s, 19, g->far_text[0]);
	digits_bind_array(g->far_top, g->far_count, 0, s, 20, g->far_text[1]);
	digits_bind_array(g->cyc, g->calls, 0, s, 21, g->text[0]);
	digits_bind_array(g->cyc, g->calls, DIGITS_BITS, s, 22, g->text[1]);
	g->runs = g->calls = g->far_count = 0;
	return insert_run(s, e);
}

static int add_whole(struct call_groups *g, const struct group_calls *c, struct pt_error *e)
{
	struct insert *s = g->insert_whole;
	const struct ptr_call *w = c->whole;
	bool from = w->call_tsc != PTR_NO_TSC, to = w->return_tsc != PTR_NO_TSC;
	struct call_times times = no_times;

	if (from && to)
		add_times(&times, w->call_tsc, w->return_tsc);
	bind_head(g, c->id, 1, c->thread, &times);
	insert_int(g->insert, 3, 1);
	if (insert_run(g->insert, e) < 0)
		return -1;
	insert_int(s, 1, c->id);
	insert_int(s, 2, g->trace);
	insert_known(s, 3, w->call_path, w->call_path);
	insert_known(s, 4, w->call_branch, (int64_t)w->call_branch);
	insert_known(s, 5, w->return_branch, (int64_t)w->return_branch);
	insert_known(s, 6, from, (int64_t)w->call_tsc);
	insert_known(s, 7, to, (int64_t)w->return_tsc);
	insert_int(s, 8, (int64_t)w->branch_count);
	insert_int(s, 9, (int64_t)w->insn_count);
	insert_known(s, 10, w->cyc_count != PTR_UNKNOWN, (int64_t)w->cyc_count);
	insert_int(s, 11, w->flags);
	insert_known(s, 12, c->caller[0], (int64_t)c->caller[0]);
	return insert_run(s, e);
}

/* ---- Adding -------------------------------------------------------------------------------------------- */

/*
 * Callers one after another in the list of the row's; a single one that is there already is not put in again.
 */
static int put_far(struct call_groups *g, const struct group_calls *c, uint32_t *ret, struct pt_error *e)
{
	const uint32_t mask = (1u << DIGITS_BITS) - 1;

	*ret = NEAR + g->far_count;
	for (uint32_t i = 0; i < c->callers; i++) {
		uint64_t far = c->caller[i] ? c->caller[i] - (uint64_t)g->id : 0;

		if (far >> DIGITS_BITS >> TOP_BITS)
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "too many calls for one database");
		/* The last one first: it is the most likely, for callees come before their caller. */
		for (uint32_t k = g->far_count; c->callers == 1 && k-- > 0;)
			if (g->far[k] == (far & mask) && g->far_top[k] == far >> DIGITS_BITS) {
				*ret = NEAR + k;
				return 0;
			}
		g->far[g->far_count] = (uint32_t)far & mask;
		g->far_top[g->far_count++] = (uint32_t)(far >> DIGITS_BITS);
	}
	return 0;
}

int call_groups_add(struct call_groups *g, const struct group_calls *c, struct pt_error *e)
{
	uint64_t run_add = c->return_run - g->run;
	uint64_t after = c->caller[0] - (uint64_t)(c->id + c->n - 1); /* the caller, after the last call */
	uint32_t i;

	if (g->runs &&
	    (c->whole || g->thread != c->thread || g->runs == DIGITS_ROW || run_add >= DIGITS_ONE - 1 ||
	     run_add < g->run_add[g->runs - 1] || c->id != g->id + (int64_t)g->calls ||
	     g->far_count + c->callers > DIGITS_ONE - 1 - NEAR) &&
	    call_groups_flush(g, e) < 0)
		return -1;
	if (c->whole)
		return add_whole(g, c, e);
	if (!g->runs) {
		g->id = c->id;
		g->thread = c->thread;
		g->run = c->return_run;
		g->times = no_times;
		run_add = 0;
	}
	i = g->runs++;
	g->run_add[i] = (uint32_t)run_add;
	g->shape[i] = c->shape;
	g->path[i] = c->path;
	g->code[i] = c->path_code;
	g->before[i] = g->calls;
	if (c->callers == 1 && (!c->caller[0] || after < NEAR))
		g->caller[i] = c->caller[0] ? (uint32_t)after : 0;
	else if (put_far(g, c, &g->caller[i], e) < 0)
		return -1;
	for (uint32_t k = 0; k < c->n; k++)
		g->cyc[g->calls + k] = c->cyc ? c->cyc[k] : 0;
	g->calls += c->n;
	if (c->elapsed)
		add_times(&g->times, c->return_tsc - (c->elapsed - 1), c->return_tsc);
	return 0;
}

uint64_t call_groups_bytes(const struct call_groups *g)
{
	return insert_bytes(g->insert) + insert_bytes(g->insert_whole);
}

void call_groups_keep(struct call_groups *g, struct kept_rows *rows)
{
	insert_keep(g->insert, rows);
	insert_keep(g->insert_whole, rows);
}
