/* export.c - pt-capture export --perf-data: a container as a perf.data. */
#include "capture/commands.h"
#include "capture/code/elf_image.h"
#include "capture/perfdata/export_files.h"
#include "capture/pt/config.h"
#include "capture/pt/packet_len.h"
#include "schema/container.h"

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOLD_MAX ((size_t)4 << 20) /* without a PSB in so many bytes, they are cut at any packet */

static const char usage[] =
    "usage: pt-capture export --perf-data PATH [-q] [CONTAINER|-]\n"
    "Writes a container (standard input without a name) as a perf.data that perf 6.1 and later decode:\n"
    "perf script -i PATH --itrace=b, perf report, exported-sql-viewer...\n"
    "With kernel code in it, PATH becomes a folder like that of perf record --kcore: data, and kcore_dir "
    "with "
    "kcore,\n"
    "kallsyms and modules. With a guest's records, PATH/guest__PID has them as a recording of their own, on "
    "the "
    "guest's\n"
    "clock: perf inject --guest-data=PATH/guest__PID,PID,OFFSET joins them, pt-capture import PATH finds "
    "them.\n"
    "\n"
    "      --perf-data PATH  what to write; it must be a file, or not be there yet\n"
    "  -q, --quiet           no warnings about code that perf will not find\n"
    "  -h, --help            this text\n"
    "\n"
    "A perf.data holds no code of programs: perf reads it from the files that were mapped, under the names "
    "that they had\n"
    "then. They must be there, unchanged, and be ELF files (perf's --symfs says where else to look). The "
    "vdso "
    "perf takes\n"
    "from its build-id cache alone, where `perf record --buildid-all` puts that of the running kernel. A "
    "container without\n"
    "perf's clock (time_mult) is decoded without time. perf knows one version of the kernel's code: of what "
    "changed later,\nit has the PERF_RECORD_TEXT_POKE.\n"
    "Exit status: 0 done; 1 failed, nothing is left; 2 wrong usage; 3 done, but the container is cut or "
    "damaged.\n";

/* One stream's AUX bytes on their way: perf wants every piece to end between two packets. */
struct queue {
	struct ptc_stream stream;
	uint8_t *bytes; /* that are not written yet */
	size_t count, room;
	uint64_t offset; /* of bytes[0] in the AUX data */
	uint64_t flags, time_ns;
	bool aligned; /* a packet begins at bytes[0] */
};

struct export
{
	struct export_files files;
	struct export_machine *host; /* of files */
	struct ptc_meta *meta;
	struct queue *queues; /* [stream - 1] */
	uint32_t queue_count;
	uint64_t cut_bytes; /* of packets that go on nowhere */
	bool quiet;
};

/* Where the last PSB begins that is not at the very front; 0: there is none. */
static size_t last_psb(const struct queue *q)
{
	for (size_t at = q->count < PT_PSB_BYTES ? 0 : q->count - PT_PSB_BYTES; at > 0; at--)
		if (q->bytes[at] == 0x02 && pt_is_psb(q->bytes + at, q->count - at))
			return at;
	return 0;
}

/* How many bytes end with a whole packet, when no more will come. */
static size_t whole_at_end(const struct queue *q)
{
	size_t from = last_psb(q), whole;
	int block = 0;

	if (from == 0 && !q->aligned && !pt_is_psb(q->bytes, q->count))
		return q->count;
	whole = from + pt_whole_packets(q->bytes + from, q->count - from);
	/* Where it stops at something that is no packet, perf is to say so. */
	if (whole < q->count && pt_packet_len(q->bytes + whole, q->count - whole, &block) == PT_PACKET_CUT)
		return whole;
	return q->count;
}

static size_t whole_so_far(const struct queue *q)
{
	size_t at = last_psb(q);

	if (at || q->count < HOLD_MAX)
		return at;
	at = q->aligned ? pt_whole_packets(q->bytes, q->count) : 0;
	return at ? at : q->count;
}

/*
 * When the n first bytes of the queue were traced, at the latest, and its other bytes at the earliest: what a
 * reader takes the time of a PERF_RECORD_AUX for. Where a PSB is the border, its TSC says it. False: it is
 * not there yet.
 */
