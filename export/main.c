/* main.c - pt-load: a record stream in, a database out. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "export/clickhouse.h"
#include "export/manage.h"
#include "export/sink.h"
#include "export/worker.h"
#include "schema/clickhouse/http.h"
#include "schema/options.h"
#include "schema/output.h"
#include "schema/seekable.h"
#include "schema/seekable_vfs.h"
#include "schema/terminal.h"
#include "schema/version.h"

static const char usage[] =
    "usage: pt-load [options] DATABASE [STREAM]\n"
    "       pt-load --list DATABASE, pt-load --delete TRACE DATABASE\n"
    "       pt-load spool [options] FOLDER DATABASE   load the containers in a folder, and those that come\n"
    "Loads what pt-decode writes (standard input, or the file STREAM) into an SQLite database. A database\n"
    "that is there already gets one more trace. It happens as a whole or not at all. DATABASE may be\n"
    "clickhouse://[user@]host[:port]/database, with TLS clickhouses://.\n"
    "\n";

static const char notes[] =
    "\n"
    "Exit status: 0 all is loaded; 1 failed, the database is as it was; 2 wrong usage; 3 loaded, but the\n"
    "trace has errors or gaps, which are rows of the view `errors`.\n"
    "\n"
    "Example: pt-capture -- ls | pt-decode | pt-load trace.db && pt-query trace.db summary\n";

struct arguments {
	const char *database;
	const char *stream;  /* NULL: standard input */
	const char *name;    /* the trace's, NULL: its command */
	unsigned mode;	     /* of a new database */
	int64_t delete;	     /* a trace's number; 0: none */
	long long timeout_s; /* of a ClickHouse server's trouble */
	const char *folder;  /* of pt-load spool, NULL: it is not that */
	const char *schema;  /* which is to be printed */
	long long lease_s;   /* of pt-load spool */
	long long level;     /* of compression; 0: none */
	long long jobs;	     /* threads, 0: one for each CPU */
	bool replace, skip_loaded, list, clean, once, remove, no_wait, quiet, verbose, version;
};

static int set_delete(void *arg, const char *value, struct pt_error *e)
{
	long long trace;

	if (pt_option_number("--delete", value, 1, INT64_MAX, &trace, e))
		return -1;
	((struct arguments *)arg)->delete = trace;
	return 0;
}

static int set_mode(void *arg, const char *value, struct pt_error *e)
{
	return pt_option_mode("--mode", value, &((struct arguments *)arg)->mode, e);
}

static int set_timeout(void *arg, const char *value, struct pt_error *e)
{
	return pt_option_number("--timeout", value, 1, 1000000, &((struct arguments *)arg)->timeout_s, e);
}

static int set_compress(void *arg, const char *value, struct pt_error *e)
{
	struct arguments *a = arg;

	a->level = PT_SEEKABLE_LEVEL;
	return value ? pt_option_number("--compress", value, 1, PT_SEEKABLE_LEVEL_MAX, &a->level, e) : 0;
}

static int set_jobs(void *arg, const char *value, struct pt_error *e)
{
	return pt_option_number("--jobs", value, 1, 1024, &((struct arguments *)arg)->jobs, e);
}

static int set_lease(void *arg, const char *value, struct pt_error *e)
{
	return pt_option_number("--lease", value, 1, 1000000, &((struct arguments *)arg)->lease_s, e);
}

