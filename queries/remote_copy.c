/* remote_copy.c - see remote_copy.h. The assembler reads the schema's files, from the repository's root. */
#include "queries/remote_copy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queries/database.h"
#include "queries/perf_sqlite/copy.h"
#include "schema/clickhouse/http.h"
#include "schema/digit.h"
#include "schema/sql_macros.h"
#include "schema/unpack/facts.h"

#define EMBED(name)                                                                                          \
	__asm__(".pushsection .rodata\n"                                                                     \
		".globl copy_" #name "\n"                                                                    \
		".hidden copy_" #name "\n"                                                                   \
		"copy_" #name ":\n"                                                                          \
		".incbin \"schema/" #name ".sql\"\n"                                                         \
		".byte 0\n"                                                                                  \
		".popsection\n");                                                                            \
	extern const char copy_##name[] __attribute__((visibility("hidden")));
EMBED(tables)
EMBED(indexes)
EMBED(views)
EMBED(fact_views)
EMBED(code_views)

enum { NAMES_BYTES = 4096 };

struct copy {
	const struct remote *remote;
	sqlite3 *db;
	char *where;		 /* which rows of the server's tables are the trace's */
	bool all;		 /* all tables; else those that `names` has, and the trace's row */
	char names[NAMES_BYTES]; /* "'edge','path',": with a comma behind each */
	struct pt_error *e;
};

static int sqlite_failed(struct copy *c)
{
	return pt_fail(c->e, PT_ERR_IO, PT_NO_OFFSET, "cannot keep a copy of the trace: %s",
		       sqlite3_errmsg(c->db));
}

static int execute(struct copy *c, const char *sql)
{
	char *plain = pt_sql_expand(sql, c->e);
	int r = plain ? 0 : -1;

	if (!r && sqlite3_exec(c->db, plain, NULL, NULL, NULL) != SQLITE_OK)
		r = sqlite_failed(c);
	free(plain);
	return r;
}

/*
 * ---- Numbers as texts, as schema/tables.sql has them ----------------------------------------------------
 */

/*
 * digits(NUMBERS, HIGH): the low, or the high digits of "[1,2,3]" or of a number. NULL when all are 0; HIGH
 * -1: the low ones, a text in any case.
 */
static void digits(sqlite3_context *context, int count, sqlite3_value **values)
{
	const char *text = (const char *)sqlite3_value_text(values[0]);
	int part = sqlite3_value_int(values[1]);
	size_t room = text ? DIGITS_BYTES * (strlen(text) / 2 + 1) : 0;
	char *out = text ? sqlite3_malloc64(room) : NULL, *to = out, *end;
	uint32_t any = 0;

	(void)count;
	if (!out)
		return;
	for (const char *p = text + strspn(text, "[,]"); *p; p = end + strspn(end, "[,]")) {
		uint64_t number = strtoull(p, &end, 10);
		uint32_t digit =
		    (uint32_t)(part > 0 ? number >> DIGITS_BITS : number) & ((1U << DIGITS_BITS) - 1);

		if (end == p || (size_t)(to - out) + DIGITS_BYTES > room)
			break;
		any |= digit;
		to = digit_put(to, digit);
	}
	if (any || part < 0)
		sqlite3_result_text64(context, out, (uint64_t)(to - out), sqlite3_free, SQLITE_UTF8);
	else
		sqlite3_free(out);
}

/*
 * ---- What is asked --------------------------------------------------------------------------------------
 */

/*
 * What it is for: a table of SQLite's, or "chunk", that column; what is asked of the server, for the rows
 * of `where`; and the statement that keeps a row. table NULL: nothing is asked, it is run once.
 */
