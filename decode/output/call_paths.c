/* call_paths.c - see call_paths.h. */
#include "decode/output/call_paths.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "decode/code/huge_pages.h"
#include "schema/array.h"
#include "schema/hash.h"

struct node {
	uint64_t callee; /* the hash of what it is known by */
	uint32_t parent;
	uint32_t number; /* 0: a free slot */
};

#define LINE_NODES   4 /* slots of a cache line; they are taken from the first one on */
#define PARENT_LINES 2 /* that are looked at first */

struct line {
	alignas(64) struct node nodes[LINE_NODES];
};

/*
 * The tables are not schema/hash.h's: there may be a million call paths, and calls ask for them at every
 * turn. With the key in the slot, on huge pages, that is one cache miss; and mostly none: what a call path
 * calls is in two cache lines that its own number leads to, while these have room; and call paths that are
 * new at the same time have numbers, and so lines, side by side. The rest is where its hash leads to.
 *
 * Two callees of a call path are the same when 64 bits of their hashes are: of a million call paths that
 * have a hundred siblings each, two have the same hash once in 10^11 traces.
 */
struct table {
	struct line *lines;
	uint32_t mask;	/* of line numbers */
	uint32_t count; /* of nodes */
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

#define LINES	    (1u << 6)  /* at first */
#define NUMBERS_MAX (1u << 29) /* definitions: a database holds twice as many call paths */

static bool table_init(struct table *t)
{
	t->mask = LINES - 1;
	t->lines = pt_table_create(LINES, sizeof *t->lines);
	return t->lines != NULL;
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
	free(p->recent.lines);
	free(p->older.lines);
	free(p);
}

/* A symbol, whatever its address; or an address, and where: two mappings can have had one. */
static uint64_t hash_callee(const struct pt_callee *callee)
{
	uint64_t ip = callee->named ? 0 : callee->ip;
	uint64_t place = (uint64_t)callee->named << 32 | callee->place;

	return pt_hash_fold(ip ^ 0xa0761d6478bd642fu, place ^ 0xe7037ed1a0b428dbu);
}

/* The lines that a node may be in, in turn. */
static uint32_t line_of(const struct table *t, const struct node *n, uint32_t turn)
{
	if (turn < PARENT_LINES)
		return (n->parent ^ turn) & t->mask;
	return ((uint32_t)((n->callee + n->parent * 0xc2b2ae3d27d4eb4fu) >> 32) + turn) & t->mask;
}

/* The node, or the free slot for it. */
static struct node *find(const struct table *t, const struct node *n)
{
	for (uint32_t turn = 0;; turn++) {
		struct node *at = t->lines[line_of(t, n, turn)].nodes;

		for (int i = 0; i < LINE_NODES; i++)
			if (!at[i].number || (at[i].callee == n->callee && at[i].parent == n->parent))
				return &at[i];
	}
}

static bool grow(struct table *t)
{
	struct table grown = {.mask = t->mask * 2 + 1, .count = t->count};

	grown.lines = pt_table_create((size_t)grown.mask + 1, sizeof *grown.lines);
	if (!grown.lines)
		return false;
	for (uint32_t i = 0; i <= t->mask; i++)
		for (int k = 0; k < LINE_NODES && t->lines[i].nodes[k].number; k++)
			*find(&grown, &t->lines[i].nodes[k]) = t->lines[i].nodes[k];
	free(t->lines);
	*t = grown;
	return true;
}

static void forget_older(struct pt_call_paths *p)
{
	struct table t = p->older;

	memset(t.lines, 0, ((size_t)t.mask + 1) * sizeof *t.lines);
	t.count = 0;
	p->older = p->recent;
	p->recent = t;
}

/* Into the recent ones. The number, or 0: no memory. */
static uint32_t remember(struct pt_call_paths *p, const struct node *n)
{
	if (p->recent.count > 0 && p->recent.count >= p->remembered / 2)
		forget_older(p);
	if (p->recent.count > (p->recent.mask + 1) * (LINE_NODES / 2) && !grow(&p->recent))
		return 0;
	p->recent.count++;
	*find(&p->recent, n) = *n;
	return n->number;
}

uint32_t pt_call_path(struct pt_call_paths *p, uint32_t parent, const struct pt_callee *callee,
		      struct pt_new_call_paths *added)
{
	struct node n = {.parent = parent, .callee = hash_callee(callee)};
	uint32_t number;

	if (parent == PT_NO_CALL_PATH)
		return PT_NO_CALL_PATH;
	number = find(&p->recent, &n)->number;
	if (number)
		return number;
	n.number = find(&p->older, &n)->number;
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
