/* main.c - pt-query: canned queries on a database that pt-load wrote. */
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "queries/annotate/annotate.h"
#include "queries/arguments.h"
#include "queries/canned.h"
#include "queries/database.h"
#include "queries/detail.h"
#include "queries/explorer.h"
#include "queries/html.h"
#include "queries/on_demand.h"
#include "queries/perf_sqlite/perf_sqlite.h"
#include "queries/perfetto/perfetto.h"
#include "queries/print.h"
#include "queries/remote.h"
#include "queries/remote_copy.h"
#include "queries/report_page.h"
#include "queries/several.h"
#include "queries/source.h"
#include "queries/watch_main.h"
#include "schema/clickhouse/http.h"
#include "schema/output.h"
#include "schema/seekable_vfs.h"
#include "schema/terminal.h"
#include "schema/version.h"

/* Of all statements that serve runs at once. */
#define SERVE_HEAP_BYTES (INT64_C(2) << 30)

static int fail(const struct pt_error *e)
{
	if (e->kind != PT_ERR_CLOSED)
		fprintf(stderr, "pt-query: %s\n", e->message);
	return pt_exit_status(e);
}

/* Of a compressed database, before SQLite says that there was a disk I/O error. */
static void print_unreadable(const struct pt_error *e)
{
	fprintf(stderr, "pt-query: %s\n", e->message);
}

/* The terminal's on standard output, 0: it is none. */
static int terminal_width(void)
{
	struct winsize size;

	return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static void list_queries(const struct canned *queries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t n;
		const char *title = canned_title(queries[i].sql, &n);

		printf("%-22s %.*s\n", queries[i].name, (int)n, title);
	}
}

static void list_annotate(void)
{
	printf("%-22s %s\n", "annotate",
	       "a function's instructions: counts, cycles, branches, loops, source");
}

static void list(void)
{
	list_annotate();
	list_queries(canned_queries, canned_count);
	puts("\npt-query DB NAME runs one; pt-query DB --sql 'SELECT ...' anything else (man pt-query).\n"
	     "pt-query DB report -o report.html makes a page of them, with pictures; pt-query DB serve lets "
	     "you look about in it.");
}

static void list_remote(void)
{
	list_queries(remote_queries, remote_count);
	puts("\nOf one trace, -p trace=NUMBER, of which a copy is asked (summary lists the numbers); diff is "
	     "of two, -p a=NUMBER -p b=NUMBER:");
	for (size_t i = 0; i < canned_count; i++)
		if (!remote_has(canned_queries[i].name))
			list_queries(&canned_queries[i], 1);
	list_annotate();
	puts("\npt-query URL report -p trace=NUMBER -o report.html makes a page of them, with pictures.");
}

static const char annotate_note[] =
    "-- annotate: a function's instructions, how often each ran, where its branches led, its loops, its "
    "source\n"
    "-- No SQL makes these rows: this is what there is to print (see pt-query(1), ANNOTATE).\n"
    "-- :function = the one with the most instructions; a name, raw or demangled\n"
    "-- :dso = any; of that file: its name, or the last part of it\n"
    "-- :ip = none; an address in the function, as 0x... or decimal\n"
    "-- :thread = all; a tid or a name\n"
    "-- :syntax = intel; or att\n";
static const char annotate_sql[] =
    "-- annotate: a function's instructions, how often each ran, and where its branches led\n"
    "SELECT ip, \"offset\", count, cycles, ipc, code, branches, loop FROM annotate ORDER BY rowid";

static int print(sqlite3_stmt *st, const char *sql, const struct arguments *a, struct pt_error *e)
{
	enum print_format format = a->format					 ? a->format
				   : canned_note(sql, "format: folded", NULL, 0) ? PRINT_FOLDED
				   : canned_note(sql, "format: lines", NULL, 0)	 ? PRINT_LINES
										 : PRINT_TABLE;
	const char *name = a->source.name ? a->source.name : "sql";
	int r;

	if (format != PRINT_HTML)
		return print_rows(st, format, name, (size_t)a->width, stdout, e);
	html_begin(stdout, a->databases[0]);
	r = html_section(st, name, sql, stdout, e);
	html_end(stdout);
	return r;
}

