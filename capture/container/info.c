/* info.c - pt-capture info: what is inside a container. */
#include "capture/commands.h"
#include "capture/container/info.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/perf_event.h>

static const char usage[] = "usage: pt-capture info [--json] [CONTAINER|-]\n"
			    "Prints what is inside a container (standard input without a name): META, "
			    "streams, sideband, images, symbols,\n"
			    "sizes, and whether it is complete or where and why it ends.\n"
			    "\n"
			    "      --json  print one JSON object\n"
			    "  -h, --help  this text\n"
			    "\n"
			    "Exit status: 0 complete; 1 not a container, or unreadable; 2 wrong usage; 3 cut "
			    "or damaged (what is before\n"
			    "that place is printed).\n";

/* The array with room for one more element, or NULL: no memory (the array is unharmed). */
static void *grow(void *array, size_t count, size_t *room, size_t element, struct pt_error *e)
{
	size_t more = *room ? 2 * *room : 16;
	void *grown;

	if (count < *room)
		return array;
	grown = realloc(array, more * element);
	if (grown)
		*room = more;
	else
		pt_fail_no_memory(e, NULL);
	return grown;
}

static char *copy_of(const char *s, uint32_t n, struct pt_error *e)
{
	char *copy = strndup(s, n);

	if (!copy)
		pt_fail_no_memory(e, NULL);
	return copy;
}

static struct info_stream *stream_of(struct info *i, uint32_t number)
{
	return number >= 1 && number <= i->stream_count ? &i->streams[number - 1] : NULL;
}

static int add_stream(struct info *i, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_stream stream;
	struct info_stream *s;

	if (ptc_parse_stream(c, &stream, e))
		return -1;
	if (c->stream != i->stream_count + 1)
		return pt_fail(e, PT_ERR_BAD_INPUT, c->offset, "stream %u is declared out of order",
			       c->stream);
	s = grow(i->streams, i->stream_count, &i->stream_room, sizeof *s, e);
	if (!s)
		return -1;
	i->streams = s;
	s += i->stream_count++;
	memset(s, 0, sizeof *s);
	s->number = c->stream;
	s->stream = stream;
	return 0;
}

static int add_aux(struct info *i, const struct ptc_chunk *c, struct pt_error *e)
{
	struct info_stream *s = stream_of(i, c->stream);
	struct ptc_aux aux;

	if (ptc_parse_aux(c, &aux, e))
		return -1;
	if (!s)
		return pt_fail(e, PT_ERR_BAD_INPUT, c->offset,
			       "AUX data of stream %u, which was not declared", c->stream);
	if (aux.seq != s->pieces)
		return pt_fail(e, PT_ERR_BAD_INPUT, c->offset, "stream %u: a piece is missing", c->stream);
	if (s->pieces == 0) {
		s->first_offset = aux.aux_offset;
	} else if (aux.aux_offset > s->end_offset) {
		s->gaps++;
		s->gap_bytes += aux.aux_offset - s->end_offset;
	} else if (aux.aux_offset < s->end_offset) {
		if (!s->stream.snapshot)
			return pt_fail(e, PT_ERR_BAD_INPUT, c->offset, "stream %u: its pieces overlap",
				       c->stream);
		s->overlaps++;
	}
	s->end_offset = aux.aux_offset + aux.size;
	s->pieces++;
	s->bytes += aux.size;
	s->truncated += !!(aux.flags & PTC_AUX_TRUNCATED);
	s->overwrite += !!(aux.flags & PTC_AUX_OVERWRITE);
	s->partial += !!(aux.flags & PTC_AUX_PARTIAL);
	s->collision += !!(aux.flags & PTC_AUX_COLLISION);
	return 0;
}

