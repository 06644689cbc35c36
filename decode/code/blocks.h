/*
 * blocks.h - basic blocks: straight code from an address up to and including its first branch, decoded once.
 *
 * Blocks overlap where code is entered in the middle: a block begins at each address that was asked for, and
 * ends at the same branch. The fall-through of a conditional branch is another block.
 */
#ifndef DECODE_CODE_BLOCKS_H
#define DECODE_CODE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/insn.h"

struct pt_code;
struct pt_graph;

/* Why code cannot be followed. */
enum pt_dead {
	PT_DEAD_NO_CODE, /* nothing is mapped there */
	PT_DEAD_BAD_INSN,
	PT_DEAD_SEGMENT /* insn_target_sure() says no */
};

/* Half a cache line; pt_block_term_ip() and the others below have its addresses. */
struct pt_block {
	uint64_t ip;		    /* of its first instruction */
	int32_t displacement;	    /* of a direct branch: its target from the instruction after it */
	uint32_t next;		    /* the block at next_ip, 0 not yet asked for */
	uint32_t position;	    /* that begins at ip (positions.h), 0 none yet */
	uint32_t code;		    /* id */
	uint16_t term_bytes, bytes; /* from ip: up to term_ip, and up to next_ip */
	uint16_t insns;		    /* up to and including the branch */
	uint8_t cls; /* enum insn_class of the branch; INSN_OTHER: dead, or cut because it got too long */
	uint8_t mode : 2; /* enum insn_mode */
	uint8_t why : 2;  /* dead: enum pt_dead */
	bool dead : 1;	  /* the code cannot be followed beyond term_ip */
	bool rel0 : 1;	  /* a call to the next instruction, which reads the IP and has no return */
	bool mov_cr3 : 1; /* there is a MOV to CR3 in it */
};

/* What is so many bytes after the beginning. Not in 64-bit mode: addresses have 32 bits. */
static inline uint64_t pt_block_address(const struct pt_block *b, unsigned offset)
{
	uint64_t ip = b->ip + offset;

	return b->mode == INSN_64 || !offset ? ip : ip & UINT32_MAX;
}
/* Of the branch; dead: of what could not be decoded. */
static inline uint64_t pt_block_term_ip(const struct pt_block *b)
{
	return pt_block_address(b, b->term_bytes);
}
/* Of the instruction after the branch; dead: term_ip. */
static inline uint64_t pt_block_next_ip(const struct pt_block *b)
{
	return pt_block_address(b, b->bytes);
}
/* Of a direct branch, else 0. */
static inline uint64_t pt_block_target(const struct pt_block *b)
{
	uint64_t to = b->ip + b->bytes + (uint64_t)(int64_t)b->displacement;

	if (b->cls < INSN_JCC || b->cls > INSN_CALL)
		return 0;
	return b->mode == INSN_64 ? to : to & UINT32_MAX;
}

/* The block at ip; NULL when the graph is full (out of memory or room). */
struct pt_block *pt_graph_block(struct pt_graph *g, struct pt_code *code, uint64_t ip, enum insn_mode mode);
/* The block at its next_ip; NULL when the graph is full. */
struct pt_block *pt_graph_next_block(struct pt_graph *g, struct pt_block *b);
/* The number of instructions of b before ip, or -1 when no instruction of b begins at ip. */
int pt_graph_insns_before(struct pt_graph *g, const struct pt_block *b, uint64_t ip);
/*
 * Searches b, without its branch, for an instruction of a class that is not among the first *insns ones.
 * Returns its address and sets *insns to the number of instructions up to and including it; or returns 0 when
 * there is none.
 */
uint64_t pt_graph_find(struct pt_graph *g, const struct pt_block *b, enum insn_class cls, uint32_t *insns);

#endif
