/* file.c - see file.h. */
#include "capture/perfdata/file.h"
#include "capture/perfdata/features.h"
#include "capture/perfdata/part.h"
#include "capture/perfdata/perf_user.h"
#include "schema/bytes.h"
#include "schema/file_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES	((size_t)1 << 20)
#define HEADER_BYTES	104
#define PIPE_HEADER	16
#define ATTR_TAIL	16 /* after an attr in a file: where its ids are */
#define ATTR_MAX	4096
#define ATTRS_MAX	((uint64_t)16 << 20)
#define FEATURE_MAX	((uint64_t)64 << 20)
#define FEATURE_BITS	256
#define PARTS_MAX	4096
#define PIPE_COPY_BYTES ((size_t)1 << 20)

struct perf_reader {
	struct perf_part *parts;
	uint32_t part_count, now; /* now: the part that is being read */
	bool later_pass;
};

/* ---- The header ---- */

/*
 * Bytes of the file at offset in new memory, which what names. NULL: as perf_part_read(), PT_ERR_NO_MEMORY.
 */
static uint8_t *read_new(const struct perf_part *part, uint64_t offset, uint64_t n, const char *what,
			 struct pt_error *e)
{
	uint8_t *bytes = malloc(n + 1);

	if (!bytes) {
		pt_fail_no_memory(e, "the perf.data");
		return NULL;
	}
	if (perf_part_read(part, offset, bytes, n, what, e)) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

/* An entry of the attr section, `each` bytes at `entry`: the attr, u64 offset and u64 bytes of its ids. */
static int take_attr(struct perf_file *f, const struct perf_part *part, const uint8_t *entry, uint64_t each,
		     struct pt_error *e)
{
	uint64_t ids_offset = u64(entry + each - 16), ids_bytes = u64(entry + each - 8);
	uint32_t size = u32(entry + 4);
	uint8_t *ids;
	int ret;

	if (size < PERF_ATTR_SIZE_VER0 || size > each - ATTR_TAIL)
		size = (uint32_t)(each - ATTR_TAIL);
	ids = read_new(part, ids_offset, ids_bytes, "the sample ids", e);
	if (!ids)
		return -1;
	ret = perf_description_add_event(&f->description, entry, size, e);
	if (ret == 0)
		ret = perf_description_add_ids(&f->description, (uint32_t)f->description.event_count - 1, ids,
					       ids_bytes / 8, e);
	free(ids);
	return ret;
}

static int read_attrs(struct perf_file *f, const struct perf_part *part, const uint8_t *header,
		      struct pt_error *e)
{
	uint64_t each = u64(header + 16), offset = u64(header + 24), bytes = u64(header + 32);
	uint8_t *attrs;
	int ret = 0;

	if (each < PERF_ATTR_SIZE_VER0 + ATTR_TAIL || each > ATTR_MAX || bytes > ATTRS_MAX || bytes % each)
		return pt_fail(e, PT_ERR_BAD_INPUT, 16,
			       "%s: %" PRIu64 " bytes of events of %" PRIu64 " bytes", f->path, bytes, each);
	attrs = read_new(part, offset, bytes, "the events", e);
	if (!attrs)
		return -1;
	for (uint64_t at = 0; at < bytes && ret == 0; at += each) {
		uint64_t ids_bytes = u64(attrs + at + each - 8);

		if (ids_bytes > ATTRS_MAX || ids_bytes % 8)
			ret = pt_fail(e, PT_ERR_BAD_INPUT, offset + at + each - 8,
				      "%s: %" PRIu64 " bytes of sample ids", f->path, ids_bytes);
		else
			ret = take_attr(f, part, attrs + at, each, e);
	}
	free(attrs);
	return ret;
}

/*
 * The features follow the data: a table of {u64 offset, u64 size}, one for each bit that is set, and their
 * bytes.
 */
static int read_features(struct perf_file *f, const struct perf_part *part, const uint8_t *bits,
			 struct pt_error *e)
{
	uint64_t table = part->end;

