/*
 * call_path_ranks.h - which call paths call_group has most often: table call_path_code, short numbers for them.
 * Counts are in a scratch file but for those used last, so memory is bounded however many call paths there are.
 */
#ifndef EXPORT_CALL_PATH_RANKS_H
#define EXPORT_CALL_PATH_RANKS_H

#include <stdint.h>

#include "export/bases.h"
#include "schema/error.h"

struct inserter;

enum { CALL_PATH_CODES = 2047 /* numbers below it take one byte or two in a text */ };

struct call_path_ranks;

/* scratch: a file of the caller's. bases are copied. NULL: PT_ERR_NO_MEMORY, or SQLite's error. */
struct call_path_ranks *call_path_ranks_create(struct inserter *inserter, int scratch,
					       const struct trace_bases *bases, struct pt_error *e);
void call_path_ranks_destroy(struct call_path_ranks *r); /* NULL is fine */
/* It is the smallest call path of the calls that return in a run (calls.h). 0 is none. 0, or -1:
 * PT_ERR_IO. */
int call_path_ranks_add(struct call_path_ranks *r, uint32_t path, struct pt_error *e);
/* After the last one: gives short codes to those that were that most often, and fills the table. 0, or -1:
 * PT_ERR_IO, SQLite's error. */
int call_path_ranks_finish(struct call_path_ranks *r, struct pt_error *e);
/* From then on: the path's code, below CALL_PATH_CODES; 0: it has none. 0, or -1: PT_ERR_IO. */
int call_path_ranks_code(struct call_path_ranks *r, uint32_t path, uint32_t *ret, struct pt_error *e);

#endif
