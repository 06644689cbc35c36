/* run_chunks.c - see run_chunks.h. */
#include "export/run_chunks.h"

#include <stdlib.h>

#include "export/inserter.h"
#include "schema/records.h"

enum { CHUNK_RUNS = 4096 };

struct run_chunks {
	struct insert *insert;
	int64_t id, runs; /* of the chunk that is not inserted yet; 0 runs: there is none */
	bool known;	  /* when its groups were: of all of them, or of none */
	uint64_t tsc, tsc_end;
};

struct run_chunks *run_chunks_create(struct inserter *inserter, struct pt_error *e)
{
	struct run_chunks *c = calloc(1, sizeof *c);

	if (!c) {
		pt_fail_no_memory(e, "runs");
		return NULL;
	}
	c->insert = insert_create(inserter, "run_chunk", 4, e);
	if (c->insert)
		return c;
	free(c);
	return NULL;
}

void run_chunks_destroy(struct run_chunks *c)
{
	if (c)
		insert_destroy(c->insert);
	free(c);
}

int run_chunks_finish(struct run_chunks *c, struct pt_error *e)
{
	if (!c->runs)
		return 0;
	insert_int(c->insert, 1, c->id);
	insert_int(c->insert, 2, c->id + c->runs - 1);
	insert_known(c->insert, 3, c->known, (int64_t)c->tsc);
	insert_known(c->insert, 4, c->known, (int64_t)c->tsc_end);
	c->runs = 0;
	return insert_run(c->insert, e);
}

/* As the macro RUN_GROUP_END (schema/macros.sql). */
static uint64_t end_of(const struct run_group_head *g)
{
	uint64_t estimate = g->next < DIGITS_ONE ? DIGITS_ONE - 1 : g->next;

	return g->tsc + (g->end != PTR_NO_TSC ? g->end : estimate);
}

int run_chunks_add(struct run_chunks *c, const struct run_group_head *g, struct pt_error *e)
{
	bool known = g->tsc != PTR_NO_TSC;
	uint64_t end = known ? end_of(g) : 0;

	if ((c->runs >= CHUNK_RUNS || c->known != known || g->id != c->id + c->runs) &&
	    run_chunks_finish(c, e) < 0)
		return -1;
	if (!c->runs) {
		c->id = g->id;
		c->known = known;
		c->tsc = g->tsc;
		c->tsc_end = end;
	}
	c->runs += g->n;
	c->tsc = g->tsc < c->tsc ? g->tsc : c->tsc;
	c->tsc_end = end > c->tsc_end ? end : c->tsc_end;
	return 0;
}
