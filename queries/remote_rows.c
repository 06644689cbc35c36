/* remote_rows.c - the rows of remote.h: TabSeparatedWithNamesAndTypes into an SQLite table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "queries/database.h"
#include "queries/remote.h"
#include "schema/clickhouse/http.h"

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

/* The columns are the parameters of the statement that was given. */
static int check_columns(struct answer *a)
{
	if (a->columns == sqlite3_bind_parameter_count(a->insert))
		return 0;
	return pt_fail(a->e, PT_ERR_IO, PT_NO_OFFSET, "the server's answer has %d columns, and not %d",
		       a->columns, sqlite3_bind_parameter_count(a->insert));
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
	return a->insert ? check_columns(a) : make_table(a);
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

static void answer_deinit(struct answer *a)
{
	sqlite3_finalize(a->insert);
	free(a->line);
	free(a->names);
	free(a->numbers);
	free(a->reals);
}

int remote_rows(const struct remote *r, const char *sql, sqlite3 *db, const char *insert, struct pt_error *e)
{
	struct answer a = {.e = e, .db = db};
	int ret = sqlite3_prepare_v2(db, insert, -1, &a.insert, NULL) == SQLITE_OK ? receive(r, sql, &a)
										   : sqlite_failed(&a);

	answer_deinit(&a);
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
	answer_deinit(&a);
	if (st)
		*ret_db = a.db;
	else
		sqlite3_close(a.db);
	return st;
}

sqlite3 *remote_gather(const struct remote *r, const char *sql, const char *name, struct pt_error *e)
{
	sqlite3 *db;
	sqlite3_stmt *st = remote_ask(r, sql, &db, e);
	char *view = st ? sqlite3_mprintf("CREATE VIEW \"%w\" AS %s", name, sqlite3_sql(st)) : NULL;
	bool made = view && sqlite3_exec(db, view, NULL, NULL, NULL) == SQLITE_OK;

	if (st && !made)
		pt_fail(e, PT_ERR_IO, PT_NO_OFFSET, "cannot keep the server's rows: %s", sqlite3_errmsg(db));
	sqlite3_free(view);
	sqlite3_finalize(st);
	if (made)
		return db;
	sqlite3_close(db);
	return NULL;
}
