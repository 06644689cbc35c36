/* several.c - see several.h. */
#include "queries/several.h"

#include <stdio.h>
#include <string.h>

#include "queries/canned.h"
#include "queries/database.h"
#include "queries/rows.h"

/* Where the rows are gathered. */
struct gathering {
	sqlite3 *db;
	sqlite3_stmt *insert; /* NULL until the first database's columns are known */
	int columns;	      /* of a database's rows */
	bool counts_traces;   /* the column trace gets the database's place among all traces */
	sqlite3_int64 traces; /* of the databases before */
	sqlite3_int64 second; /* the second database's first trace, as counted here; 0: there is none */
};

static int gathering_error(const struct gathering *g, struct pt_error *e)
{
	return pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "cannot keep the rows of several databases: %s",
		       sqlite3_errmsg(g->db));
}

/* The statement on a database, its parameters bound. */
static sqlite3_stmt *ask(const struct several *s, sqlite3 *db, const char *sql, struct pt_error *e)
{
	sqlite3_stmt *st = database_prepare(db, sql, e);
	int r = 0;

	if (st && s->no_demangle)
		database_raw_names(st);
	for (size_t i = 0; st && !r && i < s->parameter_count; i++)
		r = database_bind(st, s->parameters[i], e);
	if (!r)
		return st;
	sqlite3_finalize(st);
	return NULL;
}

/* CREATE TABLE name (db, "first column", ...) and the INSERT into it. */
static int make_table(struct gathering *g, const char *name, sqlite3_stmt *rows, struct pt_error *e)
{
	sqlite3_str *create = sqlite3_str_new(g->db), *insert = sqlite3_str_new(g->db);
	char *a, *b;
	int r;

	g->columns = sqlite3_column_count(rows);
	sqlite3_str_appendf(create, "CREATE TABLE \"%w\" (db", name);
	sqlite3_str_appendf(insert, "INSERT INTO \"%w\" VALUES (?", name);
	for (int i = 0; i < g->columns; i++) {
		/* Columns of a question may have the same name. */
		if (g->counts_traces)
			sqlite3_str_appendf(create, ", \"%w\"", sqlite3_column_name(rows, i));
		else
			sqlite3_str_appendf(create, ", c%d", i);
		sqlite3_str_appendall(insert, ", ?");
	}
	sqlite3_str_appendchar(create, 1, ')');
	sqlite3_str_appendchar(insert, 1, ')');
	a = sqlite3_str_finish(create);
	b = sqlite3_str_finish(insert);
	r = a && b && sqlite3_exec(g->db, a, NULL, NULL, NULL) == SQLITE_OK &&
		    sqlite3_prepare_v2(g->db, b, -1, &g->insert, NULL) == SQLITE_OK
		? 0
		: gathering_error(g, e);
	sqlite3_free(a);
	sqlite3_free(b);
	return r;
}

static int put_row(struct gathering *g, const char *path, sqlite3_stmt *row, int trace_column,
		   struct pt_error *e)
{
	sqlite3_bind_text(g->insert, 1, path, -1, SQLITE_STATIC);
	for (int i = 0; i < g->columns; i++) {
		if (i == trace_column)
			sqlite3_bind_int64(g->insert, i + 2, g->traces + sqlite3_column_int64(row, i));
		else
			sqlite3_bind_value(g->insert, i + 2, sqlite3_column_value(row, i));
	}
	if (sqlite3_step(g->insert) != SQLITE_DONE)
		return gathering_error(g, e);
	sqlite3_reset(g->insert);
	return 0;
}

static int column_of(sqlite3_stmt *st, const char *name)
{
	for (int i = 0; i < sqlite3_column_count(st); i++)
		if (!strcmp(sqlite3_column_name(st, i), name))
			return i;
	return -1;
}

/* All rows of a database's statement. */
static int put_rows(struct gathering *g, const char *name, const char *path, sqlite3_stmt *rows,
		    struct pt_error *e)
{
	int trace = g->counts_traces ? column_of(rows, "trace") : -1, r;

	if (!g->insert && make_table(g, name, rows, e) < 0)
		return -1;
	if (sqlite3_column_count(rows) != g->columns)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s: its rows have other columns", path);
	while ((r = sqlite3_step(rows)) == SQLITE_ROW)
		if (put_row(g, path, rows, trace, e) < 0)
			return -1;
	return r == SQLITE_DONE ? 0 : rows_sql_error(rows, e);
}

/* Of a database's traces: the id that sql selects; 0: it has none. 0, or -1: SQLite's error. */
static int trace_id(sqlite3 *db, const char *sql, sqlite3_int64 *ret, struct pt_error *e)
{
	sqlite3_stmt *st = database_prepare(db, sql, e);
	int r = st ? rows_step(st, e) : -1;

	*ret = r > 0 ? sqlite3_column_int64(st, 0) : 0;
	sqlite3_finalize(st);
	return r < 0 ? -1 : 0;
}

