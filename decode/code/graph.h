/*
 * graph.h - code as a graph that a trace is followed through, each instruction decoded once.
 *
 * A trace has packets only for what the code itself does not say: a TNT bit for each conditional branch, a
 * TIP for each indirect one. So a flow takes turns: it runs through code that needs no packet, up to a
 * decision; then a packet answers that. The graph makes one table entry of such a turn.
 *
 *     code                          positions
 *
 *     A:    mov  rdi, rbx           A   a flow can stand here: a packet has led to it
 *     A+3:  call F
 *     R:    ...                     R   where that call returns to: not decoded before a flow gets there
 *
 *     F:    test rdi, rdi
 *     F+3:  jz   Z                      the decision of A
 *     N:    inc  rax                N   where TNT bit 0 leads
 *     N+3:  ret                         the decision of N
 *     Z:    ...                     Z   where TNT bit 1 leads
 *
 *                     +--------------- position A ---------------+
 *                     |  prefix: 4 instructions, the edge        |
 *                     |          A+3 -> F, return address R      |
 *                     |  decision: JCC at F+3                    |
 *                     +------------------------------------------+
 *              TNT bit 0 |                          | TNT bit 1
 *                 arc[0] |                          | arc[1]
 *       edges { A+3 -> F }                          edges { A+3 -> F, F+3 -> Z }
 *                        v                          v
 *                +- position N -+           +- position Z -+
 *                | decision RET |           | ...          |
 *
 * The parts, each with a header, and each made on first use:
 *  - basic block (blocks.h): straight code up to its first branch. A, F and N above begin one each.
 *  - position (positions.h): an address where a flow can stand between two packets. From there code runs
 *    straight, through direct jumps and calls, to the decision. It lies directly after a branch that a packet
 *    has reported: the flow never stands further on than packets have confirmed. So when a FUP, a timing
 *    packet or a PSB comes next, the flow can still walk, block by block, to the place that it means.
 *  - arc (positions.h): from a position through its decision to the next position, for one answer. A TNT bit
 *    follows one arc, which is one load. Its edges are in an array beside it.
 *  - edges and paths (paths.h): taken branches, and sequences of them, interned: what the record stream is
 *    made of.
 *  - memos (memos.h): a whole path, or what one packet led to, cached by the packets' bytes.
 *
 * Blocks and positions belong to a code: one version of one address space. When its mappings have changed,
 * pt_code_refresh() gives it a new id, and all is decoded anew. Positions of the old version remain valid
 * memory, but must be looked up again by their address.
 */
#ifndef DECODE_CODE_GRAPH_H
#define DECODE_CODE_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/code/blocks.h"
#include "decode/code/address_space.h"
#include "decode/code/memos.h"
#include "decode/code/paths.h"
#include "decode/code/positions.h"

struct pt_code {
	struct img_space *space;
	uint32_t generation, changes; /* of the space, when this version began */
	bool holes;		      /* something was looked for where nothing was mapped */
	bool unknown_process; /* the space is unknown_process.h's: code that is missing is some process's */
	bool nested;	      /* of nested guests: the space is empty */
	uint32_t id;	      /* of this version: its index in the graph */
	uint32_t uid;	      /* of all versions: the id of the first */
	uint64_t switch_ip; /* of a kernel: where it switches threads, 0 unknown; a position is made there */
	/* The graph is of another thread than the space: it reads the code as image.h says for these.
	 * later: it came to code that has to be read by the space's thread first, and took it for none. */
	bool peeks, later;
	uint64_t later_ip; /* where that was last */
};

/*
 * Numbers are indices into these arrays, which have a fixed room and never move. The hash tables are the
 * graph's own and not schema/hash.h's: they are on huge pages, are emptied by pt_graph_recycle(), and that of
 * paths has the key in the slot.
 */
struct pt_graph {
	union pt_position *positions;	     /* from 1 */
	struct pt_edge_list *edge_lists;     /* parallel */
	uint8_t *decisions;		     /* parallel: enum pt_decision */
	struct pt_where *where;		     /* parallel */
	struct pt_jump *jumps;		     /* PT_JUMPS of them */
	struct pt_path_memo *path_memos;     /* PT_PATH_MEMOS of them */
	struct pt_packet_memo *packet_memos; /* PT_PACKET_MEMOS of them */
	uint32_t position_count, position_room;
	struct pt_block *blocks; /* from 1 */
	uint32_t block_count, block_room;
	uint32_t *block_hash;
	uint32_t block_mask;
	struct pt_edge *edges; /* from 1 */
	uint32_t edge_count, edge_room;
	uint32_t *edge_hash;
	uint32_t edge_mask;
	struct pt_path *paths; /* from 1 */
	uint8_t *path_counts;  /* parallel: their edges: what a run that is held back needs */
	uint32_t path_count, path_room;
	struct pt_path_slot *path_hash;
	uint32_t path_mask;
	uint32_t *path_edges;		  /* edges of all paths, one path after the other */
	uint16_t *path_until;		  /* parallel, see pt_path_insns_until() */
	struct pt_path_stats *path_stats; /* parallel to paths; NULL unless pt_graph_count_stats() */
	uint32_t path_edge_count, path_edge_room;
	struct pt_code **codes;
	uint32_t code_count;
	/* Of what is there, without the memos: positions and blocks; edges; paths. */
	size_t code_bytes, edge_bytes, path_bytes;
	uint64_t paths_before, edges_before; /* sums' when the paths, and the code, were forgotten last */
	size_t held_bytes;		     /* by others; pt_graph_hold() */
	size_t limit_bytes, most_bytes;	     /* of all four; pt_graph_may_grow() */
	uint64_t *known; /* bits: what it had when it was recycled (graph.c); NULL: it was not */
	uint32_t known_count;
	bool cache_full; /* the limit is reached: time for pt_graph_recycle() */
	/* Record numbers of paths up to this one have been forgotten (output/definitions.h). */
	uint32_t numbers_after;
	/* Out of memory or room: see pt_graph_set_full(). */
	bool full;
	/* Of a graph whose codes peek: gets the code at later_ip read. True: it can be looked at again.
	 * NULL: it cannot. */
	bool (*read_later)(void *arg, struct pt_code *code);
	void *read_later_arg;
	/* Of all that was executed (pt_graph_count_run()); hash, by_kind: without the paths that are there */
	struct pt_graph_sums sums;
	size_t code_room;
};

