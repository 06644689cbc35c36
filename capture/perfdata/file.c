/* file.c - see file.h. */
#include "capture/perfdata/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include "schema/bytes.h"
#include "schema/file_kind.h"

#define BUFFER_BYTES	((size_t)1 << 20)
#define UNPACKED_BYTES	((size_t)1 << 20) /* more than one record */
#define HEADER_BYTES	104
#define PIPE_HEADER	16
#define ATTR_TAIL	16 /* behind an attr in a file: where its ids are */
#define ATTRS_MAX	((uint64_t)16 << 20)
#define FEATURE_MAX	((uint64_t)64 << 20)
#define FEATURE_BITS	256
#define EVENTS_MAX	65536
#define IDS_MAX		((size_t)4 << 20)
#define PARTS_MAX	4096
#define WINDOW_LOG_MAX	27
#define AUXTRACE_HEAD	48 /* struct perf_record_auxtrace */
#define PIPE_COPY_BYTES ((size_t)1 << 20)

struct part {
	int fd;
	uint32_t number;
	uint64_t begin, end; /* of its records */
	uint64_t at;	     /* offset of the next record */
	bool done;
	uint8_t *buffer; /* buffer_room of the reader's */
	uint64_t buffer_at;
	size_t buffer_bytes;
	/* Records that were compressed: what is unpacked and not delivered, and what is still packed. */
	ZSTD_DCtx *zstd;
	uint8_t *unpacked, *packed;
	size_t unpacked_at, unpacked_bytes;
	ZSTD_inBuffer in;
	bool more; /* zstd may have some of it inside */
	uint64_t packed_offset;
};

struct perf_reader {
	struct part *parts;
	uint32_t part_count, now; /* now: the part that is being read */
	size_t buffer_room;
	bool pipe, later_pass;
};

/* n bytes at offset; fewer at the file's end. How many, or -1. */
static ssize_t read_at(const struct perf_file *f, int fd, uint64_t offset, void *to, size_t n,
		       struct pt_error *e)
{
	size_t done = 0;

	if (offset > INT64_MAX - n)
		return 0;
	while (done < n) {
		ssize_t got = pread(fd, (uint8_t *)to + done, n - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return pt_fail_errno(e, "cannot read %s", f->path);
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

static int read_whole(const struct perf_file *f, int fd, uint64_t offset, void *to, size_t n,
		      const char *what, struct pt_error *e)
{
	ssize_t got = read_at(f, fd, offset, to, n, e);

	if (got < 0)
		return -1;
	if ((size_t)got < n)
		return pt_fail(e, PT_ERR_TRUNCATED, offset + (uint64_t)got, "%s ends inside %s", f->path,
			       what);
	return 0;
}

int perf_file_read_aux(struct perf_file *f, uint32_t part, uint64_t offset, void *to, size_t n,
		       struct pt_error *e)
{
	return read_whole(f, f->reader->parts[part].fd, offset, to, n, "the AUX data", e);
}

/* ---- Events and ids ---- */

int perf_file_add_event(struct perf_file *f, const uint8_t *attr, size_t bytes, struct pt_error *e)
{
	struct perf_file_event *ev;

	if (f->event_count == EVENTS_MAX)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s has more than %u events", f->path,
			       EVENTS_MAX);
	if (f->event_count == f->event_room) {
		uint32_t room = f->event_room ? 2 * f->event_room : 16;

		ev = realloc(f->events, room * sizeof *ev);
		if (!ev)
			return pt_fail_no_memory(e, "the perf.data");
		f->events = ev;
		f->event_room = room;
	}
	ev = &f->events[f->event_count];
	*ev = (struct perf_file_event){.name = strdup("")};
	if (!ev->name)
		return pt_fail_no_memory(e, "the perf.data");
	if (bytes > sizeof ev->attr)
		bytes = sizeof ev->attr;
	memcpy(&ev->attr, attr, bytes);
	ev->attr.size = (uint32_t)bytes;
	f->event_count++;
	return 0;
}

int perf_file_add_ids(struct perf_file *f, uint32_t event, const uint8_t *ids, size_t count,
		      struct pt_error *e)
{
	if (count > IDS_MAX || f->id_count + count > IDS_MAX)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "%s has more than %zu sample ids", f->path,
			       IDS_MAX);
	if (f->id_count + count > f->id_room) {
		size_t room = 2 * (f->id_count + count) + 64;
		struct perf_file_id *grown = realloc(f->ids, room * sizeof *grown);

		if (!grown)
			return pt_fail_no_memory(e, "the perf.data");
		f->ids = grown;
		f->id_room = room;
	}
	for (size_t i = 0; i < count; i++)
		f->ids[f->id_count++] = (struct perf_file_id){
		    .id = u64(ids + 8 * i), .event = event, .cpu = -1, .tid = -1, .vcpu = -1};
	if (event != UINT32_MAX) {
		struct perf_file_event *ev = &f->events[event];
		uint64_t *grown = realloc(ev->ids, (ev->id_count + count + 1) * sizeof *grown);

		if (!grown)
			return pt_fail_no_memory(e, "the perf.data");
		ev->ids = grown;
		for (size_t i = 0; i < count; i++)
			grown[ev->id_count++] = u64(ids + 8 * i);
	}
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct perf_file_id *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->event > y->event) - (x->event < y->event);
}

