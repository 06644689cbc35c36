/* import_raw.c - pt-capture import --raw: a container from raw AUX bytes and the code that they trace. */
#include "capture/byte_source.h"
#include "capture/commands.h"
#include "capture/import_code.h"
#include "capture/output.h"
#include "capture/sideband.h"
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

#define AUX_PIECE ((size_t)1 << 20)

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
    "\n"
    "  -o, --output FILE        write the container to FILE, not to standard output\n"
    "  -z, --level N            zstd's level, -100 (fast) to 19 (small); default 1\n"
    "  -h, --help               this text\n"
    "\n"
    "Example: pt-capture import --raw trace.pt --elf a.out --mtc-freq 3 --tsc-ratio 160/2 --nom-freq 20 | "
    "pt-decode\n";

struct request {
	const char *raw, *output, *comm;
	struct import_code *code;
	int level;
	uint32_t pid, tid;
	bool has_tid, kernel;
	/* META values as they are written, NULL unknown */
	uint64_t family, model, stepping, ctc_numerator, ctc_denominator;
	bool has_cpu, has_ratio;
	const char *mtc_freq, *nom_freq, *time_shift, *time_mult, *time_zero, *pt_config;
	char *command;
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

static int take_id(const char *option, const char *value, uint32_t *ret, struct pt_error *e)
{
	const char *at = value;
	uint64_t v;

	if (!parse_number(&at, 0, INT32_MAX, &v))
		return usage_error(e, option, value, "a process id");
	*ret = (uint32_t)v;
	return 0;
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
	OPT_KERNEL
};

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
					{"output", required_argument, NULL, 'o'},
					{"level", required_argument, NULL, 'z'},
					{"help", no_argument, NULL, 'h'},
					{NULL, 0, NULL, 0}};

/* 0; 1: --help was asked for; -1. */
static int take_option(struct request *r, int option, struct pt_error *e)
{
	switch (option) {
	case OPT_RAW:
		if (r->raw)
			return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--raw can be given once");
		r->raw = optarg;
		return 0;
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
	case OPT_PID: return take_id("--pid", optarg, &r->pid, e);
	case OPT_TID: r->has_tid = true; return take_id("--tid", optarg, &r->tid, e);
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
	if (!r->raw)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "import needs --raw AUX");
	if (!!r->time_shift != !!r->time_mult || (r->time_zero && !r->time_mult))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "--time-shift and --time-mult belong together (and --time-zero to them)");
	if (!r->has_tid)
		r->tid = r->pid;
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

static int put_meta(const struct request *r, struct ptc_writer *w, struct pt_error *e)
{
	const struct {
		const char *key, *value;
	} plain[] = {
	    {"tool", "pt-capture"},
	    {"tool_version", PT_VERSION},
	    {"engine", "import-raw"},
	    {"arch", "x86_64"},
	    {"command", r->command},
	    {"cpu_vendor", r->has_cpu ? "GenuineIntel" : NULL},
	    {"mtc_freq", r->mtc_freq},
	    {"nominal_ratio", r->nom_freq},
	    {"pt_config", r->pt_config},
	    {"pt_user_only", r->kernel ? NULL : "1"},
	    {"time_zero", r->time_mult && !r->time_zero ? "0" : r->time_zero},
	    {"time_mult", r->time_mult},
	    {"time_shift", r->time_shift},
	};
	uint64_t uuid[2];

	if (getrandom(uuid, sizeof uuid, 0) != sizeof uuid)
		return pt_fail_errno(e, "no random numbers for the uuid");
	if (ptc_put_metaf(w, e, "uuid", "%016" PRIx64 "%016" PRIx64, uuid[0], uuid[1]))
		return -1;
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		if (plain[i].value && ptc_put_meta(w, plain[i].key, plain[i].value, e))
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

static int put_sideband(const struct request *r, struct ptc_writer *w, struct pt_error *e)
{
	struct sideband sb;
	const char *comm = r->comm ? r->comm : import_code_comm(r->code);
	int ret = -1;

	sideband_init(&sb, r->pid, r->tid);
	if (sideband_put_attr(w, e) || sideband_comm(&sb, comm, e))
		goto out;
	for (size_t i = 0; i < r->code->count; i++) {
		const struct import_mapping *m = &r->code->mappings[i];

		if (sideband_mmap2(&sb, m->addr, m->bytes, m->offset, m->name, e))
			goto out;
	}
	if (sideband_itrace_start(&sb, e))
		goto out;
	ret = ptc_put_sideband(w, 0, sb.bytes, sb.count, e);
out:
	sideband_deinit(&sb);
	return ret;
}

static int put_aux(struct byte_source *aux, struct ptc_writer *w, uint32_t stream, struct pt_error *e)
{
	uint8_t *piece = malloc(AUX_PIECE);
	uint64_t offset = 0;
	ssize_t got;

	if (!piece)
		return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory");
	while ((got = byte_source_read(aux, piece, AUX_PIECE, e)) > 0) {
		if (ptc_put_aux(w, stream, offset, 0, 0, piece, (uint64_t)got, e)) {
			got = -1;
			break;
		}
		offset += (uint64_t)got;
	}
	free(piece);
	if (got < 0)
		return -1;
	if (offset == 0)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "the AUX data is empty");
	return 0;
}

static int write_container(const struct request *r, struct byte_source *aux, int fd, struct pt_error *e)
{
	struct ptc_writer *w = ptc_writer_create(fd, r->level, e);
	struct ptc_stream stream = {
	    .cpu = -1, .pid = (int32_t)r->pid, .tid = (int32_t)r->tid, .attr = UINT32_MAX};
	int64_t number;
	int ret = -1;

	if (!w)
		return -1;
	if (put_meta(r, w, e) || (number = ptc_put_stream(w, &stream, e)) < 0 ||
	    import_code_write(r->code, w, e) || put_sideband(r, w, e) ||
	    put_aux(aux, w, (uint32_t)number, e) || ptc_put_round(w, UINT64_MAX, e) ||
	    ptc_writer_finish(w, e))
		goto out;
	ret = 0;
out:
	ptc_writer_destroy(w);
	return ret;
}

int import_raw(int argc, char **argv)
{
	struct request r = {.level = 1, .pid = 1};
	struct pt_error e = {.offset = PT_NO_OFFSET};
	struct byte_source *aux = NULL;
	struct output out = {0};
	int ret = -1;

	r.code = import_code_create();
	r.command = command_line(argc, argv);
	if (!r.code || !r.command) {
		pt_fail(&e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "out of memory");
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
	if (ret)
		goto out;
	ret = -1;
	aux = byte_source_open(r.raw, &e);
	if (!aux || output_open(&out, r.output, "a container", &e))
		goto out;
	ret = write_container(&r, aux, out.fd, &e);
	if (ret == 0)
		ret = output_commit(&out, &e);
	else
		output_abort(&out);
out:
	byte_source_close(aux);
	import_code_destroy(r.code);
	free(r.command);
	return ret ? command_failed(&e) : 0;
}
