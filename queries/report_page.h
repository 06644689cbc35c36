/*
 * report_page.h - pt-query report: one HTML file that needs no other, with pictures of what a database holds.
 */
#ifndef QUERIES_REPORT_PAGE_H
#define QUERIES_REPORT_PAGE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "schema/error.h"

struct report_page {
	const char *const *databases; /* paths; the second is compared with the first */
	size_t database_count;
	const char *const *parameters; /* "trace=N" */
	size_t parameter_count;
	bool raw_names;
};

/* db: the first database. 0, or -1: PT_ERR_USAGE (another parameter, no such trace, more than two databases),
 * or as database_open(), report_data() and html_section() fail. */
int report_page_write(const struct report_page *page, sqlite3 *db, FILE *out, struct pt_error *e);

#endif
