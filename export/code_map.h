/*
 * code_map.h - the executed instructions of a record stream, by address and version of the code.
 *
 * Every program that a system begins has addresses of its own, so there may be any number of instructions. They
 * are in scratch files, but for what was used last: 20 MB at most. In memory is what finds them: some 30 bytes
 * for each 4096 bytes of addresses that have code.
 *
 *     page of addresses --> line of 64 bytes --> places, where blocks come into the line --> block --> bytes
 *
 * An instruction has a number, from 1 on in the order of the stream. Those of a CODE record, a block, lie
 * one after the other, so it is kept once where they begin, and of each its length only.
 */
#ifndef EXPORT_CODE_MAP_H
#define EXPORT_CODE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "export/paged.h"
#include "schema/hash.h"
#include "schema/records.h"

enum { CODE_MAP_SCRATCHES = 6 };

struct code_map {
	struct code_page *pages; /* number n at n - 1, until code_map_rewind() sorts them */
	size_t page_count, page_room;
	struct pt_hash by_address; /* of numbers of pages */
	size_t count;		   /* of instructions */
	uint64_t block_count, place_count, held_bytes, held_lens;
	struct paged lines;    /* of page number n at n */
	struct paged places;   /* number n at n */
	struct paged blocks;   /* from 0 on */
	struct paged block_of; /* of each 16th instruction */
	struct paged lens, bytes;
	/* Where code_map_next() is. */
	size_t at_page;
	unsigned at_line;     /* the next one */
	uint32_t in_line[64]; /* of the line before it: at a block's first byte its number + 1 */
	unsigned at;	      /* the next one of these */
	uint8_t read[PTR_CODE_INSNS * PTR_INSN_BYTES];
};

/* scratch: files of the caller's. 0, or -1: PT_ERR_NO_MEMORY; code_map_deinit() is due in any case. */
int code_map_init(struct code_map *m, const int scratch[CODE_MAP_SCRATCHES], struct pt_error *e);
void code_map_deinit(struct code_map *m); /* a zeroed one is fine */

/* 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_IO, PT_ERR_BAD_INPUT (an instruction twice). */
int code_map_add(struct code_map *m, const struct ptr_code *code, struct pt_error *e);

/* *ret: the number of the instruction at ip; 0: it is not known. 0, or -1: PT_ERR_IO. */
int code_map_find(struct code_map *m, uint32_t version, uint64_t ip, uint32_t *ret, struct pt_error *e);

/* *ret: the steps-th instruction after that one in the code; where one of these was not executed, the one
 * before it. 0, or -1: PT_ERR_IO. */
int code_map_walk(struct code_map *m, uint32_t number, uint32_t steps, uint32_t *ret, struct pt_error *e);

/* To the first block. Nothing is added, found or walked after that. */
void code_map_rewind(struct code_map *m);
/* The next block by version and address, as it was added; its bytes are the map's, until the next call.
 * *ret_first: the number of its first instruction. 1, or 0: there is none; -1: PT_ERR_IO. */
int code_map_next(struct code_map *m, struct ptr_code *ret, uint32_t *ret_first, struct pt_error *e);

#endif
