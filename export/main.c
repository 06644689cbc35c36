/* main.c - pt-load: a record stream in, a database out. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "export/sink.h"
#include "schema/version.h"

static const char usage[] =
    "usage: pt-load [options] DATABASE [STREAM]\n"
    "Loads what pt-decode writes (standard input, or the file STREAM) into an SQLite database. A database "
    "that is\n"
    "there already gets one more trace. It happens as a whole or not at all.\n"
    "\n"
    "      --replace     the trace of the same recording that is there already goes\n"
    "      --name NAME   what to call the trace (default: the traced command)\n"
    "  -q, --quiet       say nothing but errors\n"
    "  -v, --verbose     say more\n"
    "  -h, --help        this text\n"
    "      --version     the version\n"
    "\n"
    "Exit status: 0 all is loaded; 1 failed, the database is as it was; 2 wrong usage; 3 loaded, but the "
    "trace has\n"
    "errors or gaps, which are rows of the view `errors`.\n"
    "\n"
    "Example: pt-capture -- ls | pt-decode | pt-load trace.db && pt-query trace.db summary\n";

struct options {
	const char *database, *stream;
	struct pt_sink_options sink;
	bool quiet, verbose;
};

struct progress {
	bool on;
	double start, last;
	uint64_t runs, branches;
};

static volatile sig_atomic_t signals; /* 2: stop */
static volatile sig_atomic_t stream_fd = -1;
static bool from_pipe;

/* Ctrl-C goes to the whole pipeline: pt-capture then ends well, and what it captured is to be loaded. A second one, or
 * another signal, stops: a read that waits for data finds an end, and the load fails as with any cut stream. */
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
	if (e->kind == PT_ERR_USAGE)
		fprintf(stderr, "Try pt-load --help.\n");
	return pt_exit_status(e);
}

static void show_progress(struct progress *p, const struct ptr_reader *r, const char *busy_with)
{
	double t = now();

	if (!p->on || t - p->last < 0.2)
		return;
	p->last = t;
	fprintf(stderr, "\r\033[Kpt-load: %.1f s, %.1f MB read, %.2f M runs%s%s", t - p->start,
		(double)ptr_reader_bytes(r) / 1e6, (double)p->runs / 1e6, busy_with ? ", " : "",
		busy_with ? busy_with : "");
}

static void clear_progress(const struct progress *p)
{
	if (p->on)
		fprintf(stderr, "\r\033[K");
}

/* What the sink polls during long work is where that work is shown, too. */
static struct {
	struct progress *progress;
	const struct ptr_reader *reader;
	const struct pt_sink *sink; /* NULL: not now */
} finishing;

static bool interrupted(void)
{
	if (finishing.sink)
		show_progress(finishing.progress, finishing.reader,
			      finishing.sink->ops->busy_with(finishing.sink));
	return signals >= 2;
}

/* All records into the sink; *ret is the END. */
static int copy(struct ptr_reader *r, struct pt_sink *sink, struct progress *p, struct ptr_end *ret,
		struct pt_error *e)
{
	struct ptr_record record;
	unsigned n = 0;
	int more;

	while ((more = ptr_next(r, &record, e)) > 0) {
		if (record.type == PTR_END) {
			*ret = record.end;
			continue;
		}
		if (sink->ops->record(sink, &record, e) < 0)
			return -1;
		p->runs += record.type == PTR_RUN;
		if (++n % 8192)
			continue;
		if (interrupted())
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "interrupted: nothing was loaded");
		show_progress(p, r, NULL);
	}
	return more;
}

static int load(const struct options *o, struct ptr_end *end, struct pt_error *e)
{
	struct progress p = {.on = !o->quiet && isatty(2), .start = now()};
	struct ptr_reader *r = NULL;
	struct pt_sink *sink = NULL;
	struct stat st;
	int fd = 0, ret = -1;

	if (o->stream) {
		fd = open(o->stream, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return pt_fail_errno(e, "%s", o->stream);
	} else if (isatty(0)) {
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "a record stream is expected, from pt-decode or a file");
	}
	from_pipe = !fstat(fd, &st) && !S_ISREG(st.st_mode);
	stream_fd = fd;
	/* The stream first: a pipeline whose head failed is not to touch the database. */
	r = ptr_reader_create(fd, e);
	if (r)
		sink = pt_sqlite_sink_create(o->database, &o->sink, e);
	if (sink && !copy(r, sink, &p, end, e)) {
		p.last = 0;
		show_progress(&p, r, "finishing");
		finishing.progress = &p;
		finishing.reader = r;
		finishing.sink = sink;
		ret = sink->ops->commit(sink, e);
		finishing.sink = NULL;
	}
	/* A stop during the commit is seen by SQLite first, which then says less. */
	if (ret < 0 && interrupted())
		pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "interrupted: nothing was loaded");
	clear_progress(&p);
	if (!ret && o->verbose)
		fprintf(stderr,
			"pt-load: %" PRIu64 " runs, %" PRIu64 " branches, %" PRIu64 " calls in %.2f s\n",
			end->counts[PTR_RUN], end->branches, end->counts[PTR_CALL], now() - p.start);
	if (sink)
		sink->ops->destroy(sink);
	ptr_reader_destroy(r);
	stream_fd = -1;
	if (o->stream)
		close(fd);
	return ret;
}

static int parse(int argc, char **argv, struct options *o, struct pt_error *e)
{
	enum { REPLACE = 256, NAME, VERSION };
	static const struct option options[] = {{"replace", no_argument, NULL, REPLACE},
						{"name", required_argument, NULL, NAME},
						{"quiet", no_argument, NULL, 'q'},
						{"verbose", no_argument, NULL, 'v'},
						{"help", no_argument, NULL, 'h'},
						{"version", no_argument, NULL, VERSION},
						{NULL, 0, NULL, 0}};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":qvh", options, NULL)) != -1) {
		switch (c) {
		case REPLACE: o->sink.replace = true; break;
		case NAME: o->sink.name = optarg; break;
		case 'q': o->quiet = true; break;
		case 'v': o->verbose = true; break;
		case 'h': fputs(usage, stdout); exit(fflush(stdout) ? 1 : 0);
		case VERSION: puts("pt-load " PT_VERSION); exit(fflush(stdout) ? 1 : 0);
		case ':': return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s needs a value", argv[optind - 1]);
		default: return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "unknown option %s", argv[optind - 1]);
		}
	}
	if (optind == argc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "which database? pt-load DATABASE [STREAM]");
	if (argc - optind > 2)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "one database and one stream, please: what is %s?", argv[optind + 2]);
	o->database = argv[optind];
	if (!*o->database)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "the database's name is empty");
	if (optind + 1 < argc && strcmp(argv[optind + 1], "-"))
		o->stream = argv[optind + 1];
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = {.sink = {.interrupted = interrupted}};
	struct sigaction act = {.sa_handler = on_signal}; /* no SA_RESTART: see on_signal() */
	struct ptr_end end = {0};
	struct pt_error e;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of write(), with a message */
	if (parse(argc, argv, &o, &e) < 0)
		return fail(&e);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGHUP, &act, NULL);
	if (load(&o, &end, &e) < 0)
		return fail(&e);
	if (!end.counts[PTR_ERROR])
		return 0;
	if (!o.quiet)
		fprintf(stderr,
			"pt-load: loaded, but %" PRIu64
			" place%s in the trace could not be seen: pt-query %s errors\n",
			end.counts[PTR_ERROR], end.counts[PTR_ERROR] == 1 ? "" : "s", o.database);
	return 3;
}