static int run(sqlite3 *db, const char *sql, const struct arguments *a, struct pt_error *e)
{
	sqlite3_stmt *st = database_prepare(db, sql, e);
	int r = st ? 0 : -1;

	if (st && a->no_demangle)
		database_raw_names(st);
	for (size_t i = 0; !r && i < a->parameter_count; i++)
		r = database_bind(st, a->parameters[i], e);
	if (r == 0)
		r = print(st, sql, a, e);
	sqlite3_finalize(st);
	return r;
}

static int run_several(const char *sql, const struct arguments *a, const struct database_watch *watch,
		       struct pt_error *e)
{
	struct several s = {.databases = a->databases,
			    .count = a->database_count,
			    .parameters = a->parameters,
			    .parameter_count = a->parameter_count,
			    .no_demangle = a->no_demangle,
			    .watch = watch};
	sqlite3 *db;
	sqlite3_stmt *st = several_ask(&s, sql, &db, e);
	int r = st ? print(st, sql, a, e) : -1;

	sqlite3_finalize(st);
	sqlite3_close(db);
	return r;
}

static int run_report(sqlite3 *db, const struct arguments *a, struct pt_error *e)
{
	const struct report_page page = {.databases = a->databases,
					 .database_count = a->database_count,
					 .parameters = a->parameters,
					 .parameter_count = a->parameter_count,
					 .raw_names = a->no_demangle};

	return report_page_write(&page, db, stdout, e);
}

/* The rows of annotate, which no SQL of the database's can make. */
static int run_annotate(sqlite3 *db, const struct arguments *a, struct pt_error *e)
{
	const struct annotate_options o = {a->parameters, a->parameter_count, a->no_demangle};
	sqlite3 *rows = annotate(db, &o, e);
	struct arguments without = *a;
	int r;

	if (!rows)
		return -1;
	without.parameter_count = 0;
	r = run(rows, annotate_sql, &without, e);
	sqlite3_close(rows);
	return r;
}

static bool is_between(const struct arguments *a)
{
	return a->source.name && !strcmp(a->source.name, "branches-between");
}

/* branches-between, of branches that the database has not: 1; 0: it has them; -1. */
static int run_on_demand(sqlite3 *db, const char *sql, const struct arguments *a,
			 const struct database_watch *watch, struct pt_error *e)
{
	struct arguments there = *a;
	struct on_demand q;
	int r =
	    on_demand_between(db, a->container, a->parameters, a->parameter_count, INT64_MAX, watch, &q, e);

	if (r <= 0)
		return r;
	there.parameter_count = q.parameter_count;
	memcpy(there.parameters, q.parameters, q.parameter_count * sizeof *q.parameters);
	r = run(q.db, sql, &there, e);
	sqlite3_close(q.db);
	return r < 0 ? -1 : 1;
}

static int run_query(sqlite3 *db, const char *sql, const struct arguments *a,
		     const struct database_watch *watch, struct pt_error *e)
{
	int r = is_between(a) ? run_on_demand(db, sql, a, watch, e) : 0;

	if (r)
		return r < 0 ? -1 : 0;
	return on_demand_register(db, a->container, watch, e) < 0 ? -1 : run(db, sql, a, e);
}

/* sql NULL: annotate, the report, or the list. Closes db, which may be NULL: it could not be opened. */
static int answer_of_one(sqlite3 *db, const char *sql, const struct arguments *a,
			 const struct database_watch *watch, struct pt_error *e)
{
	int r = db ? 0 : -1;

	if (db)
		database_stop_when(db, watch);
	if (db && sql)
		r = run_query(db, sql, a, watch, e);
	else if (db && arguments_is_report(a))
		r = run_report(db, a, e);
	else if (db && a->format == PRINT_PERF_SQLITE)
		r = perf_sqlite_write(db, stdout, e);
	else if (db && a->format == PRINT_PERFETTO)
		r = perfetto_write(db, a->parameters, a->parameter_count, stdout, e);
	else if (db && a->source.name)
		r = run_annotate(db, a, e);
	else if (db)
		list();
	sqlite3_close(db);
	return r;
}

