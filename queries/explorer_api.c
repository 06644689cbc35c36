/* explorer_api.c - see explorer_api.h. */
#include "queries/explorer_api.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "queries/annotate/annotate.h"
#include "queries/canned.h"
#include "queries/database.h"
#include "queries/detail.h"
#include "queries/on_demand.h"
#include "queries/print.h"
#include "queries/several.h"
#include "queries/source.h"
#include "schema/options.h"

#define EMBED(name)                                                                                          \
	__asm__(".pushsection .rodata\n"                                                                     \
		".globl explorer_sql_" #name "\n"                                                            \
		".hidden explorer_sql_" #name "\n"                                                           \
		"explorer_sql_" #name ":\n"                                                                  \
		".incbin \"queries/explorer/" #name ".sql\"\n"                                               \
		".byte 0\n"                                                                                  \
		".popsection\n");                                                                            \
	extern const char explorer_sql_##name[] __attribute__((visibility("hidden")));

EMBED(lanes)
EMBED(spans)
EMBED(marks)
EMBED(calls)
EMBED(shift)

static const struct {
	const char *name, *sql;
} views[] = {{"lanes", explorer_sql_lanes},
	     {"spans", explorer_sql_spans},
	     {"marks", explorer_sql_marks},
	     {"calls", explorer_sql_calls}};

enum { PARAMETERS_MAX = 64 };
#define DECODED_NS_MAX 100000000 /* of a trace, while a browser waits */

/* What a browser asks. */
struct question {
	const char *sql, *name; /* one of them, but for api/lanes and so on: sql */
	bool all;		/* databases */
	size_t which;
	long long limit;
	char *parameters[PARAMETERS_MAX]; /* "NAME=VALUE", owned */
	size_t parameter_count;
	size_t given_count; /* those behind are the server's own: bound where a statement has them */
	bool too_many;
	bool needs_longest; /* parameters of longest.h */
	bool needs_shift;   /* shift.sql's */
	char note[256];	    /* what the answer lacks, "" nothing */
};

/* ---- Connections ---- */

size_t explorer_database(const struct explorer *x, const struct server_request *r)
{
	const char *text = server_argument(r, "db");
	unsigned long n = text ? strtoul(text, NULL, 10) : 0;

	return n < x->database_count ? n : 0;
}

/* A watch's. */
static int is_over(void *arg)
{
	const struct explorer_wait *w = arg;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > w->until.tv_sec ||
	       (now.tv_sec == w->until.tv_sec && now.tv_nsec >= w->until.tv_nsec) ||
	       server_is_gone(w->request);
}

static struct timespec deadline(const struct explorer *x)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += x->timeout_s;
	return t;
}

sqlite3 *explorer_open(const struct explorer *x, const struct server_request *r, size_t which,
		       struct explorer_wait *wait, struct pt_error *e)
{
	sqlite3 *db = database_open(x->databases[which], e);

	if (!db)
		return NULL;
	*wait = (struct explorer_wait){deadline(x), r};
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, EXPLORER_VALUE_BYTES);
	database_stop_when(db, &(const struct database_watch){is_over, wait});
	return db;
}

/* ---- Rows ---- */

/* A browser's numbers are doubles. */
static void put_integer(FILE *out, int64_t v)
{
	static const int64_t exact = INT64_C(1) << 53;

	fprintf(out, v > exact || v < -exact ? "\"%" PRId64 "\"" : "%" PRId64, v);
}

static void put_value(sqlite3_stmt *st, int i, FILE *out)
{
	const char *text;

	switch (sqlite3_column_type(st, i)) {
	case SQLITE_INTEGER: put_integer(out, sqlite3_column_int64(st, i)); break;
	case SQLITE_FLOAT:
		/* (SQLite's Inf is no JSON.) */
		text = (const char *)sqlite3_column_text(st, i);
		if (text && (isdigit((unsigned char)text[0]) || isdigit((unsigned char)text[1])))
			fputs(text, out);
		else
			print_json_string(out, text ? text : "");
		break;
	case SQLITE_NULL: fputs("null", out); break;
	default: text = (const char *)sqlite3_column_text(st, i); print_json_string(out, text ? text : "");
	}
}

