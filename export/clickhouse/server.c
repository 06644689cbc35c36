/* server.c - see server.h. */
#include "export/clickhouse/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "export/clickhouse/ddl.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int server_init(struct server *s, const char *url, const struct pt_sink_options *options, struct pt_error *e)
{
	*s = (struct server){.poll = options->poll, .timeout_s = options->timeout_s};
	s->clickhouse = clickhouse_create(url, e);
	if (!s->clickhouse)
		return -1;
	clickhouse_interrupted(s->clickhouse, options->poll.interrupted, options->poll.arg);
	return 0;
}

void server_deinit(struct server *s)
{
	clickhouse_destroy(s->clickhouse);
	s->clickhouse = NULL;
}

void server_well(struct server *s)
{
	s->trouble_since = 0;
	s->tries = 0;
}

static double left(const struct server *s)
{
	double t = s->trouble_since > 0 ? s->timeout_s - (now() - s->trouble_since) : s->timeout_s;

	return t > 0.001 ? t : 0.001;
}

/* Twice as long each time, up to 5 s. */
int server_trouble(struct server *s, struct pt_error *e)
{
	double wait_s = 0.1 * (double)(1U << (s->tries < 6 ? s->tries : 6)), until;
	struct timespec step = {.tv_nsec = 50 * 1000 * 1000};
	char why[sizeof e->message];

	if (s->trouble_since <= 0)
		s->trouble_since = now();
	s->tries++;
	if (now() - s->trouble_since + wait_s > s->timeout_s) {
		snprintf(why, sizeof why, "%s", e->message);
		return pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "%.800s: given up after %.0f s", why,
			       now() - s->trouble_since);
	}
	if (s->poll.waits)
		s->poll.waits(s->poll.arg);
	for (until = now() + (wait_s < 5 ? wait_s : 5); now() < until;) {
		if (s->poll.interrupted && s->poll.interrupted(s->poll.arg))
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "interrupted: nothing was loaded");
		nanosleep(&step, NULL);
	}
	return 0;
}

/* 0; 1: it may have been carried out, or not, and e says why that is not known; -1. */
static int once(struct server *s, struct clickhouse_request *r, struct pt_error *e)
{
	enum clickhouse_failure failure;

	for (;;) {
		r->timeout_s = left(s);
		if (!clickhouse_version(s->clickhouse, r->timeout_s, &failure, e)) {
			if (failure == CLICKHOUSE_FATAL || server_trouble(s, e) < 0)
				return -1;
			continue;
		}
		if (!clickhouse_send(s->clickhouse, r, &failure, e))
			return 0;
		if (failure == CLICKHOUSE_FATAL)
			return -1;
		if (failure == CLICKHOUSE_UNCERTAIN)
			return 1;
		if (server_trouble(s, e) < 0)
			return -1;
	}
}

int server_do(struct server *s, const char *sql, struct pt_error *e)
{
	struct clickhouse_request r = {.sql = sql};
	int ret;

	while ((ret = once(s, &r, e)) > 0)
		if (server_trouble(s, e) < 0)
			return -1;
	return ret;
}

int server_do_owned(struct server *s, char *sql, struct pt_error *e)
{
	int r = sql ? server_do(s, sql, e) : pt_fail_no_memory(e, NULL);

	free(sql);
	return r;
}

int server_insert(struct server *s, const char *sql, const void *body, size_t bytes, struct pt_error *e)
{
	struct clickhouse_request r = {.sql = sql, .body = body, .body_bytes = bytes};
	int ret = once(s, &r, e);

	return ret > 0 && server_trouble(s, e) < 0 ? -1 : ret;
}

char *server_text(struct server *s, const char *sql, struct pt_error *e)
{
	enum clickhouse_failure failure;
	char *text;

	while (!(text = clickhouse_text(s->clickhouse, sql, left(s), &failure, e)))
		if (failure == CLICKHOUSE_FATAL || server_trouble(s, e) < 0)
			return NULL;
	return text;
}

int server_number(struct server *s, char *sql, unsigned long long *ret, struct pt_error *e)
{
	char *text = sql ? server_text(s, sql, e) : NULL, *end;

	if (!sql)
		pt_fail_no_memory(e, NULL);
	free(sql);
	if (!text)
		return -1;
	*ret = strtoull(text, &end, 10);
	if (end == text || *end != '\n')
		end = NULL;
	free(text);
	return end ? 0
		   : pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "%s: the server answers no number",
			     clickhouse_url(s->clickhouse));
}

/*
 * ---- The database ---------------------------------------------------------------------------------------
 */

/* *ret: the tables' version, 0: there are none; and whether they are Distributed. */
static int read_version(struct server *s, unsigned long long *ret, struct pt_error *e)
{
	unsigned long long there, sharded;
	char *sql;

	if (asprintf(&sql, "SELECT count() FROM system.tables WHERE database = '%s' AND name = 'pt_schema'",
		     clickhouse_database(s->clickhouse)) < 0)
		sql = NULL;
	if (server_number(s, sql, &there, e) < 0)
		return -1;
	*ret = 0;
	if (!there)
		return 0;
	if (asprintf(&sql,
		     "SELECT count() FROM system.tables WHERE database = '%s' AND engine = 'Distributed'",
		     clickhouse_database(s->clickhouse)) < 0)
		sql = NULL;
	if (server_number(s, sql, &sharded, e) < 0)
		return -1;
	s->sharded = sharded > 0;
	if (asprintf(&sql, "SELECT max(version) FROM %s.pt_schema", clickhouse_database(s->clickhouse)) < 0)
		sql = NULL;
	return server_number(s, sql, ret, e);
}

static int check_version(struct server *s, unsigned long long version, struct pt_error *e)
{
	if (version == DDL_VERSION)
		return 0;
	return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
		       "%s has schema version %llu, and this pt-load writes version %d: use another "
		       "database, and load the "
		       "recordings again",
		       clickhouse_url(s->clickhouse), version, DDL_VERSION);
}

static int make_all(struct server *s, struct pt_error *e)
{
	enum clickhouse_failure failure;
	unsigned version = clickhouse_version(s->clickhouse, left(s), &failure, e);
	char *text = version ? ddl_text(version, e) : NULL, *next = text;
	int r = text ? 0 : -1;

	for (char *statement; !r && (statement = ddl_next(&next));)
		r = server_do(s, statement, e);
	free(text);
	return r;
}

static int with_database(struct server *s, bool make, struct pt_error *e)
{
	unsigned long long version;
	char *sql;

	/* A server refuses whatever names a database that it has not. */
	clickhouse_without_database(s->clickhouse, true);
	if (read_version(s, &version, e) < 0)
		return -1;
	if (!version && !make)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s: pt-load has loaded nothing there",
			       clickhouse_url(s->clickhouse));
	if (version)
		return check_version(s, version, e);
	if (asprintf(&sql, "CREATE DATABASE IF NOT EXISTS %s", clickhouse_database(s->clickhouse)) < 0)
		sql = NULL;
	if (server_do_owned(s, sql, e) < 0)
		return -1;
	clickhouse_without_database(s->clickhouse, false);
	return make_all(s, e) < 0 || read_version(s, &version, e) < 0 ? -1 : check_version(s, version, e);
}

int server_prepare(struct server *s, struct pt_error *e)
{
	int r = with_database(s, true, e);

	clickhouse_without_database(s->clickhouse, false);
	return r;
}

int server_check(struct server *s, struct pt_error *e)
{
	int r = with_database(s, false, e);

	clickhouse_without_database(s->clickhouse, false);
	return r;
}
