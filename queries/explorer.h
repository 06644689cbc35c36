/*
 * explorer.h - what `pt-query serve` answers to a browser: a page that asks databases as its user looks
 * about in them.
 *
 *   (nothing)       the page; explorer.js, explorer.css: its parts
 *   api/about       JSON: databases and their traces, queries with titles and parameters, views with columns
 *   api/query       JSON: the rows of name=NAME (a canned query, annotate) or sql=STATEMENT; p.X=Y: parameter
 *   api/lanes       JSON: the time line's lanes
 *   api/spans       JSON: what takes time in them, between p.after and p.until
 *   api/marks       JSON: events and interrupts there
 *   api/calls       JSON: the longest calls of threads there
 *   report          the report of the database
 *
 * db=N says which database, counted from 0 (the default); of api/query also db=all. limit=N: rows,
 * EXPLORER_ROWS when not given. Rows are {"columns":[],"rows":[[]],"more":BOOL,"elapsed_ns":N}; numbers that
 * a browser would round are texts. What fails is {"error":TEXT} with status 400, or 503: its time was over,
 * or the database cannot be read now.
 *
 * Statements only read; each has a connection of its own, at most EXPLORER_VALUE_BYTES in a value, the time
 * that the options allow, and is stopped when its client goes away, as is what decodes branches for it.
 */
#ifndef QUERIES_EXPLORER_H
#define QUERIES_EXPLORER_H

#include <stdbool.h>
#include <stddef.h>

#include "queries/longest.h"
#include "queries/serve/server.h"

enum {
	EXPLORER_ROWS = 1000,
	EXPLORER_ROWS_MAX = 100000,
	EXPLORER_VALUE_BYTES = 16 << 20,
	EXPLORER_TIMEOUT_S = 30
};

struct explorer {
	const char *const *databases; /* paths */
	size_t database_count;
	struct longest *longest;  /* for as many */
	const char *query_folder; /* NULL: none */
	long long timeout_s;
	bool raw_names;
};

/* server_options' answer; arg is a struct explorer. */
void explorer_answer(void *arg, const struct server_request *r, struct server_answer *a);

#endif
