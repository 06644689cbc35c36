/* call_sums.c - see call_sums.h. */
#include "decode/output/call_sums.h"

#include <stdlib.h>

#include "schema/apart.h"
#include "schema/array.h"
#include "schema/hash.h"

/* A thread's sums of call paths with ids side by side: such calls come one after the other. What all recordings
 * have is in a cache line for two sums; cycles, which are only known with CYC, are elsewhere. */
#define BLOCK_BITS 3
#define BLOCK_SUMS (1u << BLOCK_BITS)

struct counts {
	uint64_t calls; /* 0: no call had this call path */
	uint64_t branch_count, insn_count;
	uint64_t elapsed_tsc; /* PTR_UNKNOWN: none was known */
};

struct block {
	struct counts counts[BLOCK_SUMS];
};

struct block_cycles {
	uint64_t cyc_counts[BLOCK_SUMS]; /* + 1; 0: none was known */
};

/* Blocks are never moved. */
#define PIECE_BITS   8
#define PIECE_BLOCKS (1u << PIECE_BITS)

struct piece {
	struct block *blocks;
	struct block_cycles *cycles; /* NULL: of none */
};

struct pt_call_sums {
	struct pt_hash by_key; /* numbers of blocks, from 1 */
	uint64_t *keys;	       /* of block n at n - 1 */
	size_t count, key_room;
	struct piece *pieces; /* of PIECE_BLOCKS blocks */
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
	for (size_t i = 0; i < s->piece_count; i++) {
		free(s->pieces[i].blocks);
		free(s->pieces[i].cycles);
	}
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
	return &s->pieces[(n - 1) >> PIECE_BITS].blocks[(n - 1) & (PIECE_BLOCKS - 1)];
}

/* 0: no memory. */
static uint32_t add_block(struct pt_call_sums *s, uint64_t key)
{
	uint32_t n = (uint32_t)s->count + 1;

	if (s->count >> PIECE_BITS == s->piece_count) {
		struct piece piece = {0};

		if (pt_array_grow(&s->pieces, s->piece_count, &s->piece_room, NULL) < 0 ||
		    !(piece.blocks = calloc(PIECE_BLOCKS, sizeof *piece.blocks)))
			return 0;
		s->pieces[s->piece_count++] = piece;
	}
	if (pt_array_grow(&s->keys, s->count, &s->key_room, NULL) < 0)
		return 0;
	s->keys[s->count] = key;
	if (pt_hash_insert(&s->by_key, pt_hash_mix(key), n, hash_of_key, s->keys, NULL) < 0)
		return 0;
	s->count++;
	return n;
}

/* The block's number; 0: no memory. */
static uint32_t block_of(struct pt_call_sums *s, uint64_t key)
{
	uint32_t n;

	for (uint32_t i = pt_hash_first(&s->by_key, pt_hash_mix(key)); (n = s->by_key.slots[i]);
	     i = pt_hash_next(&s->by_key, i))
		if (s->keys[n - 1] == key)
			return n;
	return add_block(s, key);
}

static bool add_cycles(struct pt_call_sums *s, uint32_t n, unsigned i, uint64_t cyc_count)
{
	struct piece *piece = &s->pieces[(n - 1) >> PIECE_BITS];
	uint64_t *sum;

	if (!piece->cycles && !(piece->cycles = calloc(PIECE_BLOCKS, sizeof *piece->cycles)))
		return false;
	sum = &piece->cycles[(n - 1) & (PIECE_BLOCKS - 1)].cyc_counts[i];
	*sum += *sum ? cyc_count : cyc_count + 1;
	return true;
}

/* PTR_UNKNOWN: none was known. */
static uint64_t cycles(const struct pt_call_sums *s, uint32_t n, unsigned i)
{
	const struct piece *piece = &s->pieces[(n - 1) >> PIECE_BITS];
	uint64_t sum = piece->cycles ? piece->cycles[(n - 1) & (PIECE_BLOCKS - 1)].cyc_counts[i] : 0;

	return sum ? sum - 1 : PTR_UNKNOWN;
}

bool pt_call_sums_add(struct pt_call_sums *s, const struct ptr_call *r, uint32_t id)
{
	uint32_t n = block_of(s, key(r->thread, id));
	struct counts *c;

	if (!n)
		return false;
	c = &block(s, n)->counts[id & (BLOCK_SUMS - 1)];
	if (c->calls++ == 0)
		c->elapsed_tsc = PTR_UNKNOWN;
	c->branch_count += r->branch_count;
	c->insn_count += r->insn_count;
	if (r->call_tsc != PTR_NO_TSC && r->return_tsc != PTR_NO_TSC)
		pt_add_known(&c->elapsed_tsc, r->return_tsc - r->call_tsc);
	return r->cyc_count == PTR_UNKNOWN || add_cycles(s, n, id & (BLOCK_SUMS - 1), r->cyc_count);
}

/* ---- Writing ---------------------------------------------------------------------------------------- */

/* So many are put in order at a time, or those of one call path: there may be threads times call paths. */
#define SORTED_SUMS ((size_t)1 << 19)

