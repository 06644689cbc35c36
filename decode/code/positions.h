/*
 * positions.h - where a flow can stand between two packets, and where the next packet leads it.
 *
 * graph.h has the picture. A position is found by its address, but what it leads to is decoded when a flow
 * gets there: the positions after calls are many, and not all of them are returned to.
 */
#ifndef DECODE_CODE_POSITIONS_H
#define DECODE_CODE_POSITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/insn.h"

struct pt_code;
struct pt_graph;

/* What a position's code runs into: the decision, which a packet answers. */
enum pt_decision {
	PT_D_UNRESOLVED, /* of an arc: not followed before, ask pt_graph_follow() */
	PT_D_JCC,	 /* conditional branch: a TNT bit */
	PT_D_RET,	 /* near return: a TNT bit (compressed) or a TIP */
	PT_D_CONT,	 /* no packet: the prefix has no room for more, arc[0] leads on */
	PT_D_IND,	 /* near indirect jump or call: a TIP */
	PT_D_FAR,	 /* far transfer: a TIP or TIP.PGD */
	PT_D_DEAD	 /* the code cannot be followed: its last block says why */
};

/*
 * The code from a position through its decision to the next position. The direct jumps and calls before the
 * decision are its prefix: all arcs of a position share it.
 */
struct pt_arc {
	uint32_t next;	/* position */
	uint32_t push;	/* position after the call, when rise is 1 */
	uint32_t insns; /* from the position up to and including the decision */
	/* Of the stack. 1: the prefix has a call; -1: a return, which leads to the stack's top, not next. */
	int8_t rise;
	uint8_t n_edges;
	uint8_t backward; /* the last edge's target is not after its source */
	uint8_t decision; /* enum pt_decision of `next`; PT_D_UNRESOLVED: nothing else is valid */
};

/* Two to a cache line: what the hot loop walks along. */
union pt_position {
	/* JCC: not taken, taken. CONT: [0]. RET: [1], a compressed return. */
	struct pt_arc arc[2];
	/* The others; of RET the prefix only. */
	struct {
		struct pt_arc prefix; /* to the decision; its next and decision are 0 */
		/* An inline cache: the target that was seen last, to be compared as a whole. */
		uint64_t ip;
		uint32_t next;
		uint8_t decision, backward, calls;
	} ind;
};

/*
 * The edges along a position's arcs, in order: those of the prefix, three at most, and then that of a JCC
 * that is taken. Where the decision has several targets, that to the last one is PT_BRANCH_EDGE. All four may
 * be read of any arc.
 */
struct pt_edge_list {
	uint32_t edges[4];
	union {
		uint32_t next; /* PT_D_RET: that target, as a position */
		uint32_t push; /* PT_D_IND that calls: the position after the call, else 0 */
	};
	uint8_t backward, decision; /* PT_D_RET: of that target */
};
#define PT_BRANCH_EDGE 3

/* The rest of a position, which the hot loops do not need. */
struct pt_where {
	uint64_t ip;
	uint32_t code : 30; /* id */
	uint32_t mode : 2;  /* enum insn_mode */
	/* Of the position's code the last block, which ends in the decision or is dead; PT_D_CONT: the one
	 * where the code continues; until pt_graph_decision(), the first. */
	uint32_t block;
};

/* Where an indirect branch or return led, for those with several targets. A direct-mapped cache. */
struct pt_jump {
	uint64_t to;	   /* the target's address; of a compressed return the position after the call */
	uint32_t position; /* the branch's, 0 free */
	uint32_t edge, next;
	uint8_t decision, backward;
};
#define PT_JUMPS (1u << 14)

/* The position at ip. Never 0 but when the graph is full. */
uint32_t pt_graph_position(struct pt_graph *g, struct pt_code *code, uint64_t ip, enum insn_mode mode);
/* What the position runs into, decoding its code if that was not done yet: enum pt_decision. */
uint8_t pt_graph_decision(struct pt_graph *g, uint32_t position);
/* Resolves arc `bit` (PT_D_CONT: 0) of a position. False when the graph is full. */
bool pt_graph_follow(struct pt_graph *g, uint32_t position, unsigned bit);

#endif
