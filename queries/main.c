/* main.c - pt-query: canned queries on a database that pt-load wrote. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queries/canned.h"
#include "queries/html.h"
#include "queries/print.h"
#include "schema/file_kind.h"
#include "schema/version.h"

static const char usage[] =
    "usage: pt-query DB                               list the queries\n"
    "       pt-query DB NAME [options]                run one\n"
    "       pt-query DB --sql 'SELECT ...' [options]  run your own\n"
    "       pt-query DB --file FILE [options]         the same, from a file (-: standard input)\n"
    "       pt-query DB --format html                 a dashboard of most of them\n"
    "\n"
    "  -f, --format FORMAT  table (the default), csv, json, prometheus (text exposition),\n"
    "                       folded (flame-graph stacks), html (one file that needs no other)\n"
    "  -p, --param X=Y      a parameter of the query; may be repeated\n"
    "      --sql SQL        a statement instead of a canned query\n"
    "      --file FILE      the same, from a file; - is standard input\n"
    "  -w, --width N        tables fit N columns: texts are cut; very wide ones get a line a column;\n"
    "                       0: any width. The terminal's when output is one, else 0\n"
    "      --print          print the query's SQL, do not run it\n"
    "      --queries DIR    look for NAME.sql there first (also $PT_QUERIES)\n"
    "  -h, --help           this text\n"
    "      --version        the version\n"
    "\n"
    "The database is opened read-only. Every query runs in the sqlite3 shell, too: "
    "pt-query DB NAME --print | sqlite3 DB\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage.\n";

struct arguments {
	const char *db, *name, *sql, *file, *folder;
	const char *params[64];
	size_t param_count;
	enum print_format format;
	size_t width; /* of tables */
	bool print;
};

static int fail(const struct pt_error *e)
{
	if (e->kind != PT_ERR_CLOSED)
		fprintf(stderr, "pt-query: %s\n", e->message);
	return pt_exit_status(e);
}

/* The terminal's on standard output, 0: it is none. */
static size_t terminal_width(void)
{
	struct winsize size;

	return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static int parse_width(const char *text, size_t *ret, struct pt_error *e)
{
	char *end;

	errno = 0;
	*ret = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || *ret > 1000000)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--width %s: not a number of columns", text);
	return 0;
}

static int parse(int argc, char **argv, struct arguments *a, struct pt_error *e)
{
	enum { SQL = 256, FROM_FILE, PRINT, QUERIES, VERSION };
	static const struct option longs[] = {
	    {"format", required_argument, NULL, 'f'},	   {"param", required_argument, NULL, 'p'},
	    {"sql", required_argument, NULL, SQL},	   {"print", no_argument, NULL, PRINT},
	    {"file", required_argument, NULL, FROM_FILE},  {"width", required_argument, NULL, 'w'},
	    {"queries", required_argument, NULL, QUERIES}, {"help", no_argument, NULL, 'h'},
	    {"version", no_argument, NULL, VERSION},	   {0}};
	int c;

	while ((c = getopt_long(argc, argv, "f:p:w:h", longs, NULL)) != -1) {
		switch (c) {
		case 'f':
			a->format = print_format_find(optarg);
			if (!a->format)
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "--format %s: table, csv, json, prometheus, folded or html",
					       optarg);
			break;
		case 'p':
			if (!strchr(optarg, '=') || a->param_count == sizeof a->params / sizeof *a->params)
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--param %s: not NAME=VALUE",
					       optarg);
			a->params[a->param_count++] = optarg;
			break;
		case SQL: a->sql = optarg; break;
		case FROM_FILE: a->file = optarg; break;
		case 'w':
			if (parse_width(optarg, &a->width, e) < 0)
				return -1;
			break;
		case PRINT: a->print = true; break;
		case QUERIES: a->folder = optarg; break;
		case 'h': fputs(usage, stdout); exit(fflush(stdout) ? 1 : 0);
		case VERSION: puts("pt-query " PT_VERSION); exit(fflush(stdout) ? 1 : 0);
		default: return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "see 'pt-query --help'");
		}
	}
	if (optind == argc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "no database; see 'pt-query --help'");
	a->db = argv[optind++];
	if (optind < argc)
		a->name = argv[optind++];
	if (optind < argc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "'%s' is too much; see 'pt-query --help'",
			       argv[optind]);
	if (!!a->name + !!a->sql + !!a->file > 1)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "a query's name, --sql or --file: one of them");
	return 0;
}