/* The sums of all threads, whoever has them, in the order of their call paths' numbers. */
struct order {
	struct pt_call_sums *const *all;
	unsigned count;
	const struct pt_call_paths *paths;
	size_t *begins; /* of each number: where its sums begin; of the one after the last, too */
	size_t numbers, room;
};

/* A sum. */
struct place {
	const struct pt_call_sums *sums;
	uint32_t thread, block;
	unsigned i;
};

/* Sums of the numbers from first up to, not including, end. */
struct sorted {
	size_t first, end;
	struct place *places;
	size_t *filled; /* of each number: how many of its sums have come */
};

/* Each number's begin is how many sums those before it have. False: no memory. */
static bool order_count(struct order *o, size_t number)
{
	while (o->numbers <= number + 1) {
		if (pt_array_grow(&o->begins, o->numbers, &o->room, NULL) < 0)
			return false;
		o->begins[o->numbers++] = 0;
	}
	o->begins[number + 1]++;
	return true;
}

static void sorted_add(const struct order *o, const struct sorted *to, size_t number, struct place place)
{
	size_t at = o->begins[number] - o->begins[to->first] + to->filled[number - to->first]++;

	to->places[at] = place;
}

/* to NULL: counts them. False: no memory. */
static bool walk_block(struct order *o, const struct pt_call_sums *s, uint32_t n, const struct sorted *to)
{
	const struct block *b = block(s, n);
	uint64_t key = s->keys[n - 1];

	for (unsigned i = 0; i < BLOCK_SUMS; i++) {
		struct place place = {.sums = s, .thread = (uint32_t)(key >> 32), .block = n, .i = i};
		size_t number;

		if (!b->counts[i].calls)
			continue;
		number = pt_call_path_number(o->paths, (uint32_t)(key << BLOCK_BITS) + i);
		if (!to && !order_count(o, number))
			return false;
		if (to && number >= to->first && number < to->end)
			sorted_add(o, to, number, place);
	}
	return true;
}

static bool walk(struct order *o, const struct sorted *to)
{
	for (unsigned i = 0; i < o->count; i++)
		for (uint32_t n = 1; o->all[i] && n <= o->all[i]->count; n++)
			if (!walk_block(o, o->all[i], n, to))
				return false;
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->thread > y->thread) - (x->thread < y->thread);
}

static void merge(struct ptr_call_sum *to, const struct place *from)
{
	const struct counts *c = &block(from->sums, from->block)->counts[from->i];
	uint64_t cyc_count = cycles(from->sums, from->block, from->i);

	to->calls += c->calls;
	to->branch_count += c->branch_count;
	to->insn_count += c->insn_count;
	if (cyc_count != PTR_UNKNOWN)
		pt_add_known(&to->cyc_count, cyc_count);
	if (c->elapsed_tsc != PTR_UNKNOWN)
		pt_add_known(&to->elapsed_tsc, c->elapsed_tsc);
}

/* A call path's sums. */
static void put_path(struct place *places, size_t count, size_t number, struct pt_emit *m)
{
	if (count > 1)
		qsort(places, count, sizeof *places, compare);
	for (size_t i = 0; i < count && !m->failed;) {
		struct ptr_call_sum sum = {.thread = places[i].thread,
					   .call_path = (uint32_t)number,
					   .cyc_count = PTR_UNKNOWN,
					   .elapsed_tsc = PTR_UNKNOWN};

		/* Of one thread several shards may have sums: it may have been another's for a while. */
		for (; i < count && places[i].thread == sum.thread; i++)
			merge(&sum, &places[i]);
		pt_emit_put(m, ptr_put_call_sum(m->writer, &sum, &m->error));
	}
}

/* False: no memory. */
static bool put_range(struct order *o, struct sorted *s, struct pt_emit *m)
{
	size_t base = o->begins[s->first], count = o->begins[s->end] - base;
	bool ret;

	s->places = calloc(count + 1, sizeof *s->places);
	s->filled = calloc(s->end - s->first, sizeof *s->filled);
	ret = s->places && s->filled && walk(o, s);
	for (size_t n = s->first; ret && n < s->end; n++)
		put_path(s->places + (o->begins[n] - base), o->begins[n + 1] - o->begins[n], n, m);
	free(s->places);
	free(s->filled);
	return ret;
}

static bool put_all(struct order *o, struct pt_emit *m)
{
	struct sorted s = {0};

	if (!walk(o, NULL))
		return false;
	for (size_t n = 1; n < o->numbers; n++)
		o->begins[n] += o->begins[n - 1];
	for (; s.first + 1 < o->numbers; s.first = s.end) {
		s.end = s.first + 1;
		while (s.end + 1 < o->numbers && o->begins[s.end + 1] - o->begins[s.first] <= SORTED_SUMS)
			s.end++;
		if (!put_range(o, &s, m))
			return false;
	}
	return true;
}

void pt_call_sums_put(struct pt_call_sums *const *all, unsigned count, const struct pt_call_paths *paths,
		      struct pt_emit *m)
{
	struct order o = {.all = all, .count = count, .paths = paths};

	if (!put_all(&o, m))
		pt_emit_no_memory(m, "sums");
	free(o.begins);
}