void perf_file_sort_ids(struct perf_file *f)
{
	size_t kept = 0;

	if (f->id_count)
		qsort(f->ids, f->id_count, sizeof *f->ids, by_id);
	for (size_t i = 0; i < f->id_count; i++) {
		struct perf_file_id *to = kept ? &f->ids[kept - 1] : NULL, *id = &f->ids[i];

		if (!to || to->id != id->id) {
			f->ids[kept++] = *id;
		} else if (id->event == UINT32_MAX) { /* the index's line of it */
			uint32_t event = to->event;

			*to = *id;
			to->event = event;
		}
	}
	f->id_count = kept;
	for (size_t i = 0; i < kept; i++)
		if (f->ids[i].event < f->event_count && f->ids[i].machine_pid > 0)
			f->events[f->ids[i].event].machine_pid = f->ids[i].machine_pid;
}

const struct perf_file_id *perf_file_find_id(const struct perf_file *f, uint64_t id)
{
	size_t low = 0, high = f->id_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (f->ids[mid].id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low < f->id_count && f->ids[low].id == id ? &f->ids[low] : NULL;
}

/* ---- Opening ---- */

/* The attr section: {attr, u64 ids offset, u64 ids bytes} each. */
static int read_attrs(struct perf_file *f, int fd, uint64_t offset, uint64_t bytes, uint64_t each,
		      struct pt_error *e)
{
	uint8_t *attrs;
	int ret = -1;

	if (each < PERF_ATTR_SIZE_VER0 + ATTR_TAIL || each > 4096 || bytes > ATTRS_MAX || bytes % each)
		return pt_fail(e, PT_ERR_BAD_INPUT, 16,
			       "%s: %" PRIu64 " bytes of events of %" PRIu64 " bytes", f->path, bytes, each);
	attrs = malloc(bytes + 1);
	if (!attrs)
		return pt_fail_no_memory(e, "the perf.data");
	if (read_whole(f, fd, offset, attrs, bytes, "the events", e))
		goto out;
	for (uint64_t i = 0; i < bytes / each; i++) {
		const uint8_t *p = attrs + i * each;
		uint64_t ids = u64(p + each - 16), ids_bytes = u64(p + each - 8);
		uint32_t size = u32(p + 4);
		uint8_t *id;

		if (ids_bytes > ATTRS_MAX || ids_bytes % 8) {
			pt_fail(e, PT_ERR_BAD_INPUT, offset + (i + 1) * each - 8,
				"%s: %" PRIu64 " bytes of sample ids", f->path, ids_bytes);
			goto out;
		}
		if (size < PERF_ATTR_SIZE_VER0 || size > each - ATTR_TAIL)
			size = (uint32_t)(each - ATTR_TAIL);
		id = malloc(ids_bytes + 1);
		if (!id) {
			pt_fail_no_memory(e, "the perf.data");
			goto out;
		}
		if (read_whole(f, fd, ids, id, ids_bytes, "the sample ids", e) ||
		    perf_file_add_event(f, p, size, e) ||
		    perf_file_add_ids(f, f->event_count - 1, id, ids_bytes / 8, e)) {
			free(id);
			goto out;
		}
		free(id);
	}
	ret = 0;
out:
	free(attrs);
	return ret;
}

/* The features stand behind the data: a table of {u64 offset, u64 size}, one for each bit that is set. */
static int read_features(struct perf_file *f, int fd, uint64_t table, const uint8_t *bits, struct pt_error *e)
{
	for (unsigned bit = 0; bit < FEATURE_BITS; bit++) {
		uint8_t section[16], *bytes;
		uint64_t offset, n;
		int ret;

		if (!(bits[bit / 8] >> bit % 8 & 1))
			continue;
		if (read_whole(f, fd, table, section, sizeof section, "its features", e))
			return -1;
		offset = u64(section);
		n = u64(section + 8);
		if (n > FEATURE_MAX)
			return pt_fail(e, PT_ERR_BAD_INPUT, table + 8, "%s: a feature of %" PRIu64 " bytes",
				       f->path, n);
		table += sizeof section;
		bytes = malloc(n + 1);
		if (!bytes)
			return pt_fail_no_memory(e, "the perf.data");
		ret = read_whole(f, fd, offset, bytes, n, "its features", e) ||
		      perf_file_feature(f, bit, bytes, n, e);
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

static int read_header(struct perf_file *f, struct part *part, struct pt_error *e)
{
	uint8_t h[HEADER_BYTES];
	struct stat st;
	uint64_t size, data, data_bytes;

	if (fstat(part->fd, &st) < 0)
		return pt_fail_errno(e, "cannot read %s", f->path);
	size = (uint64_t)st.st_size;
	if (size < PIPE_HEADER || read_whole(f, part->fd, 0, h, PIPE_HEADER, "the header", e))
		return pt_fail(e, PT_ERR_BAD_INPUT, 0, "%s is not a perf.data", f->path);
	if (memcmp(h, "PERFILE2", 8) != 0)
		return bad_magic(f, h, e);
	if (u64(h + 8) == PIPE_HEADER) {
		f->reader->pipe = true;
		part->begin = PIPE_HEADER;
		part->end = size;
		return 0;
	}
	if (u64(h + 8) != HEADER_BYTES)
		return pt_fail(e, PT_ERR_BAD_INPUT, 8, "%s: a header of %" PRIu64 " bytes", f->path,
			       u64(h + 8));
	if (read_whole(f, part->fd, 0, h, sizeof h, "the header", e) ||
	    read_attrs(f, part->fd, u64(h + 24), u64(h + 32), u64(h + 16), e))
		return -1;
	data = u64(h + 40);
	data_bytes = u64(h + 48);
	part->begin = data;
	if (data_bytes == 0) {
		f->unfinished = true;
		part->end = size;
		return data > size ? pt_fail(e, PT_ERR_TRUNCATED, size, "%s ends before its data", f->path)
				   : 0;
	}
	if (data > size || data_bytes > size - data)
		return pt_fail(e, PT_ERR_TRUNCATED, size,
			       "%s ends inside its data, which is from byte %" PRIu64 " to %" PRIu64, f->path,
			       data, data + data_bytes);
	part->end = data + data_bytes;
	return read_features(f, part->fd, part->end, h + 72, e);
}

/* What cannot seek becomes a file without a name. Takes fd. */
static int to_file(const struct perf_file *f, int fd, struct pt_error *e)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];
	uint8_t *piece;
	int to;

	snprintf(path, sizeof path, "%s/pt-capture.XXXXXX", folder && *folder ? folder : "/tmp");
	to = mkostemp(path, O_CLOEXEC);
	if (to < 0) {
		pt_fail_errno(e, "cannot make a temporary file %s", path);
		goto fail;
	}
	unlink(path);
	piece = malloc(PIPE_COPY_BYTES);
	if (!piece) {
		pt_fail_no_memory(e, "the perf.data");
		goto fail;
	}
	for (;;) {
		ssize_t got = read(fd, piece, PIPE_COPY_BYTES);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			pt_fail_errno(e, "cannot read %s", f->path);
		for (ssize_t done = 0, n; got > 0 && done < got; done += n) {
			n = write(to, piece + done, (size_t)(got - done));
			if (n < 0) {
				pt_fail_errno(e, "cannot write the temporary file in %s", path);
				got = -1;
				break;
			}
		}
		if (got < 0) {
			free(piece);
			goto fail;
		}
		if (got == 0)
			break;
	}
	free(piece);
	if (fd > STDIN_FILENO)
		close(fd);
	return to;
fail:
	if (to >= 0)
		close(to);
	if (fd > STDIN_FILENO)
		close(fd);
	return -1;
}

static int add_part(struct perf_reader *r, int fd, struct pt_error *e)
{
	struct part *grown = realloc(r->parts, (r->part_count + 1) * sizeof *grown);
	struct stat st;

	if (!grown) {
		close(fd);
		return pt_fail_no_memory(e, "the perf.data");
	}
	r->parts = grown;
	grown[r->part_count] = (struct part){.fd = fd, .number = r->part_count};
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
		if (add_part(f->reader, fd, e))
			return -1;
	}
	return 0;
}