static int check_form(const struct arguments *a, struct pt_error *e)
{
	if (arguments_is_report(a) && (a->print || (a->format && a->format != PRINT_HTML)))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "a report is HTML, which many queries make");
	if (arguments_is_annotate(a) && a->database_count > 1)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "annotate asks one database at a time");
	return 0;
}

/* What the databases lack of what the query asks for is said, or is the error. */
static int check_detail(const struct arguments *a, const char *sql, struct pt_error *e)
{
	char note[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->database_count; i++) {
		sqlite3 *db = database_open(a->databases[i], e);

		r = db ? detail_check(db, a->databases[i], a->source.name ? a->source.name : "the statement",
				      sql, note, sizeof note, e)
		       : -1;
		if (r == 0 && note[0])
			fprintf(stderr, "pt-query: %s: %s\n", a->databases[i], note);
		sqlite3_close(db);
	}
	return r;
}

static int answer_of_files(const struct arguments *a, struct pt_error *e)
{
	bool any = !arguments_is_program(a) && (a->source.name || a->source.sql || a->source.file);
	char *sql = any ? source_read(&a->source, e) : NULL;
	struct timespec until = {0};
	const struct database_watch watch = database_until(&until);
	int r = any && !sql ? -1 : check_form(a, e);

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += a->timeout_s;
	if (r == 0 && arguments_is_annotate(a) && a->print)
		fputs(annotate_note, stdout);
	else if (r == 0 && a->print && sql)
		fputs(sql, stdout);
	else if (r == 0 && sql && (a->database_count > 1 || !is_between(a)) && check_detail(a, sql, e) < 0)
		r = -1;
	else if (r == 0 && a->database_count > 1 && !arguments_is_report(a))
		r = run_several(sql, a, a->timeout_s ? &watch : NULL, e);
	else if (r == 0)
		r = answer_of_one(database_open(a->databases[0], e), sql, a, a->timeout_s ? &watch : NULL, e);
	free(sql);
	return r;
}

/*
 * The text of the question to a ClickHouse server, for the caller to free(), and *ret_notes, its leading
 * comment.
 */
static char *remote_question(const struct remote *r, const struct arguments *a, const char **ret_notes,
			     struct pt_error *e)
{
	char *own = a->source.name ? NULL : source_read(&a->source, e), *sql;

	*ret_notes = a->source.name ? remote_find(a->source.name, e) : "";
	sql = own || (a->source.name && *ret_notes) ? remote_sql(r, own ? own : *ret_notes, e) : NULL;
	free(own);
	return sql;
}

static struct remote remote_of(const struct arguments *a)
{
	return (struct remote){.url = a->databases[0],
			       .parameters = a->parameters,
			       .parameter_count = a->parameter_count,
			       .no_demangle = a->no_demangle,
			       .timeout_s = a->timeout_s};
}

/* Some of SQLite's views are not among the server's. */
static int say_where_views_are(struct pt_error *e)
{
	char why[sizeof e->message];

	if (!strstr(e->message, "doesn't exist") && !strstr(e->message, "Unknown table"))
		return -1;
	snprintf(why, sizeof why, "%s", e->message);
	return pt_fail(e, e->kind, PT_NO_OFFSET,
		       "%.700s; all views of pt-schema(5) are in a file of one trace: "
		       "-p trace=NUMBER -f sqlite -o trace.db",
		       why);
}

/* The server's own answer. */
static int answer_of_remote(const struct remote *remote, const struct arguments *a, struct pt_error *e)
{
	sqlite3_stmt *st = NULL;
	sqlite3 *db = NULL;
	const char *comment;
	char *sql = remote_question(remote, a, &comment, e);
	int r = sql ? 0 : -1;

	if (sql && a->print)
		fputs(sql, stdout);
	else if (sql)
		r = (st = remote_ask(remote, sql, &db, e)) ? print(st, comment, a, e)
							   : say_where_views_are(e);
	free(sql);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return r;
}