static int check_ours(sqlite3 *db, const char *path, struct pt_error *e)
{
	sqlite3_stmt *st;
	int id, version;

	if (sqlite3_prepare_v2(db,
			       "SELECT (SELECT application_id FROM pragma_application_id), "
			       "(SELECT user_version FROM pragma_user_version)",
			       -1, &st, NULL) != SQLITE_OK ||
	    sqlite3_step(st) != SQLITE_ROW) {
		if (sqlite3_errcode(db) == SQLITE_BUSY)
			return pt_fail(e, PT_ERR_IO, PT_NO_OFFSET,
				       "%s: another program is writing it: try again when that is done",
				       path);
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s: %s%s", path, sqlite3_errmsg(db),
			       sqlite3_errcode(db) == SQLITE_NOTADB ? pt_file_kind_of(path) : "");
	}
	id = sqlite3_column_int(st, 0);
	version = sqlite3_column_int(st, 1);
	sqlite3_finalize(st);
	if (id != PT_DB_APPLICATION)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "%s is a database, but pt-load did not make it", path);
	if (version != PT_DB_VERSION)
		return pt_fail(
		    e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
		    "%s has schema version %d, this pt-query knows version %d: load the recording again",
		    path, version, PT_DB_VERSION);
	return 0;
}

static void list(void)
{
	for (size_t i = 0; i < canned_count; i++) {
		size_t n;
		const char *title = canned_title(canned_queries[i].sql, &n);

		printf("%-22s %.*s\n", canned_queries[i].name, (int)n, title);
	}
	puts("\npt-query DB NAME runs one; pt-query DB --sql 'SELECT ...' anything else (man pt-query).");
}

/* All of it, malloc()ed. NULL: errno says why. */
static char *read_text(FILE *f)
{
	char *text = NULL;
	size_t n = 0;

	errno = 0;
	if (getdelim(&text, &n, 0, f) < 0 && !ferror(f)) { /* it is empty */
		free(text);
		return strdup("");
	}
	if (ferror(f)) {
		free(text);
		text = NULL;
	}
	return text;
}

/* A query of the user's folder; malloc()ed. NULL when there is none. */
static char *read_query(const char *folder, const char *name)
{
	char *path = NULL, *text;
	FILE *f;

	if (strchr(name, '/') || asprintf(&path, "%s/%s.sql", folder, name) < 0)
		return NULL;
	f = fopen(path, "re");
	free(path);
	if (!f)
		return NULL;
	text = read_text(f);
	fclose(f);
	return text;
}

/* --file; malloc()ed. NULL: failed. */
static char *read_file(const char *path, struct pt_error *e)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *f = is_stdin ? stdin : fopen(path, "re");
	char *text = f ? read_text(f) : NULL;

	if (!text)
		pt_fail_errno(e, "cannot read %s", path);
	if (f && !is_stdin)
		fclose(f);
	return text;
}

/* param: NAME=VALUE */
static int bind_param(sqlite3_stmt *st, const char *param, struct pt_error *e)
{
	const char *value = strchr(param, '=') + 1;
	char name[128], known[256] = "", *end;
	long long number;
	double real;
	int index;

	snprintf(name, sizeof name, ":%.*s", (int)(value - 1 - param), param);
	index = sqlite3_bind_parameter_index(st, name);
	if (!index) {
		for (int k = 1; k <= sqlite3_bind_parameter_count(st); k++) {
			const char *other = sqlite3_bind_parameter_name(st, k);

			snprintf(known + strlen(known), sizeof known - strlen(known), " %s",
				 other ? other + 1 : "?");
		}
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "the query has no parameter %s; it has%s",
			       name + 1, known[0] ? known : " none");
	}
	errno = 0;
	number = strtoll(value, &end, 0);
	if (*value && !*end && !errno) {
		sqlite3_bind_int64(st, index, number);
		return 0;
	}
	real = strtod(value, &end);
	if (*value && !*end)
		sqlite3_bind_double(st, index, real);
	else
		sqlite3_bind_text(st, index, value, -1, SQLITE_TRANSIENT);
	return 0;
}

static int bind(sqlite3_stmt *st, const struct arguments *a, struct pt_error *e)
{
	for (size_t i = 0; i < a->param_count; i++)
		if (bind_param(st, a->params[i], e) < 0)
			return -1;
	return 0;
}

