/*
 * load.h - a trace in a scratch SQLite database becomes one in ClickHouse, exactly once (export/clickhouse.h).
 */
#ifndef EXPORT_CLICKHOUSE_LOAD_H
#define EXPORT_CLICKHOUSE_LOAD_H

#include <sqlite3.h>

#include "export/clickhouse/server.h"

struct load {
	struct server *server;
	const char *identity; /* of the recording */
	bool replace;
	bool *ret_there;       /* as in pt_sink_options */
	const char *busy_with; /* now, NULL: nothing */
	/* From here on load_trace()'s own. */
	uint64_t load;
	unsigned generation;
	uint16_t day;
	char *host, *identity_sql, *host_sql;
	int64_t trace;
};

/* A trace's number: made of its recording's identity, 1 to 2^52 - 1. */
int64_t load_trace_number(const char *identity);
/* 0; PT_ERR_REFUSED: it is there already, and not to be replaced. */
int load_check(struct load *l, struct pt_error *e);
/* The database's only trace. 0 or -1; from then on the trace is to be seen, or never will be of this load. */
int load_trace(struct load *l, sqlite3 *db, struct pt_error *e);
void load_deinit(struct load *l); /* what load_trace() has kept */

/* Deletes the rows of loads that nobody sees any more, where that is possible. */
int load_clean(struct server *s, struct pt_error *e);
/* Gives up all loads of a recording. 0 or -1. */
int load_give_up(struct server *s, const char *condition, struct pt_error *e);

#endif
