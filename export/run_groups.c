/* run_groups.c - see run_groups.h. */
#include "export/run_groups.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "export/dictionary.h"
#include "export/digits.h"
#include "export/inserter.h"
#include "export/run_chunks.h"
#include "export/run_rows.h"
#include "export/spool.h"
#include "schema/leb128.h"
#include "schema/records.h"

enum {
	COLUMNS = 7,	 /* of struct run_group */
	NUMBER_BYTES = 5 /* of 32 bits (schema/leb128.h) */
};

/* What a group becomes in the spool: its head, bytes of numbers, which columns they are of, and the
 * numbers. */
struct stored {
	struct run_group_head head;
	uint32_t bytes, columns; /* bit n: column n is there; others are zeros */
	uint8_t numbers[COLUMNS * DIGITS_ROW * NUMBER_BYTES];
};

#define STORED_HEAD offsetof(struct stored, numbers)

struct run_groups {
	struct run_group group;
	uint64_t tscs[DIGITS_ROW], ests[DIGITS_ROW], ends[DIGITS_ROW];
	uint64_t next; /* of the last run: tsc_next */
	uint64_t count;
	struct stored stored;
	struct spool spool;
	/* The tables are filled. */
	struct inserter *inserter;
	struct dictionary *dictionary;
	struct run_rows *rows;
	struct run_chunks *chunks;
	uint64_t inserted; /* groups */
};

struct run_groups *run_groups_create(int scratch, struct pt_error *e)
{
	struct run_groups *g = calloc(1, sizeof *g);

	if (g)
		g->spool.scratch = scratch;
	else
		pt_fail_no_memory(e, "runs");
	return g;
}

/* ---- The scratch file ---------------------------------------------------------------------------------- */

static struct digits *column(struct run_group *g, int i)
{
	struct digits *const columns[COLUMNS] = {&g->path, &g->time, &g->repeats, &g->cyc,
						 &g->insn, &g->back, &g->est};

	return columns[i];
}

static int write_group(struct run_groups *g, struct pt_error *e)
{
	struct stored *s = &g->stored;
	uint8_t *p = s->numbers;

	s->head = g->group.head;
	s->columns = 0;
	for (int c = 0; c < COLUMNS; c++) {
		const struct digits *d = column(&g->group, c);

		if (!d->any)
			continue;
		s->columns |= 1u << c;
		for (uint32_t i = 0; i < s->head.n; i++)
			p = pt_leb128_put(p, d->number[i]);
	}
	s->bytes = (uint32_t)(p - s->numbers);
	g->count++;
	return spool_write(&g->spool, s, STORED_HEAD + s->bytes, e);
}

static int read_group(struct run_groups *g, struct pt_error *e)
{
	struct stored *s = &g->stored;
	const uint8_t *p = s->numbers;

	if (spool_read(&g->spool, s, STORED_HEAD, e) < 0 ||
	    spool_read(&g->spool, s->numbers, s->bytes, e) < 0)
		return -1;
	g->group.head = s->head;
	for (int c = 0; c < COLUMNS; c++) {
		struct digits *d = column(&g->group, c);

		for (uint32_t i = 0; i < s->head.n; i++)
			digits_set(d, i, s->columns >> c & 1 ? (uint32_t)pt_leb128_get(&p) : 0);
	}
	return 0;
}

/* ---- Gathering ----------------------------------------------------------------------------------------- */

/* Whether estimates need a text: not when each is its run's tsc, or they lie evenly in time. */
static bool uneven(const struct run_groups *g)
{
	const struct run_group_head *h = &g->group.head;
	uint64_t span = g->next - g->ests[0], slack = span / 64 > 32 ? span / 64 : 32;
	bool flat = !h->exact && g->tscs[h->n - 1] == h->tsc;

	for (uint32_t i = 0; i < h->n; i++) {
		uint64_t even = flat ? g->ests[0] + span * i / h->n : g->tscs[i];
		uint64_t off = g->ests[i] > even ? g->ests[i] - even : even - g->ests[i];

		if (!(h->exact >> i & 1) && off > (flat ? slack : 64))
			return true;
	}
	return false;
}

/* Bit n: the upper bound of run n is not the next other tsc of the group, but the group's own. */
static uint64_t open_runs(const struct run_groups *g)
{
	uint64_t open = 0, next = PTR_NO_TSC;
	uint32_t n = g->group.head.n;

	for (uint32_t i = n; i--;) {
		if (i + 1 < n && g->tscs[i + 1] != g->tscs[i])
			next = g->tscs[i + 1];
		if (next != PTR_NO_TSC && g->ends[i] != next)
			open |= (uint64_t)1 << i;
	}
	return open;
}

static void fill_times(struct run_groups *g)
{
	struct run_group_head *h = &g->group.head;
	bool known = h->tsc != PTR_NO_TSC;
	uint64_t span = g->next - g->ests[0], end = g->ends[h->n - 1];
	bool text = known && span && uneven(g);

	h->est = g->ests[0] - h->tsc;
	h->next = g->next - h->tsc;
	h->end = known && end != PTR_NO_TSC ? end - h->tsc : PTR_NO_TSC;
	h->open = known ? open_runs(g) : 0;
	for (uint32_t i = 0; i < h->n; i++) {
		uint32_t at = 0;

		/* Estimates lie between the first one and the group's end. */
		uint64_t est = g->ests[i] < g->ests[0] ? 0 : g->ests[i] - g->ests[0];

		if (text)
			at = 1 + (uint32_t)((double)(est < span ? est : span) / (double)span * RUN_GROUP_EST);
		digits_set(&g->group.est, i, at);
	}
}

