/*
 * path_set.h - the call paths that a report names, and the paths on the way to them.
 */
#ifndef QUERIES_REPORT_PATH_SET_H
#define QUERIES_REPORT_PATH_SET_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/error.h"

struct path_set {
	uint8_t *bits; /* of path ids */
	size_t bytes;
};

/* Makes room for the database's paths. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT. */
int path_set_init(struct path_set *set, sqlite3 *db, struct pt_error *e);
/* For json_watch.see: arg is the set. PT_ERR_BAD_INPUT: the database has no such path. */
int path_set_add(void *arg, int64_t path, struct pt_error *e);
/* Writes all of them: rows of path.sql, callers before those they call. Returns as json_rows(). */
int path_set_write(struct path_set *set, sqlite3 *db, int no_demangle, FILE *out, struct pt_error *e);
void path_set_deinit(struct path_set *set);

#endif