static bool border_time(const struct export *x, const struct queue *q, size_t n, uint64_t *ret)
{
	uint64_t mult = ptc_meta_number(x->meta, "time_mult", 0),
		 shift = ptc_meta_number(x->meta, "time_shift", 0);
	uint64_t tsc, ns;

	*ret = q->time_ns;
	if (n == q->count || !mult || shift > 63 || !pt_is_psb(q->bytes + n, q->count - n))
		return true;
	if (!pt_psb_tsc(q->bytes + n, q->count - n, &tsc))
		return !(ptc_meta_number(x->meta, "pt_config", PT_CONFIG_TSC) & PT_CONFIG_TSC);
	ns = ptc_meta_number(x->meta, "time_zero", 0) + (uint64_t)((unsigned __int128)tsc * mult >> shift);
	if (ns < *ret)
		*ret = ns;
	return true;
}

static int put_pieces(struct export *x, uint32_t number, bool all, size_t n, uint64_t time_ns,
		      struct pt_error *e)
{
	struct queue *q = &x->queues[number];
	struct perf_data_aux aux = {.queue = number,
				    .cpu = q->stream.cpu,
				    .pid = q->stream.pid,
				    .tid = q->stream.tid,
				    .offset = q->offset,
				    .flags = all ? q->flags : q->flags & ~(uint64_t)PTC_AUX_TRUNCATED,
				    .time_ns = time_ns,
				    .bytes = q->bytes,
				    .size = n};

	if ((n || (all && q->flags)) && perf_data_aux(&x->host->data, x->meta, &aux, e))
		return -1;
	if (all)
		x->cut_bytes += q->count - n;
	q->aligned = n > 0;
	q->offset += all ? q->count : n;
	q->count = all ? 0 : q->count - n;
	if (q->count)
		memmove(q->bytes, q->bytes + n, q->count);
	if (all)
		q->flags = 0;
	return 0;
}

static int flush(struct export *x, uint32_t number, bool all, struct pt_error *e)
{
	struct queue *q = &x->queues[number];
	size_t n = all ? whole_at_end(q) : whole_so_far(q);
	uint64_t time_ns = q->time_ns;

	/* With more bytes the PSB's TSC will be there. */
	if (!all && !border_time(x, q, n, &time_ns) && q->count < HOLD_MAX)
		return 0;
	return put_pieces(x, number, all, n, time_ns, e);
}

static int take_aux(struct export *x, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_aux aux;
	struct queue *q;
	bool ends;

	if (ptc_parse_aux(c, &aux, e))
		return -1;
	if (c->stream == 0 || c->stream > x->queue_count)
		return pt_fail(e, PT_ERR_BAD_INPUT, c->offset,
			       "AUX data of stream %u, which was not declared", c->stream);
	q = &x->queues[c->stream - 1];
	if (aux.aux_offset != q->offset + q->count) {
		if (flush(x, c->stream - 1, true, e))
			return -1;
		q->offset = aux.aux_offset;
		q->aligned = false;
	}
	if (q->count + aux.size > q->room) {
		size_t room = 2 * (q->count + aux.size);
		uint8_t *grown = realloc(q->bytes, room);

		if (!grown)
			return pt_fail_no_memory(e, "AUX data");
		q->bytes = grown;
		q->room = room;
	}
	if (aux.size)
		memcpy(q->bytes + q->count, aux.bytes, aux.size);
	q->count += aux.size;
	q->flags |= aux.flags;
	q->time_ns = aux.time_ns;
	ends = (aux.flags & PTC_AUX_TRUNCATED) || q->stream.snapshot;
	return aux.size || ends ? flush(x, c->stream - 1, ends, e) : 0;
}

static int take_stream(struct export *x, const struct ptc_chunk *c, struct pt_error *e)
{
	struct perf_data *out = &x->host->data;
	struct ptc_stream stream;
	struct queue *grown;

	if (ptc_parse_stream(c, &stream, e))
		return -1;
	if (c->stream != x->queue_count + 1)
		return pt_fail(e, PT_ERR_BAD_INPUT, c->offset, "stream %u is declared out of order",
			       c->stream);
	grown = realloc(x->queues, c->stream * sizeof *grown);
	if (!grown)
		return pt_fail_no_memory(e, "the streams");
	x->queues = grown;
	grown[x->queue_count++] = (struct queue){.stream = stream};
	if (stream.snapshot)
		out->snapshot = true;
	/* An event that came before its stream said that it is Intel PT's. */
	if (stream.attr < x->files.attr_count && x->files.machine_of[stream.attr] == 0) {
		out->has_pt_event = true;
		out->pt_event = x->files.event_of[stream.attr];
	}
	return 0;
}

