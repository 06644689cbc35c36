/*
 * export.c - pt-capture export --perf-data: a container as a perf.data. (The project's folder export/ is
 * another thing: pt-load.)
 */
#include "capture/commands.h"
#include "capture/code/elf_image.h"
#include "capture/perfdata/export_aux.h"
#include "capture/perfdata/export_files.h"
#include "schema/container.h"
#include "schema/options.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct export
{
	struct export_files files;
	struct export_machine *host; /* of files */
	struct export_aux aux;
	struct ptc_meta *meta;
	bool quiet;
};

/* ---- Chunks ---- */

static int take_stream(struct export *x, const struct ptc_chunk *c, struct pt_error *e)
{
	uint32_t attr;

	if (export_aux_stream(&x->aux, c, e))
		return -1;
	/* The stream's event, which came before, is now known to be Intel PT's. */
	attr = x->aux.queues[x->aux.count - 1].stream.attr;
	if (attr < x->files.attr_count && x->files.attrs[attr].machine == 0)
		perf_data_set_pt_event(&x->host->data, x->files.attrs[attr].event);
	return 0;
}

static int take_attr(struct export *x, const struct ptc_chunk *c, struct pt_error *e)
{
	static const char pt[] = "intel_pt";
	const struct perf_data *host = &x->host->data;
	struct ptc_attr attr;
	bool is_pt;

	if (ptc_parse_attr(c, &attr, e))
		return -1;
	if (attr.index != x->files.attr_count || (host->contents.aux_count && !attr.machine_pid))
		return pt_fail(e, PT_ERR_BAD_INPUT, c->offset, "event %u is out of order", attr.index);
	is_pt = !attr.machine_pid && !host->has_pt_event && attr.name_bytes >= strlen(pt) &&
		memcmp(attr.name, pt, strlen(pt)) == 0;
	return export_files_event(&x->files, &attr, is_pt, e);
}

/* All records but PERF_RECORD_AUX, which are made anew from the pieces. */
static int take_sideband(struct export *x, const struct ptc_chunk *c, struct pt_error *e)
{
	struct export_machine *m = x->host;
	const uint8_t *p;
	uint64_t size;
	uint32_t attr;

	if (ptc_parse_sideband(c, &attr, &p, &size, e))
		return -1;
	if (attr < x->files.attr_count)
		m = x->files.all[x->files.attrs[attr].machine];
	while (size) {
		struct perf_event_header h;

		memcpy(&h, p, sizeof h);
		if (h.type != PERF_RECORD_AUX && h.type < 64 &&
		    (perf_data_record(&m->data, p, h.size, e) ||
		     perf_kcore_record(&m->kcore, x->files.to, p, e)))
			return -1;
		p += h.size;
		size -= h.size;
	}
	return 0;
}

static int take_symbols(struct export *x, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_symbols symbols;
	struct export_machine *m;

	if (ptc_parse_symbols(c, &symbols, e))
		return -1;
	if (!symbols.absolute || symbols.pid != PTC_ANY_PID)
		return 0;
	m = export_files_of(&x->files, symbols.machine_pid, e);
	return m ? perf_kcore_symbols(&m->kcore, x->files.to, &symbols, e) : -1;
}

static int take_format(struct export *x, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_tracepoint t;
	struct export_machine *m;

	if (ptc_parse_format(c, &t, e))
		return -1;
	m = export_files_of(&x->files, t.machine_pid, e);
	return m ? perf_contents_add_format(&m->data.contents, &t, e) : -1;
}

/* perf will look for the file's code on the disk: a warning when it is not there, or is another build. */
static int warn_of_file(const struct ptc_image *image, struct pt_error *e)
{
	struct pt_error why;
	uint8_t build_id[20];
	char *name = strndup(image->name, image->name_bytes);
	int bytes;

	if (!name)
		return pt_fail_no_memory(e, NULL);
	bytes = elf_file_build_id(name, build_id, &why);
	if (bytes < 0 && why.kind != PT_ERR_BAD_INPUT) /* else it is no ELF file: perf takes its bytes */
		fprintf(stderr, "pt-capture: perf will not find the code of %s: %s\n", name, why.message);
	else if (bytes >= 0 && image->build_id_bytes &&
		 ((uint32_t)bytes != image->build_id_bytes ||
		  memcmp(build_id, image->build_id, image->build_id_bytes) != 0))
		fprintf(stderr,
			"pt-capture: perf will decode wrongly: %s is another build than the traced one\n",
			name);
	free(name);
	return 0;
}