static int add_attr(struct info *i, const struct ptc_chunk *c, struct pt_error *e)
{
	struct perf_event_attr pe = {0};
	struct info_attr *a;
	struct ptc_attr attr;

	if (ptc_parse_attr(c, &attr, e))
		return -1;
	a = grow(i->attrs, i->attr_count, &i->attr_room, sizeof *a, e);
	if (!a)
		return -1;
	i->attrs = a;
	memcpy(&pe, attr.attr, attr.attr_bytes < sizeof pe ? attr.attr_bytes : sizeof pe);
	a += i->attr_count;
	*a = (struct info_attr){.name = copy_of(attr.name, attr.name_bytes, e),
				.index = attr.index,
				.attr_bytes = attr.attr_bytes,
				.ids = attr.count,
				.type = pe.type,
				.config = pe.config,
				.sample_type = pe.sample_type};
	if (!a->name)
		return -1;
	i->attr_count++;
	return 0;
}

static int add_sideband(struct info *i, const struct ptc_chunk *c, struct pt_error *e)
{
	const uint8_t *p;
	uint64_t size;
	uint32_t attr;

	if (ptc_parse_sideband(c, &attr, &p, &size, e))
		return -1;
	i->record_bytes += size;
	while (size) {
		struct perf_event_header h;

		memcpy(&h, p, sizeof h);
		i->records[h.type < 256 ? h.type : 0]++;
		i->record_count++;
		p += h.size;
		size -= h.size;
	}
	return 0;
}

/* The entry of that image, a new one if there is none; NULL: no memory. */
static struct info_image *image_of(struct info *i, enum ptc_image_kind kind, int32_t machine_pid, int32_t pid,
				   const uint8_t *build_id, uint32_t build_id_bytes, const char *name,
				   uint32_t name_bytes, struct pt_error *e)
{
	struct info_image *m;
	char hex[41] = "";

	for (uint32_t b = 0; b < build_id_bytes; b++)
		snprintf(hex + (size_t)2 * b, 3, "%02x", build_id[b]);
	/* From the last one on: pieces follow one another. */
	for (size_t n = i->image_count; n-- > 0;) {
		m = &i->images[n];
		if (m->kind == kind && m->machine_pid == machine_pid && m->pid == pid &&
		    strcmp(m->build_id, hex) == 0 && strlen(m->name) == name_bytes &&
		    memcmp(m->name, name, name_bytes) == 0)
			return m;
	}
	if (i->image_count == INFO_IMAGES)
		return &i->images[i->image_count - 1];
	if (i->image_count == INFO_IMAGES - 1) {
		name = "(further images)";
		name_bytes = (uint32_t)strlen(name);
		hex[0] = 0;
	}
	m = grow(i->images, i->image_count, &i->image_room, sizeof *m, e);
	if (!m)
		return NULL;
	i->images = m;
	m += i->image_count;
	memset(m, 0, sizeof *m);
	m->name = copy_of(name, name_bytes, e);
	if (!m->name)
		return NULL;
	memcpy(m->build_id, hex, sizeof hex);
	m->kind = kind;
	m->machine_pid = machine_pid;
	m->pid = pid;
	i->image_count++;
	return m;
}

static int add_image(struct info *i, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_image image;
	struct info_image *m;
	struct info_range *r;

	if (ptc_parse_image(c, &image, e))
		return -1;
	m = image_of(i, image.kind, image.machine_pid, image.pid, image.build_id, image.build_id_bytes,
		     image.name, image.name_bytes, e);
	if (!m)
		return -1;
	m->versions += !image.continues;
	m->bytes += image.size;
	r = m->listed && m->listed == m->range_count ? &m->ranges[m->listed - 1] : NULL;
	if (r && image.continues && r->offset + r->size == image.offset &&
	    r->vaddr + r->size == image.vaddr) {
		r->size += image.size;
		return 0;
	}
	m->range_count++;
	if (m->listed < INFO_RANGES)
		m->ranges[m->listed++] = (struct info_range){image.offset, image.vaddr, image.size};
	return 0;
}

static int add_symbols(struct info *i, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_symbols s;
	struct info_image *m;

	if (ptc_parse_symbols(c, &s, e))
		return -1;
	m = image_of(i, s.absolute ? PTC_IMAGE_MEMORY : PTC_IMAGE_FILE, s.machine_pid, s.pid, s.build_id,
		     s.build_id_bytes, s.name, s.name_bytes, e);
	if (!m)
		return -1;
	m->symbols += s.count;
	i->symbols += s.count;
	return 0;
}