static int open_paths(struct perf_file *f, const char *path, struct pt_error *e)
{
	struct stat st;
	int fd;

	if (strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		f->directory = strdup(path);
		if (!f->directory || asprintf(&f->path, "%s/data", path) < 0) {
			f->path = NULL;
			return pt_fail_no_memory(e, "the perf.data");
		}
	} else {
		f->path = strdup(strcmp(path, "-") == 0 ? "standard input" : path);
		if (!f->path)
			return pt_fail_no_memory(e, "the perf.data");
	}
	fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(f->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return pt_fail_errno(e, "cannot open %s", f->path);
	if (lseek(fd, 0, SEEK_CUR) < 0 && (fd = to_file(f, fd, e)) < 0)
		return -1;
	if (add_part(f->reader, fd, e) || read_header(f, &f->reader->parts[0], e))
		return -1;
	f->reader->parts[0].at = f->reader->parts[0].begin;
	return f->directory ? add_further_parts(f, e) : 0;
}

int perf_file_open(struct perf_file *ret, const char *path, struct pt_error *e)
{
	struct perf_reader *r = calloc(1, sizeof *r);

	*ret = (struct perf_file){.reader = r};
	if (!r) {
		pt_fail_no_memory(e, "the perf.data");
		goto fail;
	}
	if (open_paths(ret, path, e))
		goto fail;
	/* Not much more for many parts than for one; a record always finds room. */
	r->buffer_room = r->part_count < 8 ? BUFFER_BYTES : BUFFER_BYTES / 8;
	ret->parts = r->part_count;
	return 0;
fail:
	perf_file_close(ret);
	return -1;
}

static void close_part(struct part *p)
{
	if (p->fd > STDIN_FILENO)
		close(p->fd);
	ZSTD_freeDCtx(p->zstd);
	free(p->buffer);
	free(p->unpacked);
	free(p->packed);
}

void perf_file_close(struct perf_file *f)
{
	struct perf_reader *r = f->reader;

	for (uint32_t i = 0; i < f->event_count; i++) {
		free(f->events[i].name);
		free(f->events[i].ids);
	}
	for (size_t i = 0; i < f->build_id_count; i++)
		free(f->build_ids[i].name);
	for (int i = 0; i < PERF_TEXTS; i++)
		free(f->text[i]);
	free(f->events);
	free(f->ids);
	free(f->build_ids);
	free(f->tracing_data);
	free(f->bpf);
	free(f->path);
	free(f->directory);
	if (r) {
		for (uint32_t i = 0; i < r->part_count; i++)
			close_part(&r->parts[i]);
		free(r->parts);
		free(r);
	}
	*f = (struct perf_file){0};
}

/* ---- Records ---- */

static struct part *now(const struct perf_file *f)
{
	return &f->reader->parts[f->reader->now];
}

/* n bytes (at most a record's) at r->at: *ret, NULL when the part ends before. */
static int fetch(struct perf_file *f, size_t n, const uint8_t **ret, struct pt_error *e)
{
	struct part *r = now(f);

	*ret = NULL;
	if (n > r->end - r->at)
		return 0;
	if (r->at < r->buffer_at || r->at + n > r->buffer_at + r->buffer_bytes) {
		uint64_t left = r->end - r->at;
		size_t room = f->reader->buffer_room;
		ssize_t got;

		if (!r->buffer && !(r->buffer = malloc(room)))
			return pt_fail_no_memory(e, "the perf.data");
		got = read_at(f, r->fd, r->at, r->buffer, left < room ? left : room, e);
		if (got < 0)
			return -1;
		r->buffer_at = r->at;
		r->buffer_bytes = (size_t)got;
		if ((size_t)got < n)
			return 0;
	}
	*ret = r->buffer + (r->at - r->buffer_at);
	return 0;
}

static void fill_record(struct perf_record *ret, const uint8_t *p)
{
	struct perf_event_header h;

	memcpy(&h, p, sizeof h);
	ret->bytes = p;
	ret->type = h.type;
	ret->misc = h.misc;
	ret->size = h.size;
}

static int cut_record(const struct perf_file *f, const struct perf_record *rec, struct pt_error *e)
{
	return pt_fail(e, PT_ERR_TRUNCATED, rec->offset, "%s ends inside a record of type %u", f->path,
		       rec->type);
}

/* Raw bytes that follow a record and that its size does not cover. */
static int bytes_after(struct perf_file *f, struct perf_record *rec, struct pt_error *e)
{
	struct part *r = now(f);
	uint64_t left, n = 0;

	r->at += rec->size;
	left = r->end - r->at;
	if (rec->type == PERF_USER_AUXTRACE) {
		if (rec->size < AUXTRACE_HEAD)
			return pt_fail(e, PT_ERR_BAD_INPUT, rec->offset, "%s: an AUXTRACE record of %u bytes",
				       f->path, rec->size);
		n = u64(rec->bytes + 8);
		rec->aux_offset = r->at;
		rec->aux_bytes = n;
	} else if (rec->type == PERF_USER_HEADER_TRACING_DATA && rec->size >= 12) {
		n = ((uint64_t)u32(rec->bytes + 8) + 7) / 8 * 8;
	}
	if (n > left)
		return pt_fail(e, PT_ERR_TRUNCATED, rec->offset,
			       "%s ends inside the %" PRIu64 " bytes behind a record of type %u", f->path, n,
			       rec->type);
	r->at += n;
	if (rec->type == PERF_USER_HEADER_TRACING_DATA && !f->reader->later_pass && n && n <= FEATURE_MAX) {
		/* (The record's bytes need not outlive this: nobody looks into it.) */
		uint8_t *bytes = malloc(n);
		int ret;

		if (!bytes)
			return pt_fail_no_memory(e, "the perf.data");
		ret = read_whole(f, r->fd, r->at - n, bytes, n, "the tracepoints' formats", e) ||
		      perf_file_feature(f, 1, bytes, n, e);
		free(bytes);
		return ret ? -1 : 0;
	}
	return 0;
}

/* The next record as it is in the file. */
static int next_plain(struct perf_file *f, struct perf_record *ret, struct pt_error *e)
{
	struct part *r = now(f);
	const uint8_t *p;

	*ret = (struct perf_record){.part = r->number, .offset = r->at};
	if (r->at == r->end)
		return 0;
	if (fetch(f, sizeof(struct perf_event_header), &p, e))
		return -1;
	if (!p)
		return pt_fail(e, PT_ERR_TRUNCATED, r->at, "%s ends inside a record's header", f->path);
	fill_record(ret, p);
	if (ret->size < sizeof(struct perf_event_header))
		return pt_fail(e, PT_ERR_BAD_INPUT, r->at, "%s: a record of type %u and %u bytes", f->path,
			       ret->type, ret->size);
	if (fetch(f, ret->size, &p, e))
		return -1;
	if (!p)
		return cut_record(f, ret, e);
	ret->bytes = p;
	return bytes_after(f, ret, e) ? -1 : 1;
}

/* A compressed record's bytes are kept, since the buffer moves on. */
static int begin_unpacking(struct perf_file *f, const struct perf_record *rec, struct pt_error *e)
{
	struct part *r = now(f);
	size_t head = 8, n;

	if (!r->zstd) {
		r->zstd = ZSTD_createDCtx();
		r->packed = malloc(UINT16_MAX);
		r->unpacked = malloc(UNPACKED_BYTES);
		if (!r->zstd || !r->packed || !r->unpacked)
			return pt_fail_no_memory(e, "the perf.data");
		ZSTD_DCtx_setParameter(r->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	}
	n = rec->size - head;
	if (rec->type == PERF_USER_COMPRESSED2) {
		head = 16;
		if (rec->size < head || u64(rec->bytes + 8) > rec->size - head)
			return pt_fail(e, PT_ERR_BAD_INPUT, rec->offset,
				       "%s: a compressed record of %u bytes", f->path, rec->size);
		n = u64(rec->bytes + 8);
	}
	memcpy(r->packed, rec->bytes + head, n);
	r->in = (ZSTD_inBuffer){r->packed, n, 0};
	r->more = true;
	r->packed_offset = rec->offset;
	return 0;
}

/* Unpacks a little. 0, or -1. */
static int unpack(struct perf_file *f, struct pt_error *e)
{
	struct part *r = now(f);
	ZSTD_outBuffer out;
	size_t status;

	memmove(r->unpacked, r->unpacked + r->unpacked_at, r->unpacked_bytes - r->unpacked_at);
	r->unpacked_bytes -= r->unpacked_at;
	r->unpacked_at = 0;
	out = (ZSTD_outBuffer){r->unpacked, UNPACKED_BYTES, r->unpacked_bytes};
	status = ZSTD_decompressStream(r->zstd, &out, &r->in);
	if (ZSTD_isError(status))
		return pt_fail(e, PT_ERR_BAD_INPUT, r->packed_offset, "%s: a broken compressed record: %s",
			       f->path, ZSTD_getErrorName(status));
	r->unpacked_bytes = out.pos;
	/* A full buffer may have more behind it. */
	r->more = r->in.pos < r->in.size || out.pos == UNPACKED_BYTES;
	return 0;
}

/* A whole record among what is unpacked: 1; 0: not yet; -1. */
static int next_unpacked(struct perf_file *f, struct perf_record *ret, struct pt_error *e)
{
	struct part *r = now(f);
	size_t left = r->unpacked_bytes - r->unpacked_at;

	if (left < sizeof(struct perf_event_header))
		return 0;
	*ret = (struct perf_record){.part = r->number, .offset = r->packed_offset};
	fill_record(ret, r->unpacked + r->unpacked_at);
	if (ret->size < sizeof(struct perf_event_header) || ret->type == PERF_USER_AUXTRACE ||
	    ret->type == PERF_USER_COMPRESSED || ret->type == PERF_USER_COMPRESSED2)
		return pt_fail(e, PT_ERR_BAD_INPUT, r->packed_offset,
			       "%s: a compressed record with one of type %u and %u bytes in it", f->path,
			       ret->type, ret->size);
	if (left < ret->size)
		return 0;
	r->unpacked_at += ret->size;
	return 1;
}

/* The part is read. 1: there is another one; 0. */
static int end_part(struct perf_reader *r)
{
	r->parts[r->now].done = true;
	for (uint32_t i = 0; i < r->part_count; i++)
		if (!r->parts[i].done) {
			r->now = i;
			return 1;
		}
	return 0;
}

/* 1; 0: at the end of all parts; -1. */
static int next_record(struct perf_file *f, struct perf_record *ret, struct pt_error *e)
{
	for (;;) {
		struct part *r = now(f);
		int got = next_unpacked(f, ret, e);

		if (got)
			return got;
		if (r->more) {
			if (unpack(f, e))
				return -1;
			continue;
		}
		got = next_plain(f, ret, e);
		if (got < 0)
			return -1;
		if (got == 1 && (ret->type == PERF_USER_COMPRESSED || ret->type == PERF_USER_COMPRESSED2)) {
			if (begin_unpacking(f, ret, e))
				return -1;
			continue;
		}
		if (got == 1)
			return 1;
		if (r->unpacked_bytes > r->unpacked_at)
			return pt_fail(e, PT_ERR_TRUNCATED, r->packed_offset,
				       "%s ends inside a compressed record", f->path);
		if (!end_part(f->reader))
			return 0;
	}
}

bool perf_file_turn_to(struct perf_file *f, uint32_t part)
{
	if (f->reader->parts[part].done)
		return false;
	f->reader->now = part;
	return true;
}

int perf_file_next(struct perf_file *f, struct perf_record *ret, struct pt_error *e)
{
	struct pt_error cut = {.offset = PT_NO_OFFSET};
	int got = next_record(f, ret, &cut);

	/* A recording that was never finished may end anywhere. */
	if (got < 0 && f->unfinished && cut.kind == PT_ERR_TRUNCATED)
		return 0;
	if (got < 0) {
		*e = cut;
		return -1;
	}
	if (got && !f->reader->later_pass && ret->type >= PERF_USER_FIRST && perf_file_describe(f, ret, e))
		return -1;
	return got;
}

void perf_file_rewind(struct perf_file *f)
{
	struct perf_reader *r = f->reader;

	r->now = 0;
	r->later_pass = true;
	for (struct part *p = r->parts; p < r->parts + r->part_count; p++) {
		p->at = p->begin;
		p->buffer_bytes = p->unpacked_at = p->unpacked_bytes = 0;
		p->in = (ZSTD_inBuffer){0};
		p->done = p->more = false;
		if (p->zstd)
			ZSTD_DCtx_reset(p->zstd, ZSTD_reset_session_only);
	}
}