/* The kernel's code is written to kcore; of a file, perf needs the build id. */
static int take_image(struct export *x, const struct ptc_chunk *c, struct pt_error *e)
{
	struct export_machine *m;
	struct ptc_image image;

	if (ptc_parse_image(c, &image, e))
		return -1;
	if (image.kind == PTC_IMAGE_MEMORY && image.pid == PTC_ANY_PID) {
		m = export_files_of(&x->files, image.machine_pid, e);
		return m ? perf_kcore_image(&m->kcore, x->files.to, &image, e) : -1;
	}
	if (image.kind != PTC_IMAGE_FILE || image.continues)
		return 0;
	if (image.build_id_bytes && image.name_bytes < PATH_MAX) {
		m = export_files_of(&x->files, image.machine_pid, e);
		if (!m || perf_contents_add_build_id(&m->data.contents, &image, e))
			return -1;
	}
	if (x->quiet || image.machine_pid || image.name_bytes == 0 || image.name[0] != '/' || !image.size)
		return 0;
	return warn_of_file(&image, e);
}

static int take_chunk(struct export *x, const struct ptc_chunk *c, struct pt_error *e)
{
	switch (c->type) {
	case PTC_META: return ptc_meta_add(x->meta, c, e);
	case PTC_STREAM: return take_stream(x, c, e);
	case PTC_AUX: return export_aux_take(&x->aux, c, e);
	case PTC_ATTR: return take_attr(x, c, e);
	case PTC_SIDEBAND: return take_sideband(x, c, e);
	case PTC_IMAGE: return take_image(x, c, e);
	case PTC_SYMBOLS: return take_symbols(x, c, e);
	case PTC_FORMAT: return take_format(x, c, e);
	default: return 0;
	}
}

/* ---- The command ---- */

/* 0; 3: the container is cut or damaged, and *e says where; or -1. */
static int export(struct export *x, struct ptc_reader *r, struct pt_error *e)
{
	struct pt_error end = {.offset = PT_NO_OFFSET};
	struct ptc_chunk c;
	int more, ret = 0;

	x->meta = ptc_meta_create();
	if (!x->meta)
		return pt_fail_no_memory(e, NULL);
	x->files.meta = x->meta;
	x->host = export_files_of(&x->files, 0, e);
	if (!x->host)
		return -1;
	x->aux.to = &x->host->data;
	while ((more = ptc_next(r, &c, &end)) > 0) {
		more = take_chunk(x, &c, &end);
		if (more)
			break;
	}
	if (more < 0) {
		*e = end;
		if (end.kind != PT_ERR_BAD_INPUT && end.kind != PT_ERR_TRUNCATED)
			return -1;
		ret = 3;
	}
	return export_aux_finish(&x->aux, e) || export_files_commit(&x->files, e) ? -1 : ret;
}

static void deinit(struct export *x)
{
	export_files_deinit(&x->files);
	export_aux_deinit(&x->aux);
	ptc_meta_destroy(x->meta);
}

/* What is to be said of an export that was done. why: where the container is cut or damaged; NULL. */
static void say(const struct export *x, const struct pt_error *why)
{
	if (why)
		fprintf(stderr, "pt-capture: what there is was exported, but %s (at byte %" PRIu64 ")\n",
			why->message, why->offset);
	if (x->quiet)
		return;
	if (x->aux.cut_bytes)
		fprintf(stderr, "pt-capture: %" PRIu64 " bytes of packets that are not whole were left out\n",
			x->aux.cut_bytes);
	for (size_t i = 1; i < x->files.count; i++)
		if (x->files.all[i]->data.contents.event_count)
			fprintf(stderr,
				"pt-capture: the records of guest %" PRId32 " are in %s/guest__%" PRId32 "\n",
				x->files.all[i]->pid, x->files.to, x->files.all[i]->pid);
}

