/* remote.c - see remote.h. */
#include "queries/remote.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queries/database.h"
#include "schema/clickhouse/http.h"
#include "schema/sql_macros.h"

extern const char remote_macros[] __attribute__((visibility("hidden")));

/*
 * ---- Parameters -----------------------------------------------------------------------------------------
 */

/* How far what is never looked into reaches: a comment, a text in quotes; 0: there is none at p. */
static size_t skipped(const char *p)
{
	const char *begin = p;
	char quote = *p;

	if (p[0] == '-' && p[1] == '-')
		return strcspn(p, "\n");
	if (p[0] == '/' && p[1] == '*') {
		p = strstr(p + 2, "*/");
		return p ? (size_t)(p + 2 - begin) : strlen(begin);
	}
	if (quote != '\'' && quote != '"' && quote != '`')
		return 0;
	for (p++; *p && *p != quote; p++)
		if (*p == '\\' && p[1])
			p++;
	return (size_t)(p - begin) + (*p == quote);
}

/* The name of the parameter that begins at p, and how long it is; 0: there is none. */
static size_t parameter_length(const char *p)
{
	size_t n = 0;

	if (p[0] != ':' || !(isalpha((unsigned char)p[1]) || p[1] == '_'))
		return 0;
	while (isalnum((unsigned char)p[1 + n]) || p[1 + n] == '_')
		n++;
	return n;
}

/* The value of "NAME=VALUE" of the name, NULL: not given. */
static const char *value_of(const struct remote *r, const char *name, size_t n)
{
	const char *value = NULL;

	for (size_t i = 0; i < r->parameter_count; i++)
		if (!strncmp(r->parameters[i], name, n) && r->parameters[i][n] == '=')
			value = r->parameters[i] + n + 1;
	if (!value && r->no_demangle && n == strlen("no_demangle") && !strncmp(name, "no_demangle", n))
		return "1";
	return value;
}

/* A number as it is, in decimal; else a text in quotes. */
static int put_value(FILE *to, const char *value, struct pt_error *e)
{
	char *end, *quoted;
	long long number;
	double real;

	if (!value)
		return fputs("NULL", to) < 0 ? pt_fail_no_memory(e, NULL) : 0;
	errno = 0;
	number = strtoll(value, &end, 0);
	if (*value && !*end && !errno)
		return fprintf(to, "%lld", number) < 0 ? pt_fail_no_memory(e, NULL) : 0;
	real = strtod(value, &end);
	if (*value && !*end && isdigit((unsigned char)value[strspn(value, "+-.")]))
		return fprintf(to, "%.17g", real) < 0 ? pt_fail_no_memory(e, NULL) : 0;
	quoted = clickhouse_quote(value, e);
	if (!quoted)
		return -1;
	fputs(quoted, to);
	free(quoted);
	return 0;
}

static int fill_in(const struct remote *r, const char *sql, FILE *to, struct pt_error *e)
{
	while (*sql) {
		size_t n = skipped(sql), name = n ? 0 : parameter_length(sql);

		if (name) {
			if (put_value(to, value_of(r, sql + 1, name), e) < 0)
				return -1;
			sql += 1 + name;
			continue;
		}
		n = n ? n : 1;
		fwrite(sql, 1, n, to);
		sql += n;
	}
	return 0;
}

/* LIMIT coalesce(NULL, 20) becomes LIMIT 20: older servers take a number only. In place. */
static void fold_limits(char *text)
{
	static const char begin[] = "LIMIT coalesce(";
	int value, otherwise;

	for (char *at = text; (at = strstr(at, begin)); at++) {
		char *first = at + sizeof begin - 1, *second, *to = at + strlen("LIMIT ");
		bool given = strncmp(first, "NULL", 4) != 0;

		value = given ? (int)strspn(first, "0123456789") : 4;
		if (!value || first[value] != ',' || first[value + 1] != ' ')
			continue;
		second = first + value + 2;
		otherwise = (int)strspn(second, "0123456789");
		if (!otherwise || second[otherwise] != ')')
			continue;
		memmove(to, given ? first : second, (size_t)(given ? value : otherwise));
		to += given ? value : otherwise;
		memmove(to, second + otherwise + 1, strlen(second + otherwise + 1) + 1);
	}
}

static bool has_parameter(const char *sql, const char *name, size_t length)
{
	while (*sql) {
		size_t n = skipped(sql), found = n ? 0 : parameter_length(sql);

		if (found == length && !strncmp(sql + 1, name, length))
			return true;
		sql += n ? n : 1;
	}
	return false;
}

/* The query itself: its text behind the macros. */
static int check_parameters(const struct remote *r, const char *sql, struct pt_error *e)
{
	for (size_t i = 0; i < r->parameter_count; i++) {
		size_t n = strcspn(r->parameters[i], "=");

		if (!has_parameter(sql, r->parameters[i], n))
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "the query has no parameter %.*s",
				       (int)n, r->parameters[i]);
	}
	return 0;
}

