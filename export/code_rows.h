/*
 * code_rows.h - the executed instructions, and how often each ran: table code.
 *
 * Instructions come one by one with the record stream, and how often they ran by straight stretches: a path
 * says where execution entered straight code and how many instructions further on it left it. So each
 * stretch is two sums, at its first and at its last instruction, and one walk in the order of addresses
 * makes counts of them.
 */
#ifndef EXPORT_CODE_ROWS_H
#define EXPORT_CODE_ROWS_H

#include <stdint.h>

#include "export/bases.h"
#include "export/code_map.h"
#include "schema/records.h"

struct inserter;

enum { CODE_SCRATCHES = CODE_MAP_SCRATCHES + 2 };

struct code_rows;
struct source_lines;

/* scratch: files of the caller's. bases are copied. NULL: PT_ERR_NO_MEMORY, or SQLite's error. */
struct code_rows *code_rows_create(struct inserter *inserter, const int scratch[CODE_SCRATCHES],
				   const struct trace_bases *bases, struct pt_error *e);
void code_rows_destroy(struct code_rows *c); /* NULL is fine */

/* The next CODE. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_IO, PT_ERR_BAD_INPUT (an instruction twice). */
int code_rows_add(struct code_rows *c, const struct ptr_code *code, struct pt_error *e);

/* *ret: the instruction at ip, 0 when it is not known. 0, or -1: PT_ERR_IO. */
int code_rows_find(struct code_rows *c, uint32_t version, uint64_t ip, uint32_t *ret, struct pt_error *e);

/* Instructions that ran one after the other. */
struct code_stretch {
	uint32_t first; /* as code_rows_find() has it */
	uint32_t last;	/* 0: the insns - 1st after it */
	uint32_t insns;
	uint64_t times;
	uint32_t machine; /* number of the one whose thread it was, 0 unknown */
	double timed,
	    cycles; /* of each instruction: how many of these times the cycles are known, and which */
};
/* After the last CODE. Instructions that are not known are left out. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_IO. */
int code_rows_ran(struct code_rows *c, const struct code_stretch *s, struct pt_error *e);

/*
 * Fills the tables code and source_file, and symbol.machine of symbols that no branch has led to or from.
 * 0, or -1: SQLite's error, PT_ERR_NO_MEMORY, PT_ERR_IO.
 */
int code_rows_finish(struct code_rows *c, struct source_lines *lines, struct pt_error *e);

#endif
