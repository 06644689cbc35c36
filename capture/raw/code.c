/* code.c - see code.h. */
#include "capture/raw/code.h"
#include "capture/code/elf_image.h"
#include "capture/code/image_set.h"
#include "capture/code/text_line.h"
#include "capture/raw/byte_source.h"
#include "schema/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEGMENTS_MAX 64
#define COPY_BYTES   ((size_t)1 << 20)
#define LINE_MAX     8192 /* of a maps file: numbers and a path */

struct range {
	uint64_t start, end; /* file offsets, half-open */
};

struct import_code *import_code_create(void)
{
	return calloc(1, sizeof(struct import_code));
}

void import_code_destroy(struct import_code *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->count; i++) {
		free(c->mappings[i].name);
		free(c->mappings[i].path);
	}
	free(c->mappings);
	free(c);
}

/* The file's absolute name and what to open for it: FILE.zst stands in for a missing FILE. */
static int find_file(struct import_mapping *m, const char *file, struct pt_error *e)
{
	char *compressed;

	m->path = realpath(file, NULL);
	if (m->path)
		return (m->name = strdup(m->path)) ? 0 : pt_fail_no_memory(e, "the mappings");
	if (errno != ENOENT)
		return pt_fail_errno(e, "cannot read %s", file);
	if (asprintf(&compressed, "%s.zst", file) < 0)
		return pt_fail_no_memory(e, "the mappings");
	m->path = realpath(compressed, NULL);
	free(compressed);
	if (!m->path)
		return pt_fail_errno(e, "cannot read %s", file);
	return (m->name = strndup(m->path, strlen(m->path) - strlen(".zst")))
		   ? 0
		   : pt_fail_no_memory(e, "the mappings");
}

/* Adds a mapping of the file; *m has its addresses and offset. */
static int add(struct import_code *c, const char *file, const struct import_mapping *m, struct pt_error *e)
{
	struct import_mapping *to;

	if (pt_array_grow(&c->mappings, c->count, &c->room, e))
		return -1;
	to = &c->mappings[c->count];
	*to = *m;
	if (find_file(to, file, e)) {
		free(to->name);
		free(to->path);
		return -1;
	}
	c->count++;
	return 0;
}

/* Hex, with or without 0x; *at moves past it. */
static bool parse_hex(char **at, uint64_t *ret)
{
	char *end;
	unsigned long long v;

	if (!strchr("0123456789abcdefABCDEF", **at) || !**at)
		return false;
	errno = 0;
	v = strtoull(*at, &end, 16);
	if (errno || end == *at)
		return false;
	*at = end;
	*ret = v;
	return true;
}

/* Cuts ":HEX" off the end of text. */
static bool cut_hex(char *text, uint64_t *ret)
{
	char *colon = strrchr(text, ':'), *at;

	if (!colon)
		return false;
	at = colon + 1;
	if (!parse_hex(&at, ret) || *at)
		return false;
	*colon = 0;
	return true;
}

/* The executable segments of the file, moved by addr - lowest address if it is moved. */
static int add_segments(struct import_code *c, const char *file, bool moved, uint64_t addr,
			struct pt_error *e)
{
	struct elf_segment segments[SEGMENTS_MAX];
	uint64_t lowest;
	int count = elf_file_segments(file, segments, SEGMENTS_MAX, &lowest, e);

	if (count < 0)
		return -1;
	if (count == 0 || count > SEGMENTS_MAX)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s: %s executable segments", file,
			       count ? "too many" : "no");
	for (int i = 0; i < count; i++) {
		const struct import_mapping m = {.addr = segments[i].vaddr + (moved ? addr - lowest : 0),
						 .bytes = segments[i].map_bytes,
						 .offset = segments[i].offset};

		if (add(c, file, &m, e))
			return -1;
	}
	return 0;
}

int import_code_elf(struct import_code *c, const char *argument, struct pt_error *e)
{
	char *file = strdup(argument);
	uint64_t addr = 0;
	bool moved;
	int ret;

	if (!file)
		return pt_fail_no_memory(e, "the mappings");
	/* A name may have colons itself. */
	moved = access(file, F_OK) != 0 && cut_hex(file, &addr);
	ret = add_segments(c, file, moved, addr, e);
	free(file);
	return ret;
}

int import_code_raw(struct import_code *c, const char *argument, struct pt_error *e)
{
	struct import_mapping m = {0};
	char *file = strdup(argument);
	int ret;

	if (!file)
		return pt_fail_no_memory(e, "the mappings");
	if (!cut_hex(file, &m.addr) || !cut_hex(file, &m.bytes) || !cut_hex(file, &m.offset) ||
	    m.bytes == 0 || m.addr + m.bytes < m.addr || m.offset + m.bytes < m.offset)
		ret = pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--raw-code %s: expected FILE:OFFSET:SIZE:ADDR",
			      argument);
	else
		ret = add(c, file, &m, e);
	free(file);
	return ret;
}

