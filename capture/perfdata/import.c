/* import.c - pt-capture import FILE|DIR: the command line for perf recordings. */
#include "capture/commands.h"
#include "capture/perfdata/path.h"
#include "capture/perfdata/run.h"
#include "schema/container.h"
#include "schema/options.h"
#include "schema/output.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct arguments {
	struct import_perf_request request;
	const char *output;
};

/* ---- Guests ---- */

/* Cuts ",NUMBER" off the end of text: decimal, or hexadecimal with 0x. False: it does not end so. */
static bool cut_number(char *text, long long *ret)
{
	char *comma = strrchr(text, ','), *end;
	long long number;

	if (!comma)
		return false;
	errno = 0;
	number = comma[1] == '0' && comma[2] == 'x' ? (long long)strtoull(comma + 1, &end, 16)
						    : strtoll(comma + 1, &end, 10);
	if (errno || end == comma + 1 || *end)
		return false;
	*comma = 0;
	*ret = number;
	return true;
}

/* FILE,PID[,OFFSET]; a FILE may have commas. */
static int add_guest(struct import_perf_request *r, const char *value, struct pt_error *e)
{
	struct import_guest *grown = realloc(r->guests, (r->guest_count + 1) * sizeof *grown), *g;
	long long pid = 0, offset;

	if (!grown)
		return pt_fail_no_memory(e, NULL);
	r->guests = grown;
	g = &grown[r->guest_count];
	*g = (struct import_guest){.path = strdup(value)};
	if (!g->path)
		return pt_fail_no_memory(e, NULL);
	r->guest_count++;
	/* From the end: one number is the pid, two are the pid and the offset. */
	if (cut_number(g->path, &pid)) {
		offset = pid;
		g->has_offset = cut_number(g->path, &pid);
		g->tsc_offset = g->has_offset ? offset : 0;
	}
	if (pid <= 0 || pid > INT32_MAX || !g->path[0])
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--guest %s: expected FILE,PID or FILE,PID,OFFSET: the guest's recording, its "
			       "VM's process, guest TSC - host TSC",
			       value);
	g->pid = (int32_t)pid;
	return 0;
}

static bool has_guest(const struct import_perf_request *r, int pid)
{
	for (size_t i = 0; i < r->guest_count; i++)
		if (r->guests[i].pid == pid)
			return true;
	return false;
}

/* Adds the guest of a folder that an export has made: guest__PID. */
static int add_found(struct import_perf_request *r, const char *folder, struct pt_error *e)
{
	const char *pid = strrchr(folder, '_') + 1;
	char *guest;
	int ret;

	if (pid[strspn(pid, "0123456789")] != 0 || !*pid || has_guest(r, atoi(pid)))
		return 0;
	if (path_make(&guest, e, "%s,%s", folder, pid))
		return -1;
	ret = add_guest(r, guest, e);
	free(guest);
	return ret;
}

/* Guests that an export has put beside its data, unless the command line names them. */
static int find_guests(struct import_perf_request *r, struct pt_error *e)
{
	char *pattern;
	glob_t found;
	int ret = 0;

	if (path_make(&pattern, e, "%s/guest__*", r->input))
		return -1;
	if (glob(pattern, 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc && ret == 0; i++)
			ret = add_found(r, found.gl_pathv[i], e);
		globfree(&found);
	}
	free(pattern);
	return ret;
}

/* ---- Options ---- */

static int set_guest(void *arg, const char *value, struct pt_error *e)
{
	return add_guest(&((struct arguments *)arg)->request, value, e);
}

static int set_level(void *arg, const char *value, struct pt_error *e)
{
	long long level;

	if (pt_option_number("--level", value, PTC_LEVEL_FASTEST, 19, &level, e))
		return -1;
	((struct arguments *)arg)->request.level = (int)level;
	return 0;
}

#define TEXT(field) PT_OPTION_TEXT(struct arguments, field)

