/* kept_numbers.c - see kept_numbers.h. */
#include "decode/output/kept_numbers.h"

#include "decode/code/huge_pages.h"
#include "schema/hash.h"

#define SLOTS_MIN (1u << 12)

/* What is the same of an edge, and of a path, in each life of the graph. */
static uint64_t edge_hash(const struct pt_edge *e)
{
	uint64_t what = (uint64_t)e->code << 16 | (uint64_t)e->kind << 1 | e->ends_trace;

	return pt_hash_fold(e->from ^ 0xa0761d6478bd642fu, pt_hash_mix(e->to) ^ what ^ 0xe7037ed1a0b428dbu);
}

static struct pt_kept_slot edge_key(const struct pt_edge *e)
{
	uint64_t what = (uint64_t)e->code << 16 | (uint64_t)e->kind << 1 | e->ends_trace;

	return (struct pt_kept_slot){
	    .high = edge_hash(e),
	    .low = (uint32_t)pt_hash_fold(e->to ^ 0x8ebc6af09c88c6e3u, e->from ^ what ^ 0x589965cc75374cc3u)};
}

static struct pt_kept_slot path_key(const struct pt_graph *g, const struct pt_path *path)
{
	uint64_t what = (uint64_t)path->code << 32 | (uint64_t)path->count << 8 | path->mode;
	uint64_t x = pt_hash_fold(path->start_ip ^ 0x1d8e4e27c47d124fu, path->end_ip ^ what);
	uint64_t y = pt_hash_fold(path->start_ip ^ what, path->end_ip ^ 0xeb44accab455d165u);

	for (uint32_t i = 0; i < path->count; i++) {
		uint64_t edge = edge_hash(&g->edges[g->path_edges[path->first + i]]);

		x = pt_hash_fold(x ^ edge, 0xa0761d6478bd642fu + x);
		y = pt_hash_fold(y + edge, 0xe7037ed1a0b428dbu ^ y);
	}
	return (struct pt_kept_slot){.high = x, .low = (uint32_t)(y ^ y >> 32)};
}

/* The slot of the key, or the free one where it would be. */
static struct pt_kept_slot *find(const struct pt_kept_numbers *k, const struct pt_kept_slot *key)
{
	uint32_t i = (uint32_t)key->high & k->mask;

	while (k->slots[i].number && (k->slots[i].high != key->high || k->slots[i].low != key->low))
		i = (i + 1) & k->mask;
	return &k->slots[i];
}

static bool grow(struct pt_kept_numbers *k)
{
	uint32_t mask = k->slots ? k->mask * 2 + 1 : SLOTS_MIN - 1;
	struct pt_kept_numbers more = {
	    .slots = pt_table_create((size_t)mask + 1, sizeof *more.slots), .mask = mask, .count = k->count};

	if (!more.slots)
		return false;
	for (uint32_t i = 0; k->slots && i <= k->mask; i++)
		if (k->slots[i].number)
			*find(&more, &k->slots[i]) = k->slots[i];
	pt_kept_numbers_forget(k);
	*k = more;
	return true;
}

static bool keep(struct pt_kept_numbers *k, struct pt_kept_slot key, uint32_t number)
{
	struct pt_kept_slot *slot;

	if ((!k->slots || k->count > k->mask / 8 * 5) && !grow(k))
		return false;
	slot = find(k, &key);
	k->count += !slot->number;
	key.number = number;
	*slot = key;
	return true;
}

bool pt_keep_path_numbers(struct pt_kept_numbers *k, const struct pt_graph *g)
{
	bool ok = true;

	for (uint32_t n = 1; ok && n < g->path_count; n++)
		if (g->paths[n].number)
			ok = keep(k, path_key(g, &g->paths[n]), g->paths[n].number);
	return ok;
}

bool pt_keep_edge_numbers(struct pt_kept_numbers *k, const struct pt_graph *g)
{
	bool ok = true;

	for (uint32_t n = 1; ok && n < g->edge_count; n++)
		if (g->edges[n].number)
			ok = keep(k, edge_key(&g->edges[n]), g->edges[n].number);
	return ok;
}

static uint32_t number_of(const struct pt_kept_numbers *k, struct pt_kept_slot key)
{
	return find(k, &key)->number;
}

uint32_t pt_kept_edge_number(const struct pt_kept_numbers *k, const struct pt_edge *edge)
{
	return k->slots ? number_of(k, edge_key(edge)) : 0;
}

uint32_t pt_kept_path_number(const struct pt_kept_numbers *k, const struct pt_graph *g,
			     const struct pt_path *path)
{
	return k->slots ? number_of(k, path_key(g, path)) : 0;
}

size_t pt_kept_numbers_bytes(const struct pt_kept_numbers *k)
{
	return k->slots ? ((size_t)k->mask + 1) * sizeof *k->slots : 0;
}

void pt_kept_numbers_forget(struct pt_kept_numbers *k)
{
	if (k->slots)
		pt_table_destroy(k->slots, (size_t)k->mask + 1, sizeof *k->slots);
	*k = (struct pt_kept_numbers){0};
}
