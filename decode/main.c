/*
 * main.c - pt-decode: a container in, a record stream out (or lines of text).
 *
 * arguments.h is the command line, session/session.h the decode. This file opens the input and the output,
 * reports the results, and chooses the exit status.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "decode/arguments.h"
#include "decode/guest_merge.h"
#include "decode/output/insn_lines.h"
#include "decode/output/packets_print.h"
#include "decode/output/text.h"
#include "decode/session/session.h"
#include "decode/vm/clock_print.h"
#include "schema/output.h"
#include "schema/terminal.h"
#include "schema/version.h"

enum { COMPLETE = 0, INCOMPLETE = 3 }; /* exit statuses; of errors: pt_exit_status() */

/* Prints the error; returns its exit status. */
static int fail(const struct pt_error *e)
{
	if (e->kind == PT_ERR_CLOSED)
		return 1; /* the reader has gone: it knows why */
	if (e->offset != PT_NO_OFFSET)
		fprintf(stderr, "pt-decode: %s (at byte %" PRIu64 " of the input)\n", e->message, e->offset);
	else
		fprintf(stderr, "pt-decode: %s\n", e->message);
	return pt_exit_status(e);
}

/* ---- Results ---------------------------------------------------------------------------------------- */

static uint64_t cpu_us(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* How the work was divided is another matter in each run: for those who ask about threads. This thread
 * is the session's, of which there is one however many others there are. */
static void print_division(FILE *f, const struct pt_session_result *r)
{
	fprintf(f,
		"stats.segments %" PRIu64 "\nstats.segments_taken %" PRIu64 "\nstats.segment_bytes %" PRIu64
		"\nstats.encoded_runs %" PRIu64 "\nstats.cpu_us %" PRIu64 "\nstats.session_cpu_us %" PRIu64
		"\nstats.session_stacks_cpu_us %" PRIu64 "\n",
		r->segments.segments, r->segments.fitting, r->segments.bytes, r->encoded_runs,
		cpu_us(CLOCK_PROCESS_CPUTIME_ID), cpu_us(CLOCK_THREAD_CPUTIME_ID), r->helped_ns / 1000);
}

static void print_stats(FILE *f, const struct pt_arguments *a, const struct pt_session_result *r)
{
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
	    {"insn", r->insns},
	    {"jcc_taken", r->by_kind[PTR_JCC]},
	    {"jcc_not", r->not_taken},
	    {"jmp", r->by_kind[PTR_JMP]},
	    {"call", r->by_kind[PTR_CALL_DIR]},
	    {"ijmp", r->by_kind[PTR_JMP_IND]},
	    {"icall", r->by_kind[PTR_CALL_IND]},
	    {"ret", r->by_kind[PTR_RET]},
	    {"syscall", r->by_kind[PTR_SYSCALL]},
	    {"async", r->by_kind[PTR_ASYNC]},
	    {"branches", r->branches},
	    {"runs", r->runs},
	    {"errors", r->errors},
	    {"packets", r->packets},
	    {"psbs", r->psbs},
	    {"aux_bytes", r->aux_bytes},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		fprintf(f, "stats.%s %" PRIu64 "\n", rows[i].name, rows[i].value);
	if (a->jobs > 1)
		print_division(f, r);
	fprintf(f, "stats.ip %" PRIx64 "\nstats.hash %" PRIx64 "\n", r->stop_ip, r->hash);
}

static void report(const struct pt_arguments *a, const struct pt_session_result *r)
{
	if (r->incomplete && !a->quiet) {
		if (r->damage[0])
			fprintf(stderr, "pt-decode: the container is %s\n", r->damage);
		fprintf(stderr,
			"pt-decode: %" PRIu64
			" place%s could not be decoded; see the errors (pt-query DB errors)\n",
			r->errors, r->errors == 1 ? "" : "s");
	}
	if (r->self_branches && !a->quiet)
		fprintf(
		    stderr,
		    "pt-decode: %" PRIu64
		    " branches, %.0f %% of all, are pt-capture's own and were left out (--include-self keeps "
		    "them)\n",
		    r->self_branches,
		    100.0 * (double)r->self_branches / (double)(r->self_branches + r->branches));
	if (!a->verbose)
		return;
	fprintf(stderr,
		"pt-decode: %" PRIu64 " AUX bytes, %" PRIu64 " packets, %" PRIu64 " instructions, %" PRIu64
		" taken branches in %" PRIu64 " runs\n",
		r->aux_bytes, r->packets, r->insns, r->branches, r->runs);
}

/* ---- Input ------------------------------------------------------------------------------------------ */

static void ignore_signal(int sig)
{
	(void)sig;
}

/* Ctrl-C reaches the whole pipeline. pt-capture ends its recording then, and what it recorded is to be
 * decoded: the first one is ignored when the input is a pipe. The second one ends us. */
static void ignore_first_interrupt(int in)
{
	struct sigaction once = {.sa_handler = ignore_signal, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
	struct sigaction before;
	struct stat st;

	if (fstat(in, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) &&
	    sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(SIGINT, &once, NULL);
}

static int open_input(struct pt_arguments *a, int *ret_fd, struct pt_error *e)
{
	if (a->guests.count)
		return pt_guest_merge_start(&a->guests, a->input, ret_fd, e);
	*ret_fd = a->input ? open(a->input, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	if (*ret_fd < 0)
		return pt_fail_errno(e, "cannot open %s", a->input);
	ignore_first_interrupt(*ret_fd);
	return 0;
}

/* After a command that reads the container and prints: its status, or that of pt-capture merge when that is
 * worse. */
static int close_input(struct pt_arguments *a, int in, int status)
{
	struct pt_error e = {0};
	int r;

	if (status == 1) {
		pt_guest_merge_abort(&a->guests, in);
		return status;
	}
	r = pt_guest_merge_finish(&a->guests, in, &e);
	return r < 0 ? fail(&e) : r > 0 ? r : status;
}

/* ---- Commands: each returns the exit status ----------------------------------------------------------- */

static int print_vm_clock(struct pt_arguments *a, struct ptc_reader *reader, int in)
{
	struct pt_error e = {0};
	int r = pt_vm_clock_print(reader, &a->tsc_offsets, stdout, &e);
	int status = r < 0 ? fail(&e) : COMPLETE;

	if (r > 0) {
		fail(&e);
		status = INCOMPLETE;
	}
	if (output_flush(stdout, "to standard output", &e) < 0)
		status = fail(&e);
	return close_input(a, in, status);
}

static int print_packets(struct pt_arguments *a, struct ptc_reader *reader, int in)
{
	struct pt_error e = {0};
	uint64_t errors;
	int status = COMPLETE;

	if (pt_packets_print(reader, stdout, &errors, &e) < 0)
		status = fail(&e);
	else if (errors)
		status = INCOMPLETE;
	if (output_flush(stdout, "to standard output", &e) < 0)
		status = fail(&e);
	return close_input(a, in, status);
}

/* What prints lines to standard output: both NULL, or one of them. */
struct lines {
	struct pt_lines *branches;
	struct pt_insn_lines *insns;
};

static int lines_create(const struct pt_arguments *a, struct lines *ret, struct pt_error *e)
{
	if (a->text && !(ret->branches = pt_lines_create(stdout, a->fields, e)))
		return -1;
	if (a->insns && !(ret->insns = pt_insn_lines_create(stdout, a->fields, a->att, e)))
		return -1;
	return 0;
}

static void lines_destroy(struct lines *lines)
{
	pt_lines_destroy(lines->branches);
	pt_insn_lines_destroy(lines->insns);
}

/* Standard output gets lines, and no record is encoded. */
static bool writes_lines(const struct pt_arguments *a)
{
	return a->text || a->insns || a->used_code;
}

/* How many threads decode: as many as there are CPUs that may be used. */
static unsigned threads(const struct pt_arguments *a)
{
	cpu_set_t set;

	if (a->jobs)
		return (unsigned)a->jobs;
	return sched_getaffinity(0, sizeof set, &set) < 0 ? 1 : (unsigned)CPU_COUNT(&set);
}

/* The container's absolute path, "" when it is no file, or was joined with others. */
static void find_path(const struct pt_arguments *a, int in, char ret[PATH_MAX])
{
	char link[64];
	struct stat st;
	ssize_t n = -1;

	snprintf(link, sizeof link, "/proc/self/fd/%d", in);
	if (!a->guests.count && fstat(in, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink)
		n = readlink(link, ret, PATH_MAX - 1);
	ret[n > 0 && n < PATH_MAX - 1 ? n : 0] = 0;
}

static struct pt_session_options session_options(const struct pt_arguments *a)
{
	const bool records = !writes_lines(a);

	return (struct pt_session_options){.calls = !a->no_calls && records,
					   .definitions = records,
					   .stats = a->stats,
					   .graph_bytes = (size_t)a->memory_mb << 20,
					   .threads = threads(a),
					   .guest_code = a->guest_code,
					   .include_self = a->include_self,
					   .from_psb = a->from_psb,
					   .used_code = a->used_code ? stdout : NULL,
					   .detail = a->detail,
					   .selection = &a->selection,
					   .quick = a->quick,
					   .tsc_offsets = &a->tsc_offsets};
}

static int run_without_output(const struct pt_arguments *a, struct ptc_reader *reader,
			      struct pt_session_result *result, struct pt_error *e)
{
	struct pt_session_options options = session_options(a);
	struct ptr_writer *w = ptr_writer_create(PTR_NO_FILE, NULL, e);
	int r;

	options.detail = PTR_DETAIL_VM;
	options.calls = options.stats = false;
	r = w ? pt_session_run(reader, w, &options, result, e) : -1;
	ptr_writer_destroy(w);
	return r;
}

/* --detail LEVEL,branches@slowest: decodes the file at `in`, which stands at its begin again then, for the time
 * of which all is to be written. */
static int find_slowest(struct pt_arguments *a, int in, struct pt_error *e)
{
	off_t begin = a->guests.count ? -1 : lseek(in, 0, SEEK_CUR);
	struct pt_session_result result = {0};
	struct ptc_reader *reader;
	int r;

	if (begin < 0)
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "branches@slowest decodes twice, so the container must be a file: write it to one, or "
		    "join it with its guests by pt-capture merge");
	reader = ptc_reader_create(in, e);
	r = reader ? run_without_output(a, reader, &result, e) : -1;
	ptc_reader_destroy(reader);
	if (r < 0)
		return -1;
	if (lseek(in, begin, SEEK_SET) < 0)
		return pt_fail_errno(e, "cannot read the container a second time");
	if (!result.slowest_entry_tsc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "branches@slowest: no VM exit has a latency that is known; --detail %s writes "
			       "what there is",
			       ptr_detail_name(a->detail));
	a->detail_time.from = (struct pt_time_bound){true, false, true, result.slowest_exit_tsc};
	a->detail_time.to = (struct pt_time_bound){true, false, true, result.slowest_entry_tsc + 1};
	return 0;
}

/* Into w, or as lines to standard output. */
static int run_session(const struct pt_arguments *a, struct ptc_reader *reader, int in, struct ptr_writer *w,
		       struct pt_session_result *result, struct pt_error *e)
{
	struct pt_session_options options = session_options(a);
	struct lines lines = {0};
	char path[PATH_MAX];
	int r = lines_create(a, &lines, e);

	if (a->detail_time.from.given || a->detail_time.to.given)
		options.detail_time = &a->detail_time;
	find_path(a, in, path);
	if (path[0])
		options.container_path = path;
	if (lines.branches)
		options.text = pt_lines_text(lines.branches);
	if (lines.insns)
		options.text = pt_insn_lines_text(lines.insns);
	if (r == 0)
		r = pt_session_run(reader, w, &options, result, e);
	lines_destroy(&lines);
	return r;
}

/* out: where the record stream is written, if one is. */
static int decode(struct pt_arguments *a, struct ptc_reader *reader, int in, int out)
{
	struct pt_session_result result;
	struct pt_error e = {0};
	struct ptr_writer *w = ptr_writer_create(writes_lines(a) ? PTR_COUNT_ONLY
						 : a->null	 ? PTR_NO_FILE
								 : out,
						 output_name(a->output), &e);
	int r, merged = 0;

	r = w ? run_session(a, reader, in, w, &result, &e) : -1;

	/* A container may be cut because pt-capture merge failed, and then that is the error. */
	if (r < 0 && e.kind != PT_ERR_TRUNCATED)
		pt_guest_merge_abort(&a->guests, in);
	else if ((merged = pt_guest_merge_finish(&a->guests, in, &e)) < 0)
		r = -1;
	if (r == 0)
		r = ptr_writer_finish(w, &e);
	if (r == 0 && a->stats)
		print_stats(a->null || a->output ? stdout : stderr, a, &result);
	if (r == 0)
		r = output_flush(stdout, "to standard output", &e);
	ptr_writer_destroy(w);
	if (r < 0)
		return fail(&e);
	report(a, &result);
	return result.incomplete || merged ? INCOMPLETE : COMPLETE;
}

static int decode_to_output(struct pt_arguments *a, struct ptc_reader *reader, int in)
{
	struct output out = {.fd = STDOUT_FILENO};
	struct pt_error e = {0};
	int status;

	if (a->output && output_open_mode(&out, a->output, "a record stream", a->mode, &e)) {
		pt_guest_merge_abort(&a->guests, in);
		return fail(&e);
	}
	status = decode(a, reader, in, out.fd);
	if (a->output && status == 1)
		output_abort(&out);
	else if (a->output && output_commit(&out, &e))
		status = fail(&e);
	return status;
}

int main(int argc, char **argv)
{
	static char buffer[256 << 10]; /* lines come by the million */
	struct pt_arguments a = {.mode = OUTPUT_MODE};
	struct pt_error e = {0};
	struct ptc_reader *reader;
	int in, status;

	signal(SIGPIPE, SIG_IGN);
	output_limit_is_error();
	pt_terminal_protect();
	pt_terminal_protect_errors();
	/* Pieces of AUX data come and go. The next one takes the memory of the last, without a page fault
	 * per 4 KiB. */
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
	setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
	status = pt_arguments_parse(argc, argv, &a, &e);
	if (status < 0)
		return fail(&e);
	if (status > 0) {
		if (a.version)
			puts("pt-decode " PT_VERSION);
		else
			pt_arguments_help(stdout);
		return output_flush(stdout, "to standard output", &e) < 0 ? fail(&e) : 0;
	}
	if (open_input(&a, &in, &e) < 0)
		return fail(&e);
	if (a.detail_slowest && find_slowest(&a, in, &e) < 0)
		return fail(&e);
	reader = ptc_reader_create(in, &e);
	if (!reader) {
		struct pt_error merge_error = {0};

		return fail(pt_guest_merge_finish(&a.guests, in, &merge_error) < 0 ? &merge_error : &e);
	}
	status = a.vm_clock  ? print_vm_clock(&a, reader, in)
		 : a.packets ? print_packets(&a, reader, in)
			     : decode_to_output(&a, reader, in);
	ptc_reader_destroy(reader);
	return status;
}
