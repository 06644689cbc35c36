/* put.c - see put.h. */
#include "capture/perfdata/put.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAITING_BYTES ((size_t)64 << 10) /* of sideband: what is mixed up to be of one event a chunk */
#define WAITING_MAX   (WAITING_BYTES / 8)
#define COPY_BYTES    ((size_t)4 << 20)
#define TAIL_BYTES    ((size_t)256) /* by which the end of one snapshot is searched for in the next */
#define CANDIDATES    256
#define GAP_BYTES     16 /* between two snapshots that have nothing in common: any number tells them apart */

struct perf_put_entry {
	uint32_t attr, at, size;
};

/* ---- Sideband ---- */

int perf_put_init(struct perf_put *s, struct ptc_writer *w, const struct perf_file *f, int32_t machine_pid,
		  uint32_t *next_attr, struct pt_error *e)
{
	*s = (struct perf_put){.w = w, .file = f};
	s->attr_of = calloc(f->event_count + 1, sizeof *s->attr_of);
	s->shape_of = calloc(f->event_count + 1, sizeof *s->shape_of);
	s->bytes = malloc(WAITING_BYTES);
	s->sorted = malloc(WAITING_BYTES);
	s->entries = calloc(WAITING_MAX, sizeof *s->entries);
	if (!s->attr_of || !s->shape_of || !s->bytes || !s->sorted || !s->entries)
		return pt_fail_no_memory(e, "the records");
	for (uint32_t i = 0; i < f->event_count; i++) {
		const struct perf_file_event *ev = &f->events[i];
		int32_t machine = ev->machine_pid ? ev->machine_pid : machine_pid;
		struct perf_event_attr attr = ev->attr;
		char name[64] = "intel_pt//";

		/* A recording by pipe may name none. */
		if (!f->pt.present || attr.type != f->pt.pmu_type)
			snprintf(name, sizeof name, "type %u config 0x%llx", attr.type,
				 (unsigned long long)attr.config);
		if (ptc_put_attr(
			w,
			&(struct ptc_attr){.name = ev->name[0] ? ev->name : name,
					   .name_bytes = (uint32_t)strlen(ev->name[0] ? ev->name : name),
					   .attr = (const uint8_t *)&attr,
					   .attr_bytes = attr.size,
					   .ids = (const uint8_t *)ev->ids,
					   .count = ev->id_count,
					   .machine_pid = machine},
			e))
			return -1;
		s->attr_of[i] = (*next_attr)++;
		s->shape_of[i] = s->attr_of[i];
		for (uint32_t k = 0; k < i; k++)
			if (perf_stamp_shape(&f->events[k].attr) == perf_stamp_shape(&attr) &&
			    f->events[k].machine_pid == ev->machine_pid) {
				s->shape_of[i] = s->attr_of[k];
				break;
			}
	}
	return 0;
}

void perf_put_deinit(struct perf_put *s)
{
	free(s->attr_of);
	free(s->shape_of);
	free(s->bytes);
	free(s->sorted);
	free(s->entries);
	*s = (struct perf_put){0};
}

/* A chunk for each attr, in the order of its first record. */
int perf_put_flush(struct perf_put *s, struct pt_error *e)
{
	for (size_t first = 0; first < s->entry_count; first++) {
		uint32_t attr = s->entries[first].attr;
		size_t n = 0;

		if (s->entries[first].size == 0)
			continue;
		for (size_t i = first; i < s->entry_count; i++) {
			struct perf_put_entry *entry = &s->entries[i];

			if (entry->attr != attr)
				continue;
			memcpy(s->sorted + n, s->bytes + entry->at, entry->size);
			n += entry->size;
			entry->size = 0;
		}
		if (ptc_put_sideband(s->w, attr, s->sorted, n, e))
			return -1;
	}
	s->entry_count = 0;
	s->count = 0;
	return 0;
}

int perf_put_record(struct perf_put *s, const struct ordered_record *r, struct pt_error *e)
{
	uint32_t event = r->stamp.event < s->file->event_count ? r->stamp.event : 0, attr = 0;
	struct perf_event_header h;
	size_t size = r->size;

	memcpy(&h, r->bytes, sizeof h);
	if (s->file->event_count)
		attr = h.type == PERF_RECORD_SAMPLE ? s->attr_of[event] : s->shape_of[event];
	if (r->stamp.aux_at)
		size -= r->stamp.aux_bytes;
	if ((s->count + size > WAITING_BYTES || s->entry_count == WAITING_MAX) && perf_put_flush(s, e))
		return -1;
	s->entries[s->entry_count++] =
	    (struct perf_put_entry){.attr = attr, .at = (uint32_t)s->count, .size = (uint32_t)size};
	memcpy(s->bytes + s->count, r->bytes, size);
	if (size != r->size) {
		uint64_t none = 0;

		h.size = (uint16_t)size;
		memcpy(s->bytes + s->count, &h, sizeof h);
		memcpy(s->bytes + s->count + r->stamp.aux_at - 8, &none, 8);
	}
	s->count += size;
	return 0;
}

