/* call_paths.c - see call_paths.h. */
#include "decode/output/call_paths.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "decode/code/huge_pages.h"
#include "decode/output/places.h"
#include "schema/array.h"
#include "schema/hash.h"

/* Filled in by who has the mutex, its id last: who finds an id finds the rest, too. */
struct node {
	uint64_t callee; /* the hash of what it is known by */
	uint32_t parent;
	_Atomic uint32_t id; /* 0: a free slot */
};

#define LINE_NODES   4 /* slots of a cache line; they are taken from the first one on */
#define PARENT_LINES 2 /* that are looked at first */

struct line {
	alignas(64) struct node nodes[LINE_NODES];
};

/*
 * The tables are not schema/hash.h's: there may be a million call paths, and calls ask for them at every
 * turn. With the key in the slot, on huge pages, that is one cache miss; and mostly none: what a call path
 * calls is in two cache lines that its own id leads to, while these have room; and call paths that are
 * new at the same time have ids, and so lines, side by side. The rest is where its hash leads to.
 *
 * Two callees of a call path are the same when 64 bits of their hashes are: of a million call paths that
 * have a hundred siblings each, two have the same hash once in 10^11 traces.
 */
struct table {
	struct line *lines;
	uint32_t mask;	       /* of line numbers */
	uint32_t count;	       /* of nodes */
	struct table *smaller; /* what it was before it grew, for threads that still read it */
};

#define IDS_MAX (1u << 29) /* definitions: a database holds twice as many call paths */

/*
 * Two generations: what is asked for is in the recent one, or comes into it. When that has half of what may
 * be remembered it becomes the older one, and the older one's call paths are forgotten: they were not asked
 * for since. Threads look into the recent one without a lock.
 */
struct pt_call_paths {
	struct table *_Atomic recent;
	pthread_mutex_t mutex; /* of what follows, and for adding to the recent ones */
	struct table *older;
	uint32_t remembered, count; /* at most; that have got ids */
	atomic_bool full;
	_Atomic uint32_t *numbers; /* by ids, with room for IDS_MAX; 0: none yet */
	const struct pt_place *places;
};

#define LINES (1u << 6) /* at first */

static struct table *table_create(uint32_t lines)
{
	struct table *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	t->mask = lines - 1;
	t->lines = pt_table_create(lines, sizeof *t->lines);
	if (t->lines)
		return t;
	free(t);
	return NULL;
}

/* With those that were smaller. */
static void table_destroy(struct table *t)
{
	while (t) {
		struct table *smaller = t->smaller;

		pt_table_destroy(t->lines, (size_t)t->mask + 1, sizeof *t->lines);
		free(t);
		t = smaller;
	}
}

struct pt_call_paths *pt_call_paths_create(uint32_t remembered, const struct pt_place *places)
{
	struct pt_call_paths *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	pthread_mutex_init(&p->mutex, NULL);
	p->remembered = remembered;
	p->places = places;
	p->recent = table_create(LINES);
	p->older = table_create(LINES);
	p->numbers = pt_pages_reserve(IDS_MAX, sizeof *p->numbers);
	if (p->recent && p->older && p->numbers)
		return p;
	pt_call_paths_destroy(p);
	return NULL;
}

void pt_call_paths_destroy(struct pt_call_paths *p)
{
	if (!p)
		return;
	table_destroy(p->recent);
	table_destroy(p->older);
	pt_pages_release(p->numbers, IDS_MAX, sizeof *p->numbers);
	pthread_mutex_destroy(&p->mutex);
	free(p);
}

/* ---- Nodes ------------------------------------------------------------------------------------------ */

/* What a call path is known by: its caller, and a function, wherever its file is mapped; or an offset in the
 * file, or an address, and in which mapping: two can have had one. */
struct key {
	uint64_t callee;
	uint32_t parent;
};

static struct key key_of(uint32_t parent, const struct pt_callee *callee, const struct pt_place *place_of)
{
	uint64_t ip = callee->named ? 0 : callee->ip - place_of->start;
	uint64_t place = (uint64_t)callee->named << 32 | place_of->first;

	return (struct key){.callee = pt_hash_fold(ip ^ 0xa0761d6478bd642fu, place ^ 0xe7037ed1a0b428dbu),
			    .parent = parent};
}

/* The lines that a node may be in, in turn. */
static uint32_t line_of(const struct table *t, const struct key *k, uint32_t turn)
{
	if (turn < PARENT_LINES)
		return (k->parent ^ turn) & t->mask;
	return ((uint32_t)((k->callee + k->parent * 0xc2b2ae3d27d4eb4fu) >> 32) + turn) & t->mask;
}