static const struct {
	const char *purpose, *table, *select, *after, *insert;
} steps[] = {
    {"number", NULL, NULL, NULL,
     "INSERT INTO number WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1023) "
     "SELECT i FROM n"},
    {"edge", "edges_data",
     "id, trace, from_ip, to_ip, kind_id, from_symbol_id, to_symbol_id, taken, insn_count, tail_insns, "
     "insn_timed, cyc_count",
     "", "INSERT INTO edge VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, NULL, NULL)"},
    {"path", "paths_data",
     "path, trace, length(edge), if(empty(edge), 0, toInt64(arrayReduce('min', edge)) - 1) AS least,"
     " arrayMap(x -> x - least - 1, edge), insn, insn_count, not_taken, tail_insns, start, end_ip, runs, "
     "repeats, insn_timed,"
     " cyc_count",
     "",
     "INSERT INTO path (id, trace, edges, edge, edge_add, edge_add_high, insn, insn_high, insn_count, "
     "not_taken, "
     "tail_insns, start, end_ip, runs, repeats, insn_timed, cyc_count) VALUES (?1, ?2, ?3, ?4, digits(?5, "
     "-1), "
     "digits(?5, 1), digits(?6, 0), digits(?6, 1), ?7, ?8, ?9, ?10, ?11, ?12, nullif(?13, ?12), ?14, ?15)"},
    /* The ways from an edge to its paths, and from a path to its runs: see path_chunk. */
    {"chunk", "paths_data", "DISTINCT e, intDiv(path, 256)", " ARRAY JOIN edge AS e",
     "INSERT INTO chunk_of VALUES (0, ?1, ?2)"},
    {"chunk", "run_data", "DISTINCT path, intDiv(id, 4096)", "", "INSERT INTO chunk_of VALUES (1, ?1, ?2)"},
    {"chunk", NULL, NULL, NULL,
     "UPDATE edge SET chunk = (SELECT min(chunk) FROM chunk_of WHERE kind = 0 AND of = edge.id)"},
    {"chunk", NULL, NULL, NULL,
     "UPDATE path SET chunk = (SELECT min(chunk) FROM chunk_of WHERE kind = 1 AND of = path.id)"},
    {"chunk", NULL, NULL, NULL,
     "INSERT INTO edge_chunk SELECT of << 24 | chunk, NULL FROM chunk_of WHERE kind = 0"
     " AND chunk > (SELECT chunk FROM edge WHERE id = of)"},
    {"chunk", NULL, NULL, NULL,
     "INSERT INTO path_chunk SELECT of << 24 | chunk, NULL FROM chunk_of WHERE kind = 1"
     " AND chunk > (SELECT chunk FROM path WHERE id = of)"},
    {"run_group", "run_data",
     "id, slice, tsc, path, repeats - 1, cyc_count, insn_count, back, est_add, next_add, end_add, exact", "",
     "INSERT INTO run_group (id, n, slice, tsc, path, path_high, repeats, cyc_whole, insn_whole, back, est, "
     "est_next, "
     "end_add, exact, open) VALUES (?1, 1, ?2, ?3, digits(?4, 0), digits(?4, 1), digits(?5, 0), ?6, ?7, "
     "digits(?8, 0), ?9, ?10, ?11, ?12, 0)"},
    {"call_group", "function_calls_data",
     "id, trace, call_path, ifNull(call_branch, return_branch - branch_span), return_branch, tsc,"
     " ifNull(return_tsc, tsc + elapsed_tsc), branch_count, insn_count, cyc_count, flags, id + parent_add,"
     " thread, elapsed_tsc",
     "", "INSERT INTO copied_call VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"},
    {"call_group", NULL, NULL, NULL,
     "INSERT INTO call_whole SELECT id, trace, call_path, call_branch, return_branch, call_tsc, return_tsc, "
     "branch_count, insn_count,"
     " cyc_count, flags, parent FROM copied_call ORDER BY id"},
    {"call_group", NULL, NULL, NULL,
     "INSERT INTO call_group (id, n, runs, trace, thread, elapsed_max) SELECT id, 1, 1, trace, thread, "
     "elapsed FROM copied_call"
     " ORDER BY id"},
};

static const char own_tables[] = "CREATE TEMP TABLE literal (of TEXT, row TEXT);"
				 "CREATE TEMP TABLE chunk_of (kind INTEGER, of INTEGER, chunk INTEGER, "
				 "PRIMARY KEY (kind, of, chunk)) WITHOUT ROWID;"
				 "CREATE TEMP TABLE copied_call (id INTEGER PRIMARY KEY, trace, call_path, "
				 "call_branch, return_branch, call_tsc, return_tsc,"
				 " branch_count, insn_count, cyc_count, flags, parent, thread, elapsed);";
