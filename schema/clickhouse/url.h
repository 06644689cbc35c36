/*
 * url.h - the parts of a clickhouse:// URL, and where its password comes from.
 */
#ifndef SCHEMA_CLICKHOUSE_URL_H
#define SCHEMA_CLICKHOUSE_URL_H

#include <stdbool.h>

#include "schema/error.h"

struct clickhouse_parts {
	char *user; /* NULL: not given */
	char *host, *database;
	bool bracketed; /* the host is an IPv6 address */
	bool tls;
	unsigned port; /* 0: not given */
};

/* 0, or -1 and nothing to deinit: PT_ERR_USAGE, PT_ERR_NO_MEMORY. */
int clickhouse_parts_init(struct clickhouse_parts *p, const char *url, struct pt_error *e);
void clickhouse_parts_deinit(struct clickhouse_parts *p); /* a zeroed one is fine */

/* *ret: the password, for the caller to free(); NULL: there is none. 0, or -1: PT_ERR_IO, the file that
 * CLICKHOUSE_PASSWORD_FILE names; PT_ERR_USAGE, it has a control character. */
int clickhouse_password(char **ret, struct pt_error *e);

#endif