static int add_chunk(struct info *i, const struct ptc_chunk *c, struct pt_error *e)
{
	uint64_t ns;

	switch (c->type) {
	case PTC_META: return ptc_meta_add(i->meta, c, e);
	case PTC_STREAM: return add_stream(i, c, e);
	case PTC_AUX: return add_aux(i, c, e);
	case PTC_ATTR: return add_attr(i, c, e);
	case PTC_SIDEBAND: return add_sideband(i, c, e);
	case PTC_IMAGE: return add_image(i, c, e);
	case PTC_SYMBOLS: return add_symbols(i, c, e);
	case PTC_ROUND: i->rounds++; return ptc_parse_round(c, &ns, e);
	default: return 0;
	}
}

/* 0, also when the container is cut or damaged (then not complete); -1: it could not be gone through. */
static int gather(struct info *i, int fd, struct pt_error *e)
{
	struct ptc_reader *r = ptc_reader_create(fd, e);
	struct ptc_chunk c;
	int more = -1;

	if (!r)
		return -1;
	i->meta = ptc_meta_create();
	if (!i->meta) {
		ptc_reader_destroy(r);
		return pt_fail_no_memory(e, NULL);
	}
	for (;;) {
		struct info_chunks *k;

		more = ptc_next(r, &c, &i->error);
		if (more <= 0)
			break;
		k = &i->chunks[(unsigned)c.type < INFO_TYPES ? (unsigned)c.type : 0];
		k->count++;
		k->raw_bytes += c.size;
		k->stored_bytes += ptc_reader_bytes(r) - c.offset;
		if (add_chunk(i, &c, &i->error)) {
			more = -1;
			break;
		}
	}
	i->bytes = ptc_reader_bytes(r);
	i->complete = more == 0;
	ptc_reader_destroy(r);
	if (more == 0 || i->error.kind == PT_ERR_BAD_INPUT || i->error.kind == PT_ERR_TRUNCATED)
		return 0;
	*e = i->error;
	return -1;
}

static void deinit(struct info *i)
{
	ptc_meta_destroy(i->meta);
	for (size_t n = 0; n < i->attr_count; n++)
		free(i->attrs[n].name);
	for (size_t n = 0; n < i->image_count; n++)
		free(i->images[n].name);
	free(i->attrs);
	free(i->images);
	free(i->streams);
}

int cmd_info(int argc, char **argv)
{
	static const struct option options[] = {
	    {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	struct info info = {.file = "-"};
	struct pt_error e = {.offset = PT_NO_OFFSET};
	bool json = false;
	int fd = STDIN_FILENO, c, status;

	while ((c = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		switch (c) {
		case 'j': json = true; break;
		case 'h': fputs(usage, stdout); return fflush(stdout) ? 1 : 0;
		default: fputs("pt-capture: see `pt-capture info --help`\n", stderr); return 2;
		}
	}
	if (optind < argc)
		info.file = argv[optind++];
	if (optind < argc) {
		fprintf(stderr, "pt-capture: info takes one container, '%s' is too much\n", argv[optind]);
		return 2;
	}
	if (strcmp(info.file, "-") != 0) {
		fd = open(info.file, O_RDONLY | O_CLOEXEC);
	} else if (isatty(fd)) {
		fputs("pt-capture: info needs a container: a file's name, or a pipe on standard input\n",
		      stderr);
		return 2;
	}
	if (fd < 0 || gather(&info, fd, &e)) {
		if (fd < 0)
			pt_fail_errno(&e, "cannot open");
		fprintf(stderr, "pt-capture: %s: %s\n", info.file, e.message);
		status = 1;
	} else {
		if (json)
			info_print_json(&info);
		else
			info_print_text(&info);
		status = info.complete ? 0 : 3;
		if (fflush(stdout) || ferror(stdout)) {
			if (errno != EPIPE)
				perror("pt-capture: cannot write");
			status = 1;
		}
	}
	if (fd > STDIN_FILENO)
		close(fd);
	deinit(&info);
	return status;
}
