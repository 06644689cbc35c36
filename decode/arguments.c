/* arguments.c - see arguments.h. */
#include "decode/arguments.h"

#include <string.h>
#include <unistd.h>

#include "decode/output/insn_lines.h"
#include "decode/output/text.h"
#include "schema/options.h"

/* ---- Setters (schema/options.h) --------------------------------------------------------------------- */

static int set_memory(void *arg, const char *value, struct pt_error *e)
{
	return pt_option_number("--memory", value, 1, 4000, &((struct pt_arguments *)arg)->memory_mb, e);
}

static int set_jobs(void *arg, const char *value, struct pt_error *e)
{
	return pt_option_number("--jobs", value, 1, 1024, &((struct pt_arguments *)arg)->jobs, e);
}

static int set_mode(void *arg, const char *value, struct pt_error *e)
{
	return pt_option_mode("--mode", value, &((struct pt_arguments *)arg)->mode, e);
}

static int set_exclude_self(void *arg, const char *value, struct pt_error *e)
{
	(void)value, (void)e;
	((struct pt_arguments *)arg)->include_self = false;
	return 0;
}

static int set_quick(void *arg, const char *value, struct pt_error *e)
{
	struct pt_arguments *a = arg;

	if (value && strcmp(value, "1") != 0 && strcmp(value, "2") != 0)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--quick is 1 or 2, not '%s'", value);
	a->quick = value && value[0] == '2' ? 2 : 1;
	return 0;
}

static int set_time(void *arg, const char *value, struct pt_error *e)
{
	struct pt_arguments *a = arg;

	if (pt_selection_set_time(&a->selection, value))
		return 0;
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
		       "--time '%s': expected A..B, as in 1.5..1.6, +10ms.., ..1000000tsc", value);
}

/* LEVEL[,branches@A..B|slowest] */
static int set_detail(void *arg, const char *value, struct pt_error *e)
{
	static const char all[] = ",branches@";
	struct pt_arguments *a = arg;
	size_t n = strcspn(value, ",");

	for (int i = 0; i < PTR_DETAILS; i++) {
		const char *name = ptr_detail_name((enum ptr_detail)i);

		if (strlen(name) != n || strncmp(name, value, n) != 0)
			continue;
		a->detail = (enum ptr_detail)i;
		a->detail_slowest = !strcmp(value + n, ",branches@slowest");
		if (!value[n] || a->detail_slowest ||
		    (!strncmp(value + n, all, sizeof all - 1) &&
		     pt_selection_set_time(&a->detail_time, value + n + sizeof all - 1)))
			return 0;
	}
	return pt_fail(
	    e, PT_ERR_USAGE, PT_NO_OFFSET,
	    "--detail '%s': expected branches, calls, vm or sums, as in vm, or vm,branches@+1ms..+2ms, or "
	    "vm,branches@slowest",
	    value);
}

static int set_numbers(struct pt_number_list *list, const char *option, const char *value, struct pt_error *e)
{
	if (pt_number_list_add(list, value))
		return 0;
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
		       "%s '%s': expected numbers and ranges, as in 0-3,7, %d at most", option, value,
		       PT_NUMBER_RANGES_MAX);
}

static int set_cpus(void *arg, const char *value, struct pt_error *e)
{
	return set_numbers(&((struct pt_arguments *)arg)->selection.cpus, "--cpu", value, e);
}

static int set_pids(void *arg, const char *value, struct pt_error *e)
{
	return set_numbers(&((struct pt_arguments *)arg)->selection.pids, "--pid", value, e);
}

static int set_tids(void *arg, const char *value, struct pt_error *e)
{
	return set_numbers(&((struct pt_arguments *)arg)->selection.tids, "--tid", value, e);
}

static int set_vm(void *arg, const char *value, struct pt_error *e)
{
	struct pt_arguments *a = arg;

	if (pt_selection_add_vm(&a->selection, value))
		return 0;
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
		       "--vm '%s': expected pids, as in 87,90, or one name; or there are too many", value);
}

static int set_tsc_offset(void *arg, const char *value, struct pt_error *e)
{
	struct pt_arguments *a = arg;

	if (pt_vm_options_add(&a->tsc_offsets, value))
		return 0;
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
		       "--tsc-offset '%s': expected [VMCS:]OFFSET[*RATIO],..., %d at most", value,
		       PT_VM_OPTIONS_MAX);
}