static int take_attr(struct export *x, const struct ptc_chunk *c, struct pt_error *e)
{
	static const char pt[] = "intel_pt";
	struct ptc_attr attr;

	if (ptc_parse_attr(c, &attr, e))
		return -1;
	if (attr.index != x->files.attr_count || (x->host->data.index_count && !attr.machine_pid))
		return pt_fail(e, PT_ERR_BAD_INPUT, c->offset, "event %u is out of order", attr.index);
	return export_files_event(&x->files, &attr,
				  !attr.machine_pid && !x->host->data.has_pt_event &&
				      attr.name_bytes >= strlen(pt) && memcmp(attr.name, pt, strlen(pt)) == 0,
				  e);
}

/* All records but PERF_RECORD_AUX, which are made anew from the pieces. */
static int take_sideband(struct export *x, const struct ptc_chunk *c, struct pt_error *e)
{
	const uint8_t *p;
	uint64_t size;
	struct export_machine *m = x->host;
	uint32_t attr;

	if (ptc_parse_sideband(c, &attr, &p, &size, e))
		return -1;
	if (attr < x->files.attr_count)
		m = x->files.all[x->files.machine_of[attr]];
	while (size) {
		struct perf_event_header h;

		memcpy(&h, p, sizeof h);
		if (h.type != PERF_RECORD_AUX && h.type < 64 &&
		    (perf_data_record(&m->data, x->meta, p, h.size, e) ||
		     perf_kcore_record(&m->kcore, x->files.to, p, e)))
			return -1;
		p += h.size;
		size -= h.size;
	}
	return 0;
}

static int take_kernel(struct export *x, const struct ptc_image *image, struct pt_error *e)
{
	struct export_machine *m = export_files_of(&x->files, image->machine_pid, e);

	return m ? perf_kcore_image(&m->kcore, x->files.to, image, e) : -1;
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
	return m ? perf_data_format(&m->data, &t, e) : -1;
}

/*
 * perf will look for the file's code on the disk: a warning when it is not there. The kernel's goes into
 * kcore.
 */
static int take_image(struct export *x, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_image image;
	struct pt_error why;
	uint8_t build_id[20];
	char *name;
	int bytes;

	if (ptc_parse_image(c, &image, e))
		return -1;
	if (image.kind == PTC_IMAGE_MEMORY && image.pid == PTC_ANY_PID)
		return take_kernel(x, &image, e);
	if (image.kind == PTC_IMAGE_FILE && image.build_id_bytes && !image.continues &&
	    image.name_bytes < PATH_MAX) {
		struct export_machine *m = export_files_of(&x->files, image.machine_pid, e);

		if (!m || perf_data_build_id(&m->data, &image, e))
			return -1;
	}
	if (x->quiet || image.kind != PTC_IMAGE_FILE || image.machine_pid || image.continues ||
	    image.name_bytes == 0 || image.name[0] != '/')
		return 0;
	name = strndup(image.name, image.name_bytes);
	if (!name)
		return pt_fail_no_memory(e, NULL);
	bytes = elf_file_build_id(name, build_id, &why);
	if (bytes < 0)
		fprintf(stderr, "pt-capture: perf will not find the code of %s: %s\n", name, why.message);
	else if (image.build_id_bytes && ((uint32_t)bytes != image.build_id_bytes ||
					  memcmp(build_id, image.build_id, image.build_id_bytes) != 0))
		fprintf(stderr,
			"pt-capture: perf will decode wrongly: %s is another build than the traced one\n",
			name);
	free(name);
	return 0;
}

