/*
 * import.c - pt-capture import of trace-cmd's recordings: the command line, and a process of its own that
 * does it.
 */
#include "capture/commands.h"
#include "capture/tracecmd/run.h"
#include "schema/container.h"
#include "schema/options.h"
#include "schema/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct arguments {
	struct dat_request request;
	const char *output;
	bool quiet; /* (says nothing that other imports would not) */
};

/* ---- A process of its own ---- */

#define CPU_SECONDS 20 /* in which no sound file is without progress */

/* libtracecmd may not return for a damaged file: so it is given time as long as something comes of it. */
static void progress(void)
{
	struct rlimit limit;
	struct rusage used;

	if (getrusage(RUSAGE_SELF, &used) || getrlimit(RLIMIT_CPU, &limit))
		return;
	limit.rlim_cur = (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + CPU_SECONDS;
	setrlimit(RLIMIT_CPU, &limit);
}

static uint64_t file_bytes(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/* What a sound file of that size never needs. */
static void limit_memory(const struct dat_request *q)
{
	uint64_t bytes = file_bytes(q->host);

	for (size_t i = 0; i < q->guest_count; i++)
		bytes += file_bytes(q->guests[i].path);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
#ifndef __SANITIZE_ADDRESS__ /* which maps terabytes */
	setrlimit(RLIMIT_AS, &(struct rlimit){(4ull << 30) + 4 * bytes, (4ull << 30) + 4 * bytes});
#endif
}

/* In the process of its own. Returns the exit status. */
static int import_here(const struct dat_request *q, int in, int out)
{
	struct dat_result result;
	struct pt_error e = {0};

	limit_memory(q);
	progress();
	if (dat_import_run(q, in, out, progress, &result, &e))
		return command_failed(&e);
	if (result.cut)
		command_failed(&result.at);
	if (result.some_lost)
		fprintf(stderr, "pt-capture: trace-cmd lost events: %" PRIu64 " are known of\n", result.lost);
	return result.cut || result.some_lost ? 3 : 0;
}

/*
 * libtracecmd 1.3 crashes on some damaged files, so a process of its own does the work, and what becomes of
 * it is reported. Returns the exit status; on 0 and 3 the container is whole.
 */
static int import_apart(const struct dat_request *q, int in, int out)
{
	struct pt_error e = {0};
	int status;
	pid_t pid = fork();

	if (pid < 0) {
		pt_fail_errno(&e, "cannot start another process");
		return command_failed(&e);
	}
	if (pid == 0)
		_exit(import_here(q, in, out));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	pt_fail(&e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
		"%s (or a guest's file) is damaged: libtracecmd ended with signal %d (%s)", q->host,
		WTERMSIG(status), strsignal(WTERMSIG(status)));
	return command_failed(&e);
}

/* ---- The command line ---- */

static int add_guest(struct dat_request *q, const struct dat_guest_request *g, struct pt_error *e)
{
	if (q->guest_count == DAT_GUESTS_MAX)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "more than %d guests", DAT_GUESTS_MAX);
	q->guests[q->guest_count++] = *g;
	return 0;
}

/* PID[,OFFSET]; both are decimal, or hexadecimal with 0x. */
static bool parse_pid(const char *text, struct dat_guest_request *g)
{
	char *end;

	g->pid = (int32_t)strtol(text, &end, 10);
	if (*end == ',') {
		const char *offset = end + 1;

		g->has_offset = true;
		g->offset =
		    *offset == '-' ? (int64_t)strtoll(offset, &end, 0) : (int64_t)strtoull(offset, &end, 0);
		if (end == offset)
			return false;
	}
	return *end == 0 && g->pid > 0;
}

/* FILE,PID[,OFFSET]: the comma becomes the end of FILE in the argument. */
static int set_guest(void *arg, const char *value, struct pt_error *e)
{
	struct dat_guest_request g = {.path = value};
	char *comma = strchr(value, ',');

	if (!comma || !parse_pid(comma + 1, &g))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--guest %s: it is FILE,PID[,OFFSET]", value);
	*comma = 0;
	return add_guest(&((struct arguments *)arg)->request, &g, e);
}

static int set_tsc_hz(void *arg, const char *value, struct pt_error *e)
{
	uint64_t *hz = &((struct arguments *)arg)->request.tsc_hz;
	char *end;

	*hz = strtoull(value, &end, 10);
	return *end || !*hz || *value == '-'
		   ? pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--tsc-hz %s: not a frequency in Hz", value)
		   : 0;
}

static int set_level(void *arg, const char *value, struct pt_error *e)
{
	long long level;

	if (pt_option_number("--level", value, PTC_LEVEL_FASTEST, 19, &level, e))
		return -1;
	((struct arguments *)arg)->request.level = (int)level;
	return 0;
}

static const struct pt_option options[] = {
    {.name = "into",
     .argument = "CONTAINER",
     .help = "add them to a recording of Intel PT of the same run; CONTAINER itself is not changed",
     PT_OPTION_TEXT(struct arguments, request.into)},
    {.name = "guest",
     .argument = "FILE,PID[,OFFSET]",
     .help =
	 "a guest's recording, the pid of its VM's process, and its TSC's offset as KVM's debugfs has it "
	 "(guest TSC = host TSC + OFFSET). A GUEST.dat without PID is one that HOST.dat knows from "
	 "trace-cmd's agent, which also has OFFSET; its VM is then named by its first vCPU's thread where "
	 "CONTAINER does not say of which VM it is",
     .set = set_guest},
    {.name = "tsc-hz",
     .argument = "HZ",
     .help = "the TSC's frequency, when no file says it (trace-cmd record --tsc2nsec)",
     .set = set_tsc_hz},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .help = "write the container to FILE, not to standard output",
     PT_OPTION_TEXT(struct arguments, output)},
    {.name = "level",
     .letter = 'z',
     .argument = "N",
     .help = "zstd level, -100 (fastest) to 19; default 1",
     .set = set_level},
    {.name = "quiet",
     .letter = 'q',
     .help = "as for other imports; here there is nothing to be quiet about",
     PT_OPTION_FLAG(struct arguments, quiet)},
    PT_OPTION_END};

