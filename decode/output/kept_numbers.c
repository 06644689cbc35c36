/* kept_numbers.c - see kept_numbers.h. */
#include "decode/output/kept_numbers.h"

#include "decode/code/huge_pages.h"
#include "schema/hash.h"

#define SLOTS_MIN (1u << 12)

/* Of the filter. It begins anew when a quarter of them are set. */
#define FORGOTTEN_BITS (1u << 24)

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

static void destroy_slots(struct pt_kept_numbers *k)
{
	if (k->slots)
		pt_table_destroy(k->slots, (size_t)k->mask + 1, sizeof *k->slots);
	k->slots = NULL;
	k->mask = k->count = 0;
}

/* Of mask + 1 slots five of eight are taken at most. */
static uint32_t room_of(uint32_t mask)
{
	return mask / 8 * 5;
}

/* Of the table once it has so many: it does not get smaller. */
static uint32_t mask_for(const struct pt_kept_numbers *k, uint32_t count)
{
	uint32_t mask = k->slots ? k->mask : SLOTS_MIN - 1;

	while (count > room_of(mask))
		mask = mask * 2 + 1;
	return mask;
}

/* Room for so many more. False: no memory. */
static bool grow(struct pt_kept_numbers *k, uint32_t more)
{
	struct pt_kept_numbers grown = *k;

	grown.mask = mask_for(k, k->count + more);
	if (k->slots && grown.mask == k->mask)
		return true;
	grown.slots = pt_table_create((size_t)grown.mask + 1, sizeof *grown.slots);
	if (!grown.slots)
		return false;
	for (uint32_t i = 0; k->slots && i <= k->mask; i++)
		if (k->slots[i].number)
			*find(&grown, &k->slots[i]) = k->slots[i];
	destroy_slots(k);
	*k = grown;
	return true;
}

/* What there is to keep: the n-th one's key and number. */
struct source {
	const struct pt_graph *g;
	uint32_t count; /* from 1 */
	struct pt_kept_slot (*key)(const struct pt_graph *g, uint32_t n);
	uint32_t (*number)(const struct pt_graph *g, uint32_t n);
};

/* They are counted before, so that the table does not double several times: two of them are there then. */
static bool keep_all(struct pt_kept_numbers *k, const struct source *from)
{
	struct pt_kept_slot key, *slot;
	uint32_t more = 0;

	for (uint32_t n = 1; n < from->count; n++)
		if (from->number(from->g, n)) {
			key = from->key(from->g, n);
			more += !k->slots || !find(k, &key)->number;
		}
	if (!grow(k, more))
		return false;
	for (uint32_t n = 1; n < from->count; n++) {
		if (!from->number(from->g, n))
			continue;
		key = from->key(from->g, n);
		key.number = from->number(from->g, n);
		slot = find(k, &key);
		k->count += !slot->number;
		*slot = key;
	}
	return true;
}

static struct pt_kept_slot nth_path_key(const struct pt_graph *g, uint32_t n)
{
	return path_key(g, &g->paths[n]);
}

static uint32_t nth_path_number(const struct pt_graph *g, uint32_t n)
{
	return g->paths[n].number;
}

static struct pt_kept_slot nth_edge_key(const struct pt_graph *g, uint32_t n)
{
	return edge_key(&g->edges[n]);
}

static uint32_t nth_edge_number(const struct pt_graph *g, uint32_t n)
{
	return g->edges[n].number;
}

bool pt_keep_path_numbers(struct pt_kept_numbers *k, const struct pt_graph *g)
{
	return keep_all(k, &(struct source){g, g->path_count, nth_path_key, nth_path_number});
}

bool pt_keep_edge_numbers(struct pt_kept_numbers *k, const struct pt_graph *g)
{
	return keep_all(k, &(struct source){g, g->edge_count, nth_edge_key, nth_edge_number});
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

static size_t table_bytes(const struct pt_kept_numbers *k, uint32_t mask)
{
	return ((size_t)mask + 1) * sizeof *k->slots;
}

size_t pt_kept_numbers_bytes(const struct pt_kept_numbers *k, uint32_t count, uint32_t *ret_room)
{
	uint32_t mask = mask_for(k, count);

	*ret_room = room_of(mask);
	return table_bytes(k, mask) + (k->slots && mask != k->mask ? table_bytes(k, k->mask) : 0);
}

static bool was_forgotten(const struct pt_kept_numbers *k, uint64_t hash)
{
	uint64_t bit = hash % FORGOTTEN_BITS;

	return k->forgotten[bit / 64] >> bit % 64 & 1;
}

static void set_forgotten(struct pt_kept_numbers *k, uint64_t hash)
{
	uint64_t bit = hash % FORGOTTEN_BITS;

	k->forgotten_count += !was_forgotten(k, hash);
	k->forgotten[bit / 64] |= (uint64_t)1 << bit % 64;
}

/* All are looked up before any is set: then their order does not matter. */
static uint32_t count_again(struct pt_kept_numbers *k)
{
	uint32_t again = 0;

	for (uint32_t i = 0; i <= k->mask; i++)
		again += k->slots[i].number && was_forgotten(k, k->slots[i].high);
	if (k->forgotten_count >= FORGOTTEN_BITS / 4) {
		pt_pages_wipe(k->forgotten, FORGOTTEN_BITS / 64, sizeof *k->forgotten);
		k->forgotten_count = 0;
	}
	for (uint32_t i = 0; i <= k->mask; i++)
		if (k->slots[i].number)
			set_forgotten(k, k->slots[i].high);
	return again;
}

uint32_t pt_kept_numbers_forget(struct pt_kept_numbers *k)
{
	uint32_t again = 0;

	if (!k->forgotten)
		k->forgotten = pt_pages_reserve(FORGOTTEN_BITS / 64, sizeof *k->forgotten);
	if (k->forgotten && k->slots)
		again = count_again(k);
	destroy_slots(k);
	return again;
}

void pt_kept_numbers_deinit(struct pt_kept_numbers *k)
{
	destroy_slots(k);
	pt_pages_release(k->forgotten, FORGOTTEN_BITS / 64, sizeof *k->forgotten);
	k->forgotten = NULL;
}
