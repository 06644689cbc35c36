/* import.c - pt-capture import FILE|DIR: the command line for perf recordings. */
#include "capture/commands.h"
#include "capture/perfdata/run.h"
#include "schema/output.h"
#include "schema/container.h"

#include <errno.h>
#include <getopt.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: pt-capture import [options] FILE|DIR|-\n"
    "       pt-capture import --raw AUX [options]          (raw Intel PT bytes: see import --raw --help)\n"
    "Makes a container from a recording of `perf record -e intel_pt//`: a perf.data, the directory that "
    "--kcore makes, or\n"
    "a pipe's output (- is standard input). Files of perf inject are taken, too.\n"
    "\n"
    "Where the code is (perf's options):\n"
    "      --symfs DIR          the traced machine's files are below DIR, its build-id cache is DIR/.debug\n"
    "      --buildid-dir DIR    the build-id cache (~/.debug)\n"
    "      --kcore FILE         the kernel's code (DIR/kcore_dir/kcore, or the build-id cache's); "
    "/proc/kcore, while "
    "it still\n"
    "                           runs\n"
    "      --vmlinux FILE       the same from the file that was linked: without what the kernel patched "
    "since\n"
    "      --kallsyms FILE      the kernel's symbols (DIR/kcore_dir/kallsyms)\n"
    "      --modules FILE|DIR   its modules, as /proc/modules (DIR/kcore_dir/modules); or a folder with "
    "their files "
    "(.ko,\n"
    "                           .ko.xz, .ko.zst, .ko.gz), where there is no kcore. Else these are looked for "
    "in "
    "/lib/modules\n"
    "                           below --symfs, and in the build-id cache. They need --kallsyms\n"
    "\n"
    "Guests, whose processes' pid on the host is PID:\n"
    "      --guest FILE,PID[,OFFSET]   what perf recorded in the guest (a perf.data without Intel PT, or its "
    "directory);\n"
    "                           OFFSET: guest TSC - host TSC, if it is known (KVM's tsc-offset)\n"
    "      --guestmount DIR     the guests' files are below DIR/PID\n"
    "      --guestkcore, --guestvmlinux, --guestkallsyms, --guestmodules FILE   of the guests' kernel\n"
    "\n"
    "  -o, --output FILE        write the container to FILE, not to standard output\n"
    "  -z, --level N            zstd's level, -100 (fast) to 19 (small); default 1\n"
    "  -q, --quiet              do not say what is missing\n"
    "  -h, --help               this text\n"
    "\n"
    "Exit status: 0 done; 1 failed, nothing is left; 2 wrong usage; 3 done, but the recording has gaps.\n";

enum {
	OPT_SYMFS = 256,
	OPT_CACHE,
	OPT_KCORE,
	OPT_KALLSYMS,
	OPT_MODULES,
	OPT_VMLINUX,
	OPT_GUEST,
	OPT_GUEST_MOUNT,
	OPT_GUEST_KCORE,
	OPT_GUEST_KALLSYMS,
	OPT_GUEST_MODULES,
	OPT_GUEST_VMLINUX
};

static const struct option options[] = {{"symfs", required_argument, NULL, OPT_SYMFS},
					{"buildid-dir", required_argument, NULL, OPT_CACHE},
					{"kcore", required_argument, NULL, OPT_KCORE},
					{"kallsyms", required_argument, NULL, OPT_KALLSYMS},
					{"modules", required_argument, NULL, OPT_MODULES},
					{"vmlinux", required_argument, NULL, OPT_VMLINUX},
					{"guest", required_argument, NULL, OPT_GUEST},
					{"guestmount", required_argument, NULL, OPT_GUEST_MOUNT},
					{"guestkcore", required_argument, NULL, OPT_GUEST_KCORE},
					{"guestkallsyms", required_argument, NULL, OPT_GUEST_KALLSYMS},
					{"guestmodules", required_argument, NULL, OPT_GUEST_MODULES},
					{"guestvmlinux", required_argument, NULL, OPT_GUEST_VMLINUX},
					{"output", required_argument, NULL, 'o'},
					{"level", required_argument, NULL, 'z'},
					{"quiet", no_argument, NULL, 'q'},
					{"help", no_argument, NULL, 'h'},
					{NULL, 0, NULL, 0}};

static int take_level(const char *value, int *ret, struct pt_error *e)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(value, &end, 10);
	if (errno || end == value || *end || v < PTC_LEVEL_FASTEST || v > 19)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--level %s: expected -100 to 19", value);
	*ret = (int)v;
	return 0;
}