/* "start end offset file". 0, 1 for an empty line or a comment, or -1. */
static int parse_line(char *line, struct import_mapping *ret, char **ret_file)
{
	char *at = line + strspn(line, " \t"), *end = at + strlen(at);
	uint64_t number[3];

	while (end > at && strchr(" \t\r\n", end[-1]))
		*--end = 0;
	if (*at == 0 || *at == '#')
		return 1;
	for (int i = 0; i < 3; i++) {
		if (!parse_hex(&at, &number[i]) || (*at != ' ' && *at != '\t'))
			return -1;
		at += strspn(at, " \t");
	}
	if (number[0] >= number[1])
		return -1;
	*ret_file = at;
	*ret =
	    (struct import_mapping){.addr = number[0], .bytes = number[1] - number[0], .offset = number[2]};
	return ret->offset + ret->bytes >= ret->offset ? 0 : -1;
}

/* A file that is named in the maps file at path. The name is relative to that file's folder. */
static int add_named(struct import_code *c, const char *path, const char *file,
		     const struct import_mapping *m, struct pt_error *e)
{
	const char *slash = strrchr(path, '/');
	char *full;
	int ret;

	if (asprintf(&full, "%.*s%s", slash && file[0] != '/' ? (int)(slash - path + 1) : 0, path, file) < 0)
		return pt_fail_no_memory(e, "the mappings");
	ret = add(c, full, m, e);
	free(full);
	return ret;
}

int import_code_maps(struct import_code *c, const char *path, struct pt_error *e)
{
	unsigned line_number = 0;
	char line[LINE_MAX];
	FILE *in = fopen(path, "re");
	int ret = 0;
	bool cut;

	if (!in)
		return pt_fail_errno(e, "cannot read %s", path);
	while (ret == 0 && (errno = 0, text_line(in, line, sizeof line, &cut))) {
		struct import_mapping m;
		char *file;
		int got = cut ? -1 : parse_line(line, &m, &file);

		line_number++;
		if (got < 0)
			ret = pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
				      "%s, line %u: expected START END OFFSET FILE, numbers in hex", path,
				      line_number);
		else if (got == 0)
			ret = add_named(c, path, file, &m, e);
	}
	if (ret == 0 && ferror(in))
		ret = pt_fail_errno(e, "cannot read %s", path);
	fclose(in);
	return ret;
}

bool import_mapping_is_kernel(const struct import_mapping *m)
{
	return m->addr >> 63;
}

bool import_code_has_kernel(const struct import_code *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (import_mapping_is_kernel(&c->mappings[i]))
			return true;
	return false;
}

const char *import_code_comm(const struct import_code *c)
{
	const char *slash;

	if (c->count == 0)
		return "raw";
	slash = strrchr(c->mappings[0].name, '/');
	return slash ? slash + 1 : c->mappings[0].name;
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Which ranges of the file are mapped, sorted and joined. Returns how many, at most one per mapping. */
static size_t mapped_ranges(const struct import_code *c, const char *name, struct range *ret)
{
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < c->count; i++)
		if (!import_mapping_is_kernel(&c->mappings[i]) && strcmp(c->mappings[i].name, name) == 0)
			ret[count++] = (struct range){c->mappings[i].offset,
						      c->mappings[i].offset + c->mappings[i].bytes};
	qsort(ret, count, sizeof *ret, by_start);
	for (size_t i = 0; i < count; i++) {
		if (kept && ret[i].start <= ret[kept - 1].end) {
			if (ret[i].end > ret[kept - 1].end)
				ret[kept - 1].end = ret[i].end;
		} else {
			ret[kept++] = ret[i];
		}
	}
	return kept;
}

/* What it takes to write the images. */
struct writing {
	const struct import_code *code;
	struct image_set *images;
	struct ptc_writer *w;
	struct range *ranges; /* room for all mappings, and SEGMENTS_MAX more */
	uint8_t *buffer;
};

/* Copies a range of the file, where source is at *at, into the image. */
static int write_range(const struct writing *x, struct byte_source *source, uint64_t *at,
		       const struct range *r, struct ptc_image *image, struct pt_error *e)
{
	uint64_t start = r->start;
	ssize_t got = 1;

	if (byte_source_skip(source, start - *at, e))
		return -1;
	while (start < r->end && got > 0) {
		got = byte_source_read(source, x->buffer,
				       r->end - start < COPY_BYTES ? r->end - start : COPY_BYTES, e);
		if (got < 0)
			return -1;
		if (got == 0 && start == r->start)
			return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
				       "%.*s ends before offset 0x%llx, which is mapped",
				       (int)image->name_bytes, image->name, (unsigned long long)start);
		image->bytes = x->buffer;
		image->offset = image->vaddr = start;
		image->size = (uint64_t)got;
		if (got && ptc_put_image(x->w, image, e))
			return -1;
		image->continues = 1;
		start += (uint64_t)got;
	}
	*at = start;
	return 0;
}