	for (unsigned bit = 0; bit < FEATURE_BITS; bit++) {
		uint8_t section[16], *bytes;
		uint64_t n;
		int ret;

		if (!(bits[bit / 8] >> bit % 8 & 1))
			continue;
		if (perf_part_read(part, table, section, sizeof section, "its features", e))
			return -1;
		n = u64(section + 8);
		if (n > FEATURE_MAX)
			return pt_fail(e, PT_ERR_BAD_INPUT, table + 8, "%s: a feature of %" PRIu64 " bytes",
				       f->path, n);
		table += sizeof section;
		bytes = read_new(part, u64(section), n, "its features", e);
		if (!bytes)
			return -1;
		ret = perf_feature_take(&f->description, bit, bytes, n, e);
		free(bytes);
		if (ret)
			return -1;
	}
	return 0;
}

static int bad_magic(const struct perf_file *f, const uint8_t *p, struct pt_error *e)
{
	if (memcmp(p, "2ELIFREP", 8) == 0)
		return pt_fail(e, PT_ERR_BAD_INPUT, 0,
			       "%s is a perf.data of a big-endian machine, which has no Intel PT", f->path);
	if (memcmp(p, "PERFFILE", 8) == 0)
		return pt_fail(e, PT_ERR_BAD_INPUT, 0,
			       "%s is a perf.data of a perf from before 2009: record it anew", f->path);
	return pt_fail(e, PT_ERR_BAD_INPUT, 0, "%s is not a perf.data%s", f->path,
		       pt_file_kind(p, PIPE_HEADER));
}

/* Where the records are: u64 offset and u64 bytes of the data section, 0 if perf did not come to write it. */
static int read_data_section(struct perf_file *f, struct perf_part *part, const uint8_t *header,
			     uint64_t file_bytes, struct pt_error *e)
{
	uint64_t data = u64(header + 40), bytes = u64(header + 48);

	part->begin = data;
	if (bytes == 0) {
		f->unfinished = true;
		part->end = file_bytes;
		return data > file_bytes
			   ? pt_fail(e, PT_ERR_TRUNCATED, file_bytes, "%s ends before its data", f->path)
			   : 0;
	}
	if (data > file_bytes || bytes > file_bytes - data)
		return pt_fail(e, PT_ERR_TRUNCATED, file_bytes,
			       "%s ends inside its data, which is from byte %" PRIu64 " to %" PRIu64, f->path,
			       data, data + bytes);
	part->end = data + bytes;
	return 0;
}

/*
 * struct perf_file_header: magic 8, u64 size, attr_size, {attrs, data, event_types: u64 offset, size},
 * features' bits 32.
 */
static int read_header(struct perf_file *f, struct perf_part *part, struct pt_error *e)
{
	uint8_t h[HEADER_BYTES];
	struct stat st;

	if (fstat(part->fd, &st) < 0)
		return pt_fail_errno(e, "cannot read %s", f->path);
	if (st.st_size >= PIPE_HEADER && perf_part_read(part, 0, h, PIPE_HEADER, "the header", e))
		return -1;
	if (st.st_size < PIPE_HEADER)
		return pt_fail(e, PT_ERR_BAD_INPUT, 0, "%s is not a perf.data", f->path);
	if (memcmp(h, "PERFILE2", 8) != 0)
		return bad_magic(f, h, e);
	if (u64(h + 8) == PIPE_HEADER) {
		part->begin = PIPE_HEADER;
		part->end = (uint64_t)st.st_size;
		return 0;
	}
	if (u64(h + 8) != HEADER_BYTES)
		return pt_fail(e, PT_ERR_BAD_INPUT, 8, "%s: a header of %" PRIu64 " bytes", f->path,
			       u64(h + 8));
	if (perf_part_read(part, 0, h, sizeof h, "the header", e) || read_attrs(f, part, h, e) ||
	    read_data_section(f, part, h, (uint64_t)st.st_size, e))
		return -1;
	return f->unfinished ? 0 : read_features(f, part, h + 72, e);
}

/* ---- Opening ---- */

static int copy_rest(const struct perf_file *f, int from, int to, struct pt_error *e)
{
	uint8_t *piece = malloc(PIPE_COPY_BYTES);
	int ret = 0;

	if (!piece)
		return pt_fail_no_memory(e, "the perf.data");
	while (ret == 0) {
		ssize_t got = read(from, piece, PIPE_COPY_BYTES);

		if (got == 0)
			break;
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			ret = pt_fail_errno(e, "cannot read %s", f->path);
		for (ssize_t done = 0, n; done < got && ret == 0; done += n) {
			n = write(to, piece + done, (size_t)(got - done));
			if (n < 0)
				ret = pt_fail_errno(e, "cannot write a temporary file");
		}
	}
	free(piece);
	return ret;
}

static void close_input(int fd)
{
	if (fd > STDIN_FILENO)
		close(fd);
}

/* What cannot seek becomes a file without a name. Takes fd; returns the file's, or -1. */
static int to_file(const struct perf_file *f, int fd, struct pt_error *e)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];
	int to;

	snprintf(path, sizeof path, "%s/pt-capture.XXXXXX", folder && *folder ? folder : "/tmp");
	to = mkostemp(path, O_CLOEXEC);
	if (to < 0) {
		pt_fail_errno(e, "cannot make a temporary file %s", path);
		close_input(fd);
		return -1;
	}
	unlink(path);
	if (copy_rest(f, fd, to, e)) {
		close(to);
		to = -1;
	}
	close_input(fd);
	return to;
}

