/*
 * code_map.h - the executed instructions of a record stream, by address and version of the code.
 *
 * An instruction has a number, from 1 on in the order of the stream. Those of a CODE record, a block, lie
 * one after the other, so it is kept once where they begin, and of each its length only: every program that
 * a system begins has addresses of its own, so there may be millions of instructions.
 */
#ifndef EXPORT_CODE_MAP_H
#define EXPORT_CODE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "schema/hash.h"
#include "schema/records.h"

struct code_block {
	uint64_t ip;
	size_t bytes; /* in code_map.bytes: where its code begins */
	uint32_t version, symbol;
	uint32_t first; /* number of its first instruction */
	uint16_t size;	/* bytes */
	uint8_t count, bits;
};

struct code_map {
	struct code_block *blocks;
	size_t block_count, block_room;
	/* By number, less 1. */
	uint8_t *lens;
	uint32_t *block_of; /* index in blocks */
	size_t count, len_room, block_of_room;
	uint8_t *bytes;
	size_t held, bytes_room;
	/* Where a block comes into 64 bytes of code: number n of the hash is places[n - 1]. */
	struct pt_hash hash;
	struct code_place *places;
	size_t place_count, place_room;
};

/* 0, or -1 (PT_ERR_NO_MEMORY). code_map_deinit() in any case. */
int code_map_init(struct code_map *m, struct pt_error *e);
void code_map_deinit(struct code_map *m);

/* 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (an instruction twice). */
int code_map_add(struct code_map *m, const struct ptr_code *code, struct pt_error *e);

/* The instruction at ip; 0: it is not known. */
uint32_t code_map_find(const struct code_map *m, uint32_t version, uint64_t ip);

static inline const struct code_block *code_map_block(const struct code_map *m, uint32_t n)
{
	return &m->blocks[m->block_of[n - 1]];
}

/* The instruction that follows n in the code; 0: it was not executed. */
static inline uint32_t code_map_next(const struct code_map *m, uint32_t n)
{
	const struct code_block *b = code_map_block(m, n);

	return n - b->first + 1 < b->count ? n + 1 : code_map_find(m, b->version, b->ip + b->size);
}

#endif
