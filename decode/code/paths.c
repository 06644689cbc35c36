/* paths.c - see paths.h. */
#include "decode/code/graph.h"

#include <stdlib.h>
#include <string.h>

#include "decode/code/huge_pages.h"
#include "decode/code/ptwrite_magic.h"
#include "schema/hash.h"

enum ptr_kind pt_kind_of(enum insn_class cls)
{
	switch (cls) {
	case INSN_JCC: return PTR_JCC;
	case INSN_JMP: return PTR_JMP;
	case INSN_CALL: return PTR_CALL_DIR;
	case INSN_JMP_IND: return PTR_JMP_IND;
	case INSN_CALL_IND: return PTR_CALL_IND;
	case INSN_RET: return PTR_RET;
	case INSN_SYSCALL: return PTR_SYSCALL;
	case INSN_SYSRET: return PTR_SYSRET;
	case INSN_INT: return PTR_INT;
	case INSN_IRET: return PTR_IRET;
	case INSN_JMP_FAR: return PTR_JMP_FAR;
	case INSN_CALL_FAR: return PTR_CALL_FAR;
	case INSN_RET_FAR: return PTR_RET_FAR;
	case INSN_ERET: return PTR_ERET;
	case INSN_RSM: return PTR_RSM;
	case INSN_VMENTRY: return PTR_VMENTRY;
	default: return PTR_TRACE_END;
	}
}

static uint64_t edge_key(uint32_t code, uint64_t from, uint64_t to, unsigned kind)
{
	uint64_t x =
	    from * 0x9e3779b97f4a7c15u + to * 0xc2b2ae3d27d4eb4fu + code * 0x165667b19e3779f9u + kind;

	return x ^ x >> 32;
}

static unsigned kind_key(const struct pt_edge *edge)
{
	return edge->kind + (edge->ends_trace ? PTR_KIND_ENDS_TRACE : 0);
}

static bool rehash_edges(struct pt_graph *g)
{
	uint32_t mask = g->edge_mask * 2 + 1, *hash = pt_table_create((size_t)mask + 1, sizeof *hash);

	if (!hash)
		return false;
	for (uint32_t n = 1; n < g->edge_count; n++) {
		const struct pt_edge *edge = &g->edges[n];
		uint32_t i = (uint32_t)edge_key(edge->code, edge->from, edge->to, kind_key(edge)) & mask;

		while (hash[i])
			i = (i + 1) & mask;
		hash[i] = n;
	}
	pt_table_destroy(g->edge_hash, (size_t)g->edge_mask + 1, sizeof *hash);
	g->edge_hash = hash;
	g->edge_mask = mask;
	return true;
}

/* kind: as kind_key() has it. */
static uint32_t find_edge(struct pt_graph *g, struct pt_code *code, uint64_t from, uint64_t to, unsigned kind)
{
	uint32_t i = (uint32_t)edge_key(code->uid, from, to, kind) & g->edge_mask;
	struct pt_edge *edge;

	for (; g->edge_hash[i]; i = (i + 1) & g->edge_mask) {
		edge = &g->edges[g->edge_hash[i]];
		if (edge->from == from && edge->to == to && kind_key(edge) == kind && edge->code == code->uid)
			return g->edge_hash[i];
	}
	if (g->edge_count == g->edge_room || g->full) {
		pt_graph_set_full(g);
		return 0;
	}
	if (g->edge_count > g->edge_mask / 8 * 5) {
		if (!rehash_edges(g)) {
			pt_graph_set_full(g);
			return 0;
		}
		for (i = (uint32_t)edge_key(code->uid, from, to, kind) & g->edge_mask; g->edge_hash[i];
		     i = (i + 1) & g->edge_mask)
			;
	}
	pt_graph_watch_room(g, g->edge_count, g->edge_room);
	pt_graph_add_bytes(g, &g->edge_bytes, sizeof *edge + 2 * sizeof *g->edge_hash);
	g->edge_hash[i] = g->edge_count;
	edge = &g->edges[g->edge_count];
	edge->from = from;
	edge->to = to;
	edge->code = code->uid;
	edge->kind = (uint8_t)(kind % PTR_KIND_ENDS_TRACE);
	edge->ends_trace = kind >= PTR_KIND_ENDS_TRACE;
	return g->edge_count++;
}

uint32_t pt_graph_edge(struct pt_graph *g, struct pt_code *code, uint64_t from, uint64_t to,
		       enum ptr_kind kind)
{
	return find_edge(g, code, from, to, kind);
}

uint32_t pt_graph_end_edge(struct pt_graph *g, struct pt_code *code, uint64_t from, uint64_t to,
			   enum ptr_kind kind)
{
	return find_edge(g, code, from, to, to ? kind + PTR_KIND_ENDS_TRACE : kind);
}