static const char no_own_tables[] = "DROP TABLE literal; DROP TABLE chunk_of; DROP TABLE copied_call;";

/*
 * ---- Which tables a statement reads ---------------------------------------------------------------------
 */

static bool is_read(const struct copy *c, const char *name)
{
	char quoted[64];

	snprintf(quoted, sizeof quoted, "'%s',", name);
	return c->all || strstr(c->names, quoted);
}

/* SQLite's authorizer, which sees what a statement reads through views, too. */
static int note_read(void *arg, int action, const char *table, const char *column, const char *database,
		     const char *view)
{
	struct copy *c = arg;
	const char *name = action == SQLITE_READ && column && !strcmp(column, "chunk") ? "chunk" : table;
	size_t n = strlen(c->names);

	(void)database, (void)view;
	if (action != SQLITE_READ || !table)
		return SQLITE_OK;
	for (int i = 0; i < 2; i++, name = table)
		if (strspn(name, "abcdefghijklmnopqrstuvwxyz_") == strlen(name) && !is_read(c, name))
			n += (size_t)snprintf(c->names + n, n < NAMES_BYTES ? NAMES_BYTES - n : 0, "'%s',",
					      name);
	if (n > NAMES_BYTES - 100) /* room for what find_names() adds */
		c->all = true;
	return SQLITE_OK;
}

/* A statement that cannot be prepared says so itself, later. */
static void find_names(struct copy *c, const char *sql)
{
	sqlite3_stmt *st = NULL;

	snprintf(c->names, sizeof c->names, "'trace','trace_meta',");
	sqlite3_set_authorizer(c->db, note_read, c);
	sqlite3_prepare_v2(c->db, sql, -1, &st, NULL);
	sqlite3_set_authorizer(c->db, NULL, NULL);
	sqlite3_finalize(st);
	if (is_read(c, "call_whole"))
		snprintf(c->names + strlen(c->names), sizeof c->names - strlen(c->names), "'call_group',");
}

/*
 * ---- Rows -----------------------------------------------------------------------------------------------
 */

/* Asks for rows of a table of the server's. */
static int ask_rows(struct copy *c, const char *table, const char *select, const char *after,
		    const char *insert)
{
	char *sql;
	int r;

	if (asprintf(&sql, "SELECT %s FROM %s%s WHERE %s", select, table, after, c->where) < 0)
		return pt_fail_no_memory(c->e, NULL);
	r = remote_rows(c->remote, sql, c->db, insert, c->e);
	free(sql);
	return r;
}

/* SQLite's authorizer: what a server sends as values is nothing but values. */
static int only_inserts(void *arg, int action, const char *first, const char *second, const char *database,
			const char *view)
{
	(void)arg, (void)first, (void)second, (void)database, (void)view;
	return action == SQLITE_INSERT ? SQLITE_OK : SQLITE_DENY;
}

static int insert_literals(struct copy *c, const char *table, const char *row)
{
	char *sql = sqlite3_mprintf("INSERT INTO \"%w\" VALUES (%s)", table, row);
	const char *tail = "";
	sqlite3_stmt *st = NULL;
	int r = 0;

	sqlite3_set_authorizer(c->db, only_inserts, NULL);
	if (!sql || sqlite3_prepare_v2(c->db, sql, -1, &st, &tail) != SQLITE_OK || *tail ||
	    sqlite3_step(st) != SQLITE_DONE)
		r = pt_fail(c->e, PT_ERR_IO, PT_NO_OFFSET,
			    "a row of the server's for the table %s is wrong: %s", table,
			    sqlite3_errmsg(c->db));
	sqlite3_set_authorizer(c->db, NULL, NULL);
	sqlite3_finalize(st);
	sqlite3_free(sql);
	return r;
}