static int set_guest(void *arg, const char *value, struct pt_error *e)
{
	struct pt_arguments *a = arg;

	if (pt_guest_merge_add(&a->guests, value))
		return 0;
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--guest: %d guests at most", PT_GUEST_MERGE_MAX);
}

/* ---- Options ---------------------------------------------------------------------------------------- */

#define FLAG(field) PT_OPTION_FLAG(struct pt_arguments, field)
#define TEXT(field) PT_OPTION_TEXT(struct pt_arguments, field)

static const struct pt_option options[] = {
    PT_OPTION_HEADING("\nOutput:"),
    {"output", 'o', "FILE", "write the record stream to FILE, not to standard output", TEXT(output)},
    {"mode", 0, "MODE", "permissions of FILE, in octal (600), of which the umask takes some",
     .set = set_mode},
    {"text", 0, NULL, "print one line per branch instead of the record stream", FLAG(text)},
    {"insns", 0, NULL,
     "print one line per executed instruction instead: thread, CPU, time, address, symbol, bytes, text",
     FLAG(insns)},
    {"att", 0, NULL, "--insns in AT&T syntax", FLAG(att)},
    {"fields", 'F', "LIST", "fields of --text or --insns, comma-separated; their names are below",
     TEXT(fields)},
    {"packets", 0, NULL, "print one line per packet instead: offset, name, payload", FLAG(packets)},
    {"null", 0, NULL, "decode all, write nothing", FLAG(null)},
    {"used-code", 0, NULL,
     "decode all, and list the code that was read: file or memory, machine, pid, build id, offset or "
     "address (hexadecimal), bytes, name",
     FLAG(used_code)},
    {"stats", 0, NULL, "print counts to standard error (with --null or -o: to standard output)", FLAG(stats)},
    {"no-calls", 0, NULL, "do not build call stacks", FLAG(no_calls)},
    {"detail", 0, "LEVEL[,branches@A..B|slowest]",
     "what is written: branches (all, the default); calls, without branches; vm, without calls: who ran, VM "
     "exits, "
     "interrupts; or sums, of paths, functions, call paths, threads: what is left out is summed up. Of the "
     "time A..B, as in --time, all; or of the slowest VM exit, which is looked for first: in a file",
     .set = set_detail},

    PT_OPTION_HEADING("\nWhat is decoded:"),
    {"time", 0, "A..B",
     "decode this time only: [+]NUMBER[s|ms|us|ns|tsc] each, or nothing; + counts from where "
     "the trace begins",
     .set = set_time},
    {"from-psb", 0, NULL,
     "with --time: decode from the last PSB before A on, so that all of A..B is as in the whole trace; a "
     "file's AUX data before "
     "and after it is not read",
     FLAG(from_psb)},
    {"cpu", 0, "LIST", "only these CPUs, as in 0-3,7", .set = set_cpus},
    {"pid", 0, "LIST", "only these processes of the host", .set = set_pids},
    {"tid", 0, "LIST", "only these threads of the host", .set = set_tids},
    {"vm", 0, "LIST|NAME", "only the VMs of these processes, and those themselves; or the VM of that name",
     .set = set_vm},
    {"host-only", 0, NULL, "not the guests", FLAG(selection.host_only)},
    {"guest-only", 0, NULL, "not the host", FLAG(selection.guest_only)},
    {"exclude-self", 0, NULL,
     "not pt-capture itself, where whole CPUs were recorded, but say how much it was (default)",
     .set = set_exclude_self},
    {"include-self", 0, NULL, "pt-capture, too", FLAG(include_self)},
    {"quick", 0, "[=2]",
     "follow no code: the addresses that packets have become events; 2: those of PSBs only",
     .set = set_quick},
    {"jobs", 'j', "N", "decode with N threads (all CPUs that may be used)", .set = set_jobs},
    {"memory", 0, "MB",
     "for decoded code and paths, 1 to 4000 (160, and up to 640 where the same code would be decoded over "
     "and over); when it is used up, they are discarded and decoded again",
     .set = set_memory},

    PT_OPTION_HEADING("\nGuests:"),
    {"guest", 0, "FILE[,PID]",
     "join what `pt-capture --sideband-only` recorded in a guest, PID being the VM's "
     "process, needed where there are several; as `pt-capture merge` does",
     .set = set_guest},
    {"guest-code", 0, NULL,
     "VMs without a kernel in the container run code of their own process, as KVM "
     "selftests do",
     FLAG(guest_code)},
    {"tsc-offset", 0, "LIST",
     "of [VMCS:]OFFSET[*RATIO], comma-separated: a guest's TSC is host TSC * RATIO + OFFSET",
     .set = set_tsc_offset},

    PT_OPTION_HEADING("\nMessages:"),
    {"quiet", 'q', NULL, "only errors", FLAG(quiet)},
    {"verbose", 'v', NULL, "more", FLAG(verbose)},
    {"version", 0, NULL, "print the version", FLAG(version)},
    PT_OPTION_END};

