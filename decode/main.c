/* main.c - pt-decode: a container in, a record stream out. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/commands.h"
#include "decode/guests.h"
#include "decode/session/selection.h"
#include "decode/session/session.h"
#include "decode/vm/clock.h"
#include "schema/output.h"
#include "schema/version.h"

static const char usage[] =
    "usage: pt-decode [options] [CONTAINER]\n"
    "       pt-decode vm-clock [--tsc-offset LIST] [CONTAINER]\n"
    "Decodes what pt-capture recorded (standard input, or CONTAINER) into a record stream for pt-load.\n"
    "\n"
    "  -o, --output FILE  write the record stream to FILE, not to standard output\n"
    "      --text         print a line a branch instead of the record stream\n"
    "  -F, --fields LIST  fields of --text, of: %s\n"
    "      --packets      print a line a packet instead: offset, name, payload\n"
    "      --null         decode all, write nothing\n"
    "      --used-code    decode all, and list the code that was read: file or memory, machine, pid,\n"
    "                     build id, offset or address (hexadecimal), bytes, name\n"
    "      --stats        print counts to standard error (with --null or -o: to standard output)\n"
    "      --no-calls     do not build call stacks\n"
    "      --memory MB    for decoded code and paths, 1 to 4000 (160); when it is used up, they are\n"
    "                     forgotten\n"
    "      --time A..B    decode this time only: [+]NUMBER[s|ms|us|ns|tsc] each, or none; + from where the\n"
    "                     trace begins\n"
    "      --cpu LIST, --pid LIST, --tid LIST   only these CPUs, processes, threads (0-3,7) of the host\n"
    "      --vm LIST|NAME   only the VMs of these processes, and those themselves; or the VM of that name\n"
    "      --quick[=2]    follow no code: the addresses that packets have, as events; 2: those of PSBs only\n"
    "      --host-only, --guest-only   not the guests; not the host\n"
    "      --tsc-offset [VMCS:]OFFSET[*RATIO],...  a guest's TSC is host TSC * RATIO + OFFSET\n"
    "      --guest FILE[,PID]  join what `pt-capture --sideband-only` recorded in a guest, PID being the\n"
    "                     VM's process, needed where there are several; as `pt-capture merge` does\n"
    "      --guest-code   VMs of which there is no kernel run code of their own process, as KVM selftests\n"
    "  -q, --quiet        say nothing but errors\n"
    "  -v, --verbose      say more\n"
    "  -h, --help         this text\n"
    "      --version      the version\n"
    "\n"
    "vm-clock prints what the trace tells of the guests' clocks: VMCS, offset, ratio, how sure they are.\n"
    "\n"
    "Addresses are hexadecimal; 0 is an address that was not seen (the trace began or ended there).\n"
    "Exit status: 0 all was decoded; 1 failed; 2 wrong usage; 3 decoded, but something was not seen:\n"
    "an overflow, lost data, missing code, a cut container. Each such place is an error record (table and\n"
    "view `errors`).\n"
    "\n"
    "Example: pt-capture -- ls | pt-decode | pt-load trace.db && pt-query trace.db summary\n";

static int fail(const struct pt_error *e)
{
	if (e->kind == PT_ERR_CLOSED)
		return 1; /* the reader has gone: it knows why */
	if (e->offset != PT_NO_OFFSET)
		fprintf(stderr, "pt-decode: %s (at byte %" PRIu64 " of the input)\n", e->message, e->offset);
	else
		fprintf(stderr, "pt-decode: %s\n", e->message);
	if (e->kind == PT_ERR_USAGE)
		fprintf(stderr, "Try 'pt-decode --help'.\n");
	return pt_exit_status(e);
}

struct options {
	const char *input, *output, *fields;
	size_t graph_bytes;
	bool text, packets, null, used_code, stats, no_calls, quiet, verbose, vm_clock, guest_code;
	struct pt_vm_options tsc_offsets;
	struct pt_only only;
	struct pt_guests guests;
	unsigned quick;
};

