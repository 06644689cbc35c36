/* import.c - pt-capture import --raw: the command line for raw AUX bytes and the code that they trace. */
#include "capture/commands.h"
#include "capture/raw/run.h"
#include "schema/array.h"
#include "schema/container.h"
#include "schema/options.h"
#include "schema/output.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS_MAX 4096 /* --raw, --sideband */

struct arguments {
	struct raw_request request;
	const char *output;
	bool has_shift, has_mult, has_zero; /* of request.clock */
	bool quiet;			    /* without notes */
	bool help;			    /* --raw --help */
};

static struct raw_request *request_of(void *arg)
{
	return &((struct arguments *)arg)->request;
}

/* ---- Numbers ---- */

static int usage_error(struct pt_error *e, const char *option, const char *value, const char *expected)
{
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s %s: expected %s", option, value, expected);
}

/*
 * A number from *at on up to the character stop (0: the end): decimal, or hexadecimal with 0x. Moves *at past
 * stop.
 */
static bool parse_number(const char **at, char stop, uint64_t most, uint64_t *ret)
{
	char *end;
	unsigned long long v;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	v = strtoull(*at, &end, (*at)[1] == 'x' ? 16 : 10);
	if (errno || *end != stop || v > most)
		return false;
	*at = end + (stop != 0);
	*ret = v;
	return true;
}

static int take_number(const char *option, const char *value, uint64_t most, uint64_t *ret,
		       struct pt_error *e)
{
	const char *at = value;

	return parse_number(&at, 0, most, ret) ? 0 : usage_error(e, option, value, "a number");
}

/* A number that is kept as it is written. */
static int take_text(const char *option, const char *value, uint64_t most, const char **ret,
		     struct pt_error *e)
{
	uint64_t v;

	if (take_number(option, value, most, &v, e))
		return -1;
	*ret = value;
	return 0;
}

static int take_id(const char *option, const char *value, int32_t *ret, struct pt_error *e)
{
	const char *at = value;
	uint64_t v;

	if (!parse_number(&at, 0, INT32_MAX, &v))
		return usage_error(e, option, value, "a process id");
	*ret = (int32_t)v;
	return 0;
}

/* ---- Setters: the code ---- */

static int set_elf(void *arg, const char *value, struct pt_error *e)
{
	return import_code_elf(request_of(arg)->code, value, e);
}

static int set_maps(void *arg, const char *value, struct pt_error *e)
{
	return import_code_maps(request_of(arg)->code, value, e);
}

static int set_raw_code(void *arg, const char *value, struct pt_error *e)
{
	return import_code_raw(request_of(arg)->code, value, e);
}

/* ---- Setters: the trace ---- */

/* `import --raw --help` is how the usage of all says to ask for help. */
static int set_raw(void *arg, const char *value, struct pt_error *e)
{
	struct raw_request *r = request_of(arg);

	if (strcmp(value, "--help") == 0 || strcmp(value, "-h") == 0) {
		((struct arguments *)arg)->help = true;
		return 0;
	}
	if (r->raw_count == BUFFERS_MAX)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "more than %d --raw", BUFFERS_MAX);
	if (pt_array_grow(&r->raws, r->raw_count, &r->raw_room, e))
		return -1;
	r->raws[r->raw_count++] = (struct raw_aux){.path = value, .cpu = -1, .pid = -1, .tid = -1};
	return 0;
}

static struct raw_aux *last_raw(struct raw_request *r)
{
	return r->raw_count ? &r->raws[r->raw_count - 1] : NULL;
}

/* --pid and --tid are of the last --raw; before the first one, of all that have none of their own. */
static int set_pid(void *arg, const char *value, struct pt_error *e)
{
	struct raw_request *r = request_of(arg);

	return take_id("--pid", value, last_raw(r) ? &last_raw(r)->pid : &r->pid, e);
}

static int set_tid(void *arg, const char *value, struct pt_error *e)
{
	struct raw_request *r = request_of(arg);

	return take_id("--tid", value, last_raw(r) ? &last_raw(r)->tid : &r->tid, e);
}

static int set_on_cpu(void *arg, const char *value, struct pt_error *e)
{
	struct raw_aux *raw = last_raw(request_of(arg));

	if (!raw)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--on-cpu belongs after a --raw");
	return take_id("--on-cpu", value, &raw->cpu, e);
}