/* `trace` says which trace is copied; what has that parameter itself gets it, too. */
static void take_trace(struct arguments *a, const char *sql, const char *trace)
{
	size_t n = 0;

	for (size_t i = 0; i < a->parameter_count; i++)
		if (strncmp(a->parameters[i], "trace=", strlen("trace=")) != 0)
			a->parameters[n++] = a->parameters[i];
	if ((arguments_is_report(a) || (sql && strstr(sql, ":trace"))) &&
	    n < sizeof a->parameters / sizeof *a->parameters)
		a->parameters[n++] = trace;
	a->parameter_count = n;
}

/* SQLite's answer, about a copy of one of the server's traces. */
static int answer_of_copy(const struct remote *remote, const struct arguments *a, struct pt_error *e)
{
	struct arguments mine = *a;
	char trace[40], *sql = arguments_is_program(a) ? NULL : source_read(&a->source, e);
	struct timespec until = {0};
	const struct database_watch watch = database_until(&until);
	int64_t number;
	int r = sql || arguments_is_program(a) ? check_form(a, e) : -1;

	if (r == 0 && a->print) {
		fputs(sql ? sql : annotate_note, stdout);
	} else if (r == 0) {
		r = remote_copy_trace(remote, a->source.name, &number, e);
		snprintf(trace, sizeof trace, "trace=%lld", r ? 0LL : (long long)number);
		take_trace(&mine, sql, trace);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += a->timeout_s;
		if (r == 0 && a->format == PRINT_SQLITE)
			r = remote_copy_write(remote, number, stdout, e);
		else if (r == 0)
			r = answer_of_one(remote_copy(remote, number, sql, e), sql, &mine,
					  a->timeout_s ? &watch : NULL, e);
	}
	free(sql);
	return r;
}

/* Compares two of the server's traces: a and b, or a and the next one. */
static int answer_of_two(const struct remote *remote, const char *view, const struct arguments *a,
			 struct pt_error *e)
{
	static const char rows[] =
	    "SELECT * FROM %s WHERE trace = ifNull(:b, 0)"
	    " OR trace IN (SELECT id FROM traces WHERE id >= ifNull(:a, 0) ORDER BY id LIMIT 2)";
	const char *traces[sizeof a->parameters / sizeof *a->parameters];
	struct remote asked = *remote;
	char question[sizeof rows + 64], *sql = source_read(&a->source, e), *text = NULL;
	sqlite3 *db = NULL;
	int r = sql ? 0 : -1;

	snprintf(question, sizeof question, rows, view);
	if (r == 0 && a->print) {
		fputs(sql, stdout);
	} else if (r == 0) {
		asked.parameters = traces;
		asked.parameter_count = 0;
		for (size_t i = 0; i < a->parameter_count; i++)
			if (strspn(a->parameters[i], "ab") == 1 && a->parameters[i][1] == '=')
				traces[asked.parameter_count++] = a->parameters[i];
		text = remote_sql(&asked, question, e);
		db = text ? remote_gather(remote, text, view, e) : NULL;
		r = db ? run(db, sql, a, e) : -1;
	}
	free(text);
	free(sql);
	sqlite3_close(db);
	return r;
}

static int answer_of_server(const struct arguments *a, struct pt_error *e)
{
	const struct remote remote = remote_of(a);
	char view[32];

	if (a->database_count > 1)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "a server is asked alone: it has the traces of all");
	if (!a->source.name && !a->source.sql && !a->source.file && !arguments_is_program(a)) {
		list_remote();
		return 0;
	}
	if (a->source.name && canned_find(a->source.name) &&
	    canned_note(canned_find(a->source.name)->sql, "gathers: ", view, sizeof view))
		return answer_of_two(&remote, view, a, e);
	if (arguments_is_program(a) ||
	    (a->source.name && !remote_has(a->source.name) && canned_find(a->source.name)))
		return answer_of_copy(&remote, a, e);
	return answer_of_remote(&remote, a, e);
}

static bool asks_server(const struct arguments *a)
{
	for (size_t i = 0; i < a->database_count; i++)
		if (clickhouse_is_url(a->databases[i]))
			return true;
	return false;
}

