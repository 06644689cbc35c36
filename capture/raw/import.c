/* import.c - pt-capture import --raw: a container from raw AUX bytes and the code that they trace. */
#include "capture/commands.h"
#include "capture/raw/code.h"
#include "capture/raw/aux_data.h"
#include "capture/raw/perf_records.h"
#include "schema/output.h"
#include "capture/raw/sideband.h"
#include "schema/container.h"
#include "schema/version.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <linux/perf_event.h>

#define BUFFERS_MAX 4096 /* --raw, --sideband */

static const char usage[] =
    "usage: pt-capture import --raw AUX [--elf FILE[:ADDR]]... [--maps FILE]... [options]\n"
    "Makes a container from raw Intel PT bytes (AUX; compressed with zstd, too; - is standard input) and the "
    "code that\n"
    "they trace, for traces by other tools.\n"
    "\n"
    "The code:\n"
    "      --elf FILE[:ADDR]    an ELF file, its lowest page loaded at ADDR (hex), or where it says\n"
    "      --maps FILE          a mapping a line: START END OFFSET FILE (hex; FILE relative to the maps "
    "file's folder,\n"
    "                           FILE.zst if there is no FILE)\n"
    "      --raw-code FILE:OFFSET:SIZE:ADDR   SIZE bytes of FILE from OFFSET on are at ADDR (all hex)\n"
    "Of mappings that overlap, the last one counts. ELF files give symbols, too.\n"
    "\n"
    "The trace:\n"
    "      --cpu FAMILY/MODEL/STEPPING   as in 6/85/4\n"
    "      --mtc-freq N         MTC's frequency (IA32_RTIT_CTL.MTCFreq)\n"
    "      --tsc-ratio N/M      TSC ticks per CTC tick: CPUID 15H, EBX/EAX\n"
    "      --nom-freq N         maximum non-turbo ratio (MSR_PLATFORM_INFO bits 8..15)\n"
    "      --time-shift N, --time-mult N, --time-zero N   perf's clock: ns = zero + (TSC * mult >> shift)\n"
    "      --pt-config N        perf's attr.config of the intel_pt event\n"
    "      --pid N, --tid N     the traced thread (1)\n"
    "      --comm NAME          its name (the first code file's)\n"
    "      --user-only          no kernel code was traced (default)\n"
    "      --kernel             kernel code was traced, too\n"
    "      --on-cpu N           the last --raw is what CPU N traced, whoever ran there\n"
    "--raw may be given several times, each with --on-cpu, or --pid and --tid, behind it.\n"
    "\n"
    "What else is known:\n"
    "      --sideband FILE      perf records, as the kernel writes them (ptxed's pevent files): who ran, "
    "what "
    "was mapped; of\n"
    "                           the CPU of the last --raw where they do not tell themselves. Several can be "
    "given\n"
    "      --sample-type N      what is behind each record (perf_event_attr.sample_type), as 0x10086; 0: "
    "nothing, no time\n"
    "      --symfs DIR          files that the records name are below DIR\n"
    "      --buildid-dir DIR, --kcore FILE, --vmlinux FILE, --kallsyms FILE, --modules FILE|DIR   as for a "
    "perf.data\n"
    "\n"
    "  -o, --output FILE        write the container to FILE, not to standard output\n"
    "  -z, --level N            zstd's level, -100 (fast) to 19 (small); default 1\n"
    "  -h, --help               this text\n"
    "\n"
    "Example: pt-capture import --raw trace.pt --elf a.out --mtc-freq 3 --tsc-ratio 160/2 --nom-freq 20 | "
    "pt-decode\n";

struct request {
	struct raw_aux *raws; /* pid and tid -1: nobody said */
	size_t raw_count;
	struct raw_records_file *sides;
	size_t side_count;
	uint64_t sample_type;
	struct import_perf_request files; /* of those that the sideband names */
	const char *output, *comm;
	struct import_code *code;
	int level;
	int32_t pid, tid; /* -1: nobody said */
	bool kernel;
	/* META values as they are written, NULL unknown */
	uint64_t family, model, stepping, ctc_numerator, ctc_denominator;
	bool has_cpu, has_ratio;
	const char *mtc_freq, *nom_freq, *time_shift, *time_mult, *time_zero, *pt_config;
	char *command;
};