static int set_cpu(void *arg, const char *value, struct pt_error *e)
{
	struct raw_request *r = request_of(arg);
	const char *at = value;

	if (!parse_number(&at, '/', 0xfff, &r->family) || !parse_number(&at, '/', 0xff, &r->model) ||
	    !parse_number(&at, 0, 0xf, &r->stepping))
		return usage_error(e, "--cpu", value, "FAMILY/MODEL/STEPPING");
	r->has_cpu = true;
	return 0;
}

static int set_tsc_ratio(void *arg, const char *value, struct pt_error *e)
{
	struct raw_request *r = request_of(arg);
	const char *at = value;

	if (!parse_number(&at, '/', UINT32_MAX, &r->ctc_numerator) ||
	    !parse_number(&at, 0, UINT32_MAX, &r->ctc_denominator) || !r->ctc_numerator ||
	    !r->ctc_denominator)
		return usage_error(e, "--tsc-ratio", value, "N/M, neither of them 0");
	r->has_ratio = true;
	return 0;
}

static int set_mtc_freq(void *arg, const char *value, struct pt_error *e)
{
	return take_text("--mtc-freq", value, 15, &request_of(arg)->mtc_freq, e);
}

static int set_nom_freq(void *arg, const char *value, struct pt_error *e)
{
	return take_text("--nom-freq", value, 255, &request_of(arg)->nom_freq, e);
}

/* One range of --filter, as perf writes them: false unless it is "filter|stop|tracestop START/SIZE[@FILE]". */
static bool take_range(const char **at)
{
	static const char *const actions[] = {"filter ", "stop ", "tracestop "};
	const char *p = *at;
	char *end;

	for (size_t i = 0; i < sizeof actions / sizeof *actions && p == *at; i++)
		if (strncmp(p, actions[i], strlen(actions[i])) == 0)
			p += strlen(actions[i]);
	if (p == *at || !isdigit((unsigned char)*p))
		return false;
	strtoull(p, &end, 0);
	if (*end != '/' || !isdigit((unsigned char)end[1]))
		return false;
	strtoull(end + 1, &end, 0);
	if (*end == '@')
		end += strcspn(end, ",");
	*at = end;
	return *end == ',' || *end == '\0';
}

static int set_filter(void *arg, const char *value, struct pt_error *e)
{
	const char *at = value;

	while (take_range(&at))
		if (*at++ == '\0') {
			request_of(arg)->filter = value;
			return 0;
		}
	return usage_error(e, "--filter", value,
			   "\"filter|tracestop START/SIZE[@FILE],...\", as perf prints it");
}

static int set_pt_config(void *arg, const char *value, struct pt_error *e)
{
	return take_text("--pt-config", value, UINT64_MAX, &request_of(arg)->pt_config, e);
}

static int set_time_shift(void *arg, const char *value, struct pt_error *e)
{
	((struct arguments *)arg)->has_shift = true;
	return take_number("--time-shift", value, 63, &request_of(arg)->clock.shift, e);
}

static int set_time_mult(void *arg, const char *value, struct pt_error *e)
{
	((struct arguments *)arg)->has_mult = true;
	return take_number("--time-mult", value, UINT32_MAX, &request_of(arg)->clock.mult, e);
}

static int set_time_zero(void *arg, const char *value, struct pt_error *e)
{
	((struct arguments *)arg)->has_zero = true;
	return take_number("--time-zero", value, UINT64_MAX, &request_of(arg)->clock.zero, e);
}

static int set_user_only(void *arg, const char *value, struct pt_error *e)
{
	(void)value;
	(void)e;
	request_of(arg)->kernel = false;
	return 0;
}

/* ---- Setters: what else is known ---- */

static int set_sideband(void *arg, const char *value, struct pt_error *e)
{
	struct raw_request *r = request_of(arg);

	if (r->side_count == BUFFERS_MAX)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "more than %d --sideband", BUFFERS_MAX);
	if (pt_array_grow(&r->sides, r->side_count, &r->side_room, e))
		return -1;
	r->sides[r->side_count++] =
	    (struct raw_records_file){.path = value, .cpu = last_raw(r) ? last_raw(r)->cpu : -1};
	return 0;
}

static int set_sample_type(void *arg, const char *value, struct pt_error *e)
{
	return take_number("--sample-type", value, UINT64_MAX, &request_of(arg)->sample_type, e);
}

static int set_level(void *arg, const char *value, struct pt_error *e)
{
	long long level;

	if (pt_option_number("--level", value, PTC_LEVEL_FASTEST, 19, &level, e))
		return -1;
	request_of(arg)->level = (int)level;
	return 0;
}