static const struct pt_option options[] = {
    {.name = "replace",
     .help = "take the place of the trace of the same recording",
     PT_OPTION_FLAG(struct arguments, replace)},
    {.name = "skip-loaded",
     .help = "a recording that is there already is no failure",
     PT_OPTION_FLAG(struct arguments, skip_loaded)},
    {.name = "list",
     .help = "print the traces of the database: number, branches, errors, start, uuid, name",
     PT_OPTION_FLAG(struct arguments, list)},
    {.name = "delete",
     .argument = "TRACE",
     .help = "delete the trace of that number, and give its room back",
     .set = set_delete},
    {.name = "no-wait",
     .help = "fail when another program is writing the database, and do not wait for it",
     PT_OPTION_FLAG(struct arguments, no_wait)},
    {.name = "name",
     .argument = "NAME",
     .help = "call the trace NAME, and not by the traced command",
     PT_OPTION_TEXT(struct arguments, name)},
    {.name = "mode",
     .argument = "MODE",
     .help = "permissions of a new database, in octal (600), of which the umask takes some",
     .set = set_mode},
    {.name = "compress",
     .argument = "[=LEVEL]",
     .help = "compress a new database, to half its size: pt-query reads it, and zstd -d unpacks it; LEVEL is "
	     "zstd's, 1 to 19 (3)",
     .set = set_compress},
    {.name = "timeout",
     .argument = "SECONDS",
     .help = "give up when a ClickHouse server is in trouble for that long (300)",
     .set = set_timeout},
    {.name = "clean",
     .help =
	 "delete the rows that died loads have left in a ClickHouse database; make one where there is none",
     PT_OPTION_FLAG(struct arguments, clean)},
    {.name = "schema",
     .argument = "FORM",
     .help = "print ClickHouse's tables and views: plain, replicated, or distributed:CLUSTER:DATABASE",
     PT_OPTION_TEXT(struct arguments, schema)},
    {.name = "once", .help = "spool: end when nothing is left", PT_OPTION_FLAG(struct arguments, once)},
    {.name = "remove",
     .help = "spool: remove what is loaded, in place of moving it to FOLDER/done",
     PT_OPTION_FLAG(struct arguments, remove)},
    {.name = "lease",
     .argument = "SECONDS",
     .help = "spool: take over from a worker that shows no life for so long (60)",
     .set = set_lease},
    {.name = "jobs",
     .letter = 'j',
     .argument = "N",
     .help = "work in up to N threads (one for each CPU; at most four are of use); the database is the same",
     .set = set_jobs},
    {.name = "quiet",
     .letter = 'q',
     .help = "say nothing but errors",
     PT_OPTION_FLAG(struct arguments, quiet)},
    {.name = "verbose",
     .letter = 'v',
     .help = "say what was loaded, and in which time",
     PT_OPTION_FLAG(struct arguments, verbose)},
    {.name = "version", .help = "print the version", PT_OPTION_FLAG(struct arguments, version)},
    PT_OPTION_END};

/* One load: what runs, and what is known of it for progress and messages. */
struct job {
	const struct arguments *arguments;
	struct ptr_reader *reader;
	struct pt_sink *sink;
	struct ptr_end end;	  /* the stream's counts, when it was read to its end */
	bool finishing;		  /* all is read; the sink is busy */
	bool progress;		  /* is shown */
	bool waited;		  /* and that is said */
	bool there;		  /* the database has the recording already */
	double start, last_shown; /* seconds */
	uint64_t runs;
};

/* What the signal handler knows and does. */
static volatile sig_atomic_t signals; /* 2: stop */
static volatile sig_atomic_t stream_fd = -1;
static volatile sig_atomic_t from_pipe;

/*
 * Ctrl-C reaches the whole pipeline: pt-capture then ends well, and what it captured is to be loaded.
 * A second one, or another signal, stops: a read that waits for data finds an end, and the load fails
 * as with any cut stream.
 */
static void on_signal(int sig)
{
	int saved = errno, null;

	signals = sig == SIGINT && from_pipe && !signals ? 1 : 2;
	if (signals == 2 && stream_fd >= 0) {
		null = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (null >= 0) {
			dup2(null, stream_fd);
			close(null);
		}
	}
	errno = saved;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int fail(const struct pt_error *e)
{
	if (e->kind == PT_ERR_CLOSED)
		return 1;
	if (e->offset != PT_NO_OFFSET)
		fprintf(stderr, "pt-load: %s (at byte %" PRIu64 " of the record stream)\n", e->message,
			e->offset);
	else
		fprintf(stderr, "pt-load: %s\n", e->message);
	return pt_exit_status(e);
}

/* Of a compressed database, before SQLite says that there was a disk I/O error. */
static void print_unreadable(const struct pt_error *e)
{
	fprintf(stderr, "pt-load: %s\n", e->message);
}

static void show_progress(struct job *j, const char *busy_with)
{
	double t = now();

	if (!j->progress || t - j->last_shown < 0.2)
		return;
	j->last_shown = t;
	fprintf(stderr, "\r\033[Kpt-load: %.1f s, %.1f MB read, %.2f M runs%s%s", t - j->start,
		(double)ptr_reader_bytes(j->reader) / 1e6, (double)j->runs / 1e6, busy_with ? ", " : "",
		busy_with ? busy_with : "");
}

/* The sink polls this during long work, so the work is shown here, too. */
static bool interrupted(void *arg)
{
	struct job *j = arg;

	if (j->finishing)
		show_progress(j, j->sink->ops->busy_with(j->sink));
	return signals >= 2;
}

static void waits(void *arg)
{
	struct job *j = arg;

	if (!j->waited && !j->arguments->quiet)
		fprintf(stderr,
			clickhouse_is_url(j->arguments->database)
			    ? "%spt-load: %s is in trouble: trying again\n"
			    : "%spt-load: another program is using %s: waiting for it\n",
			j->progress ? "\r\033[K" : "", j->arguments->database);
	j->waited = true;
}

/* All records into the sink. */
static int copy(struct job *j, struct pt_error *e)
{
	struct ptr_record record;
	unsigned n = 0;
	int more;

	while ((more = ptr_next(j->reader, &record, e)) > 0) {
		if (record.type == PTR_END) {
			j->end = record.end;
			continue;
		}
		if (j->sink->ops->record(j->sink, &record, e) < 0)
			return -1;
		j->runs += record.type == PTR_RUN;
		if (++n % 8192)
			continue;
		if (interrupted(j))
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "interrupted: nothing was loaded");
		show_progress(j, NULL);
	}
	return more;
}