static int take_chunk(struct export *x, const struct ptc_chunk *c, struct pt_error *e)
{
	switch (c->type) {
	case PTC_META: return ptc_meta_add(x->meta, c, e);
	case PTC_STREAM: return take_stream(x, c, e);
	case PTC_AUX: return take_aux(x, c, e);
	case PTC_ATTR: return take_attr(x, c, e);
	case PTC_SIDEBAND: return take_sideband(x, c, e);
	case PTC_IMAGE: return take_image(x, c, e);
	case PTC_SYMBOLS: return take_symbols(x, c, e);
	case PTC_FORMAT: return take_format(x, c, e);
	default: return 0;
	}
}

/* 0; 3: the container is cut or damaged, and *e says where; or -1. */
static int export(struct export *x, struct ptc_reader *r, struct pt_error *e)
{
	struct pt_error end = {.offset = PT_NO_OFFSET};
	struct ptc_chunk c;
	int more, ret = 0;

	x->meta = ptc_meta_create();
	if (!x->meta)
		return pt_fail_no_memory(e, NULL);
	x->host = export_files_of(&x->files, 0, e);
	if (!x->host)
		return -1;
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
	for (uint32_t i = 0; i < x->queue_count; i++)
		if (x->queues[i].count && flush(x, i, true, e))
			return -1;
	return export_files_commit(&x->files, x->meta, e) ? -1 : ret;
}

static void deinit(struct export *x)
{
	export_files_deinit(&x->files);
	ptc_meta_destroy(x->meta);
	for (uint32_t i = 0; i < x->queue_count; i++)
		free(x->queues[i].bytes);
	free(x->queues);
}

static int run(const char *to, const char *container, bool quiet)
{
	struct pt_error e = {.offset = PT_NO_OFFSET};
	struct export x = {.quiet = quiet, .files = {.to = to}};
	struct ptc_reader *r = NULL;
	int fd = strcmp(container, "-") == 0 ? STDIN_FILENO : open(container, O_RDONLY | O_CLOEXEC), ret = -1;

	if (fd < 0) {
		pt_fail_errno(&e, "cannot open %s", container);
		goto out;
	}
	r = ptc_reader_create(fd, &e);
	if (r)
		ret = export(&x, r, &e);
	else
		pt_error_in(&e, container);
out:
	if (ret > 0)
		fprintf(stderr, "pt-capture: what there is was exported, but %s (at byte %" PRIu64 ")\n",
			e.message, e.offset);
	if (ret >= 0 && x.cut_bytes && !quiet)
		fprintf(stderr, "pt-capture: %" PRIu64 " bytes of packets that are not whole were left out\n",
			x.cut_bytes);
	for (size_t i = 1; ret >= 0 && i < x.files.count && !quiet; i++)
		if (x.files.all[i]->data.event_count)
			fprintf(stderr,
				"pt-capture: the records of guest %" PRId32 " are in %s/guest__%" PRId32 "\n",
				x.files.all[i]->pid, to, x.files.all[i]->pid);
	deinit(&x);
	ptc_reader_destroy(r);
	if (fd > STDIN_FILENO)
		close(fd);
	return ret < 0 ? command_failed(&e) : ret;
}

int cmd_export(int argc, char **argv)
{
	static const struct option options[] = {{"perf-data", required_argument, NULL, 'p'},
						{"quiet", no_argument, NULL, 'q'},
						{"help", no_argument, NULL, 'h'},
						{NULL, 0, NULL, 0}};
	const char *to = NULL, *container = "-";
	bool quiet = false;
	int c;

	while ((c = getopt_long(argc, argv, "qh", options, NULL)) != -1) {
		switch (c) {
		case 'p': to = optarg; break;
		case 'q': quiet = true; break;
		case 'h': fputs(usage, stdout); return fflush(stdout) ? 1 : 0;
		default: fputs("pt-capture: see `pt-capture export --help`\n", stderr); return 2;
		}
	}
	if (!to || strcmp(to, "-") == 0) {
		fputs("pt-capture: export needs --perf-data PATH; see `pt-capture export --help`\n", stderr);
		return 2;
	}
	if (optind < argc)
		container = argv[optind++];
	if (optind < argc) {
		fprintf(stderr, "pt-capture: export takes one container, '%s' is too much\n", argv[optind]);
		return 2;
	}
	if (strcmp(container, "-") == 0 && isatty(STDIN_FILENO)) {
		fputs("pt-capture: export needs a container: a file's name, or a pipe on standard input\n",
		      stderr);
		return 2;
	}
	return run(to, container, quiet);
}