/* The kernel's memory, as the mapping has it; a file that ends earlier has no more. */
static int write_memory(const struct writing *x, const struct import_mapping *m, struct pt_error *e)
{
	static const char name[] = "[kernel]";
	struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
				  .pid = PTC_ANY_PID,
				  .vaddr = m->addr,
				  .name = name,
				  .name_bytes = sizeof name - 1,
				  .bytes = x->buffer};
	struct byte_source *source = byte_source_open(m->path, e);
	uint64_t left = m->bytes;
	ssize_t got = 1;
	int ret = source ? byte_source_skip(source, m->offset, e) : -1;

	while (ret == 0 && left && got > 0) {
		got = byte_source_read(source, x->buffer, left < COPY_BYTES ? left : COPY_BYTES, e);
		if (got < 0)
			ret = -1;
		else if (got == 0 && left == m->bytes)
			ret = pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
				      "%s ends before offset 0x%llx, which is mapped", m->name,
				      (unsigned long long)m->offset);
		image.size = got > 0 ? (uint64_t)got : 0;
		if (ret == 0 && image.size)
			ret = ptc_put_image(x->w, &image, e);
		image.continues = 1;
		image.vaddr += image.size;
		left -= image.size;
	}
	byte_source_close(source);
	return ret;
}

/*
 * Cuts what segments cover off the ranges, which have room for segment_count more. Returns how many there
 * are.
 */
static size_t uncovered(struct range *ranges, size_t count, const struct elf_segment *segments,
			int segment_count)
{
	for (int s = 0; s < segment_count; s++) {
		uint64_t start = segments[s].offset, end = start + segments[s].map_bytes;

		/* Disjoint ranges: only one can be cut in two by a segment. */
		for (size_t i = count; i-- > 0;) {
			struct range r = ranges[i];

			if (r.end <= start || r.start >= end)
				continue;
			ranges[i].end = r.start < start ? start : r.start;
			if (r.end > end)
				ranges[count++] = (struct range){end, r.end};
		}
	}
	qsort(ranges, count, sizeof *ranges, by_start);
	for (size_t i = count; i-- > 0;)
		if (ranges[i].start == ranges[i].end) {
			memmove(ranges + i, ranges + i + 1, (count - i - 1) * sizeof *ranges);
			count--;
		}
	return count;
}

static int write_ranges(const struct writing *x, const struct import_mapping *m, size_t count,
			struct ptc_image *image, struct pt_error *e)
{
	struct byte_source *source = byte_source_open(m->path, e);
	uint64_t at = 0;
	int ret = 0;

	if (!source)
		return -1;
	for (size_t i = 0; i < count && ret == 0; i++)
		ret = write_range(x, source, &at, &x->ranges[i], image, e);
	byte_source_close(source);
	return ret;
}

/*
 * What is mapped of the file: as an ELF file's segments, if it is one, and the ranges that these do not
 * cover.
 */
static int write_file(const struct writing *x, const struct import_mapping *m, struct pt_error *e)
{
	struct ptc_image image = {.kind = PTC_IMAGE_FILE,
				  .pid = PTC_ANY_PID,
				  .name = m->name,
				  .name_bytes = (uint32_t)strlen(m->name)};
	struct elf_segment segments[SEGMENTS_MAX];
	size_t count = mapped_ranges(x->code, m->name, x->ranges);
	struct pt_error not_elf;
	int got, found;

	got = image_set_add_file(x->images, x->w, &(struct image_file){.name = m->name, .path = m->path},
				 &not_elf);
	/* What is no ELF file is taken as it is; what cannot be read was asked for in vain. */
	if (got < 0 || (got == IMAGE_SET_SKIPPED && not_elf.kind != PT_ERR_BAD_INPUT)) {
		*e = not_elf;
		return -1;
	}
	if (got == IMAGE_SET_DONE) {
		found = elf_file_segments(m->path, segments, SEGMENTS_MAX, NULL, e);
		if (found < 0)
			return -1;
		count = uncovered(x->ranges, count, segments, found < SEGMENTS_MAX ? found : SEGMENTS_MAX);
		image.continues = 1;
		image.build_id_bytes = image_set_build_id(x->images, m->name, &image.build_id);
	}
	return count ? write_ranges(x, m, count, &image, e) : 0;
}

/* Whether an earlier mapping of user space is of the same file. */
static bool seen(const struct import_code *c, size_t mapping)
{
	for (size_t i = 0; i < mapping; i++)
		if (!import_mapping_is_kernel(&c->mappings[i]) &&
		    strcmp(c->mappings[i].name, c->mappings[mapping].name) == 0)
			return true;
	return false;
}

int import_code_write(const struct import_code *c, struct ptc_writer *w, struct pt_error *e)
{
	struct writing x = {.code = c,
			    .images = image_set_create(),
			    .w = w,
			    .ranges = calloc(c->count + SEGMENTS_MAX, sizeof *x.ranges),
			    .buffer = malloc(COPY_BYTES)};
	int ret = 0;

	if (!x.images || !x.ranges || !x.buffer)
		ret = pt_fail_no_memory(e, "the mappings");
	else
		image_set_ask_servers(x.images);
	for (size_t i = 0; ret == 0 && i < c->count; i++)
		if (import_mapping_is_kernel(&c->mappings[i]))
			ret = write_memory(&x, &c->mappings[i], e);
		else if (!seen(c, i))
			ret = write_file(&x, &c->mappings[i], e);
	free(x.buffer);
	free(x.ranges);
	image_set_destroy(x.images);
	return ret;
}