/* ---- AUX data ---- */

int aux_put_init(struct aux_put *a, struct ptc_writer *w, struct perf_file *f, uint32_t attr,
		 struct pt_error *e)
{
	*a = (struct aux_put){.w = w, .file = f, .attr = attr, .buffer = malloc(COPY_BYTES)};
	return a->buffer ? 0 : pt_fail_no_memory(e, "the records");
}

void aux_put_deinit(struct aux_put *a)
{
	for (size_t i = 0; i < a->count; i++)
		aux_sample_deinit(&a->streams[i].samples);
	tdestroy(a->sampled, free);
	free(a->streams);
	free(a->buffer);
	*a = (struct aux_put){0};
}

int aux_put_stream(struct aux_put *a, const struct aux_stream *of, uint32_t *ret, struct pt_error *e)
{
	struct ptc_stream stream = {
	    .cpu = of->cpu, .pid = of->pid, .tid = of->tid, .attr = a->attr, .snapshot = of->snapshot};
	int64_t number;

	if (a->count == a->room) {
		size_t room = a->room ? 2 * a->room : 16;
		struct aux_put_stream *grown = realloc(a->streams, room * sizeof *grown);

		if (!grown)
			return pt_fail_no_memory(e, "the records");
		a->streams = grown;
		a->room = room;
	}
	number = ptc_put_stream(a->w, &stream, e);
	if (number < 0)
		return -1;
	a->streams[a->count] = (struct aux_put_stream){
	    .number = number, .cpu = of->cpu, .tid = of->tid, .snapshot = of->snapshot};
	*ret = (uint32_t)a->count++;
	return 0;
}

/* [from, from + bytes) of the piece, at stream offset s->end. */
static int copy(struct aux_put *a, struct aux_put_stream *s, const struct aux_piece *piece, uint64_t from,
		struct pt_error *e)
{
	uint64_t done = from;

	do {
		uint64_t n = piece->bytes - done < COPY_BYTES ? piece->bytes - done : COPY_BYTES;
		bool last = done + n == piece->bytes;
		struct ptc_aux aux = {.aux_offset = s->end,
				      .flags =
					  last ? piece->flags : piece->flags & ~(uint64_t)PTC_AUX_TRUNCATED,
				      .time_ns = piece->end_ns,
				      .bytes = a->buffer,
				      .size = n};

		if (perf_file_read_aux(a->file, piece->part, piece->file_offset + done, a->buffer, n, e) ||
		    ptc_put_aux(a->w, (uint32_t)s->number, &aux, e))
			return -1;
		done += n;
		s->end += n;
	} while (done < piece->bytes);
	return 0;
}

/* Whether the n first bytes of b are the n last bytes of a, and not by chance. 1, 0, or -1. */
static int joins(struct aux_put *put, const struct aux_piece *a, const struct aux_piece *b, uint64_t n,
		 struct pt_error *e)
{
	uint8_t *x = put->buffer, *y = put->buffer + COPY_BYTES / 2;
	bool certain = false;

	for (uint64_t done = 0, k; done < n; done += k) {
		k = n - done < COPY_BYTES / 2 ? n - done : COPY_BYTES / 2;
		if (perf_file_read_aux(put->file, a->part, a->file_offset + a->bytes - n + done, x, k, e) ||
		    perf_file_read_aux(put->file, b->part, b->file_offset + done, y, k, e))
			return -1;
		if (memcmp(x, y, k) != 0)
			return 0;
		certain = certain || aux_sample_has_time(y, k);
	}
	return certain;
}

