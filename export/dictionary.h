/*
 * dictionary.h - edges and paths, with sums over the runs that take them: tables edge, path, path_chunk and
 * edge_chunk.
 *
 * Numbers of edges and paths are the stream's. An edge's id in the tables is base + number. Ids of paths
 * are given after the last run, the smallest to those that most runs have, for they take the least room
 * there. Edges and paths are in scratch files, of which what was used last is in memory, 100 bytes each:
 * runs are many and must find them. The edges of each path are in another one until the end.
 */
#ifndef EXPORT_DICTIONARY_H
#define EXPORT_DICTIONARY_H

#include <stdint.h>

#include "export/bases.h"
#include "schema/records.h"

struct inserter;

struct code_rows;
struct dictionary;

enum { DICTIONARY_SCRATCHES = 3 };

/*
 * scratch: files of the caller's. bases are copied. NULL: PT_ERR_NO_MEMORY, or SQLite's error. What returns
 * no error below keeps that of a scratch file (PT_ERR_IO) for the next that does.
 */
struct dictionary *dictionary_create(struct inserter *inserter, const int scratch[DICTIONARY_SCRATCHES],
				     const struct trace_bases *bases, struct pt_error *e);
void dictionary_destroy(struct dictionary *d); /* NULL is fine */

/* The next edge, the next path. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_IO, SQLite's error, PT_ERR_REFUSED
 * (more than the tables can hold). */
int dictionary_edge(struct dictionary *d, const struct ptr_edge *edge, struct pt_error *e);
int dictionary_path(struct dictionary *d, const struct ptr_path *path, struct pt_error *e);

/* A run took the path. machine: number of the one whose thread it was, 0 unknown. */
void dictionary_run(struct dictionary *d, const struct ptr_run *run, uint32_t machine);
/* Runs that are not there took the path. */
void dictionary_path_sum(struct dictionary *d, const struct ptr_path_sum *sum);
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
struct dictionary_path dictionary_path_of(struct dictionary *d, uint32_t path);

/* After the last run: gives paths their ids. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_IO. */
int dictionary_rank(struct dictionary *d, struct pt_error *e);

/* What rows of runs have instead of a path's number. */
struct dictionary_place {
	uint32_t id;
	uint32_t stretch_insns; /* as in table path; 0: none */
};
/* After dictionary_rank(), of each run in the order of ids. 0, or -1: PT_ERR_NO_MEMORY, SQLite's error,
 * PT_ERR_REFUSED (more than the tables can hold). */
int dictionary_run_at(struct dictionary *d, uint32_t path, int64_t run, struct dictionary_place *ret,
		      struct pt_error *e);
/* The id of a path, after dictionary_rank(). */
int64_t dictionary_path_id(struct dictionary *d, uint32_t path);

/* At the end: fills the tables, and sets symbol.machine and dso.machine. code gets what ran. 0, or -1 as
 * above. */
int dictionary_finish(struct dictionary *d, struct code_rows *code, struct pt_error *e);

#endif
