/* no_http.c - http.h, of programs without libcurl. */
#ifndef HAVE_LIBCURL
#include "schema/clickhouse/http.h"

struct clickhouse *clickhouse_create(const char *url, struct pt_error *e)
{
	pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
		"%s: this program was built without libcurl and reaches no ClickHouse: install "
		"libcurl4-openssl-dev (of Fedora: "
		"libcurl-devel) and build it again",
		url);
	return NULL;
}

/* None is ever made, so no other function is called. */
void clickhouse_destroy(struct clickhouse *c)
{
	(void)c;
}

const char *clickhouse_url(const struct clickhouse *c)
{
	(void)c;
	return "";
}

const char *clickhouse_database(const struct clickhouse *c)
{
	(void)c;
	return "";
}

void clickhouse_without_database(struct clickhouse *c, bool without)
{
	(void)c;
	(void)without;
}

void clickhouse_interrupted(struct clickhouse *c, bool (*interrupted)(void *arg), void *arg)
{
	(void)c;
	(void)interrupted;
	(void)arg;
}

int clickhouse_send(struct clickhouse *c, const struct clickhouse_request *r,
		    enum clickhouse_failure *ret_failure, struct pt_error *e)
{
	(void)c;
	(void)r;
	(void)ret_failure;
	(void)e;
	return -1;
}

char *clickhouse_text(struct clickhouse *c, const char *sql, double timeout_s,
		      enum clickhouse_failure *ret_failure, struct pt_error *e)
{
	(void)c;
	(void)sql;
	(void)timeout_s;
	(void)ret_failure;
	(void)e;
	return NULL;
}

unsigned clickhouse_version(struct clickhouse *c, double timeout_s, enum clickhouse_failure *ret_failure,
			    struct pt_error *e)
{
	(void)c;
	(void)timeout_s;
	(void)ret_failure;
	(void)e;
	return 0;
}
#endif