static inline struct pt_path_slot path_hash(const struct pt_path_key *key)
{
	uint64_t start_ip = key->start_ip, end_ip = key->end_ip, code = key->code->id, count = key->count;
	uint64_t x =
	    pt_hash_fold(start_ip ^ 0xa0761d6478bd642fu, end_ip ^ 0xe7037ed1a0b428dbu ^ count << 32 ^ code);
	uint64_t y =
	    pt_hash_fold(start_ip ^ 0x8ebc6af09c88c6e3u, end_ip ^ 0x589965cc75374cc3u ^ code << 32 ^ count);
	uint32_t *edges = key->edges;
	uint64_t v, w;

	edges[count] = edges[count + 1] = edges[count + 2] = 0;
	for (uint64_t i = 0; i < count; i += 4) {
		memcpy(&v, edges + i, 8);
		memcpy(&w, edges + i + 2, 8);
		x = pt_hash_fold(x ^ v ^ 0x1d8e4e27c47d124fu, w ^ 0xeb44accab455d165u);
		y = pt_hash_fold(y ^ w ^ 0x9e3779b97f4a7c15u, v ^ 0xc2b2ae3d27d4eb4fu);
	}
	return (struct pt_path_slot){.high = pt_hash_fold(x, y ^ 0xd6e8feb86659fd93u),
				     .low = (uint32_t)(x ^ y >> 32)};
}

/* memcmp() for a few words: a call to it costs more than most paths are long. */
static inline bool same(const uint32_t *a, const uint32_t *b, uint32_t count)
{
	uint32_t d = 0;

	for (uint32_t i = 0; i < count; i++)
		d |= a[i] ^ b[i];
	return !d;
}

int pt_graph_count_stats(struct pt_graph *g, struct pt_error *e)
{
	g->path_stats = pt_pages_reserve(g->path_room, sizeof *g->path_stats);
	if (!g->path_stats)
		return pt_fail_no_memory(e, "statistics");
	return 0;
}

void pt_graph_add_sums(struct pt_graph_sums *to, const struct pt_graph_sums *more)
{
	to->paths += more->paths;
	to->edges += more->edges;
	to->not_taken += more->not_taken;
	to->hash += more->hash;
	for (int k = 0; k < PTR_KINDS; k++)
		to->by_kind[k] += more->by_kind[k];
}