static int memory(const char *value, size_t *ret, struct pt_error *e)
{
	char *end;
	unsigned long n;

	errno = 0;
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): optarg is null for --quick only */
	n = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno || n < 1 || n > 4000)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--memory %s: expected megabytes, 1 to 4000",
			       value);
	*ret = n << 20;
	return 0;
}

static int parse(int argc, char **argv, struct options *o, struct pt_error *e)
{
	enum {
		TEXT = 256,
		PACKETS,
		NULL_,
		USED_CODE,
		STATS,
		NO_CALLS,
		MEMORY,
		TSC_OFFSET,
		GUEST_CODE,
		GUEST,
		TIME,
		CPU,
		PID,
		TID,
		VM,
		HOST_ONLY,
		GUEST_ONLY,
		QUICK,
		VERSION
	};
	static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
					      {"text", no_argument, NULL, TEXT},
					      {"fields", required_argument, NULL, 'F'},
					      {"packets", no_argument, NULL, PACKETS},
					      {"null", no_argument, NULL, NULL_},
					      {"used-code", no_argument, NULL, USED_CODE},
					      {"stats", no_argument, NULL, STATS},
					      {"no-calls", no_argument, NULL, NO_CALLS},
					      {"memory", required_argument, NULL, MEMORY},
					      {"tsc-offset", required_argument, NULL, TSC_OFFSET},
					      {"guest-code", no_argument, NULL, GUEST_CODE},
					      {"guest", required_argument, NULL, GUEST},
					      {"time", required_argument, NULL, TIME},
					      {"cpu", required_argument, NULL, CPU},
					      {"pid", required_argument, NULL, PID},
					      {"tid", required_argument, NULL, TID},
					      {"vm", required_argument, NULL, VM},
					      {"quick", optional_argument, NULL, QUICK},
					      {"host-only", no_argument, NULL, HOST_ONLY},
					      {"guest-only", no_argument, NULL, GUEST_ONLY},
					      {"quiet", no_argument, NULL, 'q'},
					      {"verbose", no_argument, NULL, 'v'},
					      {"help", no_argument, NULL, 'h'},
					      {"version", no_argument, NULL, VERSION},
					      {0}};
	int c;

	if (argc > 1 && !strcmp(argv[1], "vm-clock")) {
		o->vm_clock = true;
		argv++;
		argc--;
	}
	while ((c = getopt_long(argc, argv, "o:F:qvh", longs, NULL)) != -1) {
		switch (c) {
		case 'o': o->output = optarg; break;
		case 'F': o->fields = optarg; break;
		case TEXT: o->text = true; break;
		case PACKETS: o->packets = true; break;
		case NULL_: o->null = true; break;
		case USED_CODE: o->used_code = o->null = true; break;
		case STATS: o->stats = true; break;
		case NO_CALLS: o->no_calls = true; break;
		case MEMORY:
			if (memory(optarg, &o->graph_bytes, e) < 0)
				return -1;
			break;
		case TIME:
			if (!pt_only_add_time(&o->only, optarg))
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "'%s' is no time A..B (as 1.5..1.6, +10ms.., ..1000000tsc)",
					       optarg);
			break;
		case CPU:
		case PID:
		case TID:
			if (!pt_only_add(c == CPU   ? &o->only.cpus
					 : c == PID ? &o->only.pids
						    : &o->only.tids,
					 optarg))
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "'%s' is no list as 0-3,7, or too long", optarg);
			break;
		case VM:
			if (!pt_only_add_vm(&o->only, optarg))
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "--vm '%s': not a list as 87,90, nor a name; or too many",
					       optarg);
			break;
		case QUICK:
			if (optarg && strcmp(optarg, "1") && strcmp(optarg, "2"))
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--quick is 1 or 2, not '%s'",
					       optarg);
			o->quick = optarg && optarg[0] == '2' ? 2 : 1;
			break;
		case HOST_ONLY: o->only.host_only = true; break;
		case GUEST_ONLY: o->only.guest_only = true; break;
		case TSC_OFFSET:
			if (!pt_vm_options_add(&o->tsc_offsets, optarg))
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "'%s' is no [VMCS:]OFFSET[*RATIO], or one too many", optarg);
			break;
		case GUEST_CODE: o->guest_code = true; break;
		case GUEST:
			if (!pt_guests_add(&o->guests, optarg))
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "at most %d guests",
					       PT_GUESTS_MAX);
			break;
		case 'q': o->quiet = true; break;
		case 'v': o->verbose = true; break;
		case 'h': printf(usage, pt_lines_fields()); exit(fflush(stdout) ? 1 : 0);
		case VERSION: puts("pt-decode " PT_VERSION); exit(fflush(stdout) ? 1 : 0);
		default: fprintf(stderr, "Try 'pt-decode --help'.\n"); exit(2);
		}
	}
	if (argc - optind > 1)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "one container at a time; '%s' is too many",
			       argv[optind + 1]);
	if (optind < argc && strcmp(argv[optind], "-") != 0)
		o->input = argv[optind];
	if (o->used_code && o->stats)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--used-code and --stats exclude each other");
	if (o->text + o->packets + o->null > 1)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--text, --packets, --null and --used-code exclude each other");
	if (o->vm_clock && (o->text || o->packets || o->null || o->stats || o->output))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "vm-clock prints its own table: of the options, it takes --tsc-offset");
	if (o->only.host_only && o->only.guest_only)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--host-only and --guest-only leave nothing");
	if ((o->packets || o->vm_clock) && !pt_only_all(&o->only))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--packets and vm-clock look at all there is");
	if (o->quick && (o->text || o->packets || o->vm_clock))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--quick gives events, not lines: load them, or use --packets");
	if (o->fields && !o->text)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "-F needs --text");
	if (!o->input && isatty(0))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "no container: name one, or pipe one in (pt-capture -- PROGRAM | pt-decode)");
	if (!o->vm_clock && !o->text && !o->packets && !o->null && !o->output && isatty(1))
		return pt_fail(
		    e, PT_ERR_USAGE, PT_NO_OFFSET,
		    "the record stream is binary and standard output is a terminal: pipe it into pt-load, "
		    "or use --text, or -o FILE");
	return 0;
}

