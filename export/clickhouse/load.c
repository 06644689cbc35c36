/* load.c - see load.h. */
#include "export/clickhouse/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "export/clickhouse/rows.h"

/* States of a load, in the table `loads`. */
enum { BEGUN, COMPLETE, GIVEN_UP, CLEANED };

/* With the last state of each load. */
#define LAST_STATES                                                                                          \
	"(SELECT uuid, load, any(day) AS day, any(host) AS host, any(trace) AS trace, max(state) AS "        \
	"last_state,"                                                                                        \
	" max(generation) AS last_generation, min(time) AS begun FROM loads GROUP BY uuid, load)"

int64_t load_trace_number(const char *identity)
{
	uint64_t h = 0xcbf29ce484222325;

	for (const unsigned char *p = (const unsigned char *)identity; *p; p++)
		h = (h ^ *p) * 0x100000001b3;
	h &= (1ULL << 52) - 1;
	return h ? (int64_t)h : 1;
}

/*
 * ---- What the server knows of the recording -------------------------------------------------------------
 */

int load_check(struct load *l, struct pt_error *e)
{
	unsigned long long there, generation, same;
	char *sql;

	l->trace = load_trace_number(l->identity);
	if (!l->identity_sql && !(l->identity_sql = clickhouse_quote(l->identity, e)))
		return -1;
	if (asprintf(&sql, "SELECT count() FROM " LAST_STATES " WHERE uuid = %s AND last_state = %d",
		     l->identity_sql, COMPLETE) < 0)
		sql = NULL;
	if (server_number(l->server, sql, &there, e) < 0)
		return -1;
	if (there && !l->replace && l->ret_there)
		*l->ret_there = true;
	if (there && !l->replace)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s has this recording already, as trace %lld: --replace loads it again",
			       clickhouse_url(l->server->clickhouse), (long long)l->trace);
	if (asprintf(&sql,
		     "SELECT count() FROM " LAST_STATES
		     " WHERE trace = %lld AND uuid != %s AND last_state = %d",
		     (long long)l->trace, l->identity_sql, COMPLETE) < 0)
		sql = NULL;
	if (server_number(l->server, sql, &same, e) < 0)
		return -1;
	if (same)
		return pt_fail(
		    e, PT_ERR_REFUSED, PT_NO_OFFSET,
		    "%s has another recording whose number is %lld, too: this one needs another database",
		    clickhouse_url(l->server->clickhouse), (long long)l->trace);
	if (asprintf(&sql, "SELECT max(generation) FROM loads WHERE uuid = %s", l->identity_sql) < 0)
		sql = NULL;
	if (server_number(l->server, sql, &generation, e) < 0)
		return -1;
	l->generation = (unsigned)generation + 1;
	return 0;
}

/* Rows of loads that are not visible may be of a load that died, or lives: it finds out when it is
 * complete. */
int load_give_up(struct server *s, const char *condition, struct pt_error *e)
{
	char *sql;

	if (asprintf(&sql,
		     "INSERT INTO loads (load, day, host, uuid, trace, generation, state, time, client)"
		     " SELECT load, day, host, uuid, trace, last_generation, toUInt8(%d), now(), 'given up' "
		     "FROM " LAST_STATES " WHERE last_state < %d AND (%s)",
		     GIVEN_UP, GIVEN_UP, condition) < 0)
		sql = NULL;
	return server_do_owned(s, sql, e);
}

/* Only once this load is seen: the others may live, and complete, and whatever they are the recording
 * remains loaded then. */
static int give_up_others(struct load *l, struct pt_error *e)
{
	char *condition;
	int r;

	if (asprintf(&condition, "uuid = %s AND load != %llu", l->identity_sql, (unsigned long long)l->load) <
	    0)
		return pt_fail_no_memory(e, NULL);
	r = load_give_up(l->server, condition, e);
	free(condition);
	return r;
}

/* This load, which was not completed. */
static int give_up_own(struct load *l, struct pt_error *e)
{
	char *condition;
	int r;

	if (asprintf(&condition, "load = %llu", (unsigned long long)l->load) < 0)
		return pt_fail_no_memory(e, NULL);
	r = load_give_up(l->server, condition, e);
	free(condition);
	return r;
}

static int say_state(struct load *l, int state, struct pt_error *e)
{
	char client[96] = "", *sql, *quoted;

	gethostname(client, sizeof client - 1);
	snprintf(client + strlen(client), sizeof client - strlen(client), " %ld", (long)getpid());
	quoted = clickhouse_quote(client, e);
	if (!quoted)
		return -1;
	if (asprintf(
		&sql,
		"INSERT INTO loads (load, day, host, uuid, trace, generation, state, time, client) VALUES"
		" (%llu, toDate(%u), %s, %s, %lld, %u, %d, now(), %s)",
		(unsigned long long)l->load, l->day, l->host_sql, l->identity_sql, (long long)l->trace,
		l->generation, state, quoted) < 0)
		sql = NULL;
	free(quoted);
	return server_do_owned(l->server, sql, e);
}

