/*
 * time_bins.h - the table time_bin: what a time line shows of much time.
 */
#ifndef EXPORT_TIME_BINS_H
#define EXPORT_TIME_BINS_H

#include <sqlite3.h>
#include <stdint.h>

#include "export/bases.h"
#include "schema/error.h"

/*
 * Sums up the rows of a trace that are in the database by now. first_tsc, last_tsc: the trace's,
 * PTR_NO_TSC: it has no times, and there is nothing to sum up. The finest bins have some hundred things
 * each, of all lanes, and the coarsest ones are about a thousand. 0, or -1: PT_ERR_NO_MEMORY, SQLite's
 * error.
 */
int time_bins_fill(sqlite3 *db, const struct trace_bases *bases, uint64_t first_tsc, uint64_t last_tsc,
		   struct pt_error *e);

#endif