static int run(const char *to, const char *container, bool quiet)
{
	int fd = strcmp(container, "-") == 0 ? STDIN_FILENO : open(container, O_RDONLY | O_CLOEXEC), ret = -1;
	struct export x = {.quiet = quiet, .files = {.to = to}};
	struct pt_error e = {.offset = PT_NO_OFFSET};
	struct ptc_reader *r;

	if (fd < 0) {
		pt_fail_errno(&e, "cannot open %s", container);
		return command_failed(&e);
	}
	r = ptc_reader_create(fd, &e);
	if (r)
		ret = export(&x, r, &e);
	else
		pt_error_in(&e, container);
	if (ret >= 0)
		say(&x, ret > 0 ? &e : NULL);
	deinit(&x);
	ptc_reader_destroy(r);
	if (fd > STDIN_FILENO)
		close(fd);
	return ret < 0 ? command_failed(&e) : ret;
}

struct arguments {
	const char *to, *container;
	bool quiet;
};

static const struct pt_option options[] = {{.name = "perf-data",
					    .argument = "PATH",
					    .help = "what to write; it must be a file, or not be there yet",
					    PT_OPTION_TEXT(struct arguments, to)},
					   {.name = "quiet",
					    .letter = 'q',
					    .help = "no warnings about code that perf will not find",
					    PT_OPTION_FLAG(struct arguments, quiet)},
					   PT_OPTION_END};

static int usage(void)
{
	fputs("usage: pt-capture export --perf-data PATH [-q] [CONTAINER|-]\n"
	      "Writes a container (standard input without a name) as a perf.data that perf 6.1 and later "
	      "decode:\n"
	      "perf script -i PATH --itrace=b, perf report, exported-sql-viewer...\n"
	      "With kernel code in it, PATH becomes a folder like that of perf record --kcore: data, and "
	      "kcore_dir\n"
	      "with kcore, kallsyms and modules. With a guest's records, PATH/guest__PID has them as a "
	      "recording of\n"
	      "their own, on the guest's clock: perf inject --guest-data=PATH/guest__PID,PID,OFFSET joins "
	      "them,\n"
	      "pt-capture import PATH finds them.\n"
	      "\n",
	      stdout);
	pt_options_print(options, stdout);
	fputs("  -h, --help                this text\n"
	      "\n"
	      "A perf.data holds no code of programs: perf reads it from the files that were mapped, under "
	      "the names\n"
	      "that they had then. They must be there, unchanged, and be ELF files (perf's --symfs says "
	      "where else to\n"
	      "look). The vDSO perf takes from its build-id cache alone, where `perf record --buildid-all` "
	      "puts that of\n"
	      "the running kernel. A container without perf's clock (time_mult) is decoded without time. "
	      "perf knows one\n"
	      "version of the kernel's code: of what changed later, it has the PERF_RECORD_TEXT_POKE.\n"
	      "Exit status: 0 done; 1 failed, nothing is left; 2 wrong usage; 3 done, but the container is "
	      "cut or\n"
	      "damaged.\n",
	      stdout);
	return 0;
}

/* 0; 1: --help was asked for; -1. */
static int parse(struct arguments *a, int argc, char **argv, struct pt_error *e)
{
	static const struct pt_command_line line = {"pt-capture export", options, false};
	int operand, ret = pt_options_parse(&line, argc, argv, a, &operand, e);

	if (ret)
		return ret;
	if (!a->to || strcmp(a->to, "-") == 0)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "export needs --perf-data PATH; see `pt-capture export --help`");
	if (operand < argc)
		a->container = argv[operand++];
	if (operand < argc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "export takes one container, '%s' is too much",
			       argv[operand]);
	if (strcmp(a->container, "-") == 0 && isatty(STDIN_FILENO))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "export needs a container: a file's name, or a pipe on standard input");
	return 0;
}

int cmd_export(int argc, char **argv)
{
	struct pt_error e = {.offset = PT_NO_OFFSET};
	struct arguments a = {.container = "-"};
	int ret = parse(&a, argc, argv, &e);

	if (ret > 0)
		return usage();
	return ret < 0 ? command_failed(&e) : run(a.to, a.container, a.quiet);
}