static void put_columns(sqlite3_stmt *st, FILE *out)
{
	fputs("{\"columns\":[", out);
	for (int i = 0; i < sqlite3_column_count(st); i++) {
		fputs(i ? "," : "", out);
		print_json_string(out, sqlite3_column_name(st, i));
	}
	fputs("],\"rows\":[", out);
}

/* Of at most limit rows; whether there are more goes to *more. SQLite's status. */
static int put_rows(sqlite3_stmt *st, long long limit, bool *more, FILE *out)
{
	int r;

	*more = false;
	for (long long n = 0; (r = sqlite3_step(st)) == SQLITE_ROW; n++) {
		if (n == limit) {
			*more = true;
			return SQLITE_DONE;
		}
		fputs(n ? ",\n[" : "\n[", out);
		for (int i = 0; i < sqlite3_column_count(st); i++) {
			fputs(i ? "," : "", out);
			put_value(st, i, out);
		}
		putc(']', out);
	}
	return r;
}

static int statement_failed(sqlite3_stmt *st, struct pt_error *e)
{
	sqlite3 *db = sqlite3_db_handle(st);

	if (sqlite3_errcode(db) == SQLITE_INTERRUPT)
		return pt_fail(e, PT_ERR_IO, PT_NO_OFFSET,
			       "it took too long, and was stopped (pt-query --timeout)");
	return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s", sqlite3_errmsg(db));
}

static int put_answer(sqlite3_stmt *st, const struct question *q, FILE *out, struct pt_error *e)
{
	struct timespec begin, end;
	bool more;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	put_columns(st, out);
	if (put_rows(st, q->limit, &more, out) != SQLITE_DONE)
		return statement_failed(st, e);
	clock_gettime(CLOCK_MONOTONIC, &end);
	fputs("\n],\"note\":", out);
	print_json_string(out, q->note);
	fprintf(out, ",\"more\":%s,\"elapsed_ns\":%lld}\n", more ? "true" : "false",
		(end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec);
	return 0;
}

/* ---- Questions ---- */

static bool take_parameter(void *arg, const char *name, const char *value)
{
	struct question *q = arg;

	if (strncmp(name, "p.", 2) != 0)
		return true;
	if (q->parameter_count == PARAMETERS_MAX ||
	    asprintf(&q->parameters[q->parameter_count], "%s=%s", name + 2, value) < 0) {
		q->too_many = true;
		return false;
	}
	q->parameter_count++;
	return true;
}

static void question_deinit(struct question *q)
{
	for (size_t i = 0; i < q->parameter_count; i++)
		free(q->parameters[i]);
}

/* Only names that can be a file's in a folder of queries, and no path. */
static bool is_name(const char *name)
{
	return *name && name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_")] == 0;
}

static int read_question(struct question *q, const struct explorer *x, const struct server_request *r,
			 struct pt_error *e)
{
	const char *db = server_argument(r, "db"), *limit = server_argument(r, "limit");

	q->name = server_argument(r, "name");
	q->sql = server_argument(r, "sql");
	q->all = db && !strcmp(db, "all");
	q->which = explorer_database(x, r);
	q->limit = EXPLORER_ROWS;
	server_arguments(r, take_parameter, q);
	q->given_count = q->parameter_count;
	if (q->too_many)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "more than %d parameters", PARAMETERS_MAX);
	if (q->name && !is_name(q->name))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "that is no query's name");
	return limit ? pt_option_number("limit", limit, 1, EXPLORER_ROWS_MAX, &q->limit, e) : 0;
}

/* Of "NAME=VALUE". */
static bool has_parameter(sqlite3_stmt *st, const char *parameter)
{
	char name[128];

	snprintf(name, sizeof name, ":%.*s", (int)strcspn(parameter, "="), parameter);
	return sqlite3_bind_parameter_index(st, name) > 0;
}