/* Instructions from a path's start up to the branch of its edge i, inclusive. first, count, insns: as in struct
 * pt_path. */
static inline uint32_t pt_path_insns_until(const struct pt_graph *g, uint32_t first, uint32_t count,
					   uint32_t insns, uint32_t i)
{
	const uint16_t *until = g->path_until + first + i;

	return until[0] | (pt_path_is_wide(insns) ? (uint32_t)until[count] << 16 : 0);
}

/* As struct pt_where has it: blocks[where[position].block]. */
static inline const struct pt_block *pt_graph_last_block(const struct pt_graph *g, uint32_t position)
{
	return &g->blocks[g->where[position].block];
}

/* A path was executed so many times. */
static inline void pt_graph_count_run(struct pt_graph *g, uint32_t path, uint32_t repeats)
{
	g->sums.paths += repeats;
	g->sums.edges += (uint64_t)g->paths[path].count * repeats;
	g->sums.not_taken += (uint64_t)g->paths[path].not_taken * repeats;
	if (g->path_stats)
		g->paths[path].times += repeats;
}

/* Something has come that takes so many bytes, *sum with all others of its kind. */
static inline void pt_graph_add_bytes(struct pt_graph *g, size_t *sum, size_t more)
{
	*sum += more;
	if (g->code_bytes + g->edge_bytes + g->path_bytes + g->held_bytes >= g->limit_bytes)
		g->cache_full = true;
}
/* Half of the room is left for what comes before the graph is recycled. */
static inline void pt_graph_watch_room(struct pt_graph *g, uint32_t count, uint32_t room)
{
	if (count >= room / 2)
		g->cache_full = true;
}

/* Nothing is added any more, and what is there may lack parts: flows end with an error, and decode
 * nothing from then on (PT_FLOW_FULL). cache_full, too: the fast loops look at no other. */
static inline void pt_graph_set_full(struct pt_graph *g)
{
	g->full = g->cache_full = true;
}

/* 0, or -1 (PT_ERR_NO_MEMORY). */
int pt_graph_init(struct pt_graph *g, struct pt_error *e);
void pt_graph_deinit(struct pt_graph *g);

/* From now on the cache is full when the graph takes that many bytes (at first: PT_GRAPH_BYTES). It may grow
 * beyond by what the current packet needs. Its memos take some 6 MB more. */
#define PT_GRAPH_BYTES ((size_t)160 << 20)
void pt_graph_limit(struct pt_graph *g, size_t bytes);
/* pt_graph_recycle() may double the limit, up to 640 MB, and to an eighth of the machine's memory for so many
 * graphs together: when most of what has filled the graph was known before it was recycled last, and has
 * hardly been used since. Code that runs in turn, and has no room together, would be decoded anew each time. */
void pt_graph_may_grow(struct pt_graph *g, unsigned graphs);
/* So many bytes of the limit are another's, for the graph's sake. */
void pt_graph_hold(struct pt_graph *g, size_t bytes);
/*
 * Forgets paths; where these are less than a quarter of the limit blocks and positions as well, and edges when
 * they are more than that. So memory is bounded however much code a trace runs through. What is run again is
 * decoded again. No flow may hold a position, a path or an edge: see pt_flow_detach().
 */
void pt_graph_recycle(struct pt_graph *g);
/* Whether it would forget edges now, too. */
bool pt_graph_forgets_edges(const struct pt_graph *g);

/* A code over a space (the caller's, which must outlive the graph). The graph owns it. NULL: no memory. */
struct pt_code *pt_graph_code(struct pt_graph *g, struct img_space *space);
/* True when the space has changed since: what was derived from it is forgotten, look positions up again. */
bool pt_code_refresh(struct pt_graph *g, struct pt_code *code);
/* The same, although the space has not changed. */
void pt_code_renew(struct pt_graph *g, struct pt_code *code);

#endif
