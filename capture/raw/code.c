/* code.c - see code.h. */
#include "capture/raw/code.h"
#include "capture/raw/byte_source.h"
#include "capture/code/elf_image.h"
#include "capture/code/text_line.h"

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

static int add(struct import_code *c, const char *file, uint64_t addr, uint64_t bytes, uint64_t offset,
	       struct pt_error *e)
{
	struct import_mapping *m;

	if (c->count == c->room) {
		size_t room = c->room ? 2 * c->room : 32;
		struct import_mapping *grown = realloc(c->mappings, room * sizeof *grown);

		if (!grown)
			return pt_fail_no_memory(e, "the mappings");
		c->mappings = grown;
		c->room = room;
	}
	m = &c->mappings[c->count];
	*m = (struct import_mapping){.addr = addr, .bytes = bytes, .offset = offset};
	if (find_file(m, file, e)) {
		free(m->name);
		free(m->path);
		return -1;
	}
	c->count++;
	return 0;
}

/* Hex, with or without 0x; *at moves behind it. */
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

int import_code_elf(struct import_code *c, const char *argument, struct pt_error *e)
{
	struct elf_segment segments[SEGMENTS_MAX];
	uint64_t lowest, addr = 0, bias = 0;
	char *file = strdup(argument);
	bool moved;
	int count;

	if (!file)
		return pt_fail_no_memory(e, "the mappings");
	/* A name may have colons itself. */
	moved = access(file, F_OK) != 0 && cut_hex(file, &addr);
	count = elf_file_segments(file, segments, SEGMENTS_MAX, &lowest, e);
	if (count < 0)
		goto fail;
	if (count == 0 || count > SEGMENTS_MAX) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s: %s executable segments", file,
			count ? "too many" : "no");
		goto fail;
	}
	if (moved)
		bias = addr - lowest;
	for (int i = 0; i < count; i++)
		if (add(c, file, segments[i].vaddr + bias, segments[i].map_bytes, segments[i].offset, e))
			goto fail;
	free(file);
	return 0;
fail:
	free(file);
	return -1;
}

int import_code_raw(struct import_code *c, const char *argument, struct pt_error *e)
{
	uint64_t offset = 0, bytes = 0, addr = 0;
	char *file = strdup(argument);
	int ret;

	if (!file)
		return pt_fail_no_memory(e, "the mappings");
	if (!cut_hex(file, &addr) || !cut_hex(file, &bytes) || !cut_hex(file, &offset) || bytes == 0 ||
	    addr + bytes < addr || offset + bytes < offset)
		ret = pt_fail(e, PT_ERR_USAGE, PT_NO_OFFSET, "--raw-code %s: expected FILE:OFFSET:SIZE:ADDR",
			      argument);
	else
		ret = add(c, file, addr, bytes, offset, e);
	free(file);
	return ret;
}

/* "start end offset file". 0, 1 for an empty line or a comment, or -1. */
static int parse_line(char *line, uint64_t number[3], char **ret_file)
{
	char *at = line + strspn(line, " \t"), *end = at + strlen(at);

	while (end > at && strchr(" \t\r\n", end[-1]))
		*--end = 0;
	if (*at == 0 || *at == '#')
		return 1;
	for (int i = 0; i < 3; i++) {
		if (!parse_hex(&at, &number[i]) || (*at != ' ' && *at != '\t'))
			return -1;
		at += strspn(at, " \t");
	}
	*ret_file = at;
	return number[0] < number[1] && number[2] + (number[1] - number[0]) >= number[2] ? 0 : -1;
}

int import_code_maps(struct import_code *c, const char *path, struct pt_error *e)
{
	const char *slash = strrchr(path, '/');
	int folder = slash ? (int)(slash - path + 1) : 0, ret = 0;
	unsigned line_number = 0;
	char line[LINE_MAX];
	bool cut;
	FILE *in = fopen(path, "re");

	if (!in)
		return pt_fail_errno(e, "cannot read %s", path);
	while (ret == 0 && (errno = 0, text_line(in, line, sizeof line, &cut))) {
		uint64_t number[3];
		char *file, *full;
		int got = cut ? -1 : parse_line(line, number, &file);

		line_number++;
		if (got > 0)
			continue;
		if (got < 0) {
			ret = pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
				      "%s, line %u: expected START END OFFSET FILE, numbers in hex", path,
				      line_number);
			break;
		}
		if (asprintf(&full, "%.*s%s", file[0] == '/' ? 0 : folder, path, file) < 0) {
			ret = pt_fail_no_memory(e, "the mappings");
			break;
		}
		ret = add(c, full, number[0], number[1] - number[0], number[2], e);
		free(full);
	}
	if (ret == 0 && ferror(in))
		ret = pt_fail_errno(e, "cannot read %s", path);
	fclose(in);
	return ret;
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

