/*
 * run_chunks.h - when thousands of runs were, so that those of a time are found without looking at each
 * group: table run_chunk (schema/tables.sql).
 */
#ifndef EXPORT_RUN_CHUNKS_H
#define EXPORT_RUN_CHUNKS_H

#include "export/run_rows.h"
#include "schema/error.h"

struct inserter;

struct run_chunks;

struct run_chunks *run_chunks_create(struct inserter *inserter,
				     struct pt_error *e); /* NULL: PT_ERR_NO_MEMORY, or SQLite's error */
void run_chunks_destroy(struct run_chunks *c);		  /* NULL is fine */
/* The next group, in the order of ids; a chunk that is full is inserted. 0, or -1: SQLite's error. */
int run_chunks_add(struct run_chunks *c, const struct run_group_head *group, struct pt_error *e);
/* After the last group: inserts what is left. As run_chunks_add(). */
int run_chunks_finish(struct run_chunks *c, struct pt_error *e);

#endif