static int usage(void)
{
	fputs("usage: pt-capture import [options] HOST.dat [GUEST.dat...]\n"
	      "Makes a container of what trace-cmd recorded: every event of the host, and of guests, becomes "
	      "an event of\n"
	      "the trace (kvm_exit, kvm_entry, sched_switch and all others) on the host's TSC clock.\n"
	      "\n",
	      stdout);
	pt_options_print(options, stdout);
	fputs("  -h, --help                this text\n"
	      "\n"
	      "Record with `trace-cmd record -C x86-tsc --tsc2nsec`. The clocks local, global and perf are "
	      "perf's: good\n"
	      "for a host; without --into, nanoseconds are then the trace's TSC ticks.\n"
	      "Exit status: 0 done; 1 failed, nothing is left; 2 wrong usage; 3 done, but events were lost, "
	      "or CONTAINER\n"
	      "was cut.\n",
	      stdout);
	return 0;
}

/* 0; 1: --help was asked for; -1. */
static int parse(struct arguments *a, int argc, char **argv, struct pt_error *e)
{
	static const struct pt_command_line line = {"pt-capture import TRACE.dat", options, false};
	int operand, ret = pt_options_parse(&line, argc, argv, a, &operand, e);

	if (ret)
		return ret;
	if (operand == argc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "no host's trace.dat");
	a->request.host = argv[operand++];
	for (; operand < argc; operand++)
		if (add_guest(&a->request, &(struct dat_guest_request){.path = argv[operand]}, e))
			return -1;
	return 0;
}

/* Returns the exit status. */
static int import(struct arguments *a, struct pt_error *e)
{
	const char *into = a->request.into;
	struct output out = {0};
	int in = into ? open(into, O_RDONLY | O_CLOEXEC) : -1, status;

	a->request.output = output_name(a->output);
	if (into && in < 0) {
		pt_fail_errno(e, "cannot open %s", into);
		return command_failed(e);
	}
	if (output_open(&out, a->output, "a container", e)) {
		status = command_failed(e);
	} else {
		status = import_apart(&a->request, in, out.fd);
		if ((status == 0 || status == 3) && output_commit(&out, e))
			status = command_failed(e);
		output_abort(&out); /* of a committed one, nothing */
	}
	if (in >= 0)
		close(in);
	return status;
}

int import_tracecmd(int argc, char **argv)
{
	struct arguments a = {.request.level = 1};
	struct pt_error e = {0};
	int ret = parse(&a, argc, argv, &e);

	if (ret > 0)
		return usage();
	return ret < 0 ? command_failed(&e) : import(&a, &e);
}
