/*
 * counters.h - the report's counters: instructions and cycles over time, in 400 stretches.
 *
 * Rows are time, length, insns, timed, cycles; a stretch without runs has none. timed: instructions whose
 * cycles are known: these are between two timing packets, and count where the stretch between them ends.
 * timed and cycles are NULL where no cycles are known.
 */
#ifndef QUERIES_REPORT_COUNTERS_H
#define QUERIES_REPORT_COUNTERS_H

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/error.h"

/* Writes as json_rows(). All runs are read (six million take 0.25 s). 0, or -1: as json_rows(),
 * PT_ERR_NO_MEMORY. */
int counters_write(sqlite3 *db, int64_t trace, FILE *out, struct pt_error *e);

#endif