static int put_statement(sqlite3 *db, const char *sql, const struct explorer *x, const struct question *q,
			 FILE *out, struct pt_error *e)
{
	sqlite3_stmt *st = database_prepare(db, sql, e);
	int r = st ? 0 : -1;

	if (st && x->raw_names)
		database_raw_names(st);
	for (size_t i = 0; r == 0 && i < q->parameter_count; i++)
		if (i < q->given_count || has_parameter(st, q->parameters[i]))
			r = database_bind(st, q->parameters[i], e);
	if (r == 0)
		r = put_answer(st, q, out, e);
	sqlite3_finalize(st);
	return r;
}

static const char annotate_sql[] =
    "SELECT ip, \"offset\", count, cycles, ipc, code, branches, loop FROM annotate ORDER BY rowid";

static int put_annotate(sqlite3 *db, const struct explorer *x, const struct question *q, FILE *out,
			struct pt_error *e)
{
	const struct annotate_options o = {(const char *const *)q->parameters, q->parameter_count,
					   x->raw_names};
	const struct question none = {.limit = q->limit};
	sqlite3 *rows = annotate(db, &o, e);
	int r = rows ? put_statement(rows, annotate_sql, x, &none, out, e) : -1;

	sqlite3_close(rows);
	return r;
}

static int put_all(const char *sql, const struct explorer *x, const struct server_request *request,
		   const struct question *q, FILE *out, struct pt_error *e)
{
	struct explorer_wait wait = {deadline(x), request};
	const struct database_watch watch = {is_over, &wait};
	const struct several s = {.databases = x->databases,
				  .count = x->database_count,
				  .parameters = (const char *const *)q->parameters,
				  .parameter_count = q->parameter_count,
				  .no_demangle = x->raw_names,
				  .watch = &watch};
	sqlite3 *db;
	sqlite3_stmt *st = several_ask(&s, sql, &db, e);
	int r;

	if (!st)
		return -1;
	r = put_answer(st, q, out, e);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return r;
}

/* What spans.sql has to know of the database, behind what the browser gave: the last binding holds. */
static int add_longest(sqlite3 *db, const struct explorer *x, struct question *q, struct pt_error *e)
{
	char *found[LONGEST_PARAMETERS];

	if (q->parameter_count + LONGEST_PARAMETERS > PARAMETERS_MAX)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "more parameters than there are");
	if (longest_parameters(x->longest, q->which, x->databases[q->which], db, found, e) < 0)
		return -1;
	memcpy(&q->parameters[q->parameter_count], found, sizeof found);
	q->parameter_count += LONGEST_PARAMETERS;
	return 0;
}

/* Which sums are to be read, by shift.sql; none: nothing is added. */
static int add_shift(sqlite3 *db, struct question *q, struct pt_error *e)
{
	const struct source source = {.sql = explorer_sql_shift};
	char *sql = source_read(&source, e);
	sqlite3_stmt *st = sql ? database_prepare(db, sql, e) : NULL;
	int ret = st ? 0 : -1, r = 0;

	for (size_t i = 0; ret == 0 && i < q->parameter_count; i++)
		ret = database_bind(st, q->parameters[i], e);
	if (ret == 0 && (r = sqlite3_step(st)) != SQLITE_ROW && r != SQLITE_DONE)
		ret = statement_failed(st, e);
	if (ret == 0 && r == SQLITE_ROW && sqlite3_column_type(st, 0) == SQLITE_INTEGER) {
		if (q->parameter_count == PARAMETERS_MAX ||
		    asprintf(&q->parameters[q->parameter_count], "shift=%d", sqlite3_column_int(st, 0)) < 0)
			ret = pt_fail_no_memory(e, NULL);
		else
			q->parameter_count++;
	}
	sqlite3_finalize(st);
	free(sql);
	return ret;
}

/* Of a database that was loaded without branches: branches-between decodes them, other questions say
 * what is missing. */
