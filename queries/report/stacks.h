/*
 * stacks.h - the report's call stacks: what each thread spent in each call path itself, callees apart, as the
 * query folded counts it.
 *
 * Rows are thread, path, insns, cycles, time. What is not known is NULL. They are the stacks with most of
 * one of the three, as a share of the trace's; path NULL: all others of the thread.
 */
#ifndef QUERIES_REPORT_STACKS_H
#define QUERIES_REPORT_STACKS_H

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>

#include "queries/report/path_set.h"
#include "schema/error.h"

/* Writes as json_rows(). limit: of stacks; their paths go into the set. Returns as json_rows(), or -1:
 * PT_ERR_NO_MEMORY. */
int stacks_write(sqlite3 *db, int64_t trace, int limit, struct path_set *paths, FILE *out,
		 struct pt_error *e);

#endif
