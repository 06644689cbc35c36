/*
 * dictionary.h - edges and paths, and sums over the runs that take them: tables edge, path, path_chunk and edge_chunk.
 *
 * Numbers of edges and paths are the stream's here; the ids in the tables are base + number. Memory: 88 bytes an edge
 * and 80 a path. Runs are many and must find them here; what the paths consist of is in a scratch file until the end.
 */
#ifndef EXPORT_DICTIONARY_H
#define EXPORT_DICTIONARY_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "schema/records.h"

enum {
	DICTIONARY_CHUNK_RUNS = 4096, /* of path_chunk */
	DICTIONARY_CHUNK_PATHS = 256, /* of edge_chunk */
	DICTIONARY_CHUNK_BITS = 24
};

struct dictionary_bases { /* what is added to the stream's numbers */
	int64_t trace;	  /* the trace itself */
	int64_t symbol, edge, path, machine;
};

struct dictionary;

/* scratch: a file of the caller's. NULL: PT_ERR_NO_MEMORY, or SQLite's. */
struct dictionary *dictionary_create(sqlite3 *db, int scratch, const struct dictionary_bases *bases,
				     struct pt_error *e);
void dictionary_destroy(struct dictionary *d);

/* The next edge, the next path. PT_ERR_REFUSED: more than the tables can hold. */
int dictionary_edge(struct dictionary *d, const struct ptr_edge *edge, struct pt_error *e);
int dictionary_path(struct dictionary *d, const struct ptr_path *path, struct pt_error *e);

/* A run took the path. id: the run's in the database; machine: whose thread it was, 0 unknown. */
int dictionary_run(struct dictionary *d, int64_t id, uint32_t path, uint32_t repeats, uint32_t machine,
		   struct pt_error *e);
/* insns_timed instructions of the path took so many cycles. */
void dictionary_timed(struct dictionary *d, uint32_t path, uint64_t insns_timed, double cycles);

struct dictionary_path {
	uint64_t insns; /* the tail's too */
	uint32_t not_taken;
	uint32_t edges;
	uint32_t interrupts;		/* bit n: edge n is of kind async, and where it went was seen */
	uint32_t first_insns;		/* up to the first edge */
	uint32_t first_kind, last_kind; /* of its first and last edge */
};
struct dictionary_path dictionary_path_of(const struct dictionary *d, uint32_t path);

/* After the last: fills the tables, and tells symbols and dsos whose they are. */
int dictionary_finish(struct dictionary *d, struct pt_error *e);

#endif
