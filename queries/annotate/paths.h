/*
 * paths.h - the paths that touch a function, and the runs that took them.
 */
#ifndef QUERIES_ANNOTATE_PATHS_H
#define QUERIES_ANNOTATE_PATHS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "queries/annotate/function.h"
#include "schema/records.h"

struct branch {
	uint64_t from, to; /* 0: not seen */
	uint32_t kind;	   /* enum ptr_kind */
	bool to_entry;	   /* `to` is where a symbol begins */
	int64_t to_symbol; /* id, 0 none */
};

struct code_path {
	uint64_t start, end; /* start 0: not seen. end: where the tail ends, 0 none */
	uint64_t times;
	uint32_t version, tail_insns, branches;
	uint32_t branch[PTR_PATH_EDGES]; /* index into paths.branches */
	uint32_t insns[PTR_PATH_EDGES];
};

struct paths {
	struct branch *branches; /* of the trace */
	size_t branch_count, branch_room;
	int64_t first_branch, first_path; /* ids of number 0 */
	struct code_path *all;		  /* those that touch it, in the order of `number` */
	size_t count, room;
	uint32_t *number; /* of path id - first_path: index into all + 1, 0: it does not touch the function */
	size_t path_count;
};

/* Of the function's trace. times: in all of it. 0, or -1: PT_ERR_BAD_INPUT, PT_ERR_NO_MEMORY. */
int paths_load(struct paths *p, sqlite3 *db, const struct fn *f, struct pt_error *e);
void paths_deinit(struct paths *p);

/* A run that took a path that touches the function. */
struct path_run {
	uint32_t path; /* index into all */
	uint32_t repeats;
	bool first; /* of its thread */
	bool cut;   /* something before it was not seen */
};

/*
 * All such runs, thread by thread, in the order of time. thread: of one with that tid or name; NULL: all. Returns 0, or
 * -1 as above or as the callback, which returns 0.
 */
int paths_walk(const struct paths *p, sqlite3 *db, const struct fn *f, const char *thread,
	       int (*run)(void *arg, const struct path_run *r, struct pt_error *e), void *arg,
	       struct pt_error *e);

#endif
