/* paths.c - the graph's dictionaries: edges and paths, each interned once. See graph.h. */
#include "decode/code/graph.h"

#include <stdlib.h>
#include <string.h>

#include "decode/code/emulated_ptwrite.h"

static uint64_t edge_key(uint32_t code, uint64_t from, uint64_t to, unsigned kind)
{
	uint64_t x =
	    from * 0x9e3779b97f4a7c15u + to * 0xc2b2ae3d27d4eb4fu + code * 0x165667b19e3779f9u + kind;

	return x ^ x >> 32;
}

static uint32_t *grow(uint32_t *hash, uint32_t *mask)
{
	uint32_t m = *mask * 2 + 1, *h = pt_table_create((size_t)m + 1, sizeof *h);

	if (h) {
		free(hash);
		*mask = m;
	}
	return h;
}

uint32_t pt_graph_edge(struct pt_graph *g, struct pt_code *code, uint64_t from, uint64_t to,
		       enum ptr_kind kind)
{
	uint32_t i = (uint32_t)edge_key(code->uid, from, to, kind) & g->edge_mask;
	struct pt_edge *edge;

	if (g->unnumbered)
		return 1;
	for (; g->edge_hash[i]; i = (i + 1) & g->edge_mask) {
		edge = &g->edges[g->edge_hash[i]];
		if (edge->from == from && edge->to == to && edge->kind == kind && edge->code == code->uid)
			return g->edge_hash[i];
	}
	if (g->edge_count == g->edge_room) {
		g->full = true;
		return 0;
	}
	if (g->edge_count >= g->edge_limit)
		g->cache_full = true;
	g->edge_hash[i] = g->edge_count;
	edge = &g->edges[g->edge_count];
	edge->from = from;
	edge->to = to;
	edge->code = code->uid;
	edge->kind = (uint8_t)kind;
	if (g->edge_count > g->edge_mask / 8 * 5) {
		uint32_t *hash = grow(g->edge_hash, &g->edge_mask);

		if (!hash) {
			g->full = true;
			return 0;
		}
		g->edge_hash = hash;
		for (uint32_t n = 1; n <= g->edge_count; n++) {
			edge = &g->edges[n];
			i = (uint32_t)edge_key(edge->code, edge->from, edge->to, edge->kind) & g->edge_mask;
			while (hash[i])
				i = (i + 1) & g->edge_mask;
			hash[i] = n;
		}
	}
	return g->edge_count++;
}

/* 64 x 64 -> 128 bits, folded: the mixing step of the multiply hashes. */
static inline uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 m = (unsigned __int128)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline void path_key(uint32_t code, uint64_t start_ip, uint32_t *edges, uint32_t count,
			    uint64_t end_ip, struct pt_path_slot *ret)
{
	uint64_t x =
	    fold(start_ip ^ 0xa0761d6478bd642fu, end_ip ^ 0xe7037ed1a0b428dbu ^ (uint64_t)count << 32 ^ code);
	uint64_t y =
	    fold(start_ip ^ 0x8ebc6af09c88c6e3u, end_ip ^ 0x589965cc75374cc3u ^ (uint64_t)code << 32 ^ count);
	uint64_t v, w;

	edges[count] = edges[count + 1] = edges[count + 2] = 0;
	for (uint32_t i = 0; i < count; i += 4) {
		memcpy(&v, edges + i, 8);
		memcpy(&w, edges + i + 2, 8);
		x = fold(x ^ v ^ 0x1d8e4e27c47d124fu, w ^ 0xeb44accab455d165u);
		y = fold(y ^ w ^ 0x9e3779b97f4a7c15u, v ^ 0xc2b2ae3d27d4eb4fu);
	}
	ret->high = fold(x, y ^ 0xd6e8feb86659fd93u);
	ret->low = (uint32_t)(x ^ y >> 32);
}

#define GUESS_EDGES 8

/* memcmp() for a few words: a call to it costs more than most paths are long. */
static inline bool same(const uint32_t *a, const uint32_t *b, uint32_t count)
{
	uint32_t d = 0;

	for (uint32_t i = 0; i < count; i++)
		d |= a[i] ^ b[i];
	return !d;
}

/* The edge leaves from an instruction that was not executed, or only begun. */
static bool is_async(unsigned kind)
{
	return kind == PTR_ASYNC || kind == PTR_VMEXIT || kind == PTR_TX_ABORT;
}

static uint64_t branch_mix(uint64_t from, uint64_t to)
{
	uint64_t x = from * 0x9e3779b97f4a7c15u ^ (to << 32 | to >> 32) * 0xc2b2ae3d27d4eb4fu;

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	return x ^ x >> 32;
}

static bool is_near(unsigned kind)
{
	return kind >= PTR_JCC && kind <= PTR_RET;
}

/*
 * Counts the straight code from ip to the branch at `from` (exclusive when async): instructions, and conditional
 * branches passed. A block that ends in a branch which is not `from`'s was passed: it was not taken. b: the one at ip.
 */
static uint32_t straight(struct pt_graph *g, struct pt_block *b, uint64_t ip, uint64_t from, bool exclusive,
			 uint32_t *not_taken, struct pt_path_stats *stats)
{
	uint32_t insns = 0;

	if (exclusive && ip == from)
		return 0;
	for (int i = 0; b && i < 1 << 16; i++) {
		if (exclusive && from > b->ip && from <= b->term_ip) {
			int n = pt_graph_insns_before(g, b, from);

			return insns + (n > 0 ? (uint32_t)n : 0);
		}
		insns += b->insns;
		if (!exclusive && b->term_ip == from)
			return insns;
		if (b->dead)
			break;
		if (b->cls == INSN_JCC) {
			++*not_taken;
			if (stats)
				stats->hash += branch_mix(b->term_ip, b->next_ip);
		}
		if (exclusive && b->next_ip == from)
			return insns;
		b = pt_graph_next_block(g, b);
	}
	return insns;
}