/* The tables that the server has as SQLite had them. */
static int copy_literals(struct copy *c)
{
	char among[NAMES_BYTES + 64] = "";
	sqlite3_stmt *st = NULL;
	int r, step = SQLITE_DONE;

	if (!c->all)
		snprintf(among, sizeof among, " PREWHERE table IN (%.*s)", (int)strlen(c->names) - 1,
			 c->names);
	r = ask_rows(c, "sqlite_rows_data", "table, literals", among, "INSERT INTO literal VALUES (?1, ?2)");
	if (!r && sqlite3_prepare_v2(c->db, "SELECT of, row FROM literal ORDER BY rowid", -1, &st, NULL) !=
		      SQLITE_OK)
		r = sqlite_failed(c);
	while (!r && (step = sqlite3_step(st)) == SQLITE_ROW)
		r = insert_literals(c, (const char *)sqlite3_column_text(st, 0),
				    (const char *)sqlite3_column_text(st, 1));
	if (!r && step != SQLITE_DONE)
		r = sqlite_failed(c);
	sqlite3_finalize(st);
	return r;
}

static int copy_rows_of(struct copy *c)
{
	int r = copy_literals(c);

	for (size_t i = 0; !r && i < sizeof steps / sizeof *steps; i++)
		if (is_read(c, steps[i].purpose))
			r = steps[i].table ? ask_rows(c, steps[i].table, steps[i].select, steps[i].after,
						      steps[i].insert)
					   : execute(c, steps[i].insert);
	return r;
}

/*
 * ---- The trace ------------------------------------------------------------------------------------------
 */

/* Which load of the trace is seen now: its rows stay for a while even if another takes its place. */
static int find_load(struct copy *c, int64_t trace)
{
	char sql[256], *host;
	sqlite3_stmt *st;
	sqlite3 *db;
	int r = -1;

	snprintf(sql, sizeof sql,
		 "SELECT toString(load), toString(day), host FROM traces WHERE id = %" PRId64, trace);
	st = remote_ask(c->remote, sql, &db, c->e);
	if (!st)
		return -1;
	if (sqlite3_step(st) != SQLITE_ROW) {
		pt_fail(c->e, PT_ERR_REFUSED, PT_NO_OFFSET,
			"%s has no trace %" PRId64 " (its query summary lists them)", c->remote->url, trace);
	} else if ((host = clickhouse_quote((const char *)sqlite3_column_text(st, 2), c->e))) {
		r = asprintf(&c->where, "load = %s AND day = '%s' AND host = %s AND trace = %" PRId64,
			     sqlite3_column_text(st, 0), sqlite3_column_text(st, 1), host, trace) < 0
			? pt_fail_no_memory(c->e, NULL)
			: 0;
		free(host);
	}
	sqlite3_finalize(st);
	sqlite3_close(db);
	return r;
}

/* As many runs, calls and edges as the trace's row says, of those that were asked for. */
static int check_whole(struct copy *c)
{
	static const char sql[] =
	    "SELECT (NOT ?1 OR runs IS (SELECT count(*) FROM run_group))"
	    " AND (NOT ?2 OR calls IS (SELECT count(*) FROM call_group))"
	    " AND (NOT ?3 OR last_edge - first_edge + 1 IS (SELECT count(*) FROM edge)) FROM trace";
	sqlite3_stmt *st = NULL;
	bool whole = sqlite3_prepare_v2(c->db, sql, -1, &st, NULL) == SQLITE_OK;

	sqlite3_bind_int(st, 1, is_read(c, "run_group"));
	sqlite3_bind_int(st, 2, is_read(c, "call_group"));
	sqlite3_bind_int(st, 3, is_read(c, "edge"));
	whole = whole && sqlite3_step(st) == SQLITE_ROW && sqlite3_column_int(st, 0);
	sqlite3_finalize(st);
	if (whole)
		return 0;
	return pt_fail(c->e, PT_ERR_REFUSED, PT_NO_OFFSET,
		       "%s: the trace was deleted, or loaded anew, while it was read: ask again",
		       c->remote->url);
}

