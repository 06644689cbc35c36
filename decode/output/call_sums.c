/* call_sums.c - see call_sums.h. */
#include "decode/output/call_sums.h"

#include <stdlib.h>

#include "schema/apart.h"
#include "schema/array.h"
#include "schema/hash.h"

/* A thread's sums of call paths with ids side by side: such calls come one after the other. Of each what all
 * recordings have is in one half of a cache line, and where there is no CYC nothing else is touched. */
#define BLOCK_BITS 3
#define BLOCK_SUMS (1u << BLOCK_BITS)

struct counts {
	uint64_t calls; /* 0: no call had this call path */
	uint64_t branch_count, insn_count;
	uint64_t elapsed_tsc; /* PTR_UNKNOWN: none was known */
};

struct block {
	struct counts counts[BLOCK_SUMS];
	uint64_t cyc_counts[BLOCK_SUMS]; /* PTR_UNKNOWN: none was known */
};

/* Blocks are never moved. */
#define PIECE_BITS   8
#define PIECE_BLOCKS (1u << PIECE_BITS)

struct pt_call_sums {
	struct pt_hash by_key; /* numbers of blocks, from 1 */
	uint64_t *keys;	       /* of block n at n - 1 */
	size_t count, key_room;
	struct block **pieces; /* of PIECE_BLOCKS blocks */
	size_t piece_count, piece_room;
};

struct pt_call_sums *pt_call_sums_create(void)
{
	struct pt_call_sums *s = pt_alloc_apart(sizeof *s);

	if (s && pt_hash_init(&s->by_key, 8, NULL) == 0)
		return s;
	free(s);
	return NULL;
}

void pt_call_sums_destroy(struct pt_call_sums *s)
{
	if (!s)
		return;
	pt_hash_deinit(&s->by_key);
	for (size_t i = 0; i < s->piece_count; i++)
		free(s->pieces[i]);
	free(s->pieces);
	free(s->keys);
	free(s);
}

/* ---- Adding ----------------------------------------------------------------------------------------- */

/* Of the block with the sums of a thread's call path. */
static uint64_t key(uint32_t thread, uint32_t id)
{
	return (uint64_t)thread << 32 | id >> BLOCK_BITS;
}

static uint64_t hash_of_key(const void *keys, uint32_t n)
{
	return pt_hash_mix(((const uint64_t *)keys)[n - 1]);
}

static struct block *block(const struct pt_call_sums *s, uint32_t n)
{
	return &s->pieces[(n - 1) >> PIECE_BITS][(n - 1) & (PIECE_BLOCKS - 1)];
}

/* NULL: no memory. */
static struct block *add_block(struct pt_call_sums *s, uint64_t key)
{
	uint32_t n = (uint32_t)s->count + 1;

	if (s->count >> PIECE_BITS == s->piece_count) {
		if (pt_array_grow(&s->pieces, s->piece_count, &s->piece_room, NULL) < 0 ||
		    !(s->pieces[s->piece_count] = calloc(PIECE_BLOCKS, sizeof **s->pieces)))
			return NULL;
		s->piece_count++;
	}
	if (pt_array_grow(&s->keys, s->count, &s->key_room, NULL) < 0)
		return NULL;
	s->keys[s->count] = key;
	if (pt_hash_insert(&s->by_key, pt_hash_mix(key), n, hash_of_key, s->keys, NULL) < 0)
		return NULL;
	s->count++;
	return block(s, n);
}

/* NULL: no memory. */
static struct block *block_of(struct pt_call_sums *s, uint64_t key)
{
	uint32_t n;

	for (uint32_t i = pt_hash_first(&s->by_key, pt_hash_mix(key)); (n = s->by_key.slots[i]);
	     i = pt_hash_next(&s->by_key, i))
		if (s->keys[n - 1] == key)
			return block(s, n);
	return add_block(s, key);
}

bool pt_call_sums_add(struct pt_call_sums *s, const struct ptr_call *r, uint32_t id)
{
	struct block *b = block_of(s, key(r->thread, id));
	unsigned i = id & (BLOCK_SUMS - 1);

	if (!b)
		return false;
	if (b->counts[i].calls++ == 0)
		b->cyc_counts[i] = b->counts[i].elapsed_tsc = PTR_UNKNOWN;
	b->counts[i].branch_count += r->branch_count;
	b->counts[i].insn_count += r->insn_count;
	if (r->cyc_count != PTR_UNKNOWN)
		pt_add_known(&b->cyc_counts[i], r->cyc_count);
	if (r->call_tsc != PTR_NO_TSC && r->return_tsc != PTR_NO_TSC)
		pt_add_known(&b->counts[i].elapsed_tsc, r->return_tsc - r->call_tsc);
	return true;
}

