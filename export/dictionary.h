/*
 * dictionary.h - edges and paths, with sums over the runs that take them: tables edge, path,
 * path_chunk and edge_chunk.
 *
 * Numbers of edges and paths are the stream's; ids in the tables are base + number. In memory an edge
 * takes 88 bytes, a path 80: runs are many and must find them. The edges of each path are in a
 * scratch file until the end.
 */
#ifndef EXPORT_DICTIONARY_H
#define EXPORT_DICTIONARY_H

#include <sqlite3.h>
#include <stdint.h>

#include "export/bases.h"
#include "schema/records.h"

struct code_rows;
struct dictionary;

/* scratch: a file of the caller's. bases are copied. NULL: PT_ERR_NO_MEMORY, or SQLite's error. */
struct dictionary *dictionary_create(sqlite3 *db, int scratch, const struct trace_bases *bases,
				     struct pt_error *e);
void dictionary_destroy(struct dictionary *d); /* NULL is fine */

/* The next edge, the next path. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_IO, SQLite's error, PT_ERR_REFUSED
 * (more than the tables can hold). */
int dictionary_edge(struct dictionary *d, const struct ptr_edge *edge, struct pt_error *e);
int dictionary_path(struct dictionary *d, const struct ptr_path *path, struct pt_error *e);

/* A run, by its id in the database, took the path. machine: number of the one whose thread it was, 0
 * unknown. 0, or -1 as above. */
int dictionary_run(struct dictionary *d, int64_t id, const struct ptr_run *run, uint32_t machine,
		   struct pt_error *e);
/* insns_timed instructions of the path took that many core cycles. */
void dictionary_timed(struct dictionary *d, uint32_t path, uint64_t insns_timed, double cycles);

/* What runs need to know of a path. */
struct dictionary_path {
	uint64_t insns; /* with the tail's */
	uint32_t not_taken;
	uint32_t edges;
	uint32_t interrupts;		/* bit n: edge n is of kind async, and its target was seen */
	uint32_t first_insns;		/* up to the first edge */
	uint32_t first_kind, last_kind; /* of the first and last edge */
};
struct dictionary_path dictionary_path_of(const struct dictionary *d, uint32_t path);

/* After the last run: fills the tables, and sets symbol.machine and dso.machine. code is told what ran. 0, or -1 as
 * above. */
int dictionary_finish(struct dictionary *d, struct code_rows *code, struct pt_error *e);

#endif