/* NULL: failed. */
static sqlite3_stmt *prepare(sqlite3 *db, const char *sql, struct pt_error *e)
{
	sqlite3_stmt *st;
	const char *tail;

	if (sqlite3_prepare_v2(db, sql, -1, &st, &tail) != SQLITE_OK) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s", sqlite3_errmsg(db));
		return NULL;
	}
	if (!st) {
		pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "there is no statement in it");
	} else if (tail[strspn(tail, " \t\r\n;")]) {
		pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "one statement at a time");
		sqlite3_finalize(st);
		st = NULL;
	}
	return st;
}

static int run(sqlite3 *db, const char *sql, const struct arguments *a, struct pt_error *e)
{
	enum print_format format = a->format					 ? a->format
				   : canned_note(sql, "format: folded", NULL, 0) ? PRINT_FOLDED
										 : PRINT_TABLE;
	sqlite3_stmt *st = prepare(db, sql, e);
	const char *name = a->name ? a->name : "sql";
	int r;

	if (!st)
		return -1;
	r = bind(st, a, e);
	if (r == 0 && format == PRINT_HTML) {
		html_begin(stdout, a->db);
		r = html_section(st, name, sql, stdout, e);
		html_end(stdout);
	} else if (r == 0) {
		r = print_rows(st, format, name, a->width, stdout, e);
	}
	sqlite3_finalize(st);
	return r;
}

static int dashboard(sqlite3 *db, const struct arguments *a, struct pt_error *e)
{
	char param[64];
	int r = 0;

	html_begin(stdout, a->db);
	for (size_t i = 0; r == 0 && i < canned_count; i++) {
		const struct canned *q = &canned_queries[i];
		sqlite3_stmt *st = q->dashboard ? prepare(db, q->sql, e) : NULL;

		if (!q->dashboard)
			continue;
		r = st ? 0 : -1;
		if (st && canned_note(q->sql, "dashboard: ", param, sizeof param))
			r = bind_param(st, param, e);
		if (r == 0)
			r = html_section(st, q->name, q->sql, stdout, e);
		sqlite3_finalize(st);
	}
	html_end(stdout);
	return r;
}

int main(int argc, char **argv)
{
	struct arguments a = {.folder = getenv("PT_QUERIES"), .width = terminal_width()};
	struct stat st;
	struct pt_error e = {0};
	const struct canned *query = NULL;
	const char *sql;
	char *own = NULL;
	sqlite3 *db = NULL;
	int r;

	signal(SIGPIPE, SIG_IGN);
	if (parse(argc, argv, &a, &e) < 0)
		return fail(&e);
	sql = a.sql;
	if (a.file) {
		sql = own = read_file(a.file, &e);
		if (!own)
			return fail(&e);
	}
	if (a.name) {
		if (a.folder && (own = read_query(a.folder, a.name)))
			sql = own;
		else if ((query = canned_find(a.name)))
			sql = query->sql;
	}
	if (a.name && !sql) {
		pt_fail(&e, PT_ERR_USAGE, PT_NO_OFFSET,
			"no query is called '%s'; the nearest is '%s' (pt-query %s lists all)", a.name,
			canned_nearest(a.name)->name, a.db);
		return fail(&e);
	}
	if (a.print && sql) {
		fputs(sql, stdout);
		free(own);
		return print_flush(stdout, &e) < 0 ? fail(&e) : 0;
	}
	if (access(a.db, R_OK) < 0 || stat(a.db, &st) < 0) {
		pt_fail_errno(&e, "cannot open %s", a.db);
		r = -1;
	} else if (S_ISDIR(st.st_mode)) {
		r = pt_fail(&e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s is a directory", a.db);
	} else if (sqlite3_open_v2(a.db, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
		r = pt_fail(&e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s: %s", a.db, sqlite3_errmsg(db));
	} else {
		sqlite3_busy_timeout(db, 5000);
		/* So that a hundred thousand rows are sorted in memory; it changes no result. */
		sqlite3_exec(db, "PRAGMA cache_size = -65536", NULL, NULL, NULL);
		r = check_ours(db, a.db, &e);
	}
	if (r == 0 && sql)
		r = run(db, sql, &a, &e);
	else if (r == 0 && a.format == PRINT_HTML)
		r = dashboard(db, &a, &e);
	else if (r == 0)
		list();
	sqlite3_close(db);
	free(own);
	if (r == 0)
		r = print_flush(stdout, &e);
	return r < 0 ? fail(&e) : 0;
}
