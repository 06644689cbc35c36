/* info.c - pt-capture info: what is inside a container. */
#include "capture/commands.h"
#include "capture/container/info.h"
#include "schema/array.h"
#include "schema/options.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/perf_event.h>

/* ---- Gathering ---- */

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

	if (ptc_parse_stream(c, &stream, e))
		return -1;
	if (c->stream != i->stream_count + 1)
		return pt_fail(e, PT_ERR_BAD_INPUT, c->offset, "stream %u is declared out of order",
			       c->stream);
	if (pt_array_grow(&i->streams, i->stream_count, &i->stream_room, e))
		return -1;
	i->streams[i->stream_count++] = (struct info_stream){.number = c->stream, .stream = stream};
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
	if (pt_array_grow(&i->attrs, i->attr_count, &i->attr_room, e))
		return -1;
	memcpy(&pe, attr.attr, attr.attr_bytes < sizeof pe ? attr.attr_bytes : sizeof pe);
	a = &i->attrs[i->attr_count];
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

/* What an IMAGE and a SYMBOLS chunk name an image by. */
struct image_key {
	enum ptc_image_kind kind;
	int32_t machine_pid, pid;
	char build_id[41];
	const char *name;
	uint32_t name_bytes;
};

static void set_build_id(struct image_key *k, const uint8_t *build_id, uint32_t bytes)
{
	for (uint32_t b = 0; b < bytes; b++)
		snprintf(k->build_id + (size_t)2 * b, 3, "%02x", build_id[b]);
}