/* How many bytes at b's begin are the end of a: the most that it can be. */
static int find_overlap(struct aux_put *put, const struct aux_piece *a, const struct aux_piece *b,
			uint64_t *ret, struct pt_error *e)
{
	uint8_t tail[TAIL_BYTES], *window;
	uint64_t candidates[CANDIDATES], most = a->bytes < b->bytes ? a->bytes : b->bytes, at = 0;
	size_t count = 0;
	int got = 0;

	*ret = 0;
	if (most < TAIL_BYTES)
		return 0;
	window = malloc(COPY_BYTES);
	if (!window)
		return pt_fail_no_memory(e, "the records");
	if (perf_file_read_aux(put->file, a->part, a->file_offset + a->bytes - TAIL_BYTES, tail, TAIL_BYTES,
			       e)) {
		free(window);
		return -1;
	}
	/* Windows overlap by a tail less one, so that none is missed or found twice. */
	while (got == 0 && at + TAIL_BYTES <= most && count < CANDIDATES) {
		uint64_t n = most - at < COPY_BYTES ? most - at : COPY_BYTES;
		const uint8_t *p = window, *hit;

		got = perf_file_read_aux(put->file, b->part, b->file_offset + at, window, n, e);
		while (got == 0 && count < CANDIDATES &&
		       (hit = memmem(p, n - (size_t)(p - window), tail, TAIL_BYTES))) {
			candidates[count++] = at + (uint64_t)(hit - window) + TAIL_BYTES;
			p = hit + 1;
		}
		at += n - (TAIL_BYTES - 1);
	}
	free(window);
	while (got == 0 && count-- > 0) {
		got = joins(put, a, b, candidates[count], e);
		if (got == 1)
			*ret = candidates[count];
	}
	return got < 0 ? -1 : 0;
}

static int put_snapshot(struct aux_put *a, struct aux_put_stream *s, const struct aux_piece *piece,
			struct pt_error *e)
{
	uint64_t known = 0, perf_end = s->previous_offset + s->previous_bytes;

	if (s->previous.bytes) {
		/* A buffer that had not wrapped gives what is new alone. */
		bool follows = piece->aux_offset <= perf_end && perf_end - piece->aux_offset < 8;

		if (follows)
			known = perf_end - piece->aux_offset;
		else if (find_overlap(a, &s->previous, piece, &known, e))
			return -1;
		if (!follows && known == 0)
			s->end += GAP_BYTES;
	}
	if (known > piece->bytes)
		known = piece->bytes;
	s->previous = *piece;
	s->previous_offset = piece->aux_offset;
	s->previous_bytes = piece->bytes;
	return known < piece->bytes ? copy(a, s, piece, known, e) : 0;
}

int aux_put_piece(struct aux_put *a, uint32_t stream, const struct aux_piece *piece, struct pt_error *e)
{
	struct aux_put_stream *s = &a->streams[stream];

	if (s->snapshot)
		return put_snapshot(a, s, piece, e);
	s->end = piece->aux_offset;
	return copy(a, s, piece, 0, e);
}

/* Whose samples: a CPU's, or a thread's where there is no CPU. */
struct sampled {
	int32_t cpu, tid;
	uint32_t index; /* of the stream */
};

static int by_owner(const void *a, const void *b)
{
	const struct sampled *x = a, *y = b;

	return x->cpu != y->cpu ? (x->cpu > y->cpu) - (x->cpu < y->cpu)
				: (x->tid > y->tid) - (x->tid < y->tid);
}

static struct aux_put_stream *sampled_stream(struct aux_put *a, const struct perf_stamp *stamp,
					     struct pt_error *e)
{
	const struct sampled key = {.cpu = stamp->cpu, .tid = stamp->cpu < 0 ? stamp->tid : -1};
	struct aux_stream of = {
	    .cpu = key.cpu, .tid = key.tid, .pid = key.cpu < 0 ? stamp->pid : -1, .snapshot = true};
	struct sampled *const *known = tfind(&key, &a->sampled, by_owner), *new;

	if (known)
		return &a->streams[(*known)->index];
	new = malloc(sizeof *new);
	if (!new) {
		pt_fail_no_memory(e, "the records");
		return NULL;
	}
	*new = key;
	if (!tsearch(new, &a->sampled, by_owner)) {
		free(new);
		pt_fail_no_memory(e, "the records");
		return NULL;
	}
	return aux_put_stream(a, &of, &new->index, e) ? NULL : &a->streams[new->index];
}

int aux_put_sample(struct aux_put *a, const struct ordered_record *r, struct pt_error *e)
{
	const uint8_t *bytes = r->bytes + r->stamp.aux_at;
	size_t n = r->stamp.aux_bytes, known;
	struct aux_put_stream *s;
	uint64_t at;

	if (n == 0)
		return 0;
	s = sampled_stream(a, &r->stamp, e);
	if (!s || aux_sample_next(&s->samples, bytes, n, &known, &at, e))
		return -1;
	if (known == n)
		return 0;
	return ptc_put_aux(a->w, (uint32_t)s->number,
			   &(struct ptc_aux){.aux_offset = at,
					     .flags = PTC_AUX_OVERWRITE,
					     .time_ns = r->stamp.time_ns,
					     .bytes = bytes + known,
					     .size = n - known},
			   e);
}
