/* perf_records.c - see perf_records.h. */
#include "capture/raw/perf_records.h"
#include "capture/raw/byte_source.h"
#include "capture/perfdata/features.h"
#include "capture/perfdata/machines.h"
#include "capture/perfdata/order.h"
#include "capture/perfdata/perf_user.h"
#include "capture/perfdata/put_records.h"
#include "capture/perfdata/sample.h"
#include "schema/array.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_MAX    ((uint64_t)1 << 30) /* of memory: short records take much more than they are long */
#define RECORD_LAST  22			 /* PERF_RECORD_CALLCHAIN_DEFERRED: the last that is known */
#define HEADER_BYTES sizeof(struct perf_event_header)

struct raw_records {
	struct perf_description description; /* as of a perf.data with one event */
	struct ordered_record **records;
	size_t count, room;
	uint64_t bytes;
};

/* ---- Reading ---- */

/*
 * Where the CPU belongs in a record that has none: the order is that of the kernel's perf_output_sample() and
 * perf_event__output_id_sample().
 */
static size_t cpu_at(uint32_t type, uint64_t sample_type, size_t size)
{
	const uint64_t before = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID;

	if (type == PERF_RECORD_SAMPLE)
		return HEADER_BYTES + 8 * (size_t)__builtin_popcountll(sample_type & before);
	return size - (sample_type & PERF_SAMPLE_IDENTIFIER ? 8 : 0);
}

/* Puts a CPU into the record, which has room for 8 bytes more. -1: PT_ERR_BAD_INPUT. */
static int add_cpu(struct ordered_record *rec, uint64_t sample_type, int32_t cpu, struct pt_error *e)
{
	const uint64_t word = (uint32_t)cpu;
	struct perf_event_header h;
	size_t at;

	memcpy(&h, rec->bytes, sizeof h);
	at = cpu_at(h.type, sample_type, h.size);
	if (at > h.size || at < HEADER_BYTES || h.size > UINT16_MAX - 8)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "a record of %u bytes is too short for its sample type, or too long", h.size);
	memmove(rec->bytes + at + 8, rec->bytes + at, h.size - at);
	memcpy(rec->bytes + at, &word, 8);
	h.size = (uint16_t)(h.size + 8);
	memcpy(rec->bytes, &h, sizeof h);
	rec->size = h.size;
	return 0;
}

static struct perf_record view_of(const struct ordered_record *r)
{
	struct perf_event_header h;

	memcpy(&h, r->bytes, sizeof h);
	return (struct perf_record){.bytes = r->bytes, .type = h.type, .misc = h.misc, .size = h.size};
}

static int add(struct raw_records *s, const uint8_t *bytes, const struct raw_records_file *of,
	       uint64_t sample_type, struct pt_error *e)
{
	bool without_cpu = s->description.events[0].attr.sample_type != sample_type;
	struct perf_event_header h;
	struct ordered_record *rec;
	struct perf_record view;

	memcpy(&h, bytes, sizeof h);
	rec = malloc(sizeof *rec + h.size + 8);
	if (!rec)
		return pt_fail_no_memory(e, "the sideband");
	memcpy(rec->bytes, bytes, h.size);
	rec->size = h.size;
	rec->order = s->count;
	if (without_cpu && add_cpu(rec, sample_type, of->cpu, e))
		goto fail;
	view = view_of(rec);
	if (perf_stamp_read(&s->description, &view, &rec->stamp, e) ||
	    pt_array_grow(&s->records, s->count, &s->room, e))
		goto fail;
	s->records[s->count++] = rec;
	return 0;
fail:
	free(rec);
	return -1;
}

static int take(struct raw_records *s, const uint8_t *bytes, const struct raw_records_file *of,
		uint64_t sample_type, struct pt_error *e)
{
	struct perf_event_header h;
	struct perf_record view = {.bytes = bytes};

	memcpy(&h, bytes, sizeof h);
	if (h.type == PERF_USER_TIME_CONV) {
		view.type = h.type;
		view.size = h.size;
		return perf_feature_take_record(&s->description, &view, e);
	}
	return h.type > RECORD_LAST ? 0 : add(s, bytes, of, sample_type, e);
}

static int read_records(struct raw_records *s, struct byte_source *source, const struct raw_records_file *of,
			uint64_t sample_type, struct pt_error *e)
{
	uint8_t bytes[UINT16_MAX + 1];
	uint64_t offset = 0;

	for (;;) {
		struct perf_event_header h;
		ssize_t got = byte_source_read(source, bytes, sizeof h, e);

		if (got <= 0)
			return got < 0 ? -1 : 0;
		memcpy(&h, bytes, sizeof h);
		if ((size_t)got < sizeof h)
			return pt_fail(e, PT_ERR_BAD_INPUT, offset, "%s ends inside a record", of->path);
		if (h.size < sizeof h)
			return pt_fail(e, PT_ERR_BAD_INPUT, offset,
				       "%s: no perf record: its size is %u (the file is to hold nothing but "
				       "records)",
				       of->path, h.size);
		got = byte_source_read(source, bytes + sizeof h, h.size - sizeof h, e);
		if (got < 0)
			return -1;
		if ((size_t)got < h.size - sizeof h)
			return pt_fail(e, PT_ERR_BAD_INPUT, offset, "%s ends inside a record", of->path);
		s->bytes += sizeof(struct ordered_record) + sizeof(struct ordered_record *) + h.size;
		if (s->bytes > BYTES_MAX)
			return pt_fail(e, PT_ERR_BAD_INPUT, offset,
				       "%s: the sideband takes more than 1 GB of memory", of->path);
		if (take(s, bytes, of, sample_type, e)) {
			e->offset = offset;
			return -1;
		}
		offset += h.size;
	}
}

