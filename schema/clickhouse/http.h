/*
 * http.h - a ClickHouse server over its HTTP interface, by libcurl.
 *
 *     clickhouse://[user@]host[:port]/database     port 8123
 *     clickhouses://...                            with TLS, port 8443
 *
 * The password is that of the environment: CLICKHOUSE_PASSWORD, or the first line of the file that
 * CLICKHOUSE_PASSWORD_FILE names. A URL with one is refused, for others see a command line.
 */
#ifndef SCHEMA_CLICKHOUSE_HTTP_H
#define SCHEMA_CLICKHOUSE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

struct clickhouse;

/* What a request came to, when it failed. */
enum clickhouse_failure {
	CLICKHOUSE_NEVER_SENT, /* nobody listens there: it was not begun */
	CLICKHOUSE_UNCERTAIN,  /* the connection broke, or the server failed: it may have been carried out */
	CLICKHOUSE_FATAL       /* it will not work another time either: wrong SQL, password, database */
};

struct clickhouse_request {
	const char *sql;
	const void *body; /* rows for an INSERT, gzip; NULL: none */
	size_t body_bytes;
	bool reads;	      /* it may only read */
	const char *settings; /* "name=value&name=value", NULL none */
	double timeout_s;     /* 0: none */
	/* Bytes of the answer, as they come. Returns 0, or -1: it wants no more. NULL: they are dropped. */
	int (*take)(void *arg, const char *bytes, size_t n);
	void *arg;
};

/* Whether a database's name is a URL of ClickHouse's. */
bool clickhouse_is_url(const char *name);

/* Reads the URL and the password; connects to nobody yet. NULL: PT_ERR_USAGE, PT_ERR_IO (the password's file),
 * PT_ERR_NO_MEMORY, PT_ERR_REFUSED (built without libcurl). */
struct clickhouse *clickhouse_create(const char *url, struct pt_error *e);
void clickhouse_destroy(struct clickhouse *c); /* NULL is fine */
const char *clickhouse_url(const struct clickhouse *c);
const char *clickhouse_database(const struct clickhouse *c);
/* Requests name no database from now on: what it takes to make it. */
void clickhouse_without_database(struct clickhouse *c, bool without);
/* Called now and then while a request runs; true ends it. */
void clickhouse_interrupted(struct clickhouse *c, bool (*interrupted)(void *arg), void *arg);

/* 0, or -1: *ret_failure says what is left; PT_ERR_REFUSED when it was interrupted or take() wanted no
 * more, else PT_ERR_IO with the server's words. */
int clickhouse_send(struct clickhouse *c, const struct clickhouse_request *r,
		    enum clickhouse_failure *ret_failure, struct pt_error *e);

/* The whole answer of a SELECT, for the caller to free(): at most 64 MB. NULL: as clickhouse_send(). */
char *clickhouse_text(struct clickhouse *c, const char *sql, double timeout_s,
		      enum clickhouse_failure *ret_failure, struct pt_error *e);

/* The server's version as major * 1000 + minor, 18016, from when it was asked first. 0: as
 * clickhouse_send(). */
unsigned clickhouse_version(struct clickhouse *c, double timeout_s, enum clickhouse_failure *ret_failure,
			    struct pt_error *e);

/* A text as SQL has it, in quotes, for the caller to free(). NULL: PT_ERR_NO_MEMORY. */
char *clickhouse_quote(const char *text, struct pt_error *e);
#endif
