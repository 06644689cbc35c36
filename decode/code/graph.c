/* graph.c - see graph.h: the arrays, and the codes. */
#include "decode/code/graph.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/code/huge_pages.h"
#include "schema/array.h"
#include "schema/hash.h"

/* The arrays never move, so that the hot loops can keep pointers. */
#define ROOM_POSITIONS	(4u << 20)
#define ROOM_BLOCKS	(4u << 20)
#define ROOM_EDGES	(8u << 20)
#define ROOM_PATHS	(8u << 20)
#define ROOM_PATH_EDGES (64u << 20)

/* Of pt_graph_may_grow(), by what pt_graph_limit() counts: that is twice what it takes. */
#define MOST_BYTES ((uint64_t)1 << 30)

#define HASH_SLOTS (1u << 12) /* at first */
#define LIMIT_MIN  1024	      /* a graph that cannot hold the flows' return addresses would be full at once */

/* A Bloom filter with one hash: a bit is set for each block. It begins anew when a quarter of them are. */
#define KNOWN_BITS (1u << 24)

/* Array, room, count: all that recycling empties; and three that it does not always empty. */
#define RECYCLED(X)                                                                                          \
	X(positions, g->position_room, g->position_count)                                                    \
	X(edge_lists, g->position_room, g->position_count)                                                   \
	X(decisions, g->position_room, g->position_count)                                                    \
	X(where, g->position_room, g->position_count)                                                        \
	X(blocks, g->block_room, g->block_count)                                                             \
	X(paths, g->path_room, g->path_count)                                                                \
	X(path_edges, g->path_edge_room, g->path_edge_count)                                                 \
	X(path_until, g->path_edge_room, g->path_edge_count)                                                 \
	X(path_memos, PT_PATH_MEMOS, PT_PATH_MEMOS)                                                          \
	X(packet_memos, PT_PACKET_MEMOS, PT_PACKET_MEMOS)

#define RESERVE(array, room, count)                                                                          \
	g->array = pt_pages_reserve(room, sizeof *g->array);                                                 \
	ok &= g->array != NULL;
#define WIPE(array, room, count)    pt_pages_wipe(g->array, count, sizeof *g->array);
#define RELEASE(array, room, count) pt_pages_release(g->array, room, sizeof *g->array);

int pt_graph_init(struct pt_graph *g, struct pt_error *e)
{
	bool ok = true;

	memset(g, 0, sizeof *g);
	g->position_room = ROOM_POSITIONS;
	g->block_room = ROOM_BLOCKS;
	g->edge_room = ROOM_EDGES;
	g->path_room = ROOM_PATHS;
	g->path_edge_room = ROOM_PATH_EDGES;
	RECYCLED(RESERVE)
	RESERVE(edges, g->edge_room, )
	RESERVE(path_counts, g->path_room, )
	pt_pages_small(g->decisions, g->position_room, sizeof *g->decisions);
	pt_pages_small(g->path_counts, g->path_room, sizeof *g->path_counts);
	g->jumps = calloc(PT_JUMPS, sizeof *g->jumps);
	g->block_mask = g->edge_mask = g->path_mask = HASH_SLOTS - 1;
	g->block_hash = calloc(HASH_SLOTS, sizeof *g->block_hash);
	g->edge_hash = calloc(HASH_SLOTS, sizeof *g->edge_hash);
	g->path_hash = calloc(HASH_SLOTS, sizeof *g->path_hash);
	pt_graph_limit(g, PT_GRAPH_BYTES);
	g->position_count = g->block_count = g->edge_count = g->path_count = 1; /* 0 is none */
	if (!ok || !g->jumps || !g->block_hash || !g->edge_hash || !g->path_hash) {
		pt_graph_deinit(g);
		return pt_fail_no_memory(e, "the code graph");
	}
	return 0;
}

void pt_graph_deinit(struct pt_graph *g)
{
	RECYCLED(RELEASE)
	RELEASE(edges, g->edge_room, )
	RELEASE(path_counts, g->path_room, )
	RELEASE(path_stats, g->path_room, )
	free(g->jumps);
	free(g->block_hash);
	free(g->edge_hash);
	free(g->path_hash);
	for (uint32_t i = g->code_count; i-- > 0;)
		if (g->codes[i]->uid == i)
			free(g->codes[i]);
	free(g->codes);
	pt_pages_release(g->known, KNOWN_BITS / 64, sizeof *g->known);
	memset(g, 0, sizeof *g);
}