enum {
	OPT_RAW = 256,
	OPT_ELF,
	OPT_MAPS,
	OPT_RAW_CODE,
	OPT_CPU,
	OPT_MTC_FREQ,
	OPT_TSC_RATIO,
	OPT_NOM_FREQ,
	OPT_TIME_SHIFT,
	OPT_TIME_MULT,
	OPT_TIME_ZERO,
	OPT_PT_CONFIG,
	OPT_PID,
	OPT_TID,
	OPT_COMM,
	OPT_USER_ONLY,
	OPT_KERNEL,
	OPT_ON_CPU,
	OPT_SIDEBAND,
	OPT_SAMPLE_TYPE,
	OPT_SYMFS,
	OPT_CACHE,
	OPT_KCORE,
	OPT_VMLINUX,
	OPT_KALLSYMS,
	OPT_MODULES
};

static int usage_error(struct pt_error *e, const char *option, const char *value, const char *expected)
{
	return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "%s %s: expected %s", option, value, expected);
}

/* Decimal, or hex with 0x, from *at on up to stop (0: the end); moves *at behind it. */
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

static int take_number(const char *option, const char *value, uint64_t most, const char **ret,
		       struct pt_error *e)
{
	const char *at = value;
	uint64_t v;

	if (!parse_number(&at, 0, most, &v))
		return usage_error(e, option, value, "a number");
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

static int take_raw(struct request *r, const char *path, struct pt_error *e)
{
	struct raw_aux *grown = realloc(r->raws, (r->raw_count + 1) * sizeof *grown);

	if (!grown)
		return pt_fail_no_memory(e, NULL);
	r->raws = grown;
	if (r->raw_count == BUFFERS_MAX)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "more than %d --raw", BUFFERS_MAX);
	r->raws[r->raw_count++] = (struct raw_aux){.path = path, .cpu = -1, .pid = -1, .tid = -1};
	return 0;
}

static int take_sideband(struct request *r, const char *path, struct pt_error *e)
{
	struct raw_records_file *grown = realloc(r->sides, (r->side_count + 1) * sizeof *grown);

	if (!grown)
		return pt_fail_no_memory(e, NULL);
	r->sides = grown;
	if (r->side_count == BUFFERS_MAX)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "more than %d --sideband", BUFFERS_MAX);
	r->sides[r->side_count++] =
	    (struct raw_records_file){.path = path, .cpu = r->raw_count ? r->raws[r->raw_count - 1].cpu : -1};
	return 0;
}

/* Of the last --raw; before the first one, of all that have none of their own. */
static int take_raw_id(struct request *r, int option, const char *value, struct pt_error *e)
{
	struct raw_aux *raw = r->raw_count ? &r->raws[r->raw_count - 1] : NULL;
	int32_t *cpu = raw ? &raw->cpu : NULL;

	if (option == OPT_PID)
		return take_id("--pid", value, raw ? &raw->pid : &r->pid, e);
	if (option == OPT_TID)
		return take_id("--tid", value, raw ? &raw->tid : &r->tid, e);
	if (!raw)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--on-cpu belongs behind a --raw");
	return take_id("--on-cpu", value, cpu, e);
}

static int take_level(const char *value, int *ret, struct pt_error *e)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(value, &end, 10);
	if (errno || end == value || *end || v < PTC_LEVEL_FASTEST || v > 19)
		return usage_error(e, "--level", value, "-100 to 19");
	*ret = (int)v;
	return 0;
}

static int take_sample_type(struct request *r, const char *value, struct pt_error *e)
{
	const char *at = value;

	if (!parse_number(&at, 0, UINT64_MAX, &r->sample_type))
		return usage_error(e, "--sample-type", value, "a number");
	return 0;
}

static int take_cpu(struct request *r, const char *value, struct pt_error *e)
{
	const char *at = value;

	if (!parse_number(&at, '/', 0xfff, &r->family) || !parse_number(&at, '/', 0xff, &r->model) ||
	    !parse_number(&at, 0, 0xf, &r->stepping))
		return usage_error(e, "--cpu", value, "FAMILY/MODEL/STEPPING");
	r->has_cpu = true;
	return 0;
}

static int take_ratio(struct request *r, const char *value, struct pt_error *e)
{
	const char *at = value;

	if (!parse_number(&at, '/', UINT32_MAX, &r->ctc_numerator) ||
	    !parse_number(&at, 0, UINT32_MAX, &r->ctc_denominator) || !r->ctc_numerator ||
	    !r->ctc_denominator)
		return usage_error(e, "--tsc-ratio", value, "N/M, neither of them 0");
	r->has_ratio = true;
	return 0;
}