char *remote_sql(const struct remote *r, const char *sql, struct pt_error *e)
{
	char *with_macros, *expanded, *text = NULL;
	FILE *to;
	size_t n;
	int failed;

	if (asprintf(&with_macros, "%s%s", remote_macros, sql) < 0) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	expanded = pt_sql_expand(with_macros, e);
	free(with_macros);
	if (!expanded || check_parameters(r, expanded, e) < 0) {
		free(expanded);
		return NULL;
	}
	to = open_memstream(&text, &n);
	failed = to ? fill_in(r, expanded, to, e) : pt_fail_no_memory(e, NULL);
	if (to && fclose(to) && !failed)
		failed = pt_fail_no_memory(e, NULL);
	free(expanded);
	if (!failed)
		fold_limits(text);
	if (!failed)
		return text;
	free(text);
	return NULL;
}

/*
 * ---- Rows: TabSeparatedWithNamesAndTypes ----------------------------------------------------------------
 */

static const char no_rows[] =
    "the statement's answer is no rows as pt-query asks for them: leave FORMAT out of it, --format says "
    "how they are printed";

enum { LINE_MAX_BYTES = 64 << 20, COLUMNS_MAX = 1000 };

struct answer {
	sqlite3 *db;
	sqlite3_stmt *insert;
	char *line; /* what has come of it */
	size_t bytes, room;
	unsigned lines;
	char *names; /* the first line */
	int columns;
	bool *numbers, *reals;
	struct pt_error *e;
};

static int sqlite_failed(struct answer *a)
{
	return pt_fail(a->e, PT_ERR_IO, PT_NO_OFFSET, "cannot keep the server's rows: %s",
		       sqlite3_errmsg(a->db));
}

/* Escapes of ClickHouse's tab separated texts, in place. */
static void unescape(char *text)
{
	static const char from[] = "bfnrt0'\\", to[] = "\b\f\n\r\t\0'\\";
	char *out = text;

	for (; *text; text++) {
		const char *known = text[0] == '\\' && text[1] ? strchr(from, text[1]) : NULL;

		*out++ = known ? to[known - from] : *text;
		text += known != NULL;
	}
	*out = 0;
}

