/* watch_main.c - see watch_main.h. */
#include "queries/watch_main.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "queries/print.h"
#include "queries/watch.h"
#include "schema/options.h"

static const char usage[] =
    "usage: pt-query watch DIR --textfile FILE.prom [QUERY...]\n"
    "       pt-query watch clickhouse://HOST/DATABASE --textfile FILE.prom [QUERY...]\n"
    "Writes what queries answer in the databases of a folder (DIR/*.db), or of a server, as a text for\n"
    "Prometheus' node_exporter, and again whenever a database or trace comes, goes or is written. Without "
    "QUERY:\n"
    "vmexit-latency-histogram, vmexit-latency.\n"
    "\n";

static const char notes[] =
    "\n"
    "It ends by a signal (Ctrl-C, SIGTERM); FILE is always a whole one.\n"
    "Exit status: 0 --once, and done; 1 failed, 2 wrong usage.\n"
    "Example: pt-query watch /var/lib/pt --textfile /var/lib/prometheus/node-exporter/pt.prom\n";

struct arguments {
	const char *textfile;
	const char *query_folder;
	long long interval_s;
	bool once;
};

static int set_interval(void *arg, const char *value, struct pt_error *e)
{
	return pt_option_number("--interval", value, 1, 86400, &((struct arguments *)arg)->interval_s, e);
}

static const struct pt_option options[] = {
    {.name = "textfile",
     .argument = "FILE",
     .help = "the text; node_exporter reads *.prom of its folder. It is replaced as a whole",
     PT_OPTION_TEXT(struct arguments, textfile)},
    {.name = "interval",
     .argument = "SECONDS",
     .help = "how often the folder, or server, is looked at (10)",
     .set = set_interval},
    {.name = "once", .help = "write the text once, and end", PT_OPTION_FLAG(struct arguments, once)},
    {.name = "queries",
     .argument = "DIR",
     .help = "look for QUERY.sql there first (also $PT_QUERIES)",
     PT_OPTION_TEXT(struct arguments, query_folder)},
    PT_OPTION_END};

static int fail(const struct pt_error *e)
{
	fprintf(stderr, "pt-query: %s\n", e->message);
	return pt_exit_status(e);
}

static void warn(void *arg, const char *message)
{
	(void)arg;
	fprintf(stderr, "pt-query: %s\n", message);
}

static int help(struct pt_error *e)
{
	fputs(usage, stdout);
	pt_options_print(options, stdout);
	puts("  -h, --help                print this text");
	fputs(notes, stdout);
	return print_flush(stdout, e);
}

static int check(const struct arguments *a, int operands, struct pt_error *e)
{
	size_t n = a->textfile ? strlen(a->textfile) : 0;

	if (!operands)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "watch: no folder; see 'pt-query watch --help'");
	if (!a->textfile)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "watch: --textfile FILE.prom says where to write");
	if (n < 6 || strcmp(a->textfile + n - 5, ".prom") != 0)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--textfile %s: node_exporter reads only names that end in .prom",
			       a->textfile);
	return 0;
}

static int watch(const struct watch *w, const struct arguments *a, struct pt_error *e)
{
	struct watch_state *s = watch_create(w, e);
	int ret = s ? 0 : -1;

	while (ret >= 0) {
		ret = watch_look(s, e);
		if (ret < 0 || a->once)
			break;
		nanosleep(&(struct timespec){.tv_sec = a->interval_s}, NULL);
	}
	watch_destroy(s);
	return ret < 0 ? -1 : 0;
}

int watch_main(int argc, char **argv)
{
	static const struct pt_command_line line = {.program = "pt-query watch", .options = options};
	static const char *const defaults[] = {"vmexit-latency-histogram", "vmexit-latency"};
	struct arguments a = {.query_folder = getenv("PT_QUERIES"), .interval_s = 10};
	struct watch w = {.queries = defaults, .query_count = 2, .warn = warn};
	struct pt_error e = {0};
	int operand, ret = pt_options_parse(&line, argc, argv, &a, &operand, &e);

	if (ret > 0) {
		ret = help(&e);
		return ret < 0 ? fail(&e) : 0;
	}
	if (!ret)
		ret = check(&a, argc - operand, &e);
	if (!ret) {
		w.folder = argv[operand++];
		w.textfile = a.textfile;
		w.query_folder = a.query_folder;
		if (operand < argc) {
			w.queries = (const char *const *)&argv[operand];
			w.query_count = (size_t)(argc - operand);
		}
		ret = watch(&w, &a, &e);
	}
	return ret < 0 ? fail(&e) : 0;
}