static const struct option options[] = {{"raw", required_argument, NULL, OPT_RAW},
					{"elf", required_argument, NULL, OPT_ELF},
					{"maps", required_argument, NULL, OPT_MAPS},
					{"raw-code", required_argument, NULL, OPT_RAW_CODE},
					{"cpu", required_argument, NULL, OPT_CPU},
					{"mtc-freq", required_argument, NULL, OPT_MTC_FREQ},
					{"tsc-ratio", required_argument, NULL, OPT_TSC_RATIO},
					{"nom-freq", required_argument, NULL, OPT_NOM_FREQ},
					{"time-shift", required_argument, NULL, OPT_TIME_SHIFT},
					{"time-mult", required_argument, NULL, OPT_TIME_MULT},
					{"time-zero", required_argument, NULL, OPT_TIME_ZERO},
					{"pt-config", required_argument, NULL, OPT_PT_CONFIG},
					{"pid", required_argument, NULL, OPT_PID},
					{"tid", required_argument, NULL, OPT_TID},
					{"comm", required_argument, NULL, OPT_COMM},
					{"user-only", no_argument, NULL, OPT_USER_ONLY},
					{"kernel", no_argument, NULL, OPT_KERNEL},
					{"on-cpu", required_argument, NULL, OPT_ON_CPU},
					{"sideband", required_argument, NULL, OPT_SIDEBAND},
					{"sample-type", required_argument, NULL, OPT_SAMPLE_TYPE},
					{"symfs", required_argument, NULL, OPT_SYMFS},
					{"buildid-dir", required_argument, NULL, OPT_CACHE},
					{"kcore", required_argument, NULL, OPT_KCORE},
					{"vmlinux", required_argument, NULL, OPT_VMLINUX},
					{"kallsyms", required_argument, NULL, OPT_KALLSYMS},
					{"modules", required_argument, NULL, OPT_MODULES},
					{"output", required_argument, NULL, 'o'},
					{"level", required_argument, NULL, 'z'},
					{"help", no_argument, NULL, 'h'},
					{NULL, 0, NULL, 0}};

/* 0; 1: --help was asked for; -1. */
static int take_option(struct request *r, int option, struct pt_error *e)
{
	switch (option) {
	case OPT_RAW:
		/* `import --raw --help`: what else would somebody want who writes that? */
		return strcmp(optarg, "--help") == 0 || strcmp(optarg, "-h") == 0 ? 1
										  : take_raw(r, optarg, e);
	case OPT_SIDEBAND: return take_sideband(r, optarg, e);
	case OPT_SAMPLE_TYPE: return take_sample_type(r, optarg, e);
	case OPT_SYMFS: r->files.symfs = optarg; return 0;
	case OPT_CACHE: r->files.cache = optarg; return 0;
	case OPT_KCORE: r->files.host.kcore = optarg; return 0;
	case OPT_VMLINUX: r->files.host.vmlinux = optarg; return 0;
	case OPT_KALLSYMS: r->files.host.kallsyms = optarg; return 0;
	case OPT_MODULES: r->files.host.modules = optarg; return 0;
	case OPT_ELF: return import_code_elf(r->code, optarg, e);
	case OPT_MAPS: return import_code_maps(r->code, optarg, e);
	case OPT_RAW_CODE: return import_code_raw(r->code, optarg, e);
	case OPT_CPU: return take_cpu(r, optarg, e);
	case OPT_TSC_RATIO: return take_ratio(r, optarg, e);
	case OPT_MTC_FREQ: return take_number("--mtc-freq", optarg, 15, &r->mtc_freq, e);
	case OPT_NOM_FREQ: return take_number("--nom-freq", optarg, 255, &r->nom_freq, e);
	case OPT_TIME_SHIFT: return take_number("--time-shift", optarg, 63, &r->time_shift, e);
	case OPT_TIME_MULT: return take_number("--time-mult", optarg, UINT32_MAX, &r->time_mult, e);
	case OPT_TIME_ZERO: return take_number("--time-zero", optarg, UINT64_MAX, &r->time_zero, e);
	case OPT_PT_CONFIG: return take_number("--pt-config", optarg, UINT64_MAX, &r->pt_config, e);
	case OPT_PID:
	case OPT_TID:
	case OPT_ON_CPU: return take_raw_id(r, option, optarg, e);
	case OPT_COMM: r->comm = optarg; return 0;
	case OPT_USER_ONLY: r->kernel = false; return 0;
	case OPT_KERNEL: r->kernel = true; return 0;
	case 'o': r->output = optarg; return 0;
	case 'z': return take_level(optarg, &r->level, e);
	case 'h': return 1;
	default: return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "see `pt-capture import --help`");
	}
}