/* ---- Options ---- */

#define TEXT(field) PT_OPTION_TEXT(struct arguments, field)
#define FLAG(field) PT_OPTION_FLAG(struct arguments, field)

static const struct pt_option options[] = {
    {.name = "raw",
     .argument = "AUX",
     .help = "the trace; compressed with zstd, too; - is standard input. --raw may be given several times, "
	     "each with --on-cpu, or --pid and --tid, after it",
     .set = set_raw},
    PT_OPTION_HEADING(
	"\nThe code (of mappings that overlap, the last one counts; ELF files give symbols, too):"),
    {.name = "elf",
     .argument = "FILE[:ADDR]",
     .help = "an ELF file, its lowest page loaded at ADDR (hex), or where it says",
     .set = set_elf},
    {.name = "maps",
     .argument = "FILE",
     .help = "one mapping per line: START END OFFSET FILE (hex; FILE relative to the maps file's folder, "
	     "FILE.zst if there is no FILE)",
     .set = set_maps},
    {.name = "raw-code",
     .argument = "FILE:OFFSET:SIZE:ADDR",
     .help = "SIZE bytes of FILE from OFFSET on are at ADDR (all hex)",
     .set = set_raw_code},
    PT_OPTION_HEADING("\nThe trace:"),
    {.name = "cpu", .argument = "FAMILY/MODEL/STEPPING", .help = "as in 6/85/4", .set = set_cpu},
    {.name = "mtc-freq",
     .argument = "N",
     .help = "MTC's frequency (IA32_RTIT_CTL.MTCFreq)",
     .set = set_mtc_freq},
    {.name = "tsc-ratio",
     .argument = "N/M",
     .help = "TSC ticks per CTC tick: CPUID 15H, EBX/EAX",
     .set = set_tsc_ratio},
    {.name = "nom-freq",
     .argument = "N",
     .help = "maximum non-turbo ratio (MSR_PLATFORM_INFO bits 8..15)",
     .set = set_nom_freq},
    {.name = "time-shift",
     .argument = "N",
     .help = "perf's clock: ns = zero + (TSC * mult >> shift)",
     .set = set_time_shift},
    {.name = "time-mult", .argument = "N", .help = "its mult", .set = set_time_mult},
    {.name = "time-zero", .argument = "N", .help = "its zero", .set = set_time_zero},
    {.name = "pt-config",
     .argument = "N",
     .help = "perf's attr.config of the intel_pt event",
     .set = set_pt_config},
    {.name = "filter",
     .argument = "RANGES",
     .help =
	 "only these addresses were traced: \"filter START/SIZE[@FILE],tracestop START/SIZE[@FILE]\"; of a "
	 "FILE, START is an offset",
     .set = set_filter},
    {.name = "pid", .argument = "N", .help = "the traced process (1)", .set = set_pid},
    {.name = "tid", .argument = "N", .help = "the traced thread (its process's first)", .set = set_tid},
    {.name = "comm", .argument = "NAME", .help = "its name (the first code file's)", TEXT(request.comm)},
    {.name = "user-only", .help = "no kernel code was traced (default)", .set = set_user_only},
    {.name = "kernel", .help = "kernel code was traced, too", FLAG(request.kernel)},
    {.name = "on-cpu",
     .argument = "N",
     .help = "the last --raw is what CPU N traced, whoever ran there",
     .set = set_on_cpu},
    PT_OPTION_HEADING("\nWhat else is known:"),
    {.name = "sideband",
     .argument = "FILE",
     .help = "perf records, as the kernel writes them (ptxed's pevent files): who ran, what was mapped; of "
	     "the CPU of the last --raw where they have none. Several can be given",
     .set = set_sideband},
    {.name = "sample-type",
     .argument = "N",
     .help = "what ends each record (perf_event_attr.sample_type), as 0x10086; 0: nothing, no time",
     .set = set_sample_type},
    {.name = "symfs",
     .argument = "DIR",
     .help = "files that the records name are below DIR",
     TEXT(request.files.symfs)},
    {.name = "buildid-dir", .argument = "DIR", .help = "as for a perf.data", TEXT(request.files.cache)},
    {.name = "kcore", .argument = "FILE", .help = "the same", TEXT(request.files.host.kcore)},
    {.name = "vmlinux", .argument = "FILE", .help = "the same", TEXT(request.files.host.vmlinux)},
    {.name = "kallsyms", .argument = "FILE", .help = "the same", TEXT(request.files.host.kallsyms)},
    {.name = "modules", .argument = "FILE|DIR", .help = "the same", TEXT(request.files.host.modules)},
    PT_OPTION_HEADING(""),
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .help = "write the container to FILE, not to standard output",
     TEXT(output)},
    {.name = "level",
     .letter = 'z',
     .argument = "N",
     .help = "zstd's level, -100 (fast) to 19 (small); default 1",
     .set = set_level},
    {.name = "quiet", .letter = 'q', .help = "do not say what is missing", FLAG(quiet)},
    PT_OPTION_END};

