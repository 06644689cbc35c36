/* callers.c - see callers.h. */
#include "export/callers.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "export/scratch.h"
#include "schema/hash.h"

enum {
	PAGE = 512, /* places */
	PAGES = 512 /* in memory; a power of two */
};

/* A cache with one slot for each page number modulo PAGES. */
struct page {
	uint64_t number; /* of the page, + 1; 0: the slot is free */
	bool changed;
	uint64_t places[PAGE];
};

/* The calls of a stack and depth that wait for their caller: a slot of a hash table. It is looked up
 * twice per call, so the entries lie in the slots themselves, which schema/hash.h's do not. */
struct waiting {
	uint32_t stack, depth; /* depth 0: a free slot */
	uint64_t place;	       /* 0: none waits */
};

struct callers {
	int scratch;
	struct page *pages;
	uint64_t written; /* pages that the file has */
	uint64_t places;
	struct waiting *slots;
	uint32_t mask, count;
};

struct callers *callers_create(int scratch, struct pt_error *e)
{
	struct callers *c = calloc(1, sizeof *c);

	if (c) {
		c->scratch = scratch;
		c->mask = 1023;
		c->pages = calloc(PAGES, sizeof *c->pages);
		c->slots = calloc(c->mask + 1, sizeof *c->slots);
	}
	if (c && c->pages && c->slots)
		return c;
	callers_destroy(c);
	pt_fail_no_memory(e, "calls");
	return NULL;
}

void callers_destroy(struct callers *c)
{
	if (!c)
		return;
	free(c->slots);
	free(c->pages);
	free(c);
}

/* ---- Places -------------------------------------------------------------------------------------------- */

static int write_page(struct callers *c, struct page *p, struct pt_error *e)
{
	if (scratch_write(c->scratch, p->places, sizeof p->places, (p->number - 1) * sizeof p->places, e) < 0)
		return -1;
	if (c->written < p->number)
		c->written = p->number;
	p->changed = false;
	return 0;
}

/* What was never written, a hole or beyond the end, is zeros. */
static int read_page(struct callers *c, struct page *p, struct pt_error *e)
{
	size_t bytes;

	memset(p->places, 0, sizeof p->places);
	if (p->number > c->written)
		return 0;
	return scratch_read(c->scratch, p->places, sizeof p->places, (p->number - 1) * sizeof p->places,
			    &bytes, e);
}

static struct page *page_of(struct callers *c, uint64_t place, struct pt_error *e)
{
	uint64_t number = place / PAGE + 1;
	struct page *p = &c->pages[number & (PAGES - 1)];

	if (p->number == number)
		return p;
	if (p->changed && write_page(c, p, e) < 0)
		return NULL;
	p->number = number;
	return read_page(c, p, e) < 0 ? NULL : p;
}

/* ---- Waiting calls ------------------------------------------------------------------------------------- */

/* The slot that has it, or is free for it. */
static struct waiting *slot_of(const struct callers *c, uint32_t stack, uint32_t depth)
{
	uint32_t i = (uint32_t)(pt_hash_mix((uint64_t)stack << 32 | depth)) & c->mask;

	while (c->slots[i].depth && (c->slots[i].stack != stack || c->slots[i].depth != depth))
		i = (i + 1) & c->mask;
	return &c->slots[i];
}

static int grow(struct callers *c, struct pt_error *e)
{
	struct waiting *old = c->slots;
	uint32_t n = c->mask + 1;

	c->slots = calloc((size_t)n * 4, sizeof *c->slots);
	if (!c->slots) {
		c->slots = old;
		return pt_fail_no_memory(e, "calls");
	}
	c->mask = n * 4 - 1;
	for (uint32_t i = 0; i < n; i++)
		if (old[i].depth)
			*slot_of(c, old[i].stack, old[i].depth) = old[i];
	free(old);
	return 0;
}

int callers_returned(struct callers *c, uint32_t stack, uint32_t depth, uint64_t number, struct pt_error *e)
{
	struct waiting *w;
	struct page *p;

	if (depth == UINT32_MAX)
		return 0;
	w = slot_of(c, stack, depth + 1);
	if (!w->place)
		return 0;
	p = page_of(c, w->place, e);
	if (!p)
		return -1;
	p->places[w->place % PAGE] = number;
	p->changed = true;
	w->place = 0;
	return 0;
}

int callers_wait(struct callers *c, uint32_t stack, uint32_t depth, uint64_t *ret_place, struct pt_error *e)
{
	struct waiting *w;

	*ret_place = 0;
	if (!depth)
		return 0;
	if (c->count > c->mask / 2 && grow(c, e) < 0)
		return -1;
	w = slot_of(c, stack, depth);
	if (!w->depth) {
		*w = (struct waiting){.stack = stack, .depth = depth};
		c->count++;
	}
	if (!w->place)
		w->place = ++c->places;
	*ret_place = w->place;
	return 0;
}

int callers_get(struct callers *c, uint64_t place, uint64_t *ret_number, struct pt_error *e)
{
	struct page *p = place ? page_of(c, place, e) : NULL;

	*ret_number = p ? p->places[place % PAGE] : 0;
	return place && !p ? -1 : 0;
}