/* The block at ip, to which `before` (NULL: none) leads. */
static struct pt_block *block_after(struct pt_graph *g, struct pt_code *code, struct pt_edge *before,
				    uint64_t ip, enum insn_mode mode)
{
	struct pt_block *b;

	if (!before)
		return pt_graph_block(g, code, ip, mode);
	b = &g->blocks[before->block];
	if (b->ip == ip && b->code == code->id && b->mode == mode && before->block)
		return b;
	b = pt_graph_block(g, code, ip, mode);
	before->block = b ? (uint32_t)(b - g->blocks) : 0;
	return b;
}

static void fill(struct pt_graph *g, struct pt_code *code, struct pt_path *path, enum insn_mode mode)
{
	struct pt_path_stats *stats = g->path_stats ? &g->path_stats[path - g->paths] : NULL;
	struct pt_edge *before = NULL;
	uint64_t ip = path->start_ip;

	for (uint32_t i = 0; i < path->count; i++) {
		struct pt_edge *edge = &g->edges[g->path_edges[path->first + i]];
		uint32_t n = 0;

		if (edge->from && ip)
			n = straight(g, block_after(g, code, before, ip, mode), ip, edge->from,
				     is_async(edge->kind), &path->not_taken, stats);
		if (edge->kind == PTR_JMP && mode == INSN_64)
			path->emulated |= pt_emulated_begins(code->space, edge->from, edge->to);
		g->path_insns[path->first + i] = n;
		path->insns += n;
		ip = edge->to;
		before = edge;
		if (!stats)
			continue;
		stats->by_kind[edge->kind]++;
		if (is_near(edge->kind))
			stats->hash += branch_mix(edge->from, edge->to);
	}
	if (path->end_ip && ip) {
		path->tail_insns = straight(g, block_after(g, code, before, ip, mode), ip, path->end_ip, true,
					    &path->not_taken, stats);
		path->insns += path->tail_insns;
	}
}

static bool rehash_paths(struct pt_graph *g)
{
	uint32_t mask = g->path_mask * 2 + 1;
	struct pt_path_slot *hash = pt_table_create((size_t)mask + 1, sizeof *hash);

	if (!hash)
		return false;
	for (uint32_t n = 0; n <= g->path_mask; n++) {
		uint32_t i = (uint32_t)g->path_hash[n].high & mask;

		if (!g->path_hash[n].path)
			continue;
		while (hash[i].path)
			i = (i + 1) & mask;
		hash[i] = g->path_hash[n];
	}
	free(g->path_hash);
	g->path_hash = hash;
	g->path_mask = mask;
	return true;
}

void pt_graph_number_no_paths(struct pt_graph *g)
{
	g->unnumbered = true;
	for (uint32_t n = 0; n <= PTR_PATH_EDGES; n++)
		g->path_counts[n + 1] = (uint8_t)n;
}

uint32_t pt_graph_path(struct pt_graph *g, struct pt_code *code, uint64_t start_ip, uint32_t *edges,
		       uint32_t count, uint64_t end_ip, enum insn_mode mode, uint32_t after)
{
	struct pt_path_slot key;
	struct pt_path *path;
	uint32_t i;

	if (g->unnumbered)
		return g->full ? 0 : count + 1;
	/* Short paths come one a packet (CYC) and repeat themselves: looking beats hashing. Long ones do not. */
	if (count <= GUESS_EDGES) {
		path = &g->paths[g->paths[after].follow];
		if (path->start_ip == start_ip && path->count == count && path->code == code->id &&
		    path->end_ip == end_ip && same(g->path_edges + path->first, edges, count) &&
		    path != g->paths)
			return g->paths[after].follow;
	}
	path_key(code->id, start_ip, edges, count, end_ip, &key);
	for (i = (uint32_t)key.high & g->path_mask; g->path_hash[i].path; i = (i + 1) & g->path_mask)
		if (g->path_hash[i].high == key.high && g->path_hash[i].low == key.low) {
			if (count <= GUESS_EDGES)
				g->paths[after].follow = g->path_hash[i].path;
			return g->path_hash[i].path;
		}
	if (g->path_count == g->path_room || g->path_edge_count + count > g->path_edge_room || g->full) {
		g->full = true;
		return 0;
	}
	if (g->path_count > g->path_mask / 8 * 5) {
		if (!rehash_paths(g)) {
			g->full = true;
			return 0;
		}
		for (i = (uint32_t)key.high & g->path_mask; g->path_hash[i].path; i = (i + 1) & g->path_mask)
			;
	}
	if (g->path_count >= g->path_limit || g->path_edge_count >= g->path_edge_limit)
		g->cache_full = true;
	key.path = g->path_count;
	g->path_hash[i] = key;
	path = &g->paths[g->path_count];
	path->start_ip = start_ip;
	path->end_ip = end_ip;
	path->count = g->path_counts[g->path_count] = (uint8_t)count;
	path->code = code->id;
	path->first = g->path_edge_count;
	memcpy(g->path_edges + path->first, edges, count * sizeof *edges);
	g->path_edge_count += count;
	if (!g->bare)
		fill(g, code, path, mode);
	return g->path_count++;
}
