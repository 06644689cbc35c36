/* arguments.c - see arguments.h. */
#include "queries/arguments.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queries/canned.h"
#include "schema/clickhouse/http.h"
#include "schema/options.h"

static const char usage[] =
    "usage: pt-query DB                               list the queries\n"
    "       pt-query DB NAME [options]                run one\n"
    "       pt-query DB --sql 'SELECT ...' [options]  run your own\n"
    "       pt-query DB --file FILE [options]         the same, from a file (-: standard input)\n"
    "       pt-query DB annotate -p function=NAME     a function, instruction by instruction\n"
    "       pt-query DB report -o report.html         a page with pictures of most of them\n"
    "       pt-query DB serve [--port N]              the same to look about in, in a browser\n"
    "       pt-query --db DB --db DB2 ... NAME        ask several databases; diff compares them\n"
    "       pt-query DB -f perfetto -o trace.pftrace  all of it for ui.perfetto.dev\n"
    "       pt-query DB -f perf-sqlite -o perf.db     the same for perf's exported-sql-viewer.py\n"
    "       pt-query watch DIR --textfile FILE.prom   a folder of databases, for Prometheus\n"
    "DB is a file, or clickhouse://[user@]host[:port]/database (with TLS clickhouses://), of which\n"
    "       pt-query DB -p trace=N -f sqlite -o trace.db  makes a file of one trace.\n"
    "\n";

static const char notes[] = "\n"
			    "Statements only read. What --print shows runs in the sqlite3 shell, too:\n"
			    "pt-query DB NAME --print | sqlite3 DB\n"
			    "Exit status: 0 done, 1 failed, 2 wrong usage.\n";

static int set_format(void *arg, const char *value, struct pt_error *e)
{
	struct arguments *a = arg;

	a->format = print_format_find(value);
	if (!a->format)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--format %s: table, csv, tsv, json, jsonl, markdown, prometheus, folded, "
			       "speedscope, pprof, firefox, lines, html, perfetto, perf-sqlite or sqlite",
			       value);
	return 0;
}

static int set_parameter(void *arg, const char *value, struct pt_error *e)
{
	struct arguments *a = arg;

	if (!strchr(value, '='))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--param %s: not NAME=VALUE", value);
	if (a->parameter_count == sizeof a->parameters / sizeof *a->parameters)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--param %s: no query has that many", value);
	a->parameters[a->parameter_count++] = value;
	return 0;
}

static int set_database(void *arg, const char *value, struct pt_error *e)
{
	struct arguments *a = arg;

	if (a->database_count == sizeof a->databases / sizeof *a->databases)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--db %s: more than %zu databases", value,
			       a->database_count);
	a->databases[a->database_count++] = value;
	return 0;
}

static int set_width(void *arg, const char *value, struct pt_error *e)
{
	return pt_option_number("--width", value, 0, 1000000, &((struct arguments *)arg)->width, e);
}

static int set_timeout(void *arg, const char *value, struct pt_error *e)
{
	return pt_option_number("--timeout", value, 1, 1000000, &((struct arguments *)arg)->timeout_s, e);
}

static int set_port(void *arg, const char *value, struct pt_error *e)
{
	return pt_option_number("--port", value, 0, 65535, &((struct arguments *)arg)->port, e);
}

static const struct pt_option options[] = {
    {.name = "db",
     .argument = "DB",
     .help =
	 "a database, instead of the first operand; may be repeated: the query is asked of each, and a first "
	 "column says which",
     .set = set_database},
    {.name = "format",
     .letter = 'f',
     .argument = "FORMAT",
     .help =
	 "table (the default), csv, tsv, json, jsonl, markdown, prometheus (text exposition), folded "
	 "(flame-graph stacks), speedscope, pprof, firefox (the same for these viewers), lines (a row's "
	 "columns with "
	 "tabs "
	 "between), html (one file that needs no other); of the whole database: html (the report), perfetto "
	 "(for ui.perfetto.dev; -p after=NS, until=NS, trace=N), perf-sqlite (perf's tables, for its "
	 "exported-sql-viewer.py); of one trace of a ClickHouse server: sqlite (a database as pt-load makes "
	 "it)",
     .set = set_format},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .help = "write to FILE, which appears whole or not at all",
     PT_OPTION_TEXT(struct arguments, output)},
    {.name = "param",
     .letter = 'p',
     .argument = "X=Y",
     .help = "a parameter of the query; may be repeated",
     .set = set_parameter},
    {.name = "sql",
     .argument = "SQL",
     .help = "a statement instead of a canned query",
     PT_OPTION_TEXT(struct arguments, source.sql)},
    {.name = "file",
     .argument = "FILE",
     .help = "the same, from a file; - is standard input",
     PT_OPTION_TEXT(struct arguments, source.file)},
    {.name = "container",
     .argument = "FILE",
     .help = "branches-between and the table branches_at(time_from, time_to) decode from FILE, and not from "
	     "where the trace's "
	     "container was when it was decoded",
     PT_OPTION_TEXT(struct arguments, container)},
    {.name = "width",
     .letter = 'w',
     .argument = "N",
     .help = "tables fit N columns: texts are cut, and rows that would still take more than two lines get "
	     "one line per "
	     "column. 0: any width. The default is the terminal's width when output is one, else 0",
     .set = set_width},
    {.name = "timeout", .argument = "SECONDS", .help = "fail when it takes longer", .set = set_timeout},
    {.name = "port",
     .argument = "N",
     .help = "of serve: listen there, and not at any that is free",
     .set = set_port},
    {.name = "plot",
     .help = "draw it with characters: the histogram of vmexit-latency, the columns of timeline over time",
     PT_OPTION_FLAG(struct arguments, plot)},
    {.name = "no-demangle",
     .help = "names of C++ and Rust as their files have them",
     PT_OPTION_FLAG(struct arguments, no_demangle)},
    {.name = "print",
     .help = "print the query's SQL, do not run it",
     PT_OPTION_FLAG(struct arguments, print)},
    {.name = "queries",
     .argument = "DIR",
     .help = "look for NAME.sql there first (also $PT_QUERIES)",
     PT_OPTION_TEXT(struct arguments, source.folder)},
    {.name = "version", .help = "print the version", PT_OPTION_FLAG(struct arguments, version)},
    PT_OPTION_END};