/* Each database can be opened, and is of this release. */
static int check_databases(const struct arguments *a, struct pt_error *e)
{
	for (size_t i = 0; i < a->database_count; i++) {
		sqlite3 *db = database_open(a->databases[i], e);

		if (!db)
			return -1;
		sqlite3_close(db);
	}
	return 0;
}

/* Until a signal of `ends` comes. */
static int serve_until(const sigset_t *ends, const struct server_options *o, struct pt_error *e)
{
	struct server *s = server_start(o, e);
	int signal, ret = s ? 0 : -1;

	if (s) {
		puts(server_url(s));
		ret = print_flush(stdout, e);
	}
	if (ret == 0 && isatty(STDERR_FILENO))
		fputs("Open it in a browser on this machine; Ctrl-C ends it.\n", stderr);
	while (ret == 0 && sigwait(ends, &signal) != 0)
		;
	server_stop(s);
	return ret;
}

static int serve(const struct arguments *a, struct pt_error *e)
{
	struct explorer x = {.databases = a->databases,
			     .database_count = a->database_count,
			     .query_folder = a->source.folder,
			     .timeout_s = a->timeout_s ? a->timeout_s : EXPLORER_TIMEOUT_S,
			     .raw_names = a->no_demangle};
	const struct server_options o = {.port = (unsigned)a->port, .answer = explorer_answer, .arg = &x};
	sigset_t ends;
	int ret = -1;

	if (asks_server(a))
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "serve is for database files: pt-query URL -p trace=NUMBER -f sqlite -o trace.db "
		    "makes one of a trace");
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	/* The server's threads inherit that they are blocked. */
	sigprocmask(SIG_BLOCK, &ends, NULL);
	sqlite3_hard_heap_limit64(SERVE_HEAP_BYTES);
	x.longest = longest_create(a->database_count, e);
	if (x.longest && check_databases(a, e) == 0)
		ret = serve_until(&ends, &o, e);
	longest_destroy(x.longest);
	return ret;
}

static int answer(const struct arguments *a, struct pt_error *e)
{
	if (arguments_is_serve(a))
		return serve(a, e);
	if (asks_server(a))
		return answer_of_server(a, e);
	return answer_of_files(a, e);
}

/* The answer, to standard output. */
static int answer_flushed(const struct arguments *a, struct pt_error *e)
{
	int r = answer(a, e);

	return r == 0 ? print_flush(stdout, e) : r;
}

/* The answer, to --output's file: it takes standard output's place. */
static int answer_to_file(struct arguments *a, struct pt_error *e)
{
	struct output file = {0};
	int r = output_open(&file, a->output, "a report", e);

	if (r == 0 && file.fd != STDOUT_FILENO && dup2(file.fd, STDOUT_FILENO) < 0)
		r = pt_fail_errno(e, "cannot write to %s", a->output);
	if (r == 0)
		r = answer_flushed(a, e);
	if (r == 0)
		r = output_commit(&file, e);
	output_abort(&file);
	return r;
}

int main(int argc, char **argv)
{
	struct arguments a = {.source.folder = getenv("PT_QUERIES"), .width = -1};
	struct pt_error e = {0};
	int r;

	signal(SIGPIPE, SIG_IGN);
	output_limit_is_error();
	pt_terminal_protect_errors();
	pt_seekable_vfs_on_failure(print_unreadable);
	if (argc > 1 && !strcmp(argv[1], "watch"))
		return watch_main(argc - 1, argv + 1);
	r = arguments_parse(argc, argv, &a, &e);
	if (!a.output)
		pt_terminal_protect();
	if (a.width < 0)
		a.width = a.output ? 0 : terminal_width();
	if (r > 0) {
		arguments_print_help(stdout);
		r = print_flush(stdout, &e);
	} else if (r == 0 && a.version) {
		puts("pt-query " PT_VERSION);
		r = print_flush(stdout, &e);
	} else if (r == 0) {
		r = a.output ? answer_to_file(&a, &e) : answer_flushed(&a, &e);
	}
	return r < 0 ? fail(&e) : 0;
}