static int put_checked(sqlite3 *db, const char *sql, const struct explorer *x, struct explorer_wait *wait,
		       struct question *q, FILE *out, struct pt_error *e)
{
	const struct database_watch watch = {is_over, wait};
	bool between = q->name && !strcmp(q->name, "branches-between");
	struct question decoded = {.limit = q->limit};
	struct on_demand d;
	int r = between ? on_demand_between(db, NULL, (const char *const *)q->parameters, q->parameter_count,
					    DECODED_NS_MAX, &watch, &d, e)
			: 0;

	if (r == 0 && detail_check(db, x->databases[q->which], q->name ? q->name : "the statement", sql,
				   q->note, sizeof q->note, e) < 0)
		return -1;
	if (r <= 0)
		return r < 0 ? -1 : put_statement(db, sql, x, q, out, e);
	memcpy(decoded.parameters, d.parameters, d.parameter_count * sizeof *d.parameters);
	decoded.parameter_count = decoded.given_count = d.parameter_count;
	r = put_statement(d.db, sql, x, &decoded, out, e);
	sqlite3_close(d.db);
	return r;
}

static int put_one(const char *sql, const struct explorer *x, const struct server_request *r,
		   struct question *q, FILE *out, struct pt_error *e)
{
	struct explorer_wait wait;
	sqlite3 *db = explorer_open(x, r, q->which, &wait, e);
	int ret = -1;

	if (db && (!q->needs_shift || add_shift(db, q, e) == 0) &&
	    (!q->needs_longest || add_longest(db, x, q, e) == 0))
		ret = !sql		  ? put_annotate(db, x, q, out, e)
		      : q->name || q->sql ? put_checked(db, sql, x, &wait, q, out, e)
					  : put_statement(db, sql, x, q, out, e);
	sqlite3_close(db);
	return ret;
}

/* view: the SQL of api/lanes and so on; NULL: api/query. */
static int put_query(const struct explorer *x, const struct server_request *r, const char *view, FILE *out,
		     struct pt_error *e)
{
	struct question q = {0};
	bool annotated = false;
	char *sql = NULL;
	int ret = read_question(&q, x, r, e);

	if (view)
		q.name = q.sql = NULL;
	if (ret == 0) {
		const struct source source = {.name = view ? NULL : q.name,
					      .sql = view     ? view
						     : q.name ? NULL
							      : q.sql,
					      .folder = x->query_folder};

		annotated = source.name && !strcmp(source.name, "annotate");
		if (!source.name && !source.sql)
			ret = pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "name= or sql= says what is asked");
		else if (!annotated && !(sql = source_read(&source, e)))
			ret = -1;
	}
	q.needs_longest = view == explorer_sql_spans;
	q.needs_shift = view == explorer_sql_spans || view == explorer_sql_marks;
	if (ret == 0 && q.all && !annotated && !view)
		ret = put_all(sql, x, r, &q, out, e);
	else if (ret == 0)
		ret = put_one(sql, x, r, &q, out, e);
	free(sql);
	question_deinit(&q);
	return ret;
}

/* ---- What there is ---- */

static void put_parameters(const char *sql, FILE *out)
{
	const char *line = sql, *between = "";

	fputs(",\"parameters\":[", out);
	for (; !strncmp(line, "--", 2); line += strcspn(line, "\n"), line += *line == '\n') {
		size_t n = strcspn(line, "\n");
		char text[512];

		if (strncmp(line, "-- :", 4) != 0)
			continue;
		snprintf(text, sizeof text, "%.*s", (int)(n - 4), line + 4);
		fputs(between, out);
		print_json_string(out, text);
		between = ",";
	}
	fputs("]}", out);
}

