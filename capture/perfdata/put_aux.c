/* put_aux.c - see put_aux.h. */
#include "capture/perfdata/put_aux.h"
#include "schema/array.h"

#include <stdlib.h>
#include <string.h>

#define COPY_BYTES ((size_t)4 << 20)
#define TAIL_BYTES ((size_t)256) /* by which the end of one snapshot is searched for in the next */
#define CANDIDATES 256
#define GAP_BYTES  16 /* between two snapshots that have nothing in common: any number keeps them apart */

int aux_put_init(struct aux_put *a, struct ptc_writer *w, const struct perf_file *f, uint32_t attr,
		 struct pt_error *e)
{
	*a = (struct aux_put){.w = w, .file = f, .attr = attr, .buffer = malloc(COPY_BYTES)};
	if (!a->buffer)
		return pt_fail_no_memory(e, "the AUX data");
	return pt_hash_init(&a->sampled, 6, e);
}

void aux_put_deinit(struct aux_put *a)
{
	for (size_t i = 0; i < a->count; i++)
		aux_sample_deinit(&a->streams[i].samples);
	pt_hash_deinit(&a->sampled);
	free(a->streams);
	free(a->buffer);
	*a = (struct aux_put){0};
}

int aux_put_stream(struct aux_put *a, const struct aux_stream *of, struct pt_error *e)
{
	struct ptc_stream stream = {
	    .cpu = of->cpu, .pid = of->pid, .tid = of->tid, .attr = a->attr, .snapshot = of->snapshot};
	int64_t number;

	if (pt_array_grow(&a->streams, a->count, &a->room, e))
		return -1;
	number = ptc_put_stream(a->w, &stream, e);
	if (number < 0)
		return -1;
	a->streams[a->count++] = (struct aux_put_stream){
	    .number = (uint32_t)number, .cpu = of->cpu, .tid = of->tid, .snapshot = of->snapshot};
	return 0;
}

/* ---- Pieces ---- */

/* Writes the bytes of the piece from `from` on, at stream offset s->end. */
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
		    ptc_put_aux(a->w, s->number, &aux, e))
			return -1;
		done += n;
		s->end += n;
	} while (done < piece->bytes);
	return 0;
}

/*
 * 1: the first n bytes of b are the last n bytes of a, and not by chance (a PSB with its time is in them); 0;
 * or -1.
 */
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

/* Where in the first `most` bytes of a piece the tail ends: up to CANDIDATES places. How many, or -1. */
static int find_tail(struct aux_put *put, const struct aux_piece *in, const uint8_t tail[TAIL_BYTES],
		     uint64_t most, uint64_t ret[CANDIDATES], struct pt_error *e)
{
	uint8_t *window = malloc(COPY_BYTES);
	int count = 0;

	if (!window)
		return pt_fail_no_memory(e, "the AUX data");
	/* Windows overlap by a tail less one, so that none is missed or found twice. */
	for (uint64_t at = 0, n; at + TAIL_BYTES <= most && count < CANDIDATES; at += n - (TAIL_BYTES - 1)) {
		const uint8_t *p = window, *hit;

		n = most - at < COPY_BYTES ? most - at : COPY_BYTES;
		if (perf_file_read_aux(put->file, in->part, in->file_offset + at, window, n, e)) {
			free(window);
			return -1;
		}
		while (count < CANDIDATES && (hit = memmem(p, n - (size_t)(p - window), tail, TAIL_BYTES))) {
			ret[count++] = at + (uint64_t)(hit - window) + TAIL_BYTES;
			p = hit + 1;
		}
	}
	free(window);
	return count;
}