/* The rows of one database's answer. Its traces are counted on from those of the ones before. */
static int gather_one(const struct several *s, struct gathering *g, size_t i, const char *name,
		      const char *sql, struct pt_error *e)
{
	sqlite3 *db = database_open(s->databases[i], e);
	sqlite3_int64 first = 0, last = 0;
	sqlite3_stmt *st = NULL;
	int r;

	if (db)
		database_stop_when(db, s->watch);
	/* The parameters are the question's, not the view's. */
	if (db)
		st = g->counts_traces ? database_prepare(db, sql, e) : ask(s, db, sql, e);
	r = st ? 0 : -1;
	if (r == 0)
		r = trace_id(db, "SELECT min(id) FROM traces", &first, e);
	if (r == 0)
		r = trace_id(db, "SELECT max(id) FROM traces", &last, e);
	if (i == 1 && first)
		g->second = g->traces + first;
	if (r == 0)
		r = put_rows(g, name, s->databases[i], st, e);
	sqlite3_finalize(st);
	g->traces += last;
	sqlite3_close(db);
	return r;
}

static int gather(const struct several *s, struct gathering *g, const char *name, const char *sql,
		  struct pt_error *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->count; i++)
		r = gather_one(s, g, i, name, sql, e);
	return r;
}

/* SELECT db, c0 AS "first column", ... of the rows of the question, whose columns' names `as` has. Stacks
 * begin with their database. */
static char *select_all(sqlite3_stmt *as)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);

	sqlite3_str_appendall(sql, "SELECT db");
	for (int i = 0; i < sqlite3_column_count(as); i++) {
		const char *name = sqlite3_column_name(as, i);

		sqlite3_str_appendf(
		    sql, strcmp(name, "stack") ? ", c%d AS \"%w\"" : ", db || ';' || c%d AS \"%w\"", i, name);
	}
	sqlite3_str_appendall(sql, " FROM answer ORDER BY rowid");
	return sqlite3_str_finish(sql);
}

/* The SELECT of the gathered answer: names are those that the first database has. */
static char *answer_sql(const struct several *s, const char *sql, struct pt_error *e)
{
	sqlite3 *db = database_open(s->databases[0], e);
	sqlite3_stmt *st = db ? database_prepare(db, sql, e) : NULL;
	char *ret = st ? select_all(st) : NULL;

	if (st && !ret)
		pt_fail_no_memory(e, "the rows of several databases");
	sqlite3_finalize(st);
	sqlite3_close(db);
	return ret;
}

/* The question, asked of what was gathered. */
static sqlite3_stmt *final_statement(const struct several *s, const struct gathering *g, const char *sql,
				     struct pt_error *e)
{
	char *all = g->counts_traces ? NULL : answer_sql(s, sql, e);
	sqlite3_stmt *st = NULL;
	int b;

	database_only_reads(g->db);
	database_stop_when(g->db, s->watch);
	if (all)
		st = database_prepare(g->db, all, e);
	else if (g->counts_traces)
		st = ask(s, g->db, sql, e);
	sqlite3_free(all);
	b = st && g->counts_traces && g->second ? sqlite3_bind_parameter_index(st, ":b") : 0;
	for (size_t i = 0; i < s->parameter_count; i++)
		if (!strncmp(s->parameters[i], "b=", 2))
			b = 0;
	if (b)
		sqlite3_bind_int64(st, b, g->second);
	return st;
}

sqlite3_stmt *several_ask(const struct several *s, const char *sql, sqlite3 **ret_db, struct pt_error *e)
{
	struct gathering g = {0};
	sqlite3_stmt *st = NULL;
	char view[64], select[128];
	int r;

	*ret_db = NULL;
	g.counts_traces = canned_note(sql, "gathers: ", view, sizeof view);
	snprintf(select, sizeof select, "SELECT * FROM \"%s\"", g.counts_traces ? view : "");
	if (sqlite3_open("", &g.db) != SQLITE_OK ||
	    sqlite3_exec(g.db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN", NULL, NULL,
			 NULL)) {
		gathering_error(&g, e);
		sqlite3_close(g.db);
		return NULL;
	}
	r = gather(s, &g, g.counts_traces ? view : "answer", g.counts_traces ? select : sql, e);
	sqlite3_finalize(g.insert);
	if (r == 0)
		st = final_statement(s, &g, sql, e);
	if (st)
		*ret_db = g.db;
	else
		sqlite3_close(g.db);
	return st;
}
