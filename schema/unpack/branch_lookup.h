/*
 * branch_lookup.h - what the branches of the view `branches` are made of, by id, from caches of fixed size:
 * paths, edges, symbols, files, and whose slice it was.
 *
 * What a function returns is valid until the next call of the same one. known: there is such a row; the rest
 * is zero else.
 */
#ifndef SCHEMA_UNPACK_BRANCH_LOOKUP_H
#define SCHEMA_UNPACK_BRANCH_LOOKUP_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "schema/error.h"

enum { LOOKUP_PATH_EDGES = 32 /* of a path, at most */ };

/* Numbers are UNPACK_UNKNOWN, and texts NULL, where the column is NULL. */
struct lookup_path {
	int64_t id;
	bool known;
	uint32_t edges;
	int64_t edge[LOOKUP_PATH_EDGES]; /* the edges' ids; UNPACK_UNKNOWN in a damaged one */
	uint32_t insns[LOOKUP_PATH_EDGES];
};

struct lookup_edge {
	int64_t id;
	bool known;
	int64_t from_ip, to_ip, kind, from_symbol, to_symbol;
};

struct lookup_symbol {
	int64_t id;
	bool known;
	int64_t start_ip, dso;
	char *name;
};

struct lookup_name { /* of a file or of a kind of branch */
	int64_t id;
	bool known;
	char *name;
};

struct lookup_slice {
	int64_t id;
	bool known; /* with its trace */
	int64_t trace, cpu, vcpu, pid, tid, time_zero, time_mult, time_shift;
	char *machine, *comm;
};

struct branch_lookup;

/* NULL: as unpack_sql_error() or PT_ERR_NO_MEMORY. It takes 14 MB, and the names. */
struct branch_lookup *branch_lookup_create(sqlite3 *db, struct pt_error *e);
void branch_lookup_destroy(struct branch_lookup *l); /* NULL is fine */

/* NULL: as unpack_sql_error(), PT_ERR_NO_MEMORY; of a path also unpack_damaged(). */
const struct lookup_path *branch_lookup_path(struct branch_lookup *l, int64_t id, struct pt_error *e);
const struct lookup_edge *branch_lookup_edge(struct branch_lookup *l, int64_t id, struct pt_error *e);
const struct lookup_symbol *branch_lookup_symbol(struct branch_lookup *l, int64_t id, struct pt_error *e);
const struct lookup_name *branch_lookup_dso(struct branch_lookup *l, int64_t id, struct pt_error *e);
const struct lookup_name *branch_lookup_kind(struct branch_lookup *l, int64_t id, struct pt_error *e);
const struct lookup_slice *branch_lookup_slice(struct branch_lookup *l, int64_t id, struct pt_error *e);

#endif
