/* trim.c - pt-capture trim: a smaller container that decodes to the same records in a range. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/commands.h"
#include "capture/container/copy.h"
#include "capture/container/trim_code.h"
#include "capture/container/trim_time.h"
#include "schema/options.h"
#include "schema/output.h"

/* ---- Arguments ---- */

struct arguments {
	const char *input, *output, *time;
	bool used_code, quiet;
	int level;
};

static int set_level(void *arg, const char *value, struct pt_error *e)
{
	long long level;

	if (pt_option_number("-z", value, PTC_LEVEL_FASTEST, 19, &level, e))
		return -1;
	((struct arguments *)arg)->level = (int)level;
	return 0;
}

#define TEXT(field) PT_OPTION_TEXT(struct arguments, field)
#define FLAG(field) PT_OPTION_FLAG(struct arguments, field)

static const struct pt_option options[] = {
    {.name = "time",
     .argument = "A..B",
     .help =
	 "what was traced from A to B, and a bit around: a stream can be cut at its PSBs only. A and B "
	 "are seconds of the perf clock (12.345678901), or with + since the first PSB (+0.25); or tsc:TSC, "
	 "tsc:+TICKS. Either may be missing",
     TEXT(time)},
    {.name = "used-code",
     .help = "keep only the pages of code that are executed, and the symbols in them. pt-decode is run to "
	     "find them: the one beside pt-capture, or in PATH",
     FLAG(used_code)},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .help = "write the container to FILE, not to standard output",
     TEXT(output)},
    {.name = "level",
     .letter = 'z',
     .argument = "N",
     .help = "zstd level, -100 (fastest) to 19; default 3",
     .set = set_level},
    {.name = "quiet", .letter = 'q', .help = "say nothing but errors", FLAG(quiet)},
    PT_OPTION_END};

static void usage(void)
{
	fputs("usage: pt-capture trim [--time A..B] [--used-code] [-o OUTPUT] CONTAINER\n"
	      "Writes a smaller container, to be sent to someone: a time range, or only the code that the\n"
	      "trace touches.\n"
	      "\n",
	      stdout);
	pt_options_print(options, stdout);
	fputs(
	    "  -h, --help                this text\n"
	    "\n"
	    "What was mapped and named before the range is kept. The result is a recording of its own\n"
	    "(META uuid), and says what it was trimmed from (trimmed_from, trimmed).\n"
	    "Exit status: 0 done; 1 failed, nothing is left; 2 wrong usage; 3 done, but CONTAINER is cut or\n"
	    "damaged.\n",
	    stdout);
}

/* 0; 1: --help was asked for; -1. */
static int parse(struct arguments *a, int argc, char **argv, struct pt_error *e)
{
	static const struct pt_command_line line = {"pt-capture trim", options, false};
	int operand, ret = pt_options_parse(&line, argc, argv, a, &operand, e);

	if (ret)
		return ret;
	if (argc - operand != 1)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "%s container to trim; see 'pt-capture trim --help'",
			       argc == operand ? "no" : "more than one");
	if (!a->time && !a->used_code)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "what is to be trimmed? Give --time or --used-code");
	a->input = argv[operand];
	return 0;
}

/* ---- Trimming ---- */

struct trim {
	const struct arguments *a;
	int in; /* the container, a file */
	struct ptc_meta *meta;
	const char *uuid; /* of the container; NULL: it has none */
	uint64_t first_tsc;
	/* What a copy keeps; NULL: all. */
	struct trim_time *time;
	struct trim_code *code;
};

static int copy_chunk(struct trim *t, struct ptc_writer *w, const struct ptc_chunk *c, struct pt_error *e)
{
	if (t->time)
		return trim_time_copy(t->time, w, c, e);
	if (t->code)
		return trim_code_copy(t->code, w, c, e);
	return container_copy_chunk(w, c, e);
}

/* META of what is written: a name of its own, and what was trimmed. */
static int put_meta(const struct trim *t, struct ptc_writer *w, struct pt_error *e)
{
	if (container_new_uuid(w, e) ||
	    (t->a->time && ptc_put_metaf(w, e, "trimmed", "time %s", t->a->time)) ||
	    (t->code && ptc_put_meta(w, "trimmed_code", "1", e)) ||
	    (t->uuid && ptc_put_meta(w, "trimmed_from", t->uuid, e)))
		return -1;
	return 0;
}

/* Copies all chunks. 1 when the container was cut or damaged, and the message is printed; 0, or -1. */
static int copy_chunks(struct trim *t, struct ptc_reader *r, struct ptc_writer *w, struct pt_error *e)
{
	struct pt_error damage = {0};
	struct ptc_chunk c;
	int got;

	while ((got = ptc_next(r, &c, &damage)) > 0)
		if (copy_chunk(t, w, &c, e))
			return -1;
	if (got == 0)
		return 0;
	if (damage.kind != PT_ERR_TRUNCATED && damage.kind != PT_ERR_BAD_INPUT) {
		*e = damage;
		return -1;
	}
	command_failed(&damage);
	return 1;
}