void pt_graph_sum(const struct pt_graph *g, struct pt_graph_sums *ret)
{
	*ret = g->sums;
	for (uint32_t i = 1; i < g->path_count && g->path_stats; i++) {
		const struct pt_path *path = &g->paths[i];

		ret->hash += g->path_stats[i].hash * path->times;
		for (int k = 0; k < PTR_KINDS; k++)
			ret->by_kind[k] += g->path_stats[i].by_kind[k] * path->times;
	}
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

static struct pt_path_stats *stats_of(struct pt_graph *g, const struct pt_path *path)
{
	return g->path_stats ? &g->path_stats[path - g->paths] : NULL;
}

/*
 * Counts the straight code from block b to the branch at `from` (without that instruction when exclusive):
 * returns the number of instructions, and adds its conditional branches to the path's. A block
 * that ends in a branch other than that at `from` was passed, so its branch was not taken.
 */
static uint32_t count_straight(struct pt_graph *g, struct pt_path *path, struct pt_block *b, uint64_t from,
			       bool exclusive)
{
	struct pt_path_stats *stats = stats_of(g, path);
	uint32_t insns = 0;

	if (exclusive && b && b->ip == from)
		return 0;
	for (int i = 0; b && i < 1 << 16; i++) {
		if (exclusive && from > b->ip && from <= pt_block_term_ip(b)) {
			int n = pt_graph_insns_before(g, b, from);

			return insns + (n > 0 ? (uint32_t)n : 0);
		}
		insns += b->insns;
		if (!exclusive && pt_block_term_ip(b) == from)
			return insns;
		if (b->dead)
			break;
		if (b->cls == INSN_JCC) {
			path->not_taken++;
			if (stats)
				stats->hash += branch_mix(pt_block_term_ip(b), pt_block_next_ip(b));
		}
		if (exclusive && pt_block_next_ip(b) == from)
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

/* Counts what lies between the path's edges, and after the last one. */
static void count_path(struct pt_graph *g, struct pt_code *code, struct pt_path *path, enum insn_mode mode)
{
	struct pt_path_stats *stats = stats_of(g, path);
	struct pt_edge *before = NULL;
	uint64_t ip = path->start_ip;

	for (uint32_t i = 0; i < path->count; i++) {
		struct pt_edge *edge = &g->edges[g->path_edges[path->first + i]];
		uint32_t n = 0;

		if (edge->from && ip)
			n = count_straight(g, path, block_after(g, code, before, ip, mode), edge->from,
					   pt_kind_is_async(edge->kind) || edge->kind == PTR_TRACE_END);
		if (edge->kind == PTR_TRACE_END && edge->from)
			n++; /* a MOV to CR3 is no branch that ends a block */
		path->insns += n;
		/* The higher half: where the next path begins, unless this one is wide. */
		g->path_until[path->first + i] = (uint16_t)path->insns;
		g->path_until[path->first + path->count + i] = (uint16_t)(path->insns >> 16);
		ip = edge->to;
		before = edge;
		if (!stats)
			continue;
		stats->by_kind[edge->kind]++;
		if (is_near(edge->kind))
			stats->hash += branch_mix(edge->from, edge->to);
	}
	if (path->end_ip && ip) {
		path->tail_insns =
		    count_straight(g, path, block_after(g, code, before, ip, mode), path->end_ip, true);
		path->insns += path->tail_insns;
	}
}

uint32_t pt_path_insns_before(const struct pt_graph *g, const struct pt_path *path, uint32_t i)
{
	uint32_t until = pt_path_insns_until(g, path->first, path->count, path->insns, i);

	return i ? until - pt_path_insns_until(g, path->first, path->count, path->insns, i - 1) : until;
}

/* What count_path() has found in another graph. */
static void copy_counts(struct pt_graph *g, struct pt_path *path, const struct pt_graph *from, uint32_t n)
{
	const struct pt_path *like = &from->paths[n];

	path->insns = like->insns;
	path->tail_insns = like->tail_insns;
	path->not_taken = like->not_taken;
	memcpy(g->path_until + path->first, from->path_until + like->first,
	       (pt_path_is_wide(path->insns) ? 2u : 1u) * path->count * sizeof *g->path_until);
	if (g->path_stats)
		*stats_of(g, path) = from->path_stats[n];
}

static void find_emulated(const struct pt_graph *g, struct pt_code *code, struct pt_path *path)
{
	for (uint32_t i = 0; i < path->count && path->mode == INSN_64; i++) {
		const struct pt_edge *edge = &g->edges[g->path_edges[path->first + i]];

		if (edge->kind == PTR_JMP)
			path->emulated |= pt_ptwrite_magic(code->space, edge->from, edge->to);
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
	pt_table_destroy(g->path_hash, (size_t)g->path_mask + 1, sizeof *hash);
	g->path_hash = hash;
	g->path_mask = mask;
	return true;
}

/* The path's edges have their places. */
static void place_edges(struct pt_graph *g, const struct pt_path *path)
{
	uint32_t places = (pt_path_is_wide(path->insns) ? 2u : 1u) * path->count;

	g->path_edge_count += places;
	pt_graph_watch_room(g, g->path_count, g->path_room);
	pt_graph_watch_room(g, g->path_edge_count, g->path_edge_room);
	pt_graph_add_bytes(g, &g->path_bytes,
			   sizeof *path + sizeof *g->path_counts + 2 * sizeof *g->path_hash +
			       places * (sizeof *g->path_edges + sizeof *g->path_until));
}

/* A new path, for the free slot i. Its number; 0 when the graph is full. */
static uint32_t path_add(struct pt_graph *g, const struct pt_path_key *key, struct pt_path_slot hash,
			 uint32_t i)
{
	struct pt_path *path = &g->paths[g->path_count];

	if (g->path_count == g->path_room || g->path_edge_count + 2 * key->count > g->path_edge_room ||
	    g->full) {
		pt_graph_set_full(g);
		return 0;
	}
	if (g->path_count > g->path_mask / 8 * 5) {
		if (!rehash_paths(g)) {
			pt_graph_set_full(g);
			return 0;
		}
		for (i = (uint32_t)hash.high & g->path_mask; g->path_hash[i].path; i = (i + 1) & g->path_mask)
			;
	}
	hash.path = g->path_count;
	g->path_hash[i] = hash;
	path->start_ip = key->start_ip;
	path->end_ip = key->end_ip;
	path->count = g->path_counts[g->path_count] = (uint8_t)key->count;
	path->code = key->code->id;
	path->mode = (uint8_t)key->mode;
	path->first = g->path_edge_count;
	memcpy(g->path_edges + path->first, key->edges, key->count * sizeof *key->edges);
	if (key->like)
		copy_counts(g, path, key->like, key->like_path);
	else
		count_path(g, key->code, path, key->mode);
	place_edges(g, path);
	if (!key->code->peeks)
		find_emulated(g, key->code, path);
	return g->path_count++;
}

/* Short paths come one per packet (CYC) and repeat themselves: guessing the successor beats hashing. Long
 * ones do not. */
#define GUESS_EDGES 8

uint32_t pt_graph_path(struct pt_graph *g, const struct pt_path_key *key, uint32_t after)
{
	struct pt_path_slot hash;
	uint32_t i;

	if (g->full) /* a path that is missing must not be followed by one that is known */
		return 0;
	if (key->count <= GUESS_EDGES) {
		const struct pt_path *path = &g->paths[g->paths[after].follow];

		if (path->start_ip == key->start_ip && path->count == key->count &&
		    path->code == key->code->id && path->end_ip == key->end_ip &&
		    same(g->path_edges + path->first, key->edges, key->count) && path != g->paths)
			return g->paths[after].follow;
	}
	hash = path_hash(key);
	for (i = (uint32_t)hash.high & g->path_mask; g->path_hash[i].path; i = (i + 1) & g->path_mask)
		if (g->path_hash[i].high == hash.high && g->path_hash[i].low == hash.low) {
			if (key->count <= GUESS_EDGES)
				g->paths[after].follow = g->path_hash[i].path;
			return g->path_hash[i].path;
		}
	return path_add(g, key, hash, i);
}