static int usage(void)
{
	fputs("usage: pt-capture import --raw AUX [--elf FILE[:ADDR]]... [--maps FILE]... [options]\n"
	      "Makes a container from raw Intel PT bytes and the code that they trace, for traces by other "
	      "tools.\n"
	      "\n",
	      stdout);
	pt_options_print(options, stdout);
	fputs("  -h, --help                this text\n"
	      "\n"
	      "Example: pt-capture import --raw trace.pt --elf a.out --mtc-freq 3 --tsc-ratio 160/2 "
	      "--nom-freq 20 |\n"
	      "         pt-decode\n",
	      stdout);
	return 0;
}

/* What options say together. */
static int complete(struct arguments *a, struct pt_error *e)
{
	struct raw_request *r = &a->request;

	if (!r->raw_count)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "import needs --raw AUX");
	if (!r->side_count && (r->sample_type || r->files.symfs || r->files.cache))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--sample-type, --symfs, --buildid-dir are for --sideband, and there is none");
	if (a->has_shift != a->has_mult || (a->has_zero && !a->has_mult))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--time-shift and --time-mult belong together (and --time-zero to them)");
	r->has_clock = a->has_mult;
	r->files.host.code_given = import_code_has_kernel(r->code);
	if (r->files.host.kcore || r->files.host.vmlinux || r->files.host.code_given)
		r->kernel = true;
	return 0;
}

/* 0; 1: --help was asked for; -1. */
static int parse(struct arguments *a, int argc, char **argv, struct pt_error *e)
{
	static const struct pt_command_line line = {"pt-capture import --raw", options, false};
	int operand, ret = pt_options_parse(&line, argc, argv, a, &operand, e);

	if (ret > 0 || a->help)
		return 1;
	if (ret < 0)
		return -1;
	if (operand < argc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "import --raw takes no further file: '%s'",
			       argv[operand]);
	return complete(a, e);
}

static int import(struct arguments *a, struct pt_error *e)
{
	struct import_perf_notes notes = {0};
	struct output out = {0};
	int ret = output_open(&out, a->output, "a container", e);

	a->request.output = output_name(a->output);
	if (ret == 0)
		ret = raw_import_run(&a->request, out.fd, &notes, e);
	if (ret)
		output_abort(&out);
	else
		ret = output_commit(&out, e);
	for (size_t i = 0; ret == 0 && !a->quiet && i < notes.count; i++)
		fprintf(stderr, "pt-capture: %s\n", notes.lines[i]);
	import_perf_notes_free(&notes);
	return ret;
}

/* The command line for META, for people: not quoted. NULL: no memory. */
static char *command_line(int argc, char **argv)
{
	size_t bytes = strlen("pt-capture") + 1;
	char *line, *p;

	for (int i = 0; i < argc; i++)
		bytes += strlen(argv[i]) + 1;
	line = malloc(bytes);
	if (!line)
		return NULL;
	p = stpcpy(line, "pt-capture");
	for (int i = 0; i < argc; i++)
		p = stpcpy(stpcpy(p, " "), argv[i]);
	return line;
}

int import_raw(int argc, char **argv)
{
	struct arguments a = {.request = {.level = 1, .pid = -1, .tid = -1}};
	struct raw_request *r = &a.request;
	struct pt_error e = {.offset = PT_NO_OFFSET};
	char *command = command_line(argc, argv);
	int ret;

	r->command = command;
	r->code = import_code_create();
	ret = command && r->code ? parse(&a, argc, argv, &e) : pt_fail_no_memory(&e, NULL);
	if (ret > 0)
		ret = usage();
	else if (ret == 0)
		ret = import(&a, &e);
	import_code_destroy(r->code);
	free(r->raws);
	free(r->sides);
	free(command);
	return ret < 0 ? command_failed(&e) : ret;
}