static void print_stats(FILE *f, const struct pt_session_result *r)
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
	fprintf(f, "stats.ip %" PRIx64 "\nstats.hash %" PRIx64 "\n", r->stop_ip, r->hash);
}

static int flush_lines(struct pt_error *e)
{
	return fflush(stdout) != 0 || ferror(stdout) ? pt_fail_errno(e, "cannot write to standard output")
						     : 0;
}

static int decode(struct options *o, struct ptc_reader *reader, int in, int out)
{
	struct pt_session_options so = {.calls = !o->no_calls && !o->null && !o->text,
					.definitions = !o->null && !o->text,
					.stats = o->stats,
					.graph_bytes = o->graph_bytes,
					.guest_code = o->guest_code,
					.used_code = o->used_code ? stdout : NULL,
					.only = &o->only,
					.quick = o->quick,
					.tsc_offsets = &o->tsc_offsets};
	struct pt_session_result result;
	struct pt_error e = {0};
	struct ptr_writer *w = ptr_writer_create(o->null || o->text ? -1 : out, &e);
	struct pt_lines *lines = NULL;
	int r = -1, joined = 0;

	if (w && o->text) {
		lines = pt_lines_create(stdout, o->fields, &e);
		if (lines)
			so.text = pt_lines_text(lines);
	}
	if (w && (!o->text || lines))
		r = pt_session_run(reader, w, &so, &result, &e);
	/* What ends too early may do so because the guests could not be joined. */
	if (r < 0 && e.kind != PT_ERR_TRUNCATED)
		pt_guests_abort(&o->guests, in);
	else
		joined = pt_guests_end(&o->guests, in, &e);
	if (joined < 0)
		r = -1;
	if (r == 0)
		r = ptr_writer_finish(w, &e);
	if (r == 0 && o->stats)
		print_stats(o->null || o->output ? stdout : stderr, &result);
	if (r == 0)
		r = flush_lines(&e);
	ptr_writer_destroy(w);
	pt_lines_destroy(lines);
	if (r < 0)
		return fail(&e);
	if (result.incomplete && !o->quiet) {
		if (result.damage[0])
			fprintf(stderr, "pt-decode: the container is %s\n", result.damage);
		fprintf(stderr,
			"pt-decode: %" PRIu64
			" place%s could not be decoded; see the errors (pt-query DB errors)\n",
			result.errors, result.errors == 1 ? "" : "s");
	}
	if (o->verbose) {
		fprintf(stderr,
			"pt-decode: %" PRIu64 " AUX bytes, %" PRIu64 " packets, %" PRIu64
			" instructions, %" PRIu64 " taken branches",
			result.aux_bytes, result.packets, result.insns, result.branches);
		if (!o->null || o->stats) /* else they may be told apart by their lengths only */
			fprintf(stderr, " in %" PRIu64 " runs", result.runs);
		fputc('\n', stderr);
	}
	return result.incomplete || joined ? 3 : 0;
}