/* FILE,PID[,OFFSET]; a FILE may have commas. */
static int take_guest(struct import_perf_request *r, const char *value, struct pt_error *e)
{
	struct import_guest *grown = realloc(r->guests, (r->guest_count + 1) * sizeof *grown), *g;
	char *comma, *end;
	long long number, numbers[2];
	int count = 0;

	if (!grown)
		return pt_fail_no_memory(e, NULL);
	r->guests = grown;
	g = &grown[r->guest_count];
	*g = (struct import_guest){.path = strdup(value)};
	if (!g->path)
		return pt_fail_no_memory(e, NULL);
	r->guest_count++;
	/* From the end: one number is the pid, two are the pid and the offset. */
	for (int field = 0; field < 2 && (comma = strrchr(g->path, ',')); field++) {
		errno = 0;
		number = comma[1] == '0' && comma[2] == 'x' ? (long long)strtoull(comma + 1, &end, 16)
							    : strtoll(comma + 1, &end, 10);
		if (errno || end == comma + 1 || *end)
			break;
		*comma = 0;
		numbers[field] = number;
		count++;
	}
	g->has_offset = count == 2;
	if (g->has_offset)
		g->tsc_offset = numbers[0];
	number = count ? numbers[count - 1] : 0;
	if (number <= 0 || number > INT32_MAX || !g->path[0])
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--guest %s: expected FILE,PID or FILE,PID,OFFSET: the guest's recording, its "
			       "VM's process, "
			       "guest TSC - host TSC",
			       value);
	g->pid = (int32_t)number;
	return 0;
}

/* Guests that an export has put beside its data, unless the command line names them. */
static int find_guests(struct import_perf_request *r, struct pt_error *e)
{
	char *pattern, *guest;
	glob_t found;
	int ret = 0;

	if (asprintf(&pattern, "%s/guest__*", r->input) < 0)
		return pt_fail_no_memory(e, NULL);
	if (glob(pattern, 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc && ret == 0; i++) {
			const char *pid = strrchr(found.gl_pathv[i], '_') + 1;
			bool known = pid[strspn(pid, "0123456789")] != 0 || !*pid;

			for (size_t k = 0; k < r->guest_count; k++)
				known = known || r->guests[k].pid == atoi(pid);
			if (known)
				continue;
			if (asprintf(&guest, "%s,%s", found.gl_pathv[i], pid) < 0) {
				ret = pt_fail_no_memory(e, NULL);
				break;
			}
			ret = take_guest(r, guest, e);
			free(guest);
		}
		globfree(&found);
	}
	free(pattern);
	return ret;
}

/* 0; 1: --help was asked for; -1. */
static int take_options(struct import_perf_request *r, const char **output, int argc, char **argv,
			struct pt_error *e)
{
	int c;

	while ((c = getopt_long(argc, argv, "o:z:qh", options, NULL)) != -1) {
		switch (c) {
		case OPT_SYMFS: r->symfs = optarg; break;
		case OPT_CACHE: r->cache = optarg; break;
		case OPT_KCORE: r->host.kcore = optarg; break;
		case OPT_KALLSYMS: r->host.kallsyms = optarg; break;
		case OPT_GUEST:
			if (take_guest(r, optarg, e))
				return -1;
			break;
		case OPT_MODULES: r->host.modules = optarg; break;
		case OPT_VMLINUX: r->host.vmlinux = optarg; break;
		case OPT_GUEST_MODULES: r->guest.modules = optarg; break;
		case OPT_GUEST_VMLINUX: r->guest.vmlinux = optarg; break;
		case OPT_GUEST_MOUNT: r->guest_mount = optarg; break;
		case OPT_GUEST_KCORE: r->guest.kcore = optarg; break;
		case OPT_GUEST_KALLSYMS: r->guest.kallsyms = optarg; break;
		case 'o': *output = optarg; break;
		case 'z':
			if (take_level(optarg, &r->level, e))
				return -1;
			break;
		case 'q': r->quiet = true; break;
		case 'h': return 1;
		default: return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "see `pt-capture import --help`");
		}
	}
	if (optind >= argc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "import needs a perf.data, or --raw AUX; see `pt-capture import --help`");
	r->input = argv[optind++];
	if (optind < argc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "import takes one recording, '%s' is too much",
			       argv[optind]);
	if (strcmp(r->input, "-") == 0 && isatty(STDIN_FILENO))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "standard input is a terminal: import needs a file or a pipe");
	return find_guests(r, e);
}

int import_perf(int argc, char **argv)
{
	struct import_perf_request request = {.level = 1};
	struct import_perf_notes notes = {0};
	struct pt_error e = {.offset = PT_NO_OFFSET};
	struct output out = {0};
	const char *to = NULL;
	int ret = take_options(&request, &to, argc, argv, &e);

	if (ret > 0) {
		fputs(usage, stdout);
		ret = fflush(stdout) ? 1 : 0;
		goto done;
	}
	if (ret == 0)
		ret = output_open_private(&out, to, "a container", &e);
	if (ret == 0)
		ret = import_perf_run(&request, out.fd, &notes, &e);
	if (ret)
		output_abort(&out);
	else
		ret = output_commit(&out, &e);
	for (size_t i = 0; ret == 0 && !request.quiet && i < notes.count; i++)
		fprintf(stderr, "pt-capture: %s\n", notes.lines[i]);
	if (ret == 0 && notes.gaps)
		ret = 3;
	import_perf_notes_free(&notes);
done:
	for (size_t i = 0; i < request.guest_count; i++)
		free(request.guests[i].path);
	free(request.guests);
	return ret < 0 ? command_failed(&e) : ret;
}
