/* trim.c - pt-capture trim: a smaller container that decodes to the same records in a range. */
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/commands.h"
#include "capture/container/copy.h"
#include "schema/output.h"
#include "capture/container/trim_code.h"
#include "capture/container/trim_time.h"

static const char usage[] = "usage: pt-capture trim [--time A..B] [--used-code] [-o OUTPUT] CONTAINER\n"
			    "Writes a smaller container, to be sent to someone: a time range, or only the "
			    "code that the trace touches.\n"
			    "\n"
			    "      --time A..B    what was traced from A to B, and a bit around: a stream "
			    "can be cut at its PSBs only. A and\n"
			    "                     B are seconds of the perf clock (12.345678901), or with + "
			    "since the first PSB (+0.25);\n"
			    "                     or tsc:TSC, tsc:+TICKS. Either may be missing\n"
			    "      --used-code    keep only the pages of code that are executed, and the "
			    "symbols in them. pt-decode is run\n"
			    "                     to find them: the one beside pt-capture, or in PATH\n"
			    "  -o, --output FILE  write the container to FILE, not to standard output\n"
			    "  -z, --level N      zstd level, -100 (fastest) to 19; default 3\n"
			    "  -q, --quiet        say nothing but errors\n"
			    "  -h, --help         this text\n"
			    "\n"
			    "What was mapped and named before the range is kept. The result is a recording of "
			    "its own (META uuid), and says what\n"
			    "it was trimmed from (trimmed_from, trimmed).\n"
			    "Exit status: 0 done; 1 failed, nothing is left; 2 wrong usage; 3 done, but "
			    "CONTAINER is cut or damaged.\n";

struct arguments {
	const char *input, *output, *time;
	bool used_code, quiet;
	int level;
};

static int parse(int argc, char **argv, struct arguments *a, struct pt_error *e)
{
	enum { TIME = 256, USED_CODE };
	static const struct option longs[] = {{"time", required_argument, NULL, TIME},
					      {"used-code", no_argument, NULL, USED_CODE},
					      {"output", required_argument, NULL, 'o'},
					      {"level", required_argument, NULL, 'z'},
					      {"quiet", no_argument, NULL, 'q'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	char *end;
	int c;

	optind = 1;
	while ((c = getopt_long(argc, argv, "o:z:qh", longs, NULL)) != -1) {
		switch (c) {
		case TIME: a->time = optarg; break;
		case USED_CODE: a->used_code = true; break;
		case 'o': a->output = optarg; break;
		case 'z':
			a->level = (int)strtol(optarg, &end, 10);
			if (*end || end == optarg || a->level < PTC_LEVEL_FASTEST || a->level > 19)
				return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
					       "-z %s: not a level from -100 to 19", optarg);
			break;
		case 'q': a->quiet = true; break;
		case 'h': fputs(usage, stdout); return 1;
		default: return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "see 'pt-capture trim --help'");
		}
	}
	if (argc - optind != 1)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "%s container to trim; see 'pt-capture trim --help'",
			       argc == optind ? "no" : "more than one");
	if (!a->time && !a->used_code)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "what is to be trimmed? Give --time or --used-code");
	a->input = argv[optind];
	return 0;
}

struct trim { /* what a copy keeps; NULL: all */
	struct trim_time *time;
	struct trim_code *code;
	const char *range; /* for META; NULL: no range */
	char *uuid;	   /* of the first container, owned; NULL: it has none */
};

static int copy_chunk(struct trim *t, struct ptc_writer *w, const struct ptc_chunk *c, struct pt_error *e)
{
	if (t->time)
		return trim_time_copy(t->time, w, c, e);
	if (t->code)
		return trim_code_copy(t->code, w, c, e);
	return container_copy_chunk(w, c, e);
}

