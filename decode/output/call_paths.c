/* call_paths.c - see call_paths.h. */
#include "decode/output/call_paths.h"

#include <stdlib.h>
#include <string.h>

#include "decode/code/huge_pages.h"
#include "schema/array.h"

struct node {
	uint64_t function; /* its address, or A_SYMBOL and its symbol */
	uint32_t parent, number;
	uint32_t place; /* two mappings can have had one address */
};
#define A_SYMBOL ((uint64_t)1 << 62) /* no address has only this one of its upper bits */

/*
 * The tables are not schema/hash.h's: there may be a million call paths, and calls ask for them at every
 * turn. With the key in the slot, on huge pages, that is one cache miss.
 */
struct table {
	struct node *nodes;
	uint32_t mask, count;
};

/*
 * Two generations: what is asked for is in the recent one, or comes into it. When that has half of what may
 * be remembered it becomes the older one, and the older one's call paths are forgotten: they were not asked
 * for since.
 */
struct pt_call_paths {
	struct table recent, older;
	uint32_t remembered, count; /* at most; that have got numbers */
	bool full;
};

#define SLOTS	    (1u << 8)  /* at first */
#define NUMBERS_MAX (1u << 29) /* definitions: a database holds twice as many call paths */

static bool table_init(struct table *t)
{
	t->mask = SLOTS - 1;
	t->nodes = pt_table_create(SLOTS, sizeof *t->nodes);
	return t->nodes != NULL;
}

struct pt_call_paths *pt_call_paths_create(uint32_t remembered)
{
	struct pt_call_paths *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->remembered = remembered;
	if (table_init(&p->recent) && table_init(&p->older))
		return p;
	pt_call_paths_destroy(p);
	return NULL;
}

void pt_call_paths_destroy(struct pt_call_paths *p)
{
	if (!p)
		return;
	free(p->recent.nodes);
	free(p->older.nodes);
	free(p);
}

static uint32_t hash(uint32_t parent, uint64_t function)
{
	uint64_t x = function * 0x9e3779b97f4a7c15u + parent * 0xc2b2ae3d27d4eb4fu;

	return (uint32_t)(x >> 32);
}

static uint32_t find(const struct table *t, const struct node *n)
{
	for (uint32_t i = hash(n->parent, n->function) & t->mask; t->nodes[i].number; i = (i + 1) & t->mask)
		if (t->nodes[i].parent == n->parent && t->nodes[i].function == n->function &&
		    t->nodes[i].place == n->place)
			return t->nodes[i].number;
	return 0;
}

static void insert(struct node *nodes, uint32_t mask, const struct node *n)
{
	uint32_t i = hash(n->parent, n->function) & mask;

	while (nodes[i].number)
		i = (i + 1) & mask;
	nodes[i] = *n;
}

static bool grow(struct table *t)
{
	uint32_t mask = t->mask * 2 + 1;
	struct node *nodes = pt_table_create((size_t)mask + 1, sizeof *nodes);

	if (!nodes)
		return false;
	for (uint32_t i = 0; i <= t->mask; i++)
		if (t->nodes[i].number)
			insert(nodes, mask, &t->nodes[i]);
	free(t->nodes);
	t->nodes = nodes;
	t->mask = mask;
	return true;
}

static void forget_older(struct pt_call_paths *p)
{
	struct table t = p->older;

	memset(t.nodes, 0, ((size_t)t.mask + 1) * sizeof *t.nodes);
	t.count = 0;
	p->older = p->recent;
	p->recent = t;
}

/* Into the recent ones. The number, or 0: no memory. */
static uint32_t remember(struct pt_call_paths *p, const struct node *n)
{
	if (p->recent.count > 0 && p->recent.count >= p->remembered / 2)
		forget_older(p);
	if (p->recent.count > p->recent.mask / 2 && !grow(&p->recent))
		return 0;
	p->recent.count++;
	insert(p->recent.nodes, p->recent.mask, n);
	return n->number;
}

uint32_t pt_call_path(struct pt_call_paths *p, uint32_t parent, const struct pt_callee *callee,
		      struct pt_new_call_paths *added)
{
	struct node n = {.parent = parent,
			 .place = callee->place,
			 .function = callee->named ? A_SYMBOL | callee->place : callee->ip};
	uint32_t number;

	if (parent == PT_NO_CALL_PATH)
		return PT_NO_CALL_PATH;
	number = find(&p->recent, &n);
	if (number)
		return number;
	n.number = find(&p->older, &n);
	if (n.number)
		return remember(p, &n);
	p->full |= p->count >= NUMBERS_MAX;
	if (p->full)
		return PT_NO_CALL_PATH;
	if (pt_array_grow(&added->items, added->count, &added->room, NULL) < 0)
		return 0;
	added->items[added->count++] =
	    (struct ptr_call_path){.parent = parent, .symbol = callee->place, .ip = callee->ip};
	n.number = ++p->count;
	return remember(p, &n);
}

bool pt_call_paths_full(const struct pt_call_paths *p)
{
	return p->full;
}