/* Takes fd. */
static int add_part(struct perf_file *f, int fd, struct pt_error *e)
{
	struct perf_reader *r = f->reader;
	struct perf_part *grown = realloc(r->parts, (r->part_count + 1) * sizeof *grown);
	struct stat st;

	if (!grown) {
		close_input(fd);
		return pt_fail_no_memory(e, "the perf.data");
	}
	r->parts = grown;
	grown[r->part_count] = (struct perf_part){.path = f->path, .fd = fd, .number = r->part_count};
	if (fstat(fd, &st) == 0)
		grown[r->part_count].end = (uint64_t)st.st_size;
	r->part_count++;
	return 0;
}

/* data.0, data.1... of `perf record --threads`. */
static int add_further_parts(struct perf_file *f, struct pt_error *e)
{
	for (unsigned i = 0; i < PARTS_MAX; i++) {
		char *path;
		int fd;

		if (asprintf(&path, "%s/data.%u", f->directory, i) < 0)
			return pt_fail_no_memory(e, "the perf.data");
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT) {
			pt_fail_errno(e, "cannot open %s", path);
			free(path);
			return -1;
		}
		free(path);
		if (fd < 0)
			return 0;
		if (add_part(f, fd, e))
			return -1;
	}
	return 0;
}

static int set_paths(struct perf_file *f, const char *path, struct pt_error *e)
{
	struct stat st;

	if (strcmp(path, "-") == 0) {
		f->path = strdup("standard input");
	} else if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		f->directory = strdup(path);
		if (!f->directory || asprintf(&f->path, "%s/data", path) < 0)
			f->path = NULL;
	} else {
		f->path = strdup(path);
	}
	return f->path ? 0 : pt_fail_no_memory(e, "the perf.data");
}

