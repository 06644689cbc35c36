/*
 * server.h - requests to a ClickHouse server, tried again while that may help.
 *
 * The time that is allowed for trouble (options.timeout_s) counts from the first failure until server_well().
 */
#ifndef EXPORT_CLICKHOUSE_SERVER_H
#define EXPORT_CLICKHOUSE_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "export/sink.h"
#include "schema/clickhouse/http.h"

struct server {
	struct clickhouse *clickhouse;
	struct pt_sink_poll poll;
	double timeout_s;
	double trouble_since; /* 0: none */
	unsigned tries;	      /* since then */
	bool sharded;	      /* its tables are Distributed: another server's are not altered */
};

/* 0, or -1: as clickhouse_create(). */
int server_init(struct server *s, const char *url, const struct pt_sink_options *options, struct pt_error *e);
void server_deinit(struct server *s); /* a zeroed one is fine */

/* A statement without rows in its answer, which may be carried out twice. 0 or -1. */
int server_do(struct server *s, const char *sql, struct pt_error *e);
/* The same, formatted; freed in any case. NULL: no memory. */
int server_do_owned(struct server *s, char *sql, struct pt_error *e);
/* Rows for an INSERT, gzip. 0; 1: it may have been carried out, or not; -1. */
int server_insert(struct server *s, const char *sql, const void *body, size_t bytes, struct pt_error *e);
/* A SELECT's answer, for the caller to free(). NULL: failed. */
char *server_text(struct server *s, const char *sql, struct pt_error *e);
/* A SELECT's number; frees sql, which may be NULL: no memory. 0 or -1. */
int server_number(struct server *s, char *sql, unsigned long long *ret, struct pt_error *e);
/* Notes trouble that e says, and waits a while. 0: try again; -1: there is no time left, and e says so. */
int server_trouble(struct server *s, struct pt_error *e);
/* All is done that was begun: trouble is over. */
void server_well(struct server *s);

/* Makes the database, its tables and views where they are not, and sees that they are of this version.
 * 0, or -1. */
int server_prepare(struct server *s, struct pt_error *e);
/* The same without making any: -1 where there are none. */
int server_check(struct server *s, struct pt_error *e);

#endif
