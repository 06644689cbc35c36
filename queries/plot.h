/*
 * plot.h - a statement's rows as a picture of characters, for terminals (pt-query --plot).
 *
 * Rows with le_ns and cumulative_count are histograms (vmexit-latency-histogram): a bar for each length
 * from the first to the last that there are any of, for each reason. Rows with time_ns are a line of eight
 * heights for each column of numbers: from the least, or 0, to the largest; blank where nothing is known.
 */
#ifndef QUERIES_PLOT_H
#define QUERIES_PLOT_H

#include <sqlite3.h>
#include <stdio.h>

#include "schema/error.h"

/* 0, or -1: PT_ERR_USAGE (rows that are neither), PT_ERR_BAD_INPUT (SQLite's message), PT_ERR_NO_MEMORY. */
int plot_print(sqlite3_stmt *statement, FILE *out, struct pt_error *e);

#endif