void pt_arguments_help(FILE *to)
{
	fputs("usage: pt-decode [options] [CONTAINER]\n"
	      "       pt-decode vm-clock [--tsc-offset LIST] [CONTAINER]\n"
	      "\n"
	      "Decodes what pt-capture recorded (standard input, or CONTAINER) into a record stream for "
	      "pt-load.\n"
	      "vm-clock prints what the packets say about the guests' clocks: VMCS, offset, ratio, how "
	      "certain they "
	      "are.\n",
	      to);
	pt_options_print(options, to);
	fprintf(
	    to,
	    "  -h, --help                print this text\n"
	    "\n"
	    "Fields of --text: %s.\n"
	    "Fields of --insns: %s; there are tabs between them.\n"
	    "Addresses are hexadecimal; 0 is an address that was not seen (the trace began or ended there).\n"
	    "\n"
	    "Exit status: 0 all was decoded; 1 failed; 2 wrong usage; 3 decoded, but something was not seen: "
	    "an\n"
	    "overflow, lost data, missing code, a cut container. Each such place is an error record (table "
	    "and\n"
	    "view `errors`).\n"
	    "\n"
	    "Example: pt-capture -- ls | pt-decode | pt-load trace.db && pt-query trace.db summary\n",
	    pt_lines_fields(), pt_insn_lines_fields());
}

/* ---- Parsing ---------------------------------------------------------------------------------------- */

/* Options that exclude each other or need another. */
static int check_options(const struct pt_arguments *a, struct pt_error *e)
{
	const bool lines = a->text || a->insns || a->packets || a->vm_clock;
	const struct {
		bool broken;
		const char *message;
	} rules[] = {
	    {a->used_code && a->stats, "--used-code and --stats exclude each other"},
	    {a->text + a->insns + a->packets + a->null > 1,
	     "--text, --insns, --packets, --null and --used-code exclude each other"},
	    {a->vm_clock && (a->text || a->insns || a->packets || a->null || a->stats || a->output),
	     "vm-clock prints its own table: of the options, it takes --tsc-offset"},
	    {a->detail != PTR_DETAIL_BRANCHES && (lines || a->used_code),
	     "--detail is of the record stream: lines are of branches"},
	    {a->selection.host_only && a->selection.guest_only, "--host-only and --guest-only leave nothing"},
	    {(a->packets || a->vm_clock) && !pt_selection_is_all(&a->selection),
	     "--packets and vm-clock read the whole container: no part of it can be chosen"},
	    {a->from_psb && !a->selection.from.given && !a->selection.to.given, "--from-psb needs --time"},
	    {a->quick && lines, "--quick gives events, not lines: load them, or use --packets"},
	    {a->fields && !a->text && !a->insns, "-F needs --text or --insns"},
	    {a->att && !a->insns, "--att needs --insns"},
	    {!a->input && isatty(STDIN_FILENO),
	     "no container: name one, or pipe one in (pt-capture -- PROGRAM | pt-decode)"},
	    {!lines && !a->null && !a->output && isatty(STDOUT_FILENO),
	     "the record stream is binary and standard output is a terminal: pipe it into pt-load, or use "
	     "--text or --insns, or -o FILE"},
	};

	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (rules[i].broken)
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s", rules[i].message);
	return 0;
}

int pt_arguments_parse(int argc, char **argv, struct pt_arguments *ret, struct pt_error *e)
{
	const struct pt_command_line line = {.program = "pt-decode", .options = options};
	int first, r;

	if (argc > 1 && !strcmp(argv[1], "vm-clock")) {
		ret->vm_clock = true;
		argv++;
		argc--;
	}
	r = pt_options_parse(&line, argc, argv, ret, &first, e);
	if (ret->version) /* whatever follows it */
		return 1;
	if (r)
		return r;
	ret->null |= ret->used_code;
	if (argc - first > 1)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "one container at a time; '%s' is too many",
			       argv[first + 1]);
	if (first < argc && strcmp(argv[first], "-") != 0)
		ret->input = argv[first];
	return check_options(ret, e);
}