/* Copies the container in `from` to `to`. 1 when it was cut or damaged (and said so), 0, or -1. */
static int copy(int from, int to, int level, struct trim *t, struct pt_error *e)
{
	struct ptc_writer *w = NULL;
	struct ptc_reader *r;
	struct ptc_chunk c;
	struct pt_error damage = {0};
	int got = -1, ret = -1;

	if (lseek(from, 0, SEEK_SET) < 0)
		return pt_fail_errno(e, "cannot read the container twice");
	r = ptc_reader_create(from, e);
	if (r)
		w = ptc_writer_create(to, level, e);
	if (!w || container_new_uuid(w, e) < 0 ||
	    (t->range && ptc_put_metaf(w, e, "trimmed", "time %s", t->range) < 0) ||
	    (t->code && ptc_put_meta(w, "trimmed_code", "1", e) < 0) ||
	    (t->uuid && ptc_put_meta(w, "trimmed_from", t->uuid, e) < 0))
		goto out;
	while ((got = ptc_next(r, &c, &damage)) > 0)
		if (copy_chunk(t, w, &c, e) < 0)
			goto out;
	if (got < 0 && damage.kind != PT_ERR_TRUNCATED && damage.kind != PT_ERR_BAD_INPUT) {
		*e = damage;
		goto out;
	}
	if (got < 0)
		command_failed(&damage);
	if (ptc_writer_finish(w, e) == 0)
		ret = got < 0;
out:
	ptc_writer_destroy(w);
	ptc_reader_destroy(r);
	return ret;
}

/* The time range first; the code that it touches is then that of a container on its way, which has no name. */
static int trim(const struct arguments *a, int in, struct output *out, struct pt_error *e)
{
	struct ptc_meta *meta = ptc_meta_create();
	struct trim t = {.range = a->time};
	struct trim_range range;
	uint64_t first_tsc;
	FILE *between = NULL;
	int r = -1, damaged = 0;

	if (!meta) {
		pt_fail_no_memory(e, NULL);
		return -1;
	}
	if (trim_first_tsc(in, meta, &first_tsc, e) < 0) {
		pt_error_in(e, a->input);
		goto out;
	}
	if (ptc_meta_get(meta, "uuid") && !(t.uuid = strdup(ptc_meta_get(meta, "uuid")))) {
		pt_fail_no_memory(e, NULL);
		goto out;
	}
	if (a->time) {
		if (trim_range_parse(a->time, meta, first_tsc, &range, e) < 0 ||
		    !(t.time = trim_time_create(in, meta, &range, e)))
			goto out;
		if (a->used_code && !(between = tmpfile())) {
			pt_fail_errno(e, "cannot make a temporary file");
			goto out;
		}
		damaged = copy(in, between ? fileno(between) : out->fd, between ? 1 : a->level, &t, e);
		if (damaged < 0)
			goto out;
		trim_time_destroy(t.time);
		t.time = NULL;
	}
	r = damaged;
	if (a->used_code) {
		int from = between ? fileno(between) : in;

		r = -1;
		if (!(t.code = trim_code_create(from, e)))
			goto out;
		r = copy(from, out->fd, a->level, &t, e);
		r = r < 0 ? -1 : r | damaged;
	}
out:
	if (between)
		fclose(between);
	trim_time_destroy(t.time);
	trim_code_destroy(t.code);
	free(t.uuid);
	ptc_meta_destroy(meta);
	return r;
}

int cmd_trim(int argc, char **argv)
{
	struct arguments a = {.level = 3};
	struct output out = {0};
	struct pt_error e = {0};
	struct stat before, after;
	int in, r = parse(argc, argv, &a, &e);

	if (r > 0)
		return 0;
	if (r < 0)
		return command_failed(&e);
	in = open(a.input, O_RDONLY | O_CLOEXEC);
	if (in < 0 || fstat(in, &before) < 0) {
		pt_fail_errno(&e, "cannot read %s", a.input);
		return command_failed(&e);
	}
	if (!S_ISREG(before.st_mode)) {
		pt_fail(&e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s is no file: it has to be read twice", a.input);
		close(in);
		return command_failed(&e);
	}
	if (output_open_private(&out, a.output, "a container", &e) < 0) {
		close(in);
		return command_failed(&e);
	}
	r = trim(&a, in, &out, &e);
	close(in);
	if (r >= 0 && !a.quiet && fstat(out.fd, &after) == 0 && S_ISREG(after.st_mode))
		fprintf(stderr, "pt-capture: trimmed from %" PRIu64 " to %" PRIu64 " bytes\n",
			(uint64_t)before.st_size, (uint64_t)after.st_size);
	if (r < 0 || output_commit(&out, &e) < 0) {
		output_abort(&out);
		return command_failed(&e);
	}
	return r ? 3 : 0;
}
