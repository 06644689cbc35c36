/* run_rows.c - see run_rows.h. */
#include "export/run_rows.h"

#include <stdlib.h>
#include <string.h>

#include "export/inserter.h"
#include "schema/records.h"

struct run_rows {
	struct insert *insert;
	/* Columns that are made of others: while the statement runs */
	struct digits step, times, insn_at, insn;
};

struct run_rows *run_rows_create(struct inserter *inserter, struct pt_error *e)
{
	struct run_rows *r = calloc(1, sizeof *r);

	if (!r) {
		pt_fail_no_memory(e, "runs");
		return NULL;
	}
	r->insert = insert_create(inserter, "run_group", 23, e);
	if (r->insert)
		return r;
	free(r);
	return NULL;
}

void run_rows_destroy(struct run_rows *r)
{
	if (r)
		insert_destroy(r->insert);
	free(r);
}

static uint32_t bytes_of(const struct digits *d, uint32_t n)
{
	uint32_t bytes = 0;

	if (!d->any)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		bytes += digit_bytes(d->number[i]);
	return bytes;
}

/* Times either as a number for each run, or as those that differ and which of them a run has: what is
 * shorter. */
static void bind_times(struct run_rows *r, struct run_group *g)
{
	uint32_t n = g->head.n, times = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!i || g->time.number[i] != g->time.number[i - 1])
			digits_set(&r->times, times++, g->time.number[i]);
		digits_set(&r->step, i, times - 1);
	}
	if (bytes_of(&g->time, n) <= bytes_of(&r->step, n) + bytes_of(&r->times, times)) {
		digits_bind(&g->time, n, r->insert, 8, 0);
	} else {
		digits_bind(&r->step, n, r->insert, 7, 0);
		digits_bind(&r->times, times, r->insert, 8, 0);
	}
}

/* Which runs have other instructions than is usual for their path, and how many. */
static void bind_insns(struct run_rows *r, const struct run_group *g, const uint32_t *usual)
{
	uint32_t others = 0;

	for (uint32_t i = 0; i < g->head.n; i++) {
		if (!g->cyc.number[i] || g->insn.number[i] == usual[i])
			continue;
		digits_set(&r->insn_at, others, i);
		digits_set(&r->insn, others++, g->insn.number[i]);
	}
	if (others)
		digits_bind_always(r->insn_at.number, others, 0, r->insert, 12, r->insn_at.text[0]);
	digits_bind(&r->insn, others, r->insert, 13, 14);
}

/* A stretch begins after the last run with cycles: back says only where that is not so, in this group. */
static void bind_back(struct run_rows *r, struct run_group *g)
{
	uint32_t unknown = 0, mask = (1u << DIGITS_BITS) - 1;
	bool usual = true;

	for (uint32_t i = 0; usual && i < g->head.n; i++) {
		bool known = g->cyc.number[i] & mask;

		usual = g->back.number[i] == (known ? unknown : 0);
		unknown = known ? 0 : unknown + 1;
	}
	if (!usual)
		digits_bind_always(g->back.number, g->head.n, 0, r->insert, 15, g->back.text[0]);
}

int run_rows_insert(struct run_rows *r, struct run_group *g, const uint32_t usual[DIGITS_ROW],
		    struct pt_error *e)
{
	const struct run_group_head *h = &g->head;
	struct insert *s = r->insert;
	bool known = h->tsc != PTR_NO_TSC;

	insert_int(s, 1, h->id);
	insert_int(s, 2, h->n);
	insert_int(s, 3, h->slice);
	insert_known(s, 4, known, (int64_t)h->tsc);
	digits_bind(&g->path, h->n, s, 5, 6);
	bind_times(r, g);
	digits_bind(&g->repeats, h->n, s, 9, 0);
	digits_bind(&g->cyc, h->n, s, 10, 11);
	bind_insns(r, g, usual);
	bind_back(r, g);
	insert_known(s, 16, h->whole, (int64_t)h->cyc_whole);
	insert_known(s, 17, h->whole, (int64_t)h->insn_whole);
	insert_known(s, 18, known && h->est, (int64_t)h->est);
	insert_known(s, 19, known, (int64_t)h->next);
	insert_known(s, 20, known && h->end != PTR_NO_TSC, (int64_t)h->end);
	digits_bind(&g->est, h->n, s, 21, 0);
	insert_known(s, 22, h->exact != 0, (int64_t)h->exact);
	insert_known(s, 23, h->open != 0, (int64_t)h->open);
	return insert_run(s, e);
}

uint64_t run_rows_bytes(const struct run_rows *r)
{
	return insert_bytes(r->insert);
}