static void pass_over(int sig)
{
	(void)sig;
}

/* Ctrl-C goes to the whole pipeline: pt-capture then ends well, and what it captured is to be decoded, too. A second one stops. */
static void wait_for_the_pipe(int in)
{
	struct sigaction once = {.sa_handler = pass_over, .sa_flags = SA_RESTART | (int)SA_RESETHAND}, before;
	struct stat st;

	if (fstat(in, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) &&
	    sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(SIGINT, &once, NULL);
}

/* How --guest ended, when that is worse than status. */
static int end_guests(struct options *o, int in, int status)
{
	struct pt_error e = {0};
	int r;

	if (status == 1) {
		pt_guests_abort(&o->guests, in);
		return status;
	}
	r = pt_guests_end(&o->guests, in, &e);
	return r < 0 ? fail(&e) : r > 0 ? r : status;
}

int main(int argc, char **argv)
{
	struct options o = {0};
	struct pt_error e = {0};
	struct ptc_reader *reader;
	int in = 0, status;
	uint64_t errors;

	signal(SIGPIPE, SIG_IGN);
	/* Pieces of AUX data come and go: what one had is the next one's, without a page fault for each 4 KB of it. */
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
	if (parse(argc, argv, &o, &e) < 0)
		return fail(&e);
	if (o.guests.count) {
		if (pt_guests_join(&o.guests, o.input, &in, &e) < 0)
			return fail(&e);
	} else if (o.input && (in = open(o.input, O_RDONLY | O_CLOEXEC)) < 0) {
		pt_fail_errno(&e, "cannot open %s", o.input);
		return fail(&e);
	} else {
		wait_for_the_pipe(in);
	}
	reader = ptc_reader_create(in, &e);
	if (!reader) {
		struct pt_error why = {0};

		return fail(pt_guests_end(&o.guests, in, &why) < 0 ? &why : &e);
	}
	if (o.vm_clock) {
		int r = pt_vm_clock_print(reader, &o.tsc_offsets, stdout, &e);

		status = r < 0 ? fail(&e) : 0;
		if (r > 0) {
			fail(&e);
			status = 3;
		}
		if (flush_lines(&e) < 0)
			status = fail(&e);
		status = end_guests(&o, in, status);
	} else if (o.packets) {
		status = pt_packets_print(reader, stdout, &errors, &e) < 0 ? fail(&e) : errors ? 3 : 0;
		if (flush_lines(&e) < 0)
			status = fail(&e);
		status = end_guests(&o, in, status);
	} else {
		struct output out = {.fd = STDOUT_FILENO};

		if (o.output && output_open(&out, o.output, "a record stream", &e)) {
			pt_guests_abort(&o.guests, in);
			ptc_reader_destroy(reader);
			return fail(&e);
		}
		status = decode(&o, reader, in, out.fd);
		if (o.output && status == 1)
			output_abort(&out);
		else if (o.output && output_commit(&out, &e))
			status = fail(&e);
	}
	ptc_reader_destroy(reader);
	return status;
}
