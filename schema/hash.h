/*
 * hash.h - a hash index with open addressing and linear probing over entries that its user keeps in an array.
 *
 * A slot holds an entry's number, counted from 1; 0 is a free slot. The user compares the entries, so
 * keys can be anything:
 *
 *     uint64_t key = pt_hash_mix(ip) + pid;
 *     uint32_t n;
 *
 *     for (uint32_t i = pt_hash_first(&h, key); (n = h.slots[i]); i = pt_hash_next(&h, i))
 *             if (entries[n].ip == ip && entries[n].pid == pid)
 *                     return n;
 *     ... append entry number n, then
 *     pt_hash_insert(&h, key, n, key_of, entries, e);
 *
 * Entries are never removed. At most half of the slots are taken. Tables in the hottest loops
 * (graph.h, paths.c) have layouts of their own, with the key in the slot.
 */
#ifndef SCHEMA_HASH_H
#define SCHEMA_HASH_H

#include <stdint.h>
#include <stdlib.h>

#include "schema/error.h"

struct pt_hash {
	uint32_t *slots; /* mask + 1 of them, a power of two */
	uint32_t mask, count;
};

/* Spreads a number over 64 bits: Fibonacci hashing (Knuth, TAOCP vol. 3, 6.4), then the high half
 * onto the low one. */
static inline uint64_t pt_hash_mix(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15u;
	return x ^ x >> 32;
}

/* 64 x 64 -> 128 bits, folded: the mixing step of wyhash. */
static inline uint64_t pt_hash_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 m = (unsigned __int128)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* 2^log2_slots slots. 0, or -1 (PT_ERR_NO_MEMORY). */
static inline int pt_hash_init(struct pt_hash *h, unsigned log2_slots, struct pt_error *e)
{
	h->count = 0;
	h->mask = (1u << log2_slots) - 1;
	h->slots = calloc((size_t)h->mask + 1, sizeof *h->slots);
	return h->slots ? 0 : pt_fail_no_memory(e, NULL);
}

static inline void pt_hash_deinit(struct pt_hash *h)
{
	free(h->slots);
	*h = (struct pt_hash){0};
}

/* Where the probing for a key begins, and goes on. The table must have been initialised. */
static inline uint32_t pt_hash_first(const struct pt_hash *h, uint64_t key)
{
	return (uint32_t)(key & h->mask);
}
static inline uint32_t pt_hash_next(const struct pt_hash *h, uint32_t i)
{
	return (i + 1) & h->mask;
}

/* The key of entry n, as it was given when it was inserted. */
typedef uint64_t pt_hash_key_fn(const void *entries, uint32_t n);

static inline void pt_hash_place(struct pt_hash *h, uint64_t key, uint32_t n)
{
	uint32_t i = pt_hash_first(h, key);

	while (h->slots[i])
		i = pt_hash_next(h, i);
	h->slots[i] = n;
}

/*
 * Adds entry n (not 0), which no slot has yet. When the table gets more than half full it doubles,
 * and asks key_of for the keys of all entries that it has. Returns 0; or -1 (PT_ERR_NO_MEMORY), and
 * the table is as it was, without n.
 */
static inline int pt_hash_insert(struct pt_hash *h, uint64_t key, uint32_t n, pt_hash_key_fn *key_of,
				 const void *entries, struct pt_error *e)
{
	if (h->count >= (h->mask >> 1) + (h->mask == 0)) {
		struct pt_hash grown = {.mask = h->mask * 2 + 1, .count = h->count};

		grown.slots =
		    grown.mask < UINT32_MAX ? calloc((size_t)grown.mask + 1, sizeof *grown.slots) : NULL;
		if (!grown.slots)
			return pt_fail_no_memory(e, NULL);
		for (uint32_t i = 0; i <= h->mask; i++)
			if (h->slots[i])
				pt_hash_place(&grown, key_of(entries, h->slots[i]), h->slots[i]);
		free(h->slots);
		*h = grown;
	}
	pt_hash_place(h, key, n);
	h->count++;
	return 0;
}

#endif