/* ---- Writing ---------------------------------------------------------------------------------------- */

/* A sum: where it is, by its call path's number and its thread. */
struct place {
	uint64_t order;
	const struct block *block;
	unsigned i;
};

/* All sums, whoever has them. */
struct list {
	struct place *places;
	size_t count, room;
	const struct pt_call_paths *paths;
	uint64_t numbers; /* the largest of a call path, + 1 */
};

static int list_add(struct list *l, uint64_t key, const struct block *b)
{
	for (unsigned i = 0; i < BLOCK_SUMS; i++) {
		uint64_t number;

		if (!b->counts[i].calls)
			continue;
		number = pt_call_path_number(l->paths, (uint32_t)(key << BLOCK_BITS) + i);
		if (number >= l->numbers)
			l->numbers = number + 1;
		if (pt_array_grow(&l->places, l->count, &l->room, NULL) < 0)
			return -1;
		l->places[l->count++] = (struct place){number << 32 | key >> 32, b, i};
	}
	return 0;
}

static int list_add_all(struct list *l, const struct pt_call_sums *s)
{
	for (uint32_t n = 1; n <= s->count; n++)
		if (list_add(l, s->keys[n - 1], block(s, n)) < 0)
			return -1;
	return 0;
}

static int compare(const void *a, const void *b)
{
	return pt_compare_u64(&((const struct place *)a)->order, &((const struct place *)b)->order);
}

static uint32_t number_of(const struct place *p)
{
	return (uint32_t)(p->order >> 32);
}

/* By call paths' numbers, which are dense: a counting sort. begins: zeroed, for each number and two more. */
static void sort_by_path(const struct list *l, size_t *begins, struct place *sorted)
{
	for (size_t i = 0; i < l->count; i++)
		begins[number_of(&l->places[i]) + 2]++;
	for (size_t n = 2; n < l->numbers + 2; n++)
		begins[n] += begins[n - 1];
	for (size_t i = 0; i < l->count; i++)
		sorted[begins[number_of(&l->places[i]) + 1]++] = l->places[i];
}

/* By order. False: no memory. */
static bool sort(struct list *l)
{
	size_t *begins = calloc(l->numbers + 2, sizeof *begins);
	struct place *sorted = calloc(l->count + 1, sizeof *sorted);
	bool ret = begins && sorted;

	if (ret) {
		sort_by_path(l, begins, sorted);
		for (size_t n = 0; n < l->numbers; n++)
			if (begins[n + 1] - begins[n] > 1)
				qsort(sorted + begins[n], begins[n + 1] - begins[n], sizeof *sorted, compare);
		free(l->places);
		l->places = sorted;
	} else {
		free(sorted);
	}
	free(begins);
	return ret;
}

static void merge(struct ptr_call_sum *to, const struct place *from)
{
	const struct counts *c = &from->block->counts[from->i];
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): sort_by_path() has filled it */
	uint64_t cyc_count = from->block->cyc_counts[from->i];

	to->calls += c->calls;
	to->branch_count += c->branch_count;
	to->insn_count += c->insn_count;
	if (cyc_count != PTR_UNKNOWN)
		pt_add_known(&to->cyc_count, cyc_count);
	if (c->elapsed_tsc != PTR_UNKNOWN)
		pt_add_known(&to->elapsed_tsc, c->elapsed_tsc);
}

static void put_list(struct list *l, struct pt_emit *m)
{
	for (size_t i = 0; i < l->count && !m->failed;) {
		uint64_t order = l->places[i].order;
		struct ptr_call_sum sum = {.thread = (uint32_t)order,
					   .call_path = (uint32_t)(order >> 32),
					   .cyc_count = PTR_UNKNOWN,
					   .elapsed_tsc = PTR_UNKNOWN};

		/* Of one thread several shards may have sums: it may have been another's for a while. */
		for (; i < l->count && l->places[i].order == order; i++)
			merge(&sum, &l->places[i]);
		pt_emit_put(m, ptr_put_call_sum(m->writer, &sum, &m->error));
	}
}

void pt_call_sums_put(struct pt_call_sums *const *all, unsigned count, const struct pt_call_paths *paths,
		      struct pt_emit *m)
{
	struct list l = {.paths = paths};
	bool complete = true;

	for (unsigned i = 0; i < count && complete; i++)
		complete = !all[i] || list_add_all(&l, all[i]) == 0;
	if (complete && sort(&l))
		put_list(&l, m);
	else
		pt_emit_no_memory(m, "sums");
	free(l.places);
}