/*
 * ---- Rows -----------------------------------------------------------------------------------------------
 */

/* The server's tables of rows, a line each, for the caller to free(). */
static char *table_names(struct server *s, struct pt_error *e)
{
	char *sql, *text;

	if (asprintf(&sql,
		     "SELECT name FROM system.tables WHERE database = '%s' AND endsWith(name, '_data') ORDER "
		     "BY name = 'run_data', name",
		     clickhouse_database(s->clickhouse)) < 0) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	text = server_text(s, sql, e);
	free(sql);
	return text;
}

static char *column_names(struct server *s, const char *table, struct pt_error *e)
{
	char *sql, *text;

	if (asprintf(&sql,
		     "SELECT name, type FROM system.columns WHERE database = '%s' AND table = '%s' AND "
		     "default_kind != 'ALIAS' FORMAT TabSeparatedRaw",
		     clickhouse_database(s->clickhouse), table) < 0) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	text = server_text(s, sql, e);
	free(sql);
	return text;
}

/* 0; 1: it is not known what became of a block; -1. */
static int send_blocks(struct load *l, const char *table, struct rows *rows, struct pt_error *e)
{
	uint64_t n, all = 0;
	unsigned long long there;
	const void *body;
	size_t bytes;
	char *sql;
	int r;

	if (asprintf(&sql, "INSERT INTO %s (%s) FORMAT RowBinary", table, rows_columns(rows)) < 0)
		return pt_fail_no_memory(e, NULL);
	do {
		r = rows_block(rows, &body, &bytes, &n, e);
		if (!r && n)
			r = server_insert(l->server, sql, body, bytes, e);
		all += n;
	} while (!r && n);
	free(sql);
	if (r)
		return r;
	if (asprintf(&sql, "SELECT count() FROM %s WHERE load = %llu", table, (unsigned long long)l->load) <
	    0)
		sql = NULL;
	if (server_number(l->server, sql, &there, e) < 0)
		return -1;
	if (there == all)
		return 0;
	pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "%s: %s got %llu rows, and has %llu",
		clickhouse_url(l->server->clickhouse), table, (unsigned long long)all, there);
	return server_trouble(l->server, e) < 0 ? -1 : 1;
}

static int send_table(struct load *l, sqlite3 *db, const char *table, struct pt_error *e)
{
	struct rows_constants constants = {
	    .load = l->load, .day = l->day, .host = l->host, .trace = l->trace};
	char *columns = column_names(l->server, table, e);
	struct rows *rows = columns ? rows_create(db, table, columns, &constants, e) : NULL;
	int r = rows ? send_blocks(l, table, rows, e) : -1;

	rows_destroy(rows);
	free(columns);
	return r;
}

static int send_tables(struct load *l, sqlite3 *db, struct pt_error *e)
{
	char *names = table_names(l->server, e), *next = names, *name;
	int r = names ? 0 : -1;

	while (!r && (name = strsep(&next, "\n")))
		if (*name) {
			l->busy_with = name;
			r = send_table(l, db, name, e);
		}
	l->busy_with = NULL;
	free(names);
	return r;
}

/*
 * ---- One attempt, and all -------------------------------------------------------------------------------
 */

/* Whether the load is what is seen of the recording now. */
static int check_seen(struct load *l, struct pt_error *e)
{
	unsigned long long seen;
	char *sql;

	if (asprintf(&sql, "SELECT count() FROM visible_loads WHERE load = %llu",
		     (unsigned long long)l->load) < 0)
		sql = NULL;
	if (server_number(l->server, sql, &seen, e) < 0)
		return -1;
	if (seen)
		return 0;
	return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
		       "%s: another load of the same recording took the place of this one",
		       clickhouse_url(l->server->clickhouse));
}

/* Whoever reads sees it from here on. */
static int publish(struct load *l, struct pt_error *e)
{
	char why[sizeof e->message];

	if (say_state(l, COMPLETE, e) < 0) {
		snprintf(why, sizeof why, "%s", e->message);
		return pt_fail(e, PT_ERR_IO, PT_NO_OFFSET,
			       "%.700s: all rows are there, but it is not known whether the trace is "
			       "complete: load it again",
			       why);
	}
	return check_seen(l, e);
}

