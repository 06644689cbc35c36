/*
 * on_demand.h - branches that a database does not hold (pt-decode --detail), decoded from the container
 * when they are asked for: pt-decode --from-psb --time A..B CONTAINER | pt-load SCRATCH, the programs
 * beside pt-query, else those in PATH.
 *
 * The container is the one that was named, else the one that the database has of the trace
 * (traces.container). It must be of the trace's uuid. Names, threads, vCPUs and times are those of the
 * whole trace's decode; ids of branches are not. A range begins some microseconds early, so that what is
 * wanted is not touched by where decoding began.
 */
#ifndef QUERIES_ON_DEMAND_H
#define QUERIES_ON_DEMAND_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "queries/database.h"
#include "schema/error.h"

/* On perf's clock. trace: 0, the one that has the time. */
struct on_demand_range {
	int64_t trace, after_ns, until_ns;
};

/*
 * A scratch database with the branches of the range and some more around them,
 * for sqlite3_close(); its file is gone already. container: NULL, the one that db has. watch: NULL, it
 * is waited for; else the programs are ended when it is over, and statements of the scratch database stop then.
 * NULL: PT_ERR_USAGE (of which trace is not clear), PT_ERR_IO (also: it was over), PT_ERR_REFUSED (no container
 * is known, it is another recording, a program failed).
 */
sqlite3 *on_demand_open(sqlite3 *db, const char *container, const struct on_demand_range *range,
			const struct database_watch *watch, struct pt_error *e);

/* The question to the scratch database. */
struct on_demand {
	sqlite3 *db;
	char texts[3][64]; /* of parameters that the question did not have */
	const char *parameters[8];
	size_t parameter_count;
};

/*
 * For the query branches-between with these parameters ("NAME=VALUE"): 1, *ret is filled, ret->db is to be
 * closed; 0: db itself has the branches (only with container NULL); or -1 as above, also PT_ERR_USAGE: ids
 * of branches say nothing of when, or it is more than longest_ns of the trace.
 */
int on_demand_between(sqlite3 *db, const char *container, const char *const *parameters, size_t count,
		      int64_t longest_ns, const struct database_watch *watch, struct on_demand *ret,
		      struct pt_error *e);

/*
 * Makes the table branches_at(time_from, time_to) known to db's statements: the view branches of these
 * times, inclusive, decoded. container and watch as above; they must live as long as db. 0, or -1:
 * PT_ERR_NO_MEMORY.
 */
int on_demand_register(sqlite3 *db, const char *container, const struct database_watch *watch,
		       struct pt_error *e);

#endif