bool arguments_is_report(const struct arguments *a)
{
	return a->source.name ? !strcmp(a->source.name, "report")
			      : a->format == PRINT_HTML && !a->source.sql && !a->source.file;
}

bool arguments_is_serve(const struct arguments *a)
{
	return a->source.name && !strcmp(a->source.name, "serve");
}

bool arguments_is_annotate(const struct arguments *a)
{
	return a->source.name && !strcmp(a->source.name, "annotate");
}

bool arguments_is_whole(const struct arguments *a)
{
	return a->format == PRINT_PERFETTO || a->format == PRINT_PERF_SQLITE || a->format == PRINT_SQLITE;
}

bool arguments_is_program(const struct arguments *a)
{
	return arguments_is_annotate(a) || arguments_is_report(a) || arguments_is_whole(a);
}

static int check_whole(const struct arguments *a, struct pt_error *e)
{
	bool perfetto = a->format == PRINT_PERFETTO, server = clickhouse_is_url(a->databases[0]);
	const char *name = perfetto ? "perfetto" : a->format == PRINT_SQLITE ? "sqlite" : "perf-sqlite";

	if (a->source.name || a->source.sql || a->source.file || a->database_count > 1)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--format %s is of a whole database: no query",
			       name);
	if (a->format == PRINT_SQLITE && !server)
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "--format sqlite makes a file of a ClickHouse server's trace: %s is one already",
		    a->databases[0]);
	if (!perfetto && a->parameter_count && !server)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--format perf-sqlite has no parameters");
	if (!a->output && isatty(STDOUT_FILENO))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s is not written to a terminal: -o %s",
			       perfetto ? "a Perfetto trace" : "a database",
			       perfetto ? "trace.pftrace" : "perf.db");
	return 0;
}

int arguments_parse(int argc, char **argv, struct arguments *a, struct pt_error *e)
{
	static const struct pt_command_line line = {.program = "pt-query", .options = options};
	int operand, ret = pt_options_parse(&line, argc, argv, a, &operand, e);

	if (ret || a->version)
		return ret;
	if (!a->database_count && operand == argc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "no database; see 'pt-query --help'");
	if (!a->database_count)
		a->databases[a->database_count++] = argv[operand++];
	if (operand < argc)
		a->source.name = argv[operand++];
	if (operand < argc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "'%s' is too much; see 'pt-query --help'",
			       argv[operand]);
	if (!!a->source.name + !!a->source.sql + !!a->source.file > 1)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "a query's name, --sql or --file: one of them");
	if (a->plot && a->format)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--plot or --format: one of them");
	if (a->plot)
		a->format = PRINT_PLOT;
	if (a->plot && a->source.name) {
		snprintf(a->histogram, sizeof a->histogram, "%s-histogram", a->source.name);
		if (canned_find(a->histogram))
			a->source.name = a->histogram;
	}
	if (a->source.name && !strcmp(a->source.name, "watch"))
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "watch comes first: pt-query watch DIR (or a server's URL) --textfile FILE.prom");
	if (arguments_is_whole(a) && check_whole(a, e) < 0)
		return -1;
	if (arguments_is_serve(a) && (a->format || a->output || a->print || a->parameter_count))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "serve has no --format, --output, --print and --param");
	if (a->database_count > 1 && !a->source.name && !a->source.sql && !a->source.file &&
	    !arguments_is_report(a))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "several databases are asked one question: which?");
	return 0;
}

void arguments_print_help(FILE *out)
{
	fputs(usage, out);
	pt_options_print(options, out);
	fputs("  -h, --help                print this text\n", out);
	fputs(notes, out);
}