static int older(const void *a, const void *b)
{
	const struct ordered_record *x = *(struct ordered_record *const *)a,
				    *y = *(struct ordered_record *const *)b;

	if (x->stamp.time_ns != y->stamp.time_ns)
		return x->stamp.time_ns < y->stamp.time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* All records count as those of one event: their trailers are alike, and no more is known of it. */
static int add_event(struct raw_records *s, const struct raw_records_file *files, size_t count,
		     uint64_t sample_type, struct pt_error *e)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof attr,
				       .config = PERF_COUNT_SW_DUMMY,
				       .sample_type = sample_type,
				       .sample_id_all = sample_type != 0};
	bool all_known = sample_type != 0;

	for (size_t i = 0; i < count; i++)
		all_known = all_known && files[i].cpu >= 0;
	if (all_known)
		attr.sample_type |= PERF_SAMPLE_CPU;
	return perf_description_add_event(&s->description, (const uint8_t *)&attr, sizeof attr, e);
}

int raw_records_read(const struct raw_records_file *files, size_t count, uint64_t sample_type,
		     struct raw_records **ret, struct pt_error *e)
{
	struct raw_records *s = calloc(1, sizeof *s);
	int r = s ? add_event(s, files, count, sample_type, e) : pt_fail_no_memory(e, "the sideband");

	for (size_t i = 0; i < count && r == 0; i++) {
		struct byte_source *source = byte_source_open(files[i].path, e);

		r = source ? read_records(s, source, &files[i], sample_type, e) : -1;
		byte_source_close(source);
	}
	if (r) {
		raw_records_destroy(s);
		return -1;
	}
	if (s->count)
		/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers */
		qsort(s->records, s->count, sizeof(struct ordered_record *), older);
	*ret = s;
	return 0;
}

void raw_records_destroy(struct raw_records *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++)
		free(s->records[i]);
	free(s->records);
	perf_description_deinit(&s->description);
	free(s);
}

struct perf_file_clock raw_records_clock(const struct raw_records *s)
{
	return s->description.clock;
}

bool raw_records_thread(const struct raw_records *s, int32_t *ret_pid, int32_t *ret_tid)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct ordered_record *r = s->records[i];
		struct perf_event_header h;

		memcpy(&h, r->bytes, sizeof h);
		if (h.type != PERF_RECORD_ITRACE_START || h.size < sizeof h + 8)
			continue;
		memcpy(ret_pid, r->bytes + sizeof h, 4);
		memcpy(ret_tid, r->bytes + sizeof h + 4, 4);
		return true;
	}
	return false;
}

/* ---- Writing ---- */

static int put_kernel(struct raw_records *s, struct perf_machines *m, struct ptc_writer *w,
		      struct pt_error *e)
{
	for (size_t i = 0; i < s->count; i++) {
		struct perf_record view = view_of(s->records[i]);

		if (perf_machines_kernel_map(m, 0, &view, e))
			return -1;
	}
	return perf_machines_kernel(m, 0, w, e);
}

static int put_records(struct raw_records *s, struct perf_machines *m, struct ptc_writer *w,
		       struct perf_put *side, struct pt_error *e)
{
	for (size_t i = 0; i < s->count; i++) {
		uint32_t type = view_of(s->records[i]).type;

		if ((type == PERF_RECORD_MMAP || type == PERF_RECORD_MMAP2) &&
		    perf_machines_mapped(m, 0, s->records[i], w, e))
			return -1;
		if (perf_put_record(side, s->records[i], e))
			return -1;
	}
	return perf_put_flush(side, e);
}

int raw_records_put(struct raw_records *s, struct ptc_writer *w, const struct raw_records_code *code,
		    uint32_t *next_attr, struct pt_error *e)
{
	struct perf_machines *m = perf_machines_create(code->request, code->notes);
	struct perf_put side = {0};
	int ret = -1;

	if (!m)
		return pt_fail_no_memory(e, "the sideband");
	if (perf_machines_add(m, 0, &s->description, NULL, e) ||
	    perf_put_init(&side, w, &s->description, 0, next_attr, e) ||
	    (code->kernel && put_kernel(s, m, w, e)) || put_records(s, m, w, &side, e))
		goto out;
	perf_machines_note_missing(m);
	ret = 0;
out:
	perf_put_deinit(&side);
	perf_machines_destroy(m);
	return ret;
}
