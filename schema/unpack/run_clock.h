/*
 * run_clock.h - when runs were: what the macro TSC_OF_RUN (schema/macros.sql) says, from a cache.
 */
#ifndef SCHEMA_UNPACK_RUN_CLOCK_H
#define SCHEMA_UNPACK_RUN_CLOCK_H

#include <sqlite3.h>
#include <stdint.h>

#include "schema/error.h"

struct run_clock;

/* NULL: PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (SQLite's message). It takes 8 MB, which hold the last
 * million runs that were asked for when they are one after the other. */
struct run_clock *run_clock_create(sqlite3 *db, struct pt_error *e);
void run_clock_destroy(struct run_clock *c); /* NULL is fine */

/* The run's lower bound, as in the view `run`; UNPACK_UNKNOWN: there is none, or no such run. 0, or -1: as
 * unpack_sql_error(), unpack_damaged(). */
int run_clock_tsc(struct run_clock *c, int64_t run, int64_t *ret_tsc, struct pt_error *e);

#endif