static int fill(struct copy *c, int64_t trace, const char *sql)
{
	static const char settings[] =
	    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536";

	if (sqlite3_create_function(c->db, "digits", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, digits,
				    NULL, NULL) != SQLITE_OK)
		return sqlite_failed(c);
	if (find_load(c, trace) < 0 || execute(c, settings) < 0 || execute(c, "BEGIN") < 0 ||
	    execute(c, copy_tables) < 0 || execute(c, copy_views) < 0 || execute(c, copy_fact_views) < 0 ||
	    execute(c, copy_code_views) < 0)
		return -1;
	if (sql)
		find_names(c, sql);
	else
		c->all = true;
	if (execute(c, own_tables) < 0 || copy_rows_of(c) < 0 || check_whole(c) < 0 ||
	    execute(c, no_own_tables) < 0 || execute(c, copy_indexes) < 0)
		return -1;
	return execute(c, "COMMIT");
}

sqlite3 *remote_copy(const struct remote *r, int64_t trace, const char *sql, struct pt_error *e)
{
	struct copy c = {.remote = r, .e = e};
	int failed = sqlite3_open("", &c.db) == SQLITE_OK ? fill(&c, trace, sql) : sqlite_failed(&c);

	free(c.where);
	if (!failed && facts_register(c.db, e) == 0) {
		database_only_reads(c.db);
		return c.db;
	}
	sqlite3_close(c.db);
	return NULL;
}

struct whole {
	const struct remote *remote;
	int64_t trace;
};

static int fill_whole(void *arg, sqlite3 *to, struct pt_error *e)
{
	const struct whole *w = arg;
	struct copy c = {.remote = w->remote, .db = to, .e = e};
	int r = fill(&c, w->trace, NULL);

	free(c.where);
	return r;
}

int remote_copy_write(const struct remote *r, int64_t trace, FILE *out, struct pt_error *e)
{
	struct whole w = {.remote = r, .trace = trace};

	return copy_database(fill_whole, &w, out, e);
}

/* The parameter that begins with `name`, "trace="; NULL: it is not given. */
static const char *asked_for(const struct remote *r, const char *name)
{
	const char *ret = NULL;

	for (size_t i = 0; i < r->parameter_count; i++)
		if (!strncmp(r->parameters[i], name, strlen(name)))
			ret = r->parameters[i];
	return ret;
}

/* Of the slowest VM exit of all; of the reason that is asked for. */
static const char slowest_sql[] =
    "SELECT trace FROM vmexits WHERE isNotNull(latency_ns) AND (isNull(:reason) OR toString(reason) = "
    "toString(:reason)"
    " OR toString(kvm_name) = toString(:reason)) ORDER BY latency_ns DESC, trace, id LIMIT 1";

int remote_copy_trace(const struct remote *r, const char *name, int64_t *ret, struct pt_error *e)
{
	const char *asked = asked_for(r, "trace="), *reason = asked_for(r, "reason=");
	bool slowest = name && !strcmp(name, "why-slow") && !asked_for(r, "exit=");
	struct remote without = *r;
	sqlite3_stmt *st;
	sqlite3 *db;
	char *sql, *end;
	int failed = 0;

	if (asked) {
		asked += strlen("trace=");
		errno = 0;
		*ret = strtoll(asked, &end, 10);
		return *asked && !*end && !errno
			   ? 0
			   : pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "trace=%s: not a trace's number", asked);
	}
	without.parameters = &reason;
	without.parameter_count = slowest && reason;
	sql = remote_sql(&without, slowest ? slowest_sql : "SELECT id FROM traces ORDER BY id LIMIT 2", e);
	st = sql ? remote_ask(r, sql, &db, e) : NULL;
	free(sql);
	if (!st)
		return -1;
	if (sqlite3_step(st) != SQLITE_ROW)
		failed = pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s has no %s", r->url,
				 slowest ? "such VM exit" : "trace");
	else
		*ret = sqlite3_column_int64(st, 0);
	if (!failed && sqlite3_step(st) == SQLITE_ROW)
		failed = pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
				 "%s has several traces, and this is answered of one: -p trace=NUMBER "
				 "(pt-query %s summary lists them)",
				 r->url, r->url);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return failed;
}
