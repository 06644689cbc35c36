/*
 * sql.h - what a Perfetto trace is made of: queries/perfetto/NAME.sql, which begin with what they answer.
 */
#ifndef QUERIES_PERFETTO_SQL_H
#define QUERIES_PERFETTO_SQL_H

#include <sqlite3.h>
#include <stdint.h>

#include "schema/error.h"
#include "schema/perf_time.h"

/* What is asked of each. */
struct perfetto_range {
	int64_t trace;		    /* INT64_MIN: all of them */
	int64_t after_ns, until_ns; /* INT64_MIN, INT64_MAX: not bounded */
	int64_t time_zero, time_mult,
	    time_shift; /* of the trace, as in the view `traces`; time_shift is below 64 */
};

static inline int64_t perfetto_time(const struct perfetto_range *r, int64_t tsc)
{
	return pt_perf_time_ns(r->time_zero, r->time_mult, r->time_shift, tsc);
}

/* The statement of that file, with macros expanded and its parameters bound, for sqlite3_finalize(). NULL:
 * PT_ERR_BAD_INPUT (SQLite's message), PT_ERR_NO_MEMORY. */
sqlite3_stmt *perfetto_prepare(sqlite3 *db, const char *name, const struct perfetto_range *range,
			       struct pt_error *e);

#endif