static int flush(struct run_groups *g, struct pt_error *e)
{
	int ret;

	if (!g->group.head.n)
		return 0;
	fill_times(g);
	ret = write_group(g, e);
	g->group.head = (struct run_group_head){0};
	return ret;
}

/* Whether the run's time does not fit into the group. */
static bool other_time(const struct run_group_head *h, const struct group_run *r)
{
	return (r->tsc == PTR_NO_TSC) != (h->tsc == PTR_NO_TSC) ||
	       (r->tsc != PTR_NO_TSC && r->tsc - h->tsc >= DIGITS_ONE);
}

int run_groups_add(struct run_groups *g, const struct group_run *r, const struct ptr_timed_run *times,
		   struct pt_error *e)
{
	struct run_group *to = &g->group;
	struct run_group_head *h = &to->head;
	bool known = r->cyc_count != PTR_UNKNOWN;
	bool whole = known && (r->cyc_count >= DIGITS_MAX - 1 || r->insn_count >= DIGITS_MAX - 1);
	uint32_t i;

	if (h->n &&
	    (r->slice != h->slice || h->n == DIGITS_ROW || other_time(h, r) || whole || h->whole ||
	     r->id != h->id + (int64_t)h->n) &&
	    flush(g, e) < 0)
		return -1;
	if (!h->n) {
		h->id = r->id;
		h->slice = r->slice;
		h->tsc = r->tsc;
	}
	i = h->n++;
	digits_set(&to->time, i, (uint32_t)(r->tsc - h->tsc));
	digits_set(&to->path, i, r->path);
	h->exact |= (uint64_t)(times->timing == PTR_TIME_EXACT) << i;
	g->tscs[i] = r->tsc;
	g->ests[i] = times->tsc_est;
	g->next = times->tsc_next;
	g->ends[i] = times->tsc_end;
	digits_set(&to->repeats, i, r->repeats - 1);
	digits_set(&to->cyc, i, known && !whole ? (uint32_t)r->cyc_count + 1 : 0);
	digits_set(&to->insn, i, known && !whole ? (uint32_t)r->insn_count : 0);
	/* Of a longer stretch the last DIGITS_ONE - 1 runs are kept. */
	digits_set(&to->back, i, !known ? 0 : r->back < DIGITS_ONE ? (uint32_t)r->back : DIGITS_ONE - 1);
	if (whole) {
		h->whole = true;
		h->cyc_whole = r->cyc_count;
		h->insn_whole = r->insn_count;
	}
	return 0;
}

/* ---- The table ----------------------------------------------------------------------------------------- */

/* The numbers of paths become ids. */
static int place_paths(struct run_group *g, struct dictionary *d, uint32_t usual[DIGITS_ROW],
		       struct pt_error *e)
{
	for (uint32_t i = 0; i < g->head.n; i++) {
		struct dictionary_place place;

		if (dictionary_run_at(d, g->path.number[i], g->head.id + i, &place, e) < 0)
			return -1;
		digits_set(&g->path, i, place.id);
		usual[i] = place.stretch_insns;
	}
	return 0;
}

static int insert_group(struct run_groups *g, struct pt_error *e)
{
	uint32_t usual[DIGITS_ROW];

	g->inserted++;
	return read_group(g, e) < 0 || place_paths(&g->group, g->dictionary, usual, e) < 0 ||
		       run_rows_insert(g->rows, &g->group, usual, e) < 0 ||
		       run_chunks_add(g->chunks, &g->group.head, e) < 0
		   ? -1
		   : 0;
}

static int make(void *arg, struct pt_error *e)
{
	struct run_groups *g = arg;
	uint64_t until = run_rows_bytes(g->rows) + ROW_TURN_BYTES;

	while (g->inserted < g->count && run_rows_bytes(g->rows) < until)
		if (insert_group(g, e) < 0)
			return -1;
	return g->inserted < g->count ? 1 : run_chunks_finish(g->chunks, e);
}

struct row_maker run_groups_maker(struct run_groups *g)
{
	return (struct row_maker){.make = make, .arg = g};
}

static void end(struct run_groups *g)
{
	run_chunks_destroy(g->chunks);
	run_rows_destroy(g->rows);
	g->chunks = NULL;
	g->rows = NULL;
}

int run_groups_begin(struct run_groups *g, struct inserter *inserter, struct dictionary *d,
		     struct pt_error *e)
{
	g->inserter = inserter;
	g->dictionary = d;
	return flush(g, e) < 0 || spool_rewind(&g->spool, e) < 0 ||
		       !(g->rows = run_rows_create(inserter, e)) ||
		       !(g->chunks = run_chunks_create(inserter, e))
		   ? -1
		   : 0;
}

int run_groups_end(struct run_groups *g, struct pt_error *e)
{
	int ret = inserter_settle(g->inserter, e);

	end(g);
	return ret;
}

void run_groups_destroy(struct run_groups *g)
{
	if (g)
		end(g);
	free(g);
}