static int take_options(struct request *r, int argc, char **argv, struct pt_error *e)
{
	int c, ret;

	while ((c = getopt_long(argc, argv, "o:z:h", options, NULL)) != -1) {
		ret = take_option(r, c, e);
		if (ret)
			return ret;
	}
	if (optind < argc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "import --raw takes no further file: '%s'",
			       argv[optind]);
	if (!r->raw_count)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "import needs --raw AUX");
	if (!r->side_count && (r->sample_type || r->files.symfs || r->files.cache))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--sample-type, --symfs, --buildid-dir are for --sideband, and there is none");
	if (!!r->time_shift != !!r->time_mult || (r->time_zero && !r->time_mult))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--time-shift and --time-mult belong together (and --time-zero to them)");
	if (r->files.host.kcore || r->files.host.vmlinux)
		r->kernel = true;
	return 0;
}

/*
 * Whose buffers they are: what is said behind a --raw, what is said of all, what the sideband says, thread 1.
 */
static int complete_threads(struct request *r, const struct raw_records *side, struct pt_error *e)
{
	if (r->pid < 0 && r->tid < 0 && (!side || !raw_records_thread(side, &r->pid, &r->tid)))
		r->pid = r->tid = 1;
	for (size_t i = 0; i < r->raw_count; i++) {
		struct raw_aux *raw = &r->raws[i];
		bool other = raw->pid >= 0 && raw->pid != r->pid;

		raw->pid = raw->pid >= 0 ? raw->pid : r->pid >= 0 ? r->pid : 1;
		raw->tid = raw->tid >= 0 ? raw->tid : r->tid >= 0 && !other ? r->tid : raw->pid;
		for (size_t k = 0; k < i; k++)
			if (raw->cpu == r->raws[k].cpu && (raw->cpu >= 0 || raw->tid == r->raws[k].tid))
				return pt_fail(
				    e, PT_ERR_USAGE, PT_NO_OFFSET,
				    "%s and %s are both of %s %d: say whose they are, by --on-cpu or --tid "
				    "behind each",
				    r->raws[k].path, raw->path, raw->cpu >= 0 ? "CPU" : "thread",
				    raw->cpu >= 0 ? raw->cpu : raw->tid);
	}
	return 0;
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

static int put_meta(const struct request *r, const struct perf_file_clock *clock, struct ptc_writer *w,
		    struct pt_error *e)
{
	const struct {
		const char *key, *value;
	} plain[] = {
	    {"tool", "pt-capture"},	 {"tool_version", PT_VERSION},
	    {"engine", "import-raw"},	 {"arch", "x86_64"},
	    {"command", r->command},	 {"cpu_vendor", r->has_cpu ? "GenuineIntel" : NULL},
	    {"mtc_freq", r->mtc_freq},	 {"nominal_ratio", r->nom_freq},
	    {"pt_config", r->pt_config}, {"pt_user_only", r->kernel ? NULL : "1"},
	};
	uint64_t uuid[2];

	if (getrandom(uuid, sizeof uuid, 0) != sizeof uuid)
		return pt_fail_errno(e, "no random numbers for the uuid");
	if (ptc_put_metaf(w, e, "uuid", "%016" PRIx64 "%016" PRIx64, uuid[0], uuid[1]))
		return -1;
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		if (plain[i].value && ptc_put_meta(w, plain[i].key, plain[i].value, e))
			return -1;
	if (clock->mult && (ptc_put_metaf(w, e, "time_zero", "%" PRIu64, clock->zero) ||
			    ptc_put_metaf(w, e, "time_mult", "%" PRIu64, clock->mult) ||
			    ptc_put_metaf(w, e, "time_shift", "%" PRIu64, clock->shift)))
		return -1;
	if (r->has_cpu && (ptc_put_metaf(w, e, "cpu_family", "%" PRIu64, r->family) ||
			   ptc_put_metaf(w, e, "cpu_model", "%" PRIu64, r->model) ||
			   ptc_put_metaf(w, e, "cpu_stepping", "%" PRIu64, r->stepping)))
		return -1;
	if (r->has_ratio && (ptc_put_metaf(w, e, "tsc_ctc_numerator", "%" PRIu64, r->ctc_numerator) ||
			     ptc_put_metaf(w, e, "tsc_ctc_denominator", "%" PRIu64, r->ctc_denominator)))
		return -1;
	return 0;
}

/* What no file of records says: that the code of the command line is the threads', and that these run. */
static int put_thread(const struct request *r, size_t index, struct ptc_writer *w, struct pt_error *e)
{
	const struct raw_aux *raw = &r->raws[index];
	struct sideband sb;
	bool is_new = true; /* the process */
	int ret = -1;

	for (size_t i = 0; i < index; i++)
		is_new = is_new && r->raws[i].pid != raw->pid;
	sideband_init(&sb, raw->cpu, (uint32_t)raw->pid, (uint32_t)raw->tid);
	if (sideband_comm(&sb, r->comm ? r->comm : import_code_comm(r->code), is_new, e))
		goto out;
	for (size_t i = 0; is_new && i < r->code->count; i++) {
		const struct import_mapping *m = &r->code->mappings[i];

		if (sideband_mmap2(&sb, m->addr, m->bytes, m->offset, m->name, e))
			goto out;
	}
	/* Who runs on a CPU is told by records, if there are any. */
	if ((raw->cpu < 0 || !r->side_count) && sideband_itrace_start(&sb, e))
		goto out;
	ret = ptc_put_sideband(w, 0, sb.bytes, sb.count, e);
out:
	sideband_deinit(&sb);
	return ret;
}

static int put_sideband(const struct request *r, struct raw_records *side, struct import_perf_notes *notes,
			struct ptc_writer *w, struct pt_error *e)
{
	uint32_t next_attr = 1;

	if (sideband_put_attr(w, e))
		return -1;
	for (size_t i = 0; i < r->raw_count; i++)
		if ((r->code->count || !r->side_count) && put_thread(r, i, w, e))
			return -1;
	return side ? raw_records_put(side, w, &r->files, r->kernel, notes, &next_attr, e) : 0;
}

/* perf's clock: what the command line says, else what the records say. */
static struct perf_file_clock clock_of(const struct request *r, const struct raw_records *side)
{
	if (r->time_mult)
		return (struct perf_file_clock){.shift = strtoull(r->time_shift, NULL, 0),
						.mult = strtoull(r->time_mult, NULL, 0),
						.zero = r->time_zero ? strtoull(r->time_zero, NULL, 0) : 0};
	return side ? raw_records_clock(side) : (struct perf_file_clock){0};
}

static int write_container(struct request *r, int fd, struct import_perf_notes *notes, struct pt_error *e)
{
	struct ptc_writer *w = ptc_writer_create(fd, r->level, e);
	struct raw_records *side = NULL;
	struct perf_file_clock clock;
	int ret = -1;

	if (!w)
		return -1;
	if ((r->side_count || r->kernel) &&
	    raw_records_read(r->sides, r->side_count, r->sample_type, &side, e))
		goto out;
	clock = clock_of(r, side);
	if (complete_threads(r, side, e))
		goto out;
	if (side && r->sample_type & PERF_SAMPLE_TIME && !clock.mult)
		import_perf_note(
		    notes, "the sideband has times, but nothing tells perf's clock (--time-mult): all of it "
			   "counts from the beginning on");
	if (put_meta(r, &clock, w, e) || raw_aux_streams(r->raws, r->raw_count, w, e) ||
	    import_code_write(r->code, w, e) || put_sideband(r, side, notes, w, e) ||
	    raw_aux_put(r->raws, r->raw_count, &clock, w, e) || ptc_writer_finish(w, e))
		goto out;
	ret = 0;
out:
	raw_records_destroy(side);
	ptc_writer_destroy(w);
	return ret;
}

int import_raw(int argc, char **argv)
{
	struct request r = {.level = 1, .pid = -1, .tid = -1};
	struct pt_error e = {.offset = PT_NO_OFFSET};
	struct import_perf_notes notes = {0};
	struct output out = {0};
	int ret = -1;

	r.code = import_code_create();
	r.command = command_line(argc, argv);
	if (!r.code || !r.command) {
		pt_fail_no_memory(&e, NULL);
		goto out;
	}
	ret = take_options(&r, argc, argv, &e);
	if (ret > 0) {
		fputs(usage, stdout);
		ret = fflush(stdout) ? -1 : 0;
		if (ret)
			pt_fail_errno(&e, "cannot write");
		goto out;
	}
	if (ret == 0)
		ret = output_open_private(&out, r.output, "a container", &e);
	if (ret == 0)
		ret = write_container(&r, out.fd, &notes, &e);
	if (ret)
		output_abort(&out);
	else
		ret = output_commit(&out, &e);
	for (size_t i = 0; ret == 0 && i < notes.count; i++)
		fprintf(stderr, "pt-capture: %s\n", notes.lines[i]);
out:
	import_perf_notes_free(&notes);
	import_code_destroy(r.code);
	free(r.raws);
	free(r.sides);
	free(r.command);
	return ret ? command_failed(&e) : 0;
}