/* The node, or the free slot for it. *ret_id: 0 of that. */
static inline struct node *find(const struct table *t, const struct key *k, uint32_t *ret_id)
{
	for (uint32_t turn = 0;; turn++) {
		struct node *at = t->lines[line_of(t, k, turn)].nodes;

		for (int i = 0; i < LINE_NODES; i++) {
			*ret_id = atomic_load_explicit(&at[i].id, memory_order_acquire);
			if (!*ret_id || (at[i].callee == k->callee && at[i].parent == k->parent))
				return &at[i];
		}
	}
}

/* It is not in the table, which has room for it. */
static void insert(struct table *t, const struct key *k, uint32_t id)
{
	uint32_t none;
	struct node *n = find(t, k, &none);

	n->callee = k->callee;
	n->parent = k->parent;
	atomic_store_explicit(&n->id, id, memory_order_release);
	t->count++;
}

/* A table of twice the size becomes the recent one. False: no memory. */
static bool grow(struct pt_call_paths *p)
{
	struct table *t = p->recent, *grown = table_create(t->mask * 2 + 2);

	if (!grown)
		return false;
	for (uint32_t i = 0; i <= t->mask; i++)
		for (int n = 0; n < LINE_NODES && t->lines[i].nodes[n].id; n++) {
			const struct node *node = &t->lines[i].nodes[n];

			insert(grown, &(struct key){node->callee, node->parent}, node->id);
		}
	grown->smaller = t;
	atomic_store_explicit(&p->recent, grown, memory_order_release);
	return true;
}

/* Into the recent ones. The id, or 0: no memory. */
static uint32_t remember(struct pt_call_paths *p, const struct key *k, uint32_t id)
{
	const struct table *t = p->recent;

	if (t->count > (t->mask + 1) * (LINE_NODES / 2) && !grow(p))
		return 0;
	insert(p->recent, k, id);
	return id;
}

/* ---- Ids -------------------------------------------------------------------------------------------- */

/* PT_NO_CALL_PATH: all are taken. */
static uint32_t new_id(struct pt_call_paths *p)
{
	if (p->count + 1 < IDS_MAX)
		return ++p->count;
	p->full = true;
	return PT_NO_CALL_PATH;
}

/* It was not among the recent ones when the caller has looked. Not inlined: that is rare. 0: no memory. */
__attribute__((noinline)) static uint32_t ask(struct pt_call_paths *p, const struct key *k)
{
	uint32_t id;

	pthread_mutex_lock(&p->mutex);
	find(p->recent, k, &id);
	if (!id) {
		find(p->older, k, &id);
		if (!id)
			id = new_id(p);
		if (id != PT_NO_CALL_PATH)
			id = remember(p, k, id);
	}
	pthread_mutex_unlock(&p->mutex);
	return id;
}

uint32_t pt_call_path(struct pt_call_paths *p, uint32_t parent, const struct pt_callee *callee,
		      struct pt_new_call_paths *added)
{
	const struct pt_place place = pt_place_of(p->places, callee->place);
	const struct key k = key_of(parent, callee, &place);
	uint32_t id;

	if (parent == PT_NO_CALL_PATH)
		return PT_NO_CALL_PATH;
	find(atomic_load_explicit(&p->recent, memory_order_acquire), &k, &id);
	if (!id)
		id = ask(p, &k);
	if (!id || pt_call_path_number(p, id) || id == PT_NO_CALL_PATH)
		return id;
	if (pt_array_grow(&added->items, added->count, &added->room, NULL) < 0)
		return 0;
	added->items[added->count++] = (struct pt_new_call_path){
	    .id = id,
	    .parent = parent,
	    .place = place.first,
	    .ip = callee->ip - place.start + pt_place_of(p->places, place.first).start};
	return id;
}

bool pt_call_paths_full(const struct pt_call_paths *p)
{
	return p->full;
}

uint32_t pt_call_path_number(const struct pt_call_paths *p, uint32_t id)
{
	return id < IDS_MAX ? atomic_load_explicit(&p->numbers[id], memory_order_relaxed) : 0;
}

void pt_call_path_set_number(struct pt_call_paths *p, uint32_t id, uint32_t number)
{
	atomic_store_explicit(&p->numbers[id], number, memory_order_relaxed);
}

bool pt_call_paths_settle(struct pt_call_paths *p)
{
	struct table *t = p->recent;

	table_destroy(t->smaller);
	t->smaller = NULL;
	if (!t->count || t->count < p->remembered / 2)
		return false;
	memset(p->older->lines, 0, ((size_t)p->older->mask + 1) * sizeof *p->older->lines);
	p->older->count = 0;
	p->recent = p->older;
	p->older = t;
	return true;
}