static struct pt_sink_options sink_options(struct job *j)
{
	const struct arguments *a = j->arguments;

	return (struct pt_sink_options){.name = a->name,
					.mode = a->mode,
					.replace = a->replace,
					.timeout_s = (double)a->timeout_s,
					.threads = (unsigned)a->jobs,
					.level = (int)a->level,
					.ret_there = &j->there,
					.poll = {interrupted, a->no_wait ? NULL : waits, j}};
}

/* From the stream into the database; reader and sink are the caller's to destroy. */
static int run(struct job *j, int fd, struct pt_error *e)
{
	const char *database = j->arguments->database;
	struct pt_sink_options wanted = sink_options(j);
	int ret;

	/* The stream first: a pipeline whose head failed is not to touch the database. */
	j->reader = ptr_reader_create(fd, e);
	if (j->reader)
		j->sink = clickhouse_is_url(database) ? pt_clickhouse_sink_create(database, &wanted, e)
						      : pt_sqlite_sink_create(database, &wanted, e);
	if (!j->sink || copy(j, e) < 0)
		return -1;
	j->last_shown = 0;
	show_progress(j, "finishing");
	j->finishing = true;
	ret = j->sink->ops->commit(j->sink, e);
	j->finishing = false;
	return ret;
}

static int load(struct job *j, struct pt_error *e)
{
	const struct arguments *a = j->arguments;
	struct stat st;
	int fd = 0, ret;

	if (a->stream) {
		fd = open(a->stream, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return pt_fail_errno(e, "%s", a->stream);
	} else if (isatty(0)) {
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "a record stream is expected, from pt-decode or a file; see 'pt-load --help'");
	}
	from_pipe = !fstat(fd, &st) && !S_ISREG(st.st_mode);
	stream_fd = fd;
	j->start = now();
	ret = run(j, fd, e);
	/* A stop during the commit is seen by SQLite first, which then says less. */
	if (ret < 0 && signals >= 2)
		pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "interrupted: nothing was loaded");
	if (j->progress)
		fprintf(stderr, "\r\033[K");
	if (ret < 0 && j->there && a->skip_loaded && signals < 2)
		ret = 0;
	if (!ret && j->there && !a->quiet)
		fprintf(stderr, "pt-load: %s has this recording already\n", a->database);
	if (!ret && !j->there && a->verbose)
		fprintf(stderr,
			"pt-load: %" PRIu64 " runs, %" PRIu64 " branches, %" PRIu64 " calls in %.2f s\n",
			j->end.counts[PTR_RUN], j->end.branches, j->end.counts[PTR_CALL], now() - j->start);
	if (j->sink)
		j->sink->ops->destroy(j->sink);
	ptr_reader_destroy(j->reader);
	stream_fd = -1;
	if (a->stream)
		close(fd);
	return ret;
}

/* The operands of pt-load spool. */
static int parse_spool(int n, char **operands, struct arguments *a, struct pt_error *e)
{
	if (n != 2)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "spool wants a folder and a database; see 'pt-load --help'");
	if (a->replace || a->list || a->delete || a->clean || a->name || a->level)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "spool loads what comes: no --replace, --list, --delete, --clean, --name, "
			       "--compress");
	a->folder = operands[0];
	a->database = operands[1];
	return 0;
}

/* 0; 1: --help; -1. */
static int parse(int argc, char **argv, struct arguments *a, struct pt_error *e)
{
	static const struct pt_command_line line = {.program = "pt-load", .options = options};
	int operand, ret = pt_options_parse(&line, argc, argv, a, &operand, e);

	if (ret || a->version || a->schema)
		return ret;
	if (operand < argc && !strcmp(argv[operand], "spool"))
		return parse_spool(argc - operand - 1, argv + operand + 1, a, e);
	if (operand == argc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "no database; see 'pt-load --help'");
	if (argc - operand > 2)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "'%s' is too much; see 'pt-load --help'",
			       argv[operand + 2]);
	if ((a->list || a->delete || a->clean) && argc - operand > 1)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--list, --delete and --clean load nothing: '%s' is too much",
			       argv[operand + 1]);
	a->database = argv[operand];
	if (a->level && (clickhouse_is_url(a->database) || a->list || a->delete || a->clean))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--compress is for loading into a new SQLite database");
	if (!*a->database)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "the database's name is empty");
	if (operand + 1 < argc && strcmp(argv[operand + 1], "-"))
		a->stream = argv[operand + 1];
	return 0;
}