static int make_table(struct answer *a)
{
	sqlite3_str *create = sqlite3_str_new(a->db), *insert = sqlite3_str_new(a->db);
	char *sql[2];
	int r;

	sqlite3_str_appendall(create, "CREATE TABLE answer (c0");
	sqlite3_str_appendall(insert, "INSERT INTO answer VALUES (?");
	for (int i = 1; i < a->columns; i++) {
		sqlite3_str_appendf(create, ", c%d", i);
		sqlite3_str_appendall(insert, ", ?");
	}
	sqlite3_str_appendchar(create, 1, ')');
	sqlite3_str_appendchar(insert, 1, ')');
	sql[0] = sqlite3_str_finish(create);
	sql[1] = sqlite3_str_finish(insert);
	r = sql[0] && sql[1] && sqlite3_exec(a->db, sql[0], NULL, NULL, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v2(a->db, sql[1], -1, &a->insert, NULL) == SQLITE_OK;
	sqlite3_free(sql[0]);
	sqlite3_free(sql[1]);
	return r ? 0 : sqlite_failed(a);
}

/* The second line: which columns are numbers. */
static int take_types(struct answer *a, char *line)
{
	char *type;
	int i = 0;

	a->columns = 1;
	for (const char *p = a->names; *p; p++)
		a->columns += *p == '\t';
	a->numbers = calloc((size_t)a->columns, sizeof *a->numbers);
	a->reals = calloc((size_t)a->columns, sizeof *a->reals);
	if (!a->numbers || !a->reals)
		return pt_fail_no_memory(a->e, NULL);
	while ((type = strsep(&line, "\t")) && i < a->columns) {
		if (!strncmp(type, "Nullable(", 9))
			type += 9;
		a->reals[i] = !strncmp(type, "Float", 5);
		a->numbers[i] = a->reals[i] || !strncmp(type, "Int", 3) || !strncmp(type, "UInt", 4);
		i++;
	}
	if (type || i < a->columns || a->columns > COLUMNS_MAX)
		return pt_fail(a->e, PT_ERR_USAGE, PT_NO_OFFSET, "%s", no_rows);
	return make_table(a);
}

static void bind_value(struct answer *a, int i, char *text)
{
	char *end;

	if (!strcmp(text, "\\N")) {
		sqlite3_bind_null(a->insert, i + 1);
	} else if (a->reals[i]) {
		double real = strtod(text, &end);

		/* nan and inf are no values of SQL's: the first comes of 0 / 0. */
		if (real - real == 0)
			sqlite3_bind_double(a->insert, i + 1, real);
		else
			sqlite3_bind_null(a->insert, i + 1);
	} else if (a->numbers[i]) {
		errno = 0;
		sqlite3_bind_int64(a->insert, i + 1, strtoll(text, &end, 10));
		if (errno) /* more than 63 bits */
			sqlite3_bind_text(a->insert, i + 1, text, -1, SQLITE_TRANSIENT);
	} else {
		unescape(text);
		sqlite3_bind_text(a->insert, i + 1, text, -1, SQLITE_TRANSIENT);
	}
}

static int take_row(struct answer *a, char *line)
{
	char *field;
	int i = 0;

	while ((field = strsep(&line, "\t")) && i < a->columns)
		bind_value(a, i++, field);
	if (field || i < a->columns)
		return pt_fail(a->e, PT_ERR_IO, PT_NO_OFFSET, "the server's answer is malformed at row %u",
			       a->lines - 1);
	if (sqlite3_step(a->insert) != SQLITE_DONE)
		return sqlite_failed(a);
	sqlite3_reset(a->insert);
	return 0;
}

static int take_line(struct answer *a)
{
	a->lines++;
	if (a->lines == 1) {
		a->names = strdup(a->line);
		return a->names ? 0 : pt_fail_no_memory(a->e, NULL);
	}
	return a->lines == 2 ? take_types(a, a->line) : take_row(a, a->line);
}

static int grow_line(struct answer *a, size_t n)
{
	size_t room = a->room ? a->room : 4096;
	char *more;

	while (room < a->bytes + n + 1)
		room *= 2;
	if (room > LINE_MAX_BYTES)
		return pt_fail(a->e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "a row of the server's is larger than %d bytes", LINE_MAX_BYTES);
	if (room == a->room)
		return 0;
	more = realloc(a->line, room);
	if (!more)
		return pt_fail_no_memory(a->e, "the server's answer");
	a->line = more;
	a->room = room;
	return 0;
}

/* Bytes of the answer, cut anywhere. */
static int take(void *arg, const char *bytes, size_t n)
{
	struct answer *a = arg;

	while (n) {
		const char *end = memchr(bytes, '\n', n);
		size_t part = end ? (size_t)(end - bytes) : n;

		if (grow_line(a, part) < 0)
			return -1;
		memcpy(a->line + a->bytes, bytes, part);
		a->bytes += part;
		a->line[a->bytes] = 0;
		if (!end)
			return 0;
		if (take_line(a) < 0)
			return -1;
		a->bytes = 0;
		bytes += part + 1;
		n -= part + 1;
	}
	return 0;
}

/* SELECT c0 AS "first column", ... */
static sqlite3_stmt *select_all(struct answer *a)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);
	char *next = a->names, *name, *text;
	sqlite3_stmt *st;

	for (int i = 0; i < a->columns && (name = strsep(&next, "\t")); i++) {
		unescape(name);
		sqlite3_str_appendf(sql, "%s c%d AS \"%w\"", i ? "," : "SELECT", i, name);
	}
	sqlite3_str_appendall(sql, " FROM answer ORDER BY rowid");
	text = sqlite3_str_finish(sql);
	if (!text) {
		pt_fail_no_memory(a->e, NULL);
		return NULL;
	}
	st = database_prepare(a->db, text, a->e);
	sqlite3_free(text);
	return st;
}

static int receive(const struct remote *r, const char *sql, struct answer *a)
{
	struct clickhouse_request request = {.sql = sql,
					     .reads = true,
					     .settings = "join_use_nulls=1&distributed_product_mode=global&"
							 "default_format=TabSeparatedWithNamesAndTypes",
					     .timeout_s = (double)r->timeout_s,
					     .take = take,
					     .arg = a};
	enum clickhouse_failure failure;
	struct clickhouse *c = clickhouse_create(r->url, a->e);
	int ret = c && clickhouse_version(c, request.timeout_s, &failure, a->e)
		      ? clickhouse_send(c, &request, &failure, a->e)
		      : -1;

	clickhouse_destroy(c);
	if (!ret && a->lines < 2)
		ret = pt_fail(a->e, PT_ERR_USAGE, PT_NO_OFFSET, "%s", no_rows);
	return ret;
}

sqlite3_stmt *remote_ask(const struct remote *r, const char *sql, sqlite3 **ret_db, struct pt_error *e)
{
	struct answer a = {.e = e};
	sqlite3_stmt *st = NULL;

	*ret_db = NULL;
	if (sqlite3_open("", &a.db) != SQLITE_OK ||
	    sqlite3_exec(a.db, "PRAGMA journal_mode = OFF; BEGIN", NULL, NULL, NULL)) {
		sqlite_failed(&a);
	} else if (receive(r, sql, &a) == 0) {
		sqlite3_exec(a.db, "COMMIT", NULL, NULL, NULL);
		st = select_all(&a);
	}
	sqlite3_finalize(a.insert);
	free(a.line);
	free(a.names);
	free(a.numbers);
	free(a.reals);
	if (st)
		*ret_db = a.db;
	else
		sqlite3_close(a.db);
	return st;
}