/* What of the file is mapped: the ranges, sorted and joined. room: the mappings' number. */
static size_t mapped_ranges(const struct import_code *c, const char *name, struct range *ret)
{
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < c->count; i++)
		if (strcmp(c->mappings[i].name, name) == 0)
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

/* Copies [r->start, r->end) of the file, where source stands at *at, into the image. */
static int write_range(struct ptc_writer *w, struct byte_source *source, uint64_t *at, const struct range *r,
		       struct ptc_image *image, uint8_t *buffer, struct pt_error *e)
{
	uint64_t start = r->start;
	ssize_t got = 1;

	if (byte_source_skip(source, start - *at, e))
		return -1;
	while (start < r->end && got > 0) {
		got = byte_source_read(source, buffer,
				       r->end - start < COPY_BYTES ? r->end - start : COPY_BYTES, e);
		if (got < 0)
			return -1;
		if (got == 0 && start == r->start)
			return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
				       "%.*s ends before offset 0x%llx, which is mapped",
				       (int)image->name_bytes, image->name, (unsigned long long)start);
		image->bytes = buffer;
		image->offset = image->vaddr = start;
		image->size = (uint64_t)got;
		if (got && ptc_put_image(w, image, e))
			return -1;
		image->continues = 1;
		start += (uint64_t)got;
	}
	*at = start;
	return 0;
}

/*
 * What of the ranges no segment covers. room: of ranges, count + segment_count at least; returns the new
 * count.
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

static int write_file(const struct import_code *c, const struct import_mapping *m, struct image_set *images,
		      struct ptc_writer *w, struct range *ranges, uint8_t *buffer, struct pt_error *e)
{
	struct ptc_image image = {.kind = PTC_IMAGE_FILE,
				  .pid = PTC_ANY_PID,
				  .name = m->name,
				  .name_bytes = (uint32_t)strlen(m->name)};
	struct elf_segment segments[SEGMENTS_MAX];
	size_t count = mapped_ranges(c, m->name, ranges);
	struct byte_source *source;
	struct pt_error not_elf;
	uint64_t at = 0;
	int got, ret = 0;

	got = image_set_add_file(images, w, m->name, m->path, &not_elf);
	if (got < 0) {
		*e = not_elf;
		return -1;
	}
	if (got == IMAGE_SET_DONE) {
		int found = elf_file_segments(m->path, segments, SEGMENTS_MAX, NULL, e);

		if (found < 0)
			return -1;
		count = uncovered(ranges, count, segments, found < SEGMENTS_MAX ? found : SEGMENTS_MAX);
		image.continues = 1;
		image.build_id_bytes = image_set_build_id(images, m->name, &image.build_id);
	}
	if (count == 0)
		return 0;
	source = byte_source_open(m->path, e);
	if (!source)
		return -1;
	for (size_t i = 0; i < count && ret == 0; i++)
		ret = write_range(w, source, &at, &ranges[i], &image, buffer, e);
	byte_source_close(source);
	return ret;
}

/* Whether an earlier mapping is of the same file. */
static bool seen(const struct import_code *c, size_t mapping)
{
	for (size_t i = 0; i < mapping; i++)
		if (strcmp(c->mappings[i].name, c->mappings[mapping].name) == 0)
			return true;
	return false;
}

int import_code_write(const struct import_code *c, struct ptc_writer *w, struct pt_error *e)
{
	struct image_set *images = image_set_create();
	struct range *ranges = calloc(c->count + SEGMENTS_MAX, sizeof *ranges);
	uint8_t *buffer = malloc(COPY_BYTES);
	int ret = 0;

	if (!images || !ranges || !buffer) {
		ret = pt_fail_no_memory(e, "the mappings");
		goto out;
	}
	for (size_t i = 0; ret == 0 && i < c->count; i++)
		if (!seen(c, i))
			ret = write_file(c, &c->mappings[i], images, w, ranges, buffer, e);
out:
	free(buffer);
	free(ranges);
	image_set_destroy(images);
	return ret;
}