static void print_trace(void *arg, const struct manage_trace *t)
{
	(void)arg;
	printf("%-6" PRId64 " %14" PRId64 " %8" PRId64 "  %-19s  %-32s  %s\n", t->id, t->branches, t->errors,
	       t->start ? t->start : "-", t->uuid ? t->uuid : "-", t->name ? t->name : "-");
}

/* --list and --delete. */
static int manage(struct job *j, struct pt_error *e)
{
	const struct arguments *a = j->arguments;
	const struct store_wait wait = {a->no_wait ? NULL : waits, interrupted, j};
	const struct pt_sink_options wanted = sink_options(j);
	bool remote = clickhouse_is_url(a->database);

	if (a->clean)
		return pt_clickhouse_clean(a->database, &wanted, e);
	if (remote && a->delete)
		return pt_clickhouse_delete(a->database, &wanted, a->delete, e);
	if (a->delete)
		return manage_delete(a->database, a->delete, &wait, e);
	printf("%-6s %14s %8s  %-19s  %-32s  %s\n", "trace", "branches", "errors", "start (UTC)", "uuid",
	       "name");
	if (remote ? pt_clickhouse_list(a->database, &wanted, print_trace, NULL, e)
		   : manage_list(a->database, print_trace, NULL, e))
		return -1;
	return output_flush(stdout, "the list", e);
}

static void note(void *arg, const char *name, const char *what, bool failed)
{
	const struct arguments *a = arg;

	if (failed || a->verbose)
		fprintf(stderr, "pt-load: %s: %s\n", name, what);
}

static bool stopped(void *arg)
{
	(void)arg;
	return signals > 0;
}

/* pt-load spool: 0; 1: some could not be loaded, or it failed. */
static int spool(struct arguments *a, struct pt_error *e)
{
	char timeout[32];
	struct worker w = {.folder = a->folder,
			   .database = a->database,
			   .timeout = timeout,
			   .remove = a->remove,
			   .once = a->once,
			   .lease_s = (unsigned)a->lease_s,
			   .interrupted = stopped,
			   .note = note,
			   .arg = a};

	snprintf(timeout, sizeof timeout, "%lld", a->timeout_s);
	if (worker_run(&w, e) < 0)
		return fail(e);
	if (!a->quiet)
		fprintf(stderr, "pt-load: %u loaded, %u failed\n", w.loaded, w.failed);
	return w.failed ? 1 : 0;
}

static int print_schema(const char *form, struct pt_error *e)
{
	char *text = pt_clickhouse_schema(form, e);

	if (!text)
		return -1;
	fputs(text, stdout);
	free(text);
	return output_flush(stdout, "the schema", e);
}

static void print_help(void)
{
	fputs(usage, stdout);
	pt_options_print(options, stdout);
	puts("  -h, --help                print this text");
	fputs(notes, stdout);
}

int main(int argc, char **argv)
{
	struct sigaction act = {.sa_handler = on_signal}; /* no SA_RESTART: see on_signal() */
	struct arguments a = {.timeout_s = 300, .lease_s = 60};
	struct job j = {.arguments = &a};
	uint64_t errors;
	struct pt_error e;
	int r;

	signal(SIGPIPE, SIG_IGN);
	output_limit_is_error();
	pt_terminal_protect();
	pt_seekable_vfs_on_failure(print_unreadable);
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* nobody asks; it costs a mutex an allocation */
	r = parse(argc, argv, &a, &e);
	if (r < 0)
		return fail(&e);
	if (r > 0 || a.version) {
		r > 0 ? print_help() : (void)puts("pt-load " PT_VERSION);
		return output_flush(stdout, "to standard output", &e) < 0 ? fail(&e) : 0;
	}
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGHUP, &act, NULL);
	if (a.schema)
		return print_schema(a.schema, &e) < 0 ? fail(&e) : 0;
	if (a.folder)
		return spool(&a, &e);
	if (a.list || a.delete || a.clean)
		return manage(&j, &e) < 0 ? fail(&e) : 0;
	j.progress = !a.quiet && isatty(2);
	if (load(&j, &e) < 0)
		return fail(&e);
	errors = j.there ? 0 : j.end.counts[PTR_ERROR];
	if (!errors)
		return 0;
	if (!a.quiet)
		fprintf(stderr,
			"pt-load: loaded, but %" PRIu64
			" place%s in the trace could not be seen: pt-query %s errors\n",
			errors, errors == 1 ? "" : "s", a.database);
	return 3;
}
