/*
 * report.h - the data of a report, as elements of its page.
 *
 * Each is <script type="application/json" id="data-NAME">: NAME.sql's columns and rows, "paths" the call
 * paths that the others name, "annotate" the hottest functions. What there is much of is cut to limits that
 * keep a page below 10 MB; the element "limits" says which they are.
 */
#ifndef QUERIES_REPORT_REPORT_H
#define QUERIES_REPORT_REPORT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/error.h"

struct report_options {
	int64_t trace;	    /* 0: the database's first */
	const char *suffix; /* of the elements' ids: "" or that of the trace to compare with */
	bool stacks_only;   /* what a comparison needs */
	bool raw_names;
};

/* 0, or -1: PT_ERR_USAGE (there is no such trace), PT_ERR_BAD_INPUT, PT_ERR_NO_MEMORY, PT_ERR_REFUSED (its
 * time was over). */
int report_data(sqlite3 *db, const struct report_options *o, FILE *out, struct pt_error *e);

#endif