static void set_limit(struct pt_graph *g, size_t bytes)
{
	/* One block, one position, one path of 12 edges and two edges, with their hash slots. */
	size_t each = sizeof *g->positions + sizeof *g->edge_lists + 1 + sizeof *g->where +
		      sizeof *g->blocks + 2 * sizeof(uint32_t) + sizeof *g->paths + 2 * sizeof *g->path_hash +
		      24 * sizeof(uint32_t) + 2 * (sizeof *g->edges + 2 * sizeof(uint32_t));
	size_t n = bytes / each;

	g->limit_bytes = bytes;
	if (n < LIMIT_MIN)
		n = LIMIT_MIN;
	if (n > ROOM_POSITIONS / 2)
		n = ROOM_POSITIONS / 2;
	g->position_limit = g->block_limit = g->path_limit = (uint32_t)n;
	g->path_edge_limit = (uint32_t)(12 * n);
	g->edge_limit = (uint32_t)(2 * n);
}

/* Most blocks were there already when it was recycled before. (Other code, and other versions of it, are other
 * blocks.) All of them are from then on. */
static bool repeats_itself(struct pt_graph *g)
{
	uint32_t again = 0;

	if (!g->known)
		g->known = pt_pages_reserve(KNOWN_BITS / 64, sizeof *g->known);
	if (!g->known)
		return false;
	if (g->known_count >= KNOWN_BITS / 4) {
		pt_pages_wipe(g->known, KNOWN_BITS / 64, sizeof *g->known);
		g->known_count = 0;
	}
	for (uint32_t i = 1; i < g->block_count; i++) {
		uint64_t bit = pt_hash_mix(g->blocks[i].ip ^ (uint64_t)g->blocks[i].code << 48) % KNOWN_BITS;
		bool known = g->known[bit / 64] >> bit % 64 & 1;

		again += known;
		g->known_count += !known;
		g->known[bit / 64] |= (uint64_t)1 << bit % 64;
	}
	return again > g->block_count / 2;
}

void pt_graph_recycle(struct pt_graph *g)
{
	struct pt_graph_sums sums;

	if (2 * g->limit_bytes <= g->most_bytes && repeats_itself(g))
		set_limit(g, 2 * g->limit_bytes);
	pt_graph_sum(g, &sums);
	g->sums = sums;
	RECYCLED(WIPE)
	WIPE(path_counts, , g->path_count)
	if (g->path_stats)
		WIPE(path_stats, , g->path_count)
	memset(g->jumps, 0, PT_JUMPS * sizeof *g->jumps);
	memset(g->block_hash, 0, ((size_t)g->block_mask + 1) * sizeof *g->block_hash);
	memset(g->path_hash, 0, ((size_t)g->path_mask + 1) * sizeof *g->path_hash);
	g->position_count = g->block_count = g->path_count = 1;
	g->path_edge_count = 0;
	if (g->edge_count >= g->edge_limit) {
		WIPE(edges, , g->edge_count)
		memset(g->edge_hash, 0, ((size_t)g->edge_mask + 1) * sizeof *g->edge_hash);
		g->edge_count = 1;
	}
	g->cache_full = false;
}

void pt_graph_limit(struct pt_graph *g, size_t bytes)
{
	set_limit(g, bytes);
	g->most_bytes = bytes;
}

void pt_graph_may_grow(struct pt_graph *g, unsigned graphs)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	g->most_bytes = memory / 8 / graphs < MOST_BYTES ? memory / 8 / graphs : MOST_BYTES;
}

/* A new version of the code, with an id of its own. */
static bool code_add(struct pt_graph *g, struct pt_code *code)
{
	if (pt_array_grow(&g->codes, g->code_count, &g->code_room, NULL) < 0)
		return false;
	code->generation = code->space->generation;
	code->changes = code->space->changes;
	code->holes = false;
	code->id = g->code_count;
	g->codes[g->code_count++] = code;
	return true;
}

struct pt_code *pt_graph_code(struct pt_graph *g, struct img_space *space)
{
	struct pt_code *code = calloc(1, sizeof *code);

	if (!code)
		return NULL;
	code->space = space;
	code->uid = g->code_count;
	if (!code_add(g, code)) {
		free(code);
		return NULL;
	}
	return code;
}

bool pt_code_refresh(struct pt_graph *g, struct pt_code *code)
{
	if (code->generation == code->space->generation &&
	    !(code->holes && code->changes != code->space->changes))
		return false;
	pt_code_renew(g, code);
	return true;
}

void pt_code_renew(struct pt_graph *g, struct pt_code *code)
{
	/* All look-ups are keyed by the id: the old blocks and positions are out of reach. */
	if (!code_add(g, code))
		pt_graph_set_full(g);
}