/* FNV-1a, 64 bits, of what names an image. */
static uint64_t hash_of(const struct image_key *k)
{
	uint64_t hash =
	    0xcbf29ce484222325u ^ (uint32_t)k->machine_pid ^ (uint64_t)(uint32_t)k->pid << 32 ^ k->kind;

	for (const char *p = k->build_id; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 0x100000001b3u;
	for (uint32_t i = 0; i < k->name_bytes; i++)
		hash = (hash ^ (uint8_t)k->name[i]) * 0x100000001b3u;
	return pt_hash_mix(hash);
}

static uint64_t image_hash(const void *images, uint32_t n)
{
	const struct info_image *m = (const struct info_image *)images + (n - 1);
	struct image_key k = {.kind = m->kind,
			      .machine_pid = m->machine_pid,
			      .pid = m->pid,
			      .name = m->name,
			      .name_bytes = (uint32_t)strlen(m->name)};

	memcpy(k.build_id, m->build_id, sizeof k.build_id);
	return hash_of(&k);
}

/* The entry of that image. NULL: there is none. */
static struct info_image *find_image(struct info *i, const struct image_key *k)
{
	uint32_t n;

	if (!i->image_hash.slots)
		return NULL;
	for (uint32_t at = pt_hash_first(&i->image_hash, hash_of(k)); (n = i->image_hash.slots[at]);
	     at = pt_hash_next(&i->image_hash, at)) {
		struct info_image *m = &i->images[n - 1];

		if (m->kind == k->kind && m->machine_pid == k->machine_pid && m->pid == k->pid &&
		    strcmp(m->build_id, k->build_id) == 0 && strlen(m->name) == k->name_bytes &&
		    memcmp(m->name, k->name, k->name_bytes) == 0)
			return m;
	}
	return NULL;
}

/* The same, or a new entry; the last one, when the list is full. NULL: no memory. */
static struct info_image *image_of(struct info *i, const struct image_key *k, struct pt_error *e)
{
	static const char further[] = "(further images)";
	bool last = i->image_count == INFO_IMAGES - 1;
	struct info_image *m = find_image(i, k);

	if (m)
		return m;
	if (i->image_count == INFO_IMAGES)
		return &i->images[i->image_count - 1];
	if (pt_array_grow(&i->images, i->image_count, &i->image_room, e))
		return NULL;
	m = &i->images[i->image_count];
	*m = (struct info_image){.name = last ? copy_of(further, sizeof further - 1, e)
					      : copy_of(k->name, k->name_bytes, e),
				 .kind = k->kind,
				 .machine_pid = k->machine_pid,
				 .pid = k->pid};
	if (!m->name)
		return NULL;
	i->image_count++;
	if (last)
		return m;
	memcpy(m->build_id, k->build_id, sizeof m->build_id);
	return (!i->image_hash.slots && pt_hash_init(&i->image_hash, 6, e)) ||
		       pt_hash_insert(&i->image_hash, hash_of(k), (uint32_t)i->image_count, image_hash,
				      i->images, e)
		   ? NULL
		   : m;
}

static int add_image(struct info *i, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_image image;
	struct image_key key;
	struct info_image *m;
	struct info_range *r;

	if (ptc_parse_image(c, &image, e))
		return -1;
	key = (struct image_key){.kind = image.kind,
				 .machine_pid = image.machine_pid,
				 .pid = image.pid,
				 .name = image.name,
				 .name_bytes = image.name_bytes};
	set_build_id(&key, image.build_id, image.build_id_bytes);
	m = image_of(i, &key, e);
	if (!m)
		return -1;
	m->versions += !image.continues;
	if (!image.size)
		return 0;
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
	struct image_key key;
	struct info_image *m;

	if (ptc_parse_symbols(c, &s, e))
		return -1;
	key = (struct image_key){.kind = s.absolute ? PTC_IMAGE_MEMORY : PTC_IMAGE_FILE,
				 .machine_pid = s.machine_pid,
				 .pid = s.pid,
				 .name = s.name,
				 .name_bytes = s.name_bytes};
	set_build_id(&key, s.build_id, s.build_id_bytes);
	m = image_of(i, &key, e);
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
	pt_hash_deinit(&i->image_hash);
	free(i->streams);
}

/* ---- The subcommand ---- */

struct arguments {
	const char *container;
	bool json;
};

static const struct pt_option options[] = {
    {.name = "json", .help = "print one JSON object", PT_OPTION_FLAG(struct arguments, json)}, PT_OPTION_END};

static void usage(void)
{
	fputs("usage: pt-capture info [--json] [CONTAINER|-]\n"
	      "Prints what is inside a container (standard input without a name): META, streams, sideband,\n"
	      "images, symbols, sizes, and whether it is complete or where and why it ends.\n"
	      "\n",
	      stdout);
	pt_options_print(options, stdout);
	fputs("  -h, --help                this text\n"
	      "\n"
	      "Exit status: 0 complete; 1 not a container, or unreadable; 2 wrong usage; 3 cut or damaged "
	      "(what\n"
	      "is before that place is printed).\n",
	      stdout);
}

/* 0; 1: --help was asked for; -1. */
static int parse(struct arguments *a, int argc, char **argv, struct pt_error *e)
{
	static const struct pt_command_line line = {"pt-capture info", options, true};
	int operand, ret = pt_options_parse(&line, argc, argv, a, &operand, e);

	if (ret)
		return ret;
	if (operand < argc)
		a->container = argv[operand++];
	if (operand < argc)
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "info takes one container, '%s' is too much",
			       argv[operand]);
	if (strcmp(a->container, "-") == 0 && isatty(STDIN_FILENO))
		return pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET,
			       "info needs a container: a file's name, or a pipe on standard input");
	return 0;
}

/* 0, or -1 as gather(). */
static int gather_file(struct info *i, struct pt_error *e)
{
	int fd = STDIN_FILENO, ret;

	if (strcmp(i->file, "-") != 0)
		fd = open(i->file, O_RDONLY | O_CLOEXEC);
	ret = fd < 0 ? pt_fail_errno(e, "cannot open") : gather(i, fd, e);
	if (ret)
		pt_error_in(e, i->file);
	if (fd > STDIN_FILENO)
		close(fd);
	return ret;
}

int cmd_info(int argc, char **argv)
{
	struct pt_error e = {.offset = PT_NO_OFFSET};
	struct arguments a = {.container = "-"};
	int status, ret = parse(&a, argc, argv, &e);
	struct info info = {0};

	if (ret > 0)
		usage();
	if (ret)
		return ret > 0 ? 0 : command_failed(&e);
	info.file = a.container;
	if (gather_file(&info, &e)) {
		status = command_failed(&e);
	} else {
		if (a.json)
			info_print_json(&info);
		else
			info_print_text(&info);
		status = info.complete ? 0 : 3;
	}
	deinit(&info);
	return status;
}