/* How many bytes at b's beginning are the end of a: the most that it can be. 0, or -1. */
static int find_overlap(struct aux_put *put, const struct aux_piece *a, const struct aux_piece *b,
			uint64_t *ret, struct pt_error *e)
{
	uint64_t candidates[CANDIDATES], most = a->bytes < b->bytes ? a->bytes : b->bytes;
	uint8_t tail[TAIL_BYTES];
	int count, is = 0;

	*ret = 0;
	if (most < TAIL_BYTES)
		return 0;
	if (perf_file_read_aux(put->file, a->part, a->file_offset + a->bytes - TAIL_BYTES, tail, TAIL_BYTES,
			       e))
		return -1;
	count = find_tail(put, b, tail, most, candidates, e);
	if (count < 0)
		return -1;
	for (int i = count - 1; i >= 0 && is == 0; i--) {
		is = joins(put, a, b, candidates[i], e);
		if (is == 1)
			*ret = candidates[i];
	}
	return is < 0 ? -1 : 0;
}

/* What of a snapshot is new, after what it has in common with the one before. */
static int put_snapshot(struct aux_put *a, struct aux_put_stream *s, const struct aux_piece *piece,
			struct pt_error *e)
{
	uint64_t known = 0, last_end = s->previous.aux_offset + s->previous.bytes;

	if (!piece->bytes) { /* what no snapshot is of */
		s->end += GAP_BYTES;
		return copy(a, s, piece, 0, e);
	}
	if (s->previous.bytes) {
		/* perf reads of a buffer that has not wrapped yet only what is new. */
		bool follows = piece->aux_offset <= last_end && last_end - piece->aux_offset < 8;

		if (follows)
			known = last_end - piece->aux_offset;
		else if (find_overlap(a, &s->previous, piece, &known, e))
			return -1;
		if (!follows && known == 0)
			s->end += GAP_BYTES;
	}
	if (known > piece->bytes)
		known = piece->bytes;
	s->previous = *piece;
	return known < piece->bytes ? copy(a, s, piece, known, e) : 0;
}

int aux_put_piece(struct aux_put *a, const struct aux_piece *piece, struct pt_error *e)
{
	struct aux_put_stream *s = &a->streams[piece->stream];

	if (s->snapshot)
		return put_snapshot(a, s, piece, e);
	s->end = piece->aux_offset;
	return copy(a, s, piece, 0, e);
}

/* ---- Samples ---- */

static uint64_t owner_key(int32_t cpu, int32_t tid)
{
	return pt_hash_mix((uint64_t)(uint32_t)cpu << 32 | (uint32_t)tid);
}

static uint64_t stream_key(const void *streams, uint32_t n)
{
	const struct aux_put_stream *s = (const struct aux_put_stream *)streams + (n - 1);

	return owner_key(s->cpu, s->tid);
}

/* The stream of samples of a CPU, or of a thread where the sample has no CPU. NULL: an error. */
static struct aux_put_stream *sampled_stream(struct aux_put *a, const struct perf_stamp *stamp,
					     struct pt_error *e)
{
	const struct aux_stream of = {.cpu = stamp->cpu,
				      .tid = stamp->cpu < 0 ? stamp->tid : -1,
				      .pid = stamp->cpu < 0 ? stamp->pid : -1,
				      .snapshot = true};
	uint64_t key = owner_key(of.cpu, of.tid);
	uint32_t n;

	for (uint32_t i = pt_hash_first(&a->sampled, key); (n = a->sampled.slots[i]);
	     i = pt_hash_next(&a->sampled, i))
		if (a->streams[n - 1].cpu == of.cpu && a->streams[n - 1].tid == of.tid)
			return &a->streams[n - 1];
	if (aux_put_stream(a, &of, e) ||
	    pt_hash_insert(&a->sampled, key, (uint32_t)a->count, stream_key, a->streams, e))
		return NULL;
	return &a->streams[a->count - 1];
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
	return ptc_put_aux(a->w, s->number,
			   &(struct ptc_aux){.aux_offset = at,
					     .flags = PTC_AUX_OVERWRITE,
					     .time_ns = r->stamp.time_ns,
					     .bytes = bytes + known,
					     .size = n - known},
			   e);
}