static int open_parts(struct perf_file *f, const char *path, struct pt_error *e)
{
	struct perf_reader *r = f->reader;
	int fd;

	if (set_paths(f, path, e))
		return -1;
	fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(f->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return pt_fail_errno(e, "cannot open %s", f->path);
	if (lseek(fd, 0, SEEK_CUR) < 0 && (fd = to_file(f, fd, e)) < 0)
		return -1;
	if (add_part(f, fd, e) || read_header(f, &r->parts[0], e))
		return -1;
	r->parts[0].at = r->parts[0].begin;
	return f->directory ? add_further_parts(f, e) : 0;
}

int perf_file_open(struct perf_file *ret, const char *path, struct pt_error *e)
{
	struct perf_reader *r = calloc(1, sizeof *r);

	*ret = (struct perf_file){.reader = r};
	if (!r)
		return pt_fail_no_memory(e, "the perf.data");
	if (open_parts(ret, path, e)) {
		perf_file_close(ret);
		return -1;
	}
	/* Not much more for many parts than for one; a record always finds room. */
	for (uint32_t i = 0; i < r->part_count; i++)
		r->parts[i].buffer_room = r->part_count < 8 ? BUFFER_BYTES : BUFFER_BYTES / 8;
	ret->parts = r->part_count;
	return 0;
}

void perf_file_close(struct perf_file *f)
{
	struct perf_reader *r = f->reader;

	perf_description_deinit(&f->description);
	if (r) {
		for (uint32_t i = 0; i < r->part_count; i++)
			perf_part_close(&r->parts[i]);
		free(r->parts);
		free(r);
	}
	free(f->path);
	free(f->directory);
	*f = (struct perf_file){0};
}

/* ---- Records ---- */

/* Turns to a part that is not read to its end. False: there is none. */
static bool next_part(struct perf_reader *r)
{
	for (uint32_t i = 0; i < r->part_count; i++)
		if (!r->parts[i].done) {
			r->now = i;
			return true;
		}
	return false;
}

/* The formats of tracepoints, in pipe mode the bytes after a record. */
static int take_tracing_data(struct perf_file *f, const struct perf_record *r, struct pt_error *e)
{
	uint8_t *bytes;
	int ret;

	if (r->tail_bytes == 0 || r->tail_bytes > FEATURE_MAX)
		return 0;
	bytes = read_new(&f->reader->parts[r->part], r->tail_offset, r->tail_bytes,
			 "the tracepoints' formats", e);
	if (!bytes)
		return -1;
	ret = perf_feature_take(&f->description, FEATURE_TRACING_DATA, bytes, r->tail_bytes, e);
	free(bytes);
	return ret;
}

/* 1; 0: at the end of all parts; -1. */
static int next_record(struct perf_file *f, struct perf_record *ret, struct pt_error *e)
{
	struct perf_reader *r = f->reader;

	for (;;) {
		int got = perf_part_next(&r->parts[r->now], ret, e);

		if (got < 0)
			return -1;
		if (got > 0)
			break;
		r->parts[r->now].done = true;
		if (!next_part(r))
			return 0;
	}
	if (ret->type == PERF_USER_HEADER_TRACING_DATA && !r->later_pass && take_tracing_data(f, ret, e))
		return -1;
	return 1;
}

int perf_file_next(struct perf_file *f, struct perf_record *ret, struct pt_error *e)
{
	struct pt_error why = {.offset = PT_NO_OFFSET};
	int got = next_record(f, ret, &why);

	/* A recording that was never finished may end anywhere. */
	if (got < 0 && f->unfinished && why.kind == PT_ERR_TRUNCATED)
		return 0;
	if (got < 0) {
		*e = why;
		return -1;
	}
	if (got && !f->reader->later_pass && ret->type >= PERF_USER_FIRST &&
	    perf_feature_take_record(&f->description, ret, e))
		return -1;
	return got;
}

bool perf_file_turn_to(struct perf_file *f, uint32_t part)
{
	if (f->reader->parts[part].done)
		return false;
	f->reader->now = part;
	return true;
}

void perf_file_rewind(struct perf_file *f)
{
	f->reader->now = 0;
	f->reader->later_pass = true;
	for (uint32_t i = 0; i < f->reader->part_count; i++)
		perf_part_rewind(&f->reader->parts[i]);
}

int perf_file_read_aux(const struct perf_file *f, uint32_t part, uint64_t offset, void *to, size_t n,
		       struct pt_error *e)
{
	return perf_part_read(&f->reader->parts[part], offset, to, n, "the AUX data", e);
}