/* 0; 1: once more, with another number; -1. */
static int attempt(struct load *l, sqlite3 *db, struct pt_error *e)
{
	int r;

	if (getrandom(&l->load, sizeof l->load, 0) != sizeof l->load)
		return pt_fail_errno(e, "getrandom");
	if (load_check(l, e) < 0 || say_state(l, BEGUN, e) < 0)
		return -1;
	r = send_tables(l, db, e);
	if (r > 0 && give_up_own(l, e) < 0)
		return -1;
	if (!r)
		r = publish(l, e);
	return r ? r : give_up_others(l, e);
}

/* Where it was recorded, and on which day. */
static int read_trace(struct load *l, sqlite3 *db, struct pt_error *e)
{
	sqlite3_stmt *st = NULL;
	const unsigned char *host;
	int r = sqlite3_prepare_v2(db, "SELECT host, start_time FROM traces", -1, &st, NULL) == SQLITE_OK &&
			sqlite3_step(st) == SQLITE_ROW
		    ? 0
		    : pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "the scratch database: %s", sqlite3_errmsg(db));

	if (!r) {
		int64_t day = sqlite3_column_int64(st, 1) / 86400;

		host = sqlite3_column_text(st, 0);
		l->host = strdup(host ? (const char *)host : "");
		l->day = (uint16_t)(day > 0 && day < UINT16_MAX ? day : 0);
		if (!l->host)
			r = pt_fail_no_memory(e, NULL);
		else if (!(l->host_sql = clickhouse_quote(l->host, e)))
			r = -1;
	}
	sqlite3_finalize(st);
	return r;
}

int load_trace(struct load *l, sqlite3 *db, struct pt_error *e)
{
	struct pt_error ignored;
	int r;

	if (read_trace(l, db, e) < 0)
		return -1;
	while ((r = attempt(l, db, e)) > 0)
		;
	if (r < 0)
		return -1;
	server_well(l->server);
	/* What could not be deleted now a later load will. */
	l->busy_with = "deleting old rows";
	(void)load_clean(l->server, &ignored);
	l->busy_with = NULL;
	return 0;
}

void load_deinit(struct load *l)
{
	free(l->host);
	free(l->host_sql);
	free(l->identity_sql);
}

/*
 * ---- Rows that nobody sees ------------------------------------------------------------------------------
 */

static int clean_table(struct server *s, const char *table, const char *loads, struct pt_error *e)
{
	unsigned long long n;
	char *sql;

	if (asprintf(&sql, "SELECT count() FROM %s WHERE load IN (%s)", table, loads) < 0)
		sql = NULL;
	if (server_number(s, sql, &n, e) < 0)
		return -1;
	if (!n)
		return 0;
	if (asprintf(&sql, "ALTER TABLE %s DELETE WHERE load IN (%s)", table, loads) < 0)
		sql = NULL;
	return server_do_owned(s, sql, e);
}

static int clean_tables(struct server *s, const char *loads, struct pt_error *e)
{
	char *names = table_names(s, e), *next = names, *name, *sql;
	int r = names ? 0 : -1;

	while (!r && (name = strsep(&next, "\n")))
		if (*name)
			r = clean_table(s, name, loads, e);
	free(names);
	if (r < 0)
		return -1;
	if (asprintf(&sql,
		     "INSERT INTO loads (load, day, host, uuid, trace, generation, state, time, client)"
		     " SELECT load, day, host, uuid, trace, last_generation, toUInt8(%d), now(), 'cleaned' "
		     "FROM " LAST_STATES " WHERE load IN (%s)",
		     CLEANED, loads) < 0)
		sql = NULL;
	return server_do_owned(s, sql, e);
}

int load_clean(struct server *s, struct pt_error *e)
{
	char *sql, *loads;
	int r = 0;

	if (s->sharded)
		return 0;
	/* One that was begun a day ago has died: no load takes that long, and one that does finds out. */
	if (load_give_up(s, "last_state = 0 AND begun < now() - 86400", e) < 0)
		return -1;
	if (asprintf(&sql,
		     "SELECT arrayStringConcat(arrayMap(x -> toString(x), groupArray(load)), ',') FROM "
		     "(SELECT load FROM " LAST_STATES " WHERE last_state = %d LIMIT 1000)",
		     GIVEN_UP) < 0)
		return pt_fail_no_memory(e, NULL);
	loads = server_text(s, sql, e);
	free(sql);
	if (!loads)
		return -1;
	loads[strcspn(loads, "\n")] = 0;
	if (*loads && strspn(loads, "0123456789,") == strlen(loads))
		r = clean_tables(s, loads, e);
	free(loads);
	return r;
}
