/*
 * executed_lines.h - executed instructions by the 64 bytes of code, a line, that they begin in.
 *
 * The instructions of a path are neighbours: so they are found by one search, and one entry of the cache,
 * for each line and not for each instruction. A line belongs to a version of the code (struct ptr_code), a
 * symbol and the code's bits; where two symbols share 64 bytes there are two lines of one address.
 */
#ifndef DECODE_OUTPUT_EXECUTED_LINES_H
#define DECODE_OUTPUT_EXECUTED_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/hash.h"
#include "schema/records.h"

enum { PT_LINE_BYTES = 64 };

struct pt_executed_line;

/* Zeroed: none. pt_executed_lines_init() before anything else. */
struct pt_executed_lines {
	struct pt_hash hash; /* number n is lines[n - 1] */
	struct pt_executed_line *lines;
	size_t count, room;
	size_t last; /* the number of the one that was found last; 0 none */
};

/* An executed instruction. */
struct pt_executed_insn {
	uint64_t ip;
	uint32_t version, symbol;
	uint8_t bits; /* as in struct ptr_code */
	uint32_t len; /* 1..PTR_INSN_BYTES */
	const uint8_t *bytes;
};

/* 0, or -1 (PT_ERR_NO_MEMORY). */
int pt_executed_lines_init(struct pt_executed_lines *l, struct pt_error *e);
void pt_executed_lines_deinit(struct pt_executed_lines *l);

enum pt_executed_added {
	PT_EXECUTED_THERE,   /* it is there, already or now */
	PT_EXECUTED_DIFFERS, /* the version has something else there, and still has */
	PT_EXECUTED_NO_MEMORY
};
enum pt_executed_added pt_executed_lines_add(struct pt_executed_lines *l,
					     const struct pt_executed_insn *insn);

/* Calls put() with each instruction once, as records of instructions that follow each other, by version and
 * line. 0, or -1: put() said so, or PT_ERR_NO_MEMORY (*ret_memory is false then). */
int pt_executed_lines_put(struct pt_executed_lines *l, int (*put)(void *arg, const struct ptr_code *r),
			  void *arg, bool *ret_memory);
/* There are none after it. */
void pt_executed_lines_empty(struct pt_executed_lines *l);

#endif