static void put_queries(FILE *out)
{
	fputs("\"queries\":[", out);
	for (size_t i = 0; i < canned_count; i++) {
		size_t n;
		const char *title = canned_title(canned_queries[i].sql, &n);
		char text[512];

		snprintf(text, sizeof text, "%.*s", (int)n, title);
		fprintf(out, "%s\n{\"name\":\"%s\",\"title\":", i ? "," : "", canned_queries[i].name);
		print_json_string(out, text);
		put_parameters(canned_queries[i].sql, out);
	}
	fputs(
	    ",\n{\"name\":\"annotate\",\"title\":\"a function, instruction by instruction\",\"parameters\":["
	    "\"function = the one with the most instructions; a name\",\"dso = any\",\"ip = none; an address "
	    "in "
	    "it\",\"thread = all; a tid or a name\",\"syntax = intel; or att\"]}\n]",
	    out);
}

static const char schema_sql[] =
    "SELECT m.name AS view, p.name AS \"column\" FROM sqlite_schema m, pragma_table_info(m.name) p "
    "WHERE m.type = 'view' ORDER BY m.name, p.cid";
static const char traces_sql[] = "SELECT t.*, TSC_TO_TIME(t, t.first_tsc) AS first_ns, TSC_TO_TIME(t, "
				 "t.last_tsc) AS last_ns FROM traces t ORDER BY id";

static int put_part(sqlite3 *db, const struct explorer *x, const char *sql, FILE *out, struct pt_error *e)
{
	return put_statement(db, sql, x, &(struct question){.limit = EXPLORER_ROWS_MAX}, out, e);
}

static int put_database(const struct explorer *x, const struct server_request *r, size_t which, FILE *out,
			struct pt_error *e)
{
	struct explorer_wait wait;
	sqlite3 *db = explorer_open(x, r, which, &wait, e);
	char *traces = db ? source_read(&(struct source){.sql = traces_sql}, e) : NULL;
	int ret = traces ? 0 : -1;

	fputs(which ? ",\n{\"path\":" : "\n{\"path\":", out);
	print_json_string(out, x->databases[which]);
	fputs(",\"traces\":", out);
	if (ret == 0)
		ret = put_part(db, x, traces, out, e);
	fputs(",\"schema\":", out);
	if (ret == 0)
		ret = put_part(db, x, schema_sql, out, e);
	putc('}', out);
	free(traces);
	sqlite3_close(db);
	return ret;
}

static int put_about(const struct explorer *x, const struct server_request *r, FILE *out, struct pt_error *e)
{
	int ret = 0;

	fputs("{\"databases\":[", out);
	for (size_t i = 0; i < x->database_count && ret == 0; i++)
		ret = put_database(x, r, i, out, e);
	fputs("],\n", out);
	put_queries(out);
	fputs("}\n", out);
	return ret;
}

/* ---- Answers ---- */

static void send(struct server_answer *a, int failed, const char *text, size_t bytes,
		 const struct pt_error *e)
{
	a->type = "application/json";
	if (!failed) {
		fwrite(text, 1, bytes, a->body);
		return;
	}
	a->status = e->kind == PT_ERR_IO ? 503 : 400;
	fputs("{\"error\":", a->body);
	print_json_string(a->body, e->message);
	fputs("}\n", a->body);
}

bool explorer_api(const struct explorer *x, const struct server_request *r, const char *name,
		  struct server_answer *a)
{
	bool about = !strcmp(name, "about"), query = !strcmp(name, "query");
	struct pt_error e = {0};
	const char *view = NULL;
	char *text = NULL;
	size_t bytes;
	FILE *out;
	int ret;

	for (size_t i = 0; i < sizeof views / sizeof *views; i++)
		if (strcmp(name, views[i].name) == 0)
			view = views[i].sql;
	if (!about && !query && !view)
		return false;
	out = open_memstream(&text, &bytes);
	ret = !out    ? pt_fail_no_memory(&e, NULL)
	      : about ? put_about(x, r, out, &e)
		      : put_query(x, r, view, out, &e);
	if (out && fclose(out))
		ret = pt_fail_no_memory(&e, NULL);
	send(a, ret, text, bytes, &e);
	free(text);
	return true;
}
