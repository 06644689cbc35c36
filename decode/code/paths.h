/*
 * paths.h - the graph's dictionaries: edges (distinct taken branches) and paths (sequences of them).
 *
 * Both are interned. Their numbers begin at 1 and are the graph's own; output/emit.h gives them those of the
 * record stream.
 */
#ifndef DECODE_CODE_PATHS_H
#define DECODE_CODE_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/insn.h"
#include "schema/error.h"
#include "schema/records.h"

struct pt_code;
struct pt_graph;

struct pt_edge {
	uint64_t from, to;
	uint32_t code;	 /* uid: an edge outlives its code's versions */
	uint32_t number; /* in the record stream, 0 not there yet (output/emit.h) */
	uint32_t block;	 /* that was at `to` last; check whether it still is */
	uint8_t kind;	 /* enum ptr_kind */
	bool ends_trace; /* as in struct ptr_edge */
	/* What it does to a call stack, 0 not yet asked (output/call_roles.h); and, where that needs it: the
	 * branch instruction's bytes, what the target is named by in a CALL_PATH, whether that is its symbol
	 * and begins there, and the symbol of where it returns to (record numbers, 0 none). */
	uint8_t role;
	uint8_t bytes : 4;
	bool named : 1, first : 1;
	uint32_t place, from_symbol;
};

struct pt_path {
	uint64_t start_ip, end_ip;
	uint64_t times; /* how often run, where path_stats are filled */
	uint32_t first; /* its edges: graph->path_edges[first], count */
	uint32_t code;	/* id */
	/* All of them, with the tail. */
	uint32_t insns;
	uint32_t tail_insns; /* from the last edge's target up to end_ip */
	uint32_t not_taken;  /* conditional branches passed */
	uint32_t number;     /* in the record stream, 0 not there yet (output/emit.h) */
	uint32_t follow;     /* the path that came after it last, and probably will again */
	/* Bit i: edge i has a role; it is of an inner call (output/inner_calls.h). Once role was asked
	 * (output/call_roles.h). */
	uint32_t calls, inner;
	uint8_t count; /* edges */
	uint8_t role;  /* of its edges together, 0 not yet asked (output/call_roles.h) */
	uint8_t mode;  /* enum insn_mode */
	/* One of its edges begins an emulated PTWRITE (emulated_ptwrite.h). */
	bool emulated;
};

/*
 * A slot of the paths' hash table. Paths are equal when 96 bits of their hashes are: comparing the edges
 * would cost two more cache misses per run, and of a billion paths two have the same hash once in 10^11
 * traces.
 */
struct pt_path_slot {
	uint64_t high;
	uint32_t low;
	uint32_t path; /* 0 free */
};

/* What a path adds to --stats: near branches, those not taken too. (tests/oracle/bench_truth.sh has the
 * truth.) */
struct pt_path_stats {
	uint64_t hash;
	uint16_t by_kind[PTR_KINDS];
};

/* What executed paths add up to. */
struct pt_graph_sums {
	uint64_t paths, edges, not_taken;  /* executed */
	uint64_t hash, by_kind[PTR_KINDS]; /* of path_stats */
};

/* What a branch of a class is in the record stream; PTR_TRACE_END when it is none. */
enum ptr_kind pt_kind_of(enum insn_class cls);
/* The edge leaves from an instruction that was not executed, or only begun. */
static inline bool pt_kind_is_async(unsigned kind)
{
	return kind == PTR_ASYNC || kind == PTR_VMEXIT || kind == PTR_TX_ABORT;
}

/* The edge's number. 0 when the graph is full. */
uint32_t pt_graph_edge(struct pt_graph *g, struct pt_code *code, uint64_t from, uint64_t to,
		       enum ptr_kind kind);
/* The same of an edge with which tracing stopped. to: 0 not seen. */
uint32_t pt_graph_end_edge(struct pt_graph *g, struct pt_code *code, uint64_t from, uint64_t to,
			   enum ptr_kind kind);

/* A path to look up. */
struct pt_path_key {
	struct pt_code *code;
	uint64_t start_ip;
	uint64_t end_ip; /* where straight code after the last edge ends, 0: the path ends with that edge */
	uint32_t *edges; /* the three words after them may be read and written */
	uint32_t count;	 /* of edges, <= PTR_PATH_EDGES */
	enum insn_mode mode;
	/* NULL; or a graph in which this is the path `like_path`, of the same version of the code: a new
	 * path has the same instructions then. */
	const struct pt_graph *like;
	uint32_t like_path;
};
/* A path of so many instructions has places for twice as many edges: the second half of its places in
 * path_until has the higher bits. */
static inline bool pt_path_is_wide(uint32_t insns)
{
	return insns > UINT16_MAX;
}
/* Instructions before edge i of the path, as in struct ptr_path. */
uint32_t pt_path_insns_before(const struct pt_graph *g, const struct pt_path *path, uint32_t i);
/* The path's number, 0 when the graph is full. after: the path before it in the flow (0 none), which
 * remembers what followed. */
uint32_t pt_graph_path(struct pt_graph *g, const struct pt_path_key *key, uint32_t after);

/* From now on, which is before the first path, fills path_stats for each. 0, or -1 (PT_ERR_NO_MEMORY). */
int pt_graph_count_stats(struct pt_graph *g, struct pt_error *e);
void pt_graph_add_sums(struct pt_graph_sums *to, const struct pt_graph_sums *more);
/* Adds up all that was executed so far. */
void pt_graph_sum(const struct pt_graph *g, struct pt_graph_sums *ret);

#endif