static const struct pt_option options[] = {
    PT_OPTION_HEADING("Where the code is (perf's options):"),
    {.name = "symfs",
     .argument = "DIR",
     .help = "the traced machine's files are below DIR, its build-id cache is DIR/.debug",
     TEXT(request.symfs)},
    {.name = "buildid-dir", .argument = "DIR", .help = "the build-id cache (~/.debug)", TEXT(request.cache)},
    {.name = "kcore",
     .argument = "FILE",
     .help = "the kernel's code (DIR/kcore_dir/kcore, or the build-id cache's); /proc/kcore, while it still "
	     "runs",
     TEXT(request.host.kcore)},
    {.name = "vmlinux",
     .argument = "FILE",
     .help = "the same from the file that was linked: without what the kernel patched since",
     TEXT(request.host.vmlinux)},
    {.name = "kallsyms",
     .argument = "FILE",
     .help = "the kernel's symbols (DIR/kcore_dir/kallsyms)",
     TEXT(request.host.kallsyms)},
    {.name = "modules",
     .argument = "FILE|DIR",
     .help = "its modules, as /proc/modules (DIR/kcore_dir/modules); or a folder with their files (.ko, "
	     ".ko.xz, .ko.zst, .ko.gz), where there is no kcore. Else these are looked for in /lib/modules "
	     "below --symfs, and in the build-id cache. They need --kallsyms",
     TEXT(request.host.modules)},
    {.name = "jit",
     .help = "code that programs made while they ran, as their runtimes wrote it down: jit-PID.dump, and the "
	     "names in /tmp/perf-PID.map; below --symfs, or beside the recording",
     PT_OPTION_FLAG(struct arguments, request.jit)},
    PT_OPTION_HEADING("\nGuests; PID is their process on the host:"),
    {.name = "guest",
     .argument = "FILE,PID[,OFFSET]",
     .help =
	 "what perf recorded in the guest (a perf.data without Intel PT, or its directory); OFFSET: guest "
	 "TSC - host TSC, if it is known (KVM's tsc-offset)",
     .set = set_guest},
    {.name = "guestmount",
     .argument = "DIR",
     .help = "the guests' files are below DIR/PID",
     TEXT(request.guest_mount)},
    {.name = "guestkcore", .argument = "FILE", .help = "of the guests' kernel", TEXT(request.guest.kcore)},
    {.name = "guestvmlinux", .argument = "FILE", .help = "the same", TEXT(request.guest.vmlinux)},
    {.name = "guestkallsyms", .argument = "FILE", .help = "its symbols", TEXT(request.guest.kallsyms)},
    {.name = "guestmodules", .argument = "FILE|DIR", .help = "its modules", TEXT(request.guest.modules)},
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
    {.name = "quiet",
     .letter = 'q',
     .help = "do not say what is missing",
     PT_OPTION_FLAG(struct arguments, request.quiet)},
    PT_OPTION_END};

static int usage(void)
{
	fputs(
	    "usage: pt-capture import [options] FILE|DIR|-\n"
	    "       pt-capture import --raw AUX [options]         (raw Intel PT bytes: see import --raw "
	    "--help)\n"
	    "Makes a container from a recording of `perf record -e intel_pt//`: a perf.data, the directory "
	    "that\n"
	    "--kcore makes, or a pipe's output (- is standard input). Files of perf inject are taken, too.\n"
	    "\n",
	    stdout);
	pt_options_print(options, stdout);
	fputs("  -h, --help                this text\n"
	      "\n"
	      "Exit status: 0 done; 1 failed, nothing is left; 2 wrong usage; 3 done, but the recording has "
	      "gaps.\n",
	      stdout);
	return 0;
}

/* 0; 1: --help was asked for; -1. */
static int parse(struct arguments *a, int argc, char **argv, struct pt_error *e)
{
	static const struct pt_command_line line = {"pt-capture import", options, false};
	int operand, ret = pt_options_parse(&line, argc, argv, a, &operand, e);

	if (ret)
		return ret;
	if (operand >= argc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "import needs a perf.data, or --raw AUX; see `pt-capture import --help`");
	a->request.input = argv[operand++];
	if (operand < argc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "import takes one recording, '%s' is too much",
			       argv[operand]);
	if (strcmp(a->request.input, "-") == 0 && isatty(STDIN_FILENO))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "standard input is a terminal: import needs a file or a pipe");
	return find_guests(&a->request, e);
}

/* 0, 3: the recording has gaps; or -1. */
static int import(struct arguments *a, struct pt_error *e)
{
	struct import_perf_notes notes = {0};
	struct output out = {0};
	int ret = output_open(&out, a->output, "a container", e);

	a->request.output = output_name(a->output);
	if (ret == 0)
		ret = import_perf_run(&a->request, out.fd, &notes, e);
	if (ret)
		output_abort(&out);
	else
		ret = output_commit(&out, e);
	for (size_t i = 0; ret == 0 && !a->request.quiet && i < notes.count; i++)
		fprintf(stderr, "pt-capture: %s\n", notes.lines[i]);
	if (ret == 0 && notes.gaps)
		ret = 3;
	import_perf_notes_free(&notes);
	return ret;
}

int import_perf(int argc, char **argv)
{
	struct arguments a = {.request.level = 1};
	struct pt_error e = {.offset = PT_NO_OFFSET};
	int ret = parse(&a, argc, argv, &e);

	if (ret > 0)
		ret = usage();
	else if (ret == 0)
		ret = import(&a, &e);
	for (size_t i = 0; i < a.request.guest_count; i++)
		free(a.request.guests[i].path);
	free(a.request.guests);
	return ret < 0 ? command_failed(&e) : ret;
}
