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

/* Of pt_graph_may_grow(). */
#define MOST_BYTES ((uint64_t)640 << 20)

#define HASH_SLOTS (1u << 12)	       /* at first */
#define LIMIT_MIN  ((size_t)400 << 10) /* one without room for the flows' return addresses is full at once */

/* A Bloom filter with one hash: a bit is set for each block and path. It begins anew when a quarter of the bits
 * are. */
#define KNOWN_BITS (1u << 24)

/* Array, room, count: of paths, of the code, and of edges. What is CODE is emptied with the paths only. */
#define CODE(X)                                                                                              \
	X(positions, g->position_room, g->position_count)                                                    \
	X(edge_lists, g->position_room, g->position_count)                                                   \
	X(decisions, g->position_room, g->position_count)                                                    \
	X(where, g->position_room, g->position_count)                                                        \
	X(blocks, g->block_room, g->block_count)
#define PATHS(X)                                                                                             \
	X(paths, g->path_room, g->path_count)                                                                \
	X(path_counts, g->path_room, g->path_count)                                                          \
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
	CODE(RESERVE)
	PATHS(RESERVE)
	RESERVE(edges, g->edge_room, )
	pt_pages_small(g->decisions, g->position_room, sizeof *g->decisions);
	pt_pages_small(g->path_counts, g->path_room, sizeof *g->path_counts);
	g->jumps = calloc(PT_JUMPS, sizeof *g->jumps);
	g->block_mask = g->edge_mask = g->path_mask = HASH_SLOTS - 1;
	g->block_hash = pt_table_create(HASH_SLOTS, sizeof *g->block_hash);
	g->edge_hash = pt_table_create(HASH_SLOTS, sizeof *g->edge_hash);
	g->path_hash = pt_table_create(HASH_SLOTS, sizeof *g->path_hash);
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
	CODE(RELEASE)
	PATHS(RELEASE)
	RELEASE(edges, g->edge_room, )
	RELEASE(path_stats, g->path_room, )
	free(g->jumps);
	pt_table_destroy(g->block_hash, (size_t)g->block_mask + 1, sizeof *g->block_hash);
	pt_table_destroy(g->edge_hash, (size_t)g->edge_mask + 1, sizeof *g->edge_hash);
	pt_table_destroy(g->path_hash, (size_t)g->path_mask + 1, sizeof *g->path_hash);
	for (uint32_t i = g->code_count; i-- > 0;)
		if (g->codes[i]->uid == i)
			free(g->codes[i]);
	free(g->codes);
	pt_pages_release(g->known, KNOWN_BITS / 64, sizeof *g->known);
	memset(g, 0, sizeof *g);
}

/* ---- Recycling -------------------------------------------------------------------------------------- */

/* Makes room in the filter. False: there is none. */
static bool ready_known(struct pt_graph *g)
{
	if (!g->known)
		g->known = pt_pages_reserve(KNOWN_BITS / 64, sizeof *g->known);
	if (!g->known)
		return false;
	if (g->known_count >= KNOWN_BITS / 4) {
		pt_pages_wipe(g->known, KNOWN_BITS / 64, sizeof *g->known);
		g->known_count = 0;
	}
	return true;
}

/* It was there when the graph was recycled before. It is from now on. */
static bool was_known(struct pt_graph *g, uint64_t hash)
{
	uint64_t bit = hash % KNOWN_BITS;
	bool known = g->known[bit / 64] >> bit % 64 & 1;

	g->known_count += !known;
	g->known[bit / 64] |= (uint64_t)1 << bit % 64;
	return known;
}

/*
 * Most blocks, or paths, were there when they were forgotten before, and were executed hardly more often than
 * they were made: four edges a block, one and a half times a path. (Other code, and other versions of it, are
 * other blocks.)
 */
static bool blocks_return(struct pt_graph *g)
{
	uint64_t again = 0;

	for (uint32_t i = 1; i < g->block_count; i++)
		again += was_known(g, pt_hash_mix(g->blocks[i].ip ^ (uint64_t)g->blocks[i].code << 48));
	return again > g->block_count / 2 && (g->sums.edges - g->edges_before) / 4 < g->block_count;
}

static bool paths_return(struct pt_graph *g)
{
	uint64_t again = 0;

	for (uint32_t i = 0; i <= g->path_mask; i++)
		if (g->path_hash[i].path)
			again += was_known(g, g->path_hash[i].high);
	return again > g->path_count / 2 && (g->sums.paths - g->paths_before) / 3 < g->path_count / 2;
}

static void forget_paths(struct pt_graph *g)
{
	struct pt_graph_sums sums;

	pt_graph_sum(g, &sums);
	g->sums = sums;
	g->paths_before = sums.paths;
	PATHS(WIPE)
	if (g->path_stats)
		WIPE(path_stats, , g->path_count)
	memset(g->path_hash, 0, ((size_t)g->path_mask + 1) * sizeof *g->path_hash);
	g->path_count = 1;
	g->path_edge_count = 0;
	g->path_bytes = 0;
}

static void forget_code(struct pt_graph *g)
{
	CODE(WIPE)
	memset(g->jumps, 0, PT_JUMPS * sizeof *g->jumps);
	memset(g->block_hash, 0, ((size_t)g->block_mask + 1) * sizeof *g->block_hash);
	g->position_count = g->block_count = 1;
	g->code_bytes = 0;
	g->edges_before = g->sums.edges;
}

static void forget_edges(struct pt_graph *g)
{
	WIPE(edges, , g->edge_count)
	memset(g->edge_hash, 0, ((size_t)g->edge_mask + 1) * sizeof *g->edge_hash);
	g->edge_count = 1;
	g->edge_bytes = 0;
}

static bool much(const struct pt_graph *g, size_t bytes, uint32_t count, uint32_t room)
{
	return bytes >= g->limit_bytes / 4 || count >= room / 2;
}

static bool forgets_paths_alone(const struct pt_graph *g)
{
	return much(g, g->path_bytes, g->path_count, g->path_room) ||
	       g->path_edge_count >= g->path_edge_room / 2;
}

bool pt_graph_forgets_edges(const struct pt_graph *g)
{
	return !forgets_paths_alone(g) && much(g, g->edge_bytes, g->edge_count, g->edge_room);
}

void pt_graph_recycle(struct pt_graph *g)
{
	bool paths_alone = forgets_paths_alone(g), edges = pt_graph_forgets_edges(g);

	if (2 * g->limit_bytes <= g->most_bytes && ready_known(g) &&
	    (paths_alone ? paths_return(g) : blocks_return(g)))
		g->limit_bytes *= 2;
	forget_paths(g);
	if (!paths_alone)
		forget_code(g);
	if (edges)
		forget_edges(g);
	g->cache_full = false;
}

void pt_graph_limit(struct pt_graph *g, size_t bytes)
{
	g->limit_bytes = g->most_bytes = bytes < LIMIT_MIN ? LIMIT_MIN : bytes;
}

void pt_graph_may_grow(struct pt_graph *g, unsigned graphs)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	g->most_bytes = memory / 8 / graphs < MOST_BYTES ? memory / 8 / graphs : MOST_BYTES;
}

void pt_graph_hold(struct pt_graph *g, size_t bytes)
{
	g->held_bytes = bytes;
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