/* Where a container is written. */
struct target {
	int fd;
	const char *name; /* as ptc_writer_create() has it */
	int level;	  /* zstd's */
};

/* Copies the container in `from`. Returns as copy_chunks(). */
static int copy(struct trim *t, int from, const struct target *to, struct pt_error *e)
{
	struct ptc_writer *w = NULL;
	struct ptc_reader *r;
	int ret = -1;

	if (lseek(from, 0, SEEK_SET) < 0)
		return pt_fail_errno(e, "cannot read the container twice");
	r = ptc_reader_create(from, e);
	if (r)
		w = ptc_writer_create(to->fd, to->name, to->level, e);
	if (w && put_meta(t, w, e) == 0)
		ret = copy_chunks(t, r, w, e);
	if (ret >= 0 && ptc_writer_finish(w, e))
		ret = -1;
	ptc_writer_destroy(w);
	ptc_reader_destroy(r);
	return ret;
}

/* Writes the time range of the container to `to`. Returns as copy_chunks(). */
static int trim_to_time(struct trim *t, const struct target *to, struct pt_error *e)
{
	struct trim_range range;
	int ret;

	if (trim_range_parse(t->a->time, t->meta, t->first_tsc, &range, e))
		return -1;
	t->time = trim_time_create(t->in, t->meta, &range, e);
	ret = t->time ? copy(t, t->in, to, e) : -1;
	trim_time_destroy(t->time);
	t->time = NULL;
	return ret;
}

/* Writes the container in `from` with only the code that it executes. Returns as copy_chunks(). */
static int trim_to_code(struct trim *t, int from, const struct target *to, struct pt_error *e)
{
	int ret;

	t->code = trim_code_create(from, e);
	ret = t->code ? copy(t, from, to, e) : -1;
	trim_code_destroy(t->code);
	t->code = NULL;
	return ret;
}

/* First the time range, to a temporary file; then of that the code that it executes. */
static int trim_to_both(struct trim *t, const struct target *to, struct pt_error *e)
{
	FILE *between = tmpfile();
	int damaged, ret = -1;

	if (!between)
		return pt_fail_errno(e, "cannot make a temporary file");
	damaged = trim_to_time(t, &(struct target){fileno(between), "a temporary file", 1}, e);
	if (damaged >= 0)
		ret = trim_to_code(t, fileno(between), to, e);
	fclose(between);
	return ret < 0 ? -1 : ret | damaged;
}

static int trim(const struct arguments *a, int in, int out, struct pt_error *e)
{
	const struct target to = {out, output_name(a->output), a->level};
	struct trim t = {.a = a, .in = in, .meta = ptc_meta_create()};
	int ret;

	if (!t.meta)
		return pt_fail_no_memory(e, NULL);
	if (trim_first_tsc(in, t.meta, &t.first_tsc, e)) {
		ptc_meta_destroy(t.meta);
		pt_error_in(e, a->input);
		return -1;
	}
	t.uuid = ptc_meta_get(t.meta, "uuid");
	if (a->time && a->used_code)
		ret = trim_to_both(&t, &to, e);
	else if (a->time)
		ret = trim_to_time(&t, &to, e);
	else
		ret = trim_to_code(&t, in, &to, e);
	ptc_meta_destroy(t.meta);
	return ret;
}

/* The container, opened: it has to be a file. -1: *e says why not. */
static int open_input(const char *path, uint64_t *ret_bytes, struct pt_error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return pt_fail_errno(e, "cannot read %s", path);
	if (fstat(fd, &st) < 0)
		pt_fail_errno(e, "cannot read %s", path);
	else if (!S_ISREG(st.st_mode))
		pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "%s is no file: it has to be read twice", path);
	else {
		*ret_bytes = (uint64_t)st.st_size;
		return fd;
	}
	close(fd);
	return -1;
}

int cmd_trim(int argc, char **argv)
{
	struct arguments a = {.level = 3};
	struct output out = {0};
	struct pt_error e = {0};
	struct stat after;
	uint64_t bytes = 0;
	int in, ret = parse(&a, argc, argv, &e);

	if (ret > 0)
		usage();
	if (ret)
		return ret > 0 ? 0 : command_failed(&e);
	in = open_input(a.input, &bytes, &e);
	if (in < 0)
		return command_failed(&e);
	if (output_open(&out, a.output, "a container", &e)) {
		close(in);
		return command_failed(&e);
	}
	ret = trim(&a, in, out.fd, &e);
	close(in);
	if (ret >= 0 && !a.quiet && fstat(out.fd, &after) == 0 && S_ISREG(after.st_mode))
		fprintf(stderr, "pt-capture: trimmed from %" PRIu64 " to %" PRIu64 " bytes\n", bytes,
			(uint64_t)after.st_size);
	if (ret < 0 || output_commit(&out, &e)) {
		output_abort(&out);
		return command_failed(&e);
	}
	return ret ? 3 : 0;
}
