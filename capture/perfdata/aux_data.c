/* aux_data.c - see aux_data.h. */
#include "capture/perfdata/aux_data.h"
#include "capture/perfdata/perf_user.h"
#include "capture/perfdata/sample.h"
#include "capture/pt/packet_len.h"
#include "schema/array.h"
#include "schema/bytes.h"
#include "schema/container.h"
#include "schema/hash.h"

#include <stdlib.h>
#include <string.h>

#define JOINED_BYTES ((uint64_t)64 << 10) /* neighbouring AUX records are one up to this length */
#define PAD_MAX	     7			  /* perf fills up AUXTRACE records to whole words */
#define STREAMS_MAX  ((uint32_t)1 << 20)
#define PSB_PLUS_MAX 256
#define AUX_HEAD     32 /* PERF_RECORD_AUX without trailer */

/* An AUXTRACE record: bytes that are in the file. */
struct chunk {
	uint64_t file_offset, bytes, aux_offset, reference_tsc;
	uint32_t part;
};

/* PERF_RECORD_AUX: bytes that were traced. */
struct traced {
	uint64_t aux_offset, bytes, flags, time_ns;
};

/* The buffer of a CPU or of a thread. */
struct buffer {
	int32_t cpu, tid; /* tid of a CPU's buffer: -1 */
	int32_t pid, named_tid;
	struct chunk *chunks;
	size_t chunk_count, chunk_room;
	struct traced *traced;
	size_t traced_count, traced_room;
	/* Of a buffer that is overwritten the last PERF_RECORD_AUX; of it `bytes` is the buffer's size. */
	struct traced overwritten;
};

struct thread {
	int32_t tid, pid;
};

struct aux_found {
	struct thread *threads; /* in the order of the file; sorted by tid when the plan is finished */
	size_t thread_count, thread_room;
	struct buffer *buffers; /* in the order of first appearance */
	size_t count, room;
	struct pt_hash by_owner; /* numbers of buffers, from 1, by CPU and thread */
};

/* ---- What the records say ---- */

int aux_plan_init(struct aux_plan *p, struct pt_error *e)
{
	*p = (struct aux_plan){.found = calloc(1, sizeof(struct aux_found))};
	if (!p->found)
		return pt_fail_no_memory(e, "the list of AUX data");
	return pt_hash_init(&p->found->by_owner, 6, e);
}

static uint64_t owner_key(int32_t cpu, int32_t tid)
{
	return pt_hash_mix((uint64_t)(uint32_t)cpu << 32 | (uint32_t)tid);
}

static uint64_t buffer_key(const void *buffers, uint32_t n)
{
	const struct buffer *b = (const struct buffer *)buffers + (n - 1);

	return owner_key(b->cpu, b->tid);
}

/*
 * The buffer of a CPU (tid does not count), or with cpu -1 of a thread; a new one when there is none. NULL:
 * an error.
 */
static struct buffer *buffer_of(struct aux_found *found, int32_t cpu, int32_t tid, struct pt_error *e)
{
	uint64_t key;
	uint32_t n;

	if (cpu >= 0)
		tid = -1;
	key = owner_key(cpu, tid);
	for (uint32_t i = pt_hash_first(&found->by_owner, key); (n = found->by_owner.slots[i]);
	     i = pt_hash_next(&found->by_owner, i))
		if (found->buffers[n - 1].cpu == cpu && found->buffers[n - 1].tid == tid)
			return &found->buffers[n - 1];
	if (found->count == STREAMS_MAX) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "AUX data of more than %u threads", STREAMS_MAX);
		return NULL;
	}
	if (pt_array_grow(&found->buffers, found->count, &found->room, e))
		return NULL;
	found->buffers[found->count] = (struct buffer){.cpu = cpu, .tid = tid, .pid = -1, .named_tid = tid};
	n = (uint32_t)found->count + 1;
	if (pt_hash_insert(&found->by_owner, key, n, buffer_key, found->buffers, e))
		return NULL;
	return &found->buffers[found->count++];
}

static int add_chunk(struct aux_plan *p, const struct perf_record *r, struct pt_error *e)
{
	/* struct perf_record_auxtrace: header, size, offset, reference, u32 idx, tid, cpu, reserved */
	int32_t tid = (int32_t)u32(r->bytes + 36), cpu = (int32_t)u32(r->bytes + 40);
	struct buffer *b = buffer_of(p->found, cpu < -1 ? -1 : cpu, tid, e);

	if (!b)
		return -1;
	if (r->tail_bytes > UINT64_MAX - u64(r->bytes + 16))
		return pt_fail(e, PT_ERR_BAD_INPUT, r->offset, "AUX data from offset 0x%llx on, 0x%llx bytes",
			       (unsigned long long)u64(r->bytes + 16), (unsigned long long)r->tail_bytes);
	if (pt_array_grow(&b->chunks, b->chunk_count, &b->chunk_room, e))
		return -1;
	b->named_tid = tid;
	b->chunks[b->chunk_count++] = (struct chunk){.file_offset = r->tail_offset,
						     .bytes = r->tail_bytes,
						     .aux_offset = u64(r->bytes + 16),
						     .reference_tsc = u64(r->bytes + 24),
						     .part = r->part};
	return 0;
}

/* Joins the record with the one before it. False: it continues none. */
static bool joined(struct buffer *b, const struct traced *now)
{
	struct traced *last = b->traced_count ? &b->traced[b->traced_count - 1] : NULL;

	if (!last || last->flags || last->aux_offset + last->bytes != now->aux_offset ||
	    last->bytes + now->bytes > JOINED_BYTES)
		return false;
	last->bytes += now->bytes;
	last->flags = now->flags;
	last->time_ns = now->time_ns;
	return true;
}

static int add_traced(struct aux_plan *p, const struct perf_description *d, const struct perf_record *r,
		      struct pt_error *e)
{
	struct perf_stamp stamp;
	struct traced now;
	struct buffer *b;

	if (r->size < AUX_HEAD)
		return 0;
	if (perf_stamp_read(d, r, &stamp, e))
		return -1;
	now = (struct traced){.aux_offset = u64(r->bytes + 8),
			      .bytes = u64(r->bytes + 16),
			      .flags = u64(r->bytes + 24),
			      .time_ns = stamp.time_ns};
	if (now.bytes > UINT64_MAX - now.aux_offset)
		return 0;
	/* perf reads no such buffer: its AUX data is in the samples. */
	if ((now.flags & PTC_AUX_OVERWRITE) && d->samples_aux)
		return 0;
	if (d->pt.per_cpu ? stamp.cpu < 0 : stamp.tid < 0)
		return 0;
	b = buffer_of(p->found, d->pt.per_cpu ? stamp.cpu : -1, stamp.tid, e);
	if (!b)
		return -1;
	if (b->cpu < 0 && stamp.pid > 0)
		b->pid = stamp.pid;
	if (now.flags & PTC_AUX_OVERWRITE) {
		b->overwritten = now;
		return 0;
	}
	if (joined(b, &now))
		return 0;
	if (pt_array_grow(&b->traced, b->traced_count, &b->traced_room, e))
		return -1;
	b->traced[b->traced_count++] = now;
	return 0;
}

int aux_plan_add(struct aux_plan *p, const struct perf_description *d, const struct perf_record *r,
		 struct pt_error *e)
{
	return r->type == PERF_USER_AUXTRACE ? add_chunk(p, r, e) : add_traced(p, d, r, e);
}

int aux_plan_thread(struct aux_plan *p, int32_t pid, int32_t tid, struct pt_error *e)
{
	struct aux_found *found = p->found;

	if (found->thread_count == STREAMS_MAX)
		return 0;
	if (pt_array_grow(&found->threads, found->thread_count, &found->thread_room, e))
		return -1;
	found->threads[found->thread_count++] = (struct thread){.tid = tid, .pid = pid};
	return 0;
}

static int by_tid(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

/* The process of a thread; -1 unknown. */
static int32_t process_of(const struct aux_found *found, int32_t tid)
{
	const struct thread key = {.tid = tid}, *t = NULL;

	if (found->thread_count)
		t = bsearch(&key, found->threads, found->thread_count, sizeof key, by_tid);
	return t ? t->pid : -1;
}

/* ---- Pieces ---- */

/*
 * The time of the PSB that a buffer's data begins with, so that its first piece need not be taken for as old
 * as the recording. 0: it does not begin so, or in a guest, which has another TSC.
 */
static uint64_t begin_ns(const struct perf_file *f, const struct chunk *c)
{
	uint8_t bytes[PSB_PLUS_MAX], *pip;
	size_t n = c->bytes < sizeof bytes ? c->bytes : sizeof bytes;
	struct pt_error unread;
	uint64_t tsc;

	if (perf_file_read_aux(f, c->part, c->file_offset, bytes, n, &unread) || !pt_is_psb(bytes, n) ||
	    !pt_psb_tsc(bytes, n, &tsc))
		return 0;
	/* PIP: 02 43, and bit 0 of the next byte is NR, set in a guest. */
	for (pip = bytes; (pip = memmem(pip, n - (size_t)(pip - bytes), "\x02\x43", 2)); pip++)
		if (pip + 2 < bytes + n && (pip[2] & 1))
			return 0;
	return perf_tsc_to_ns(&f->description.clock, tsc);
}

static int add_piece(struct aux_plan *p, const struct aux_piece *piece, struct pt_error *e)
{
	if (pt_array_grow(&p->pieces, p->count, &p->room, e))
		return -1;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): where there is room there is an array */
	p->pieces[p->count++] = *piece;
	p->bytes += piece->bytes;
	return 0;
}

static bool goes_back(const struct buffer *b)
{
	for (size_t i = 1; i < b->chunk_count; i++) {
		const struct chunk *last = &b->chunks[i - 1], *c = &b->chunks[i];

		if (c->aux_offset < last->aux_offset ||
		    c->aux_offset + PAD_MAX < last->aux_offset + last->bytes)
			return true;
	}
	return false;
}

/*
 * Whether the buffer was written to after the last snapshot: perf reads none when it ends. The record's offset
 * is where the hardware stopped, in the buffer (kernel/events/ring_buffer.c, perf_aux_output_end()).
 */
static bool is_snapshot_missing(const struct buffer *b, uint64_t start_ns)
{
	const struct chunk *last = b->chunk_count ? &b->chunks[b->chunk_count - 1] : NULL;
	const struct traced *o = &b->overwritten;

	if (!o->flags || (last && o->time_ns <= start_ns))
		return false;
	return !last || !o->bytes || (last->aux_offset + last->bytes - o->aux_offset) % o->bytes > PAD_MAX;
}

/* A snapshot is a piece each, whatever its offsets say. */
static int plan_snapshots(struct aux_plan *p, const struct perf_file *f, const struct buffer *b,
			  uint32_t stream, struct pt_error *e)
{
	uint64_t start_ns = 0;

	for (size_t i = 0; i < b->chunk_count; i++) {
		const struct chunk *c = &b->chunks[i];
		struct aux_piece piece = {.stream = stream,
					  .part = c->part,
					  .file_offset = c->file_offset,
					  .bytes = c->bytes,
					  .aux_offset = c->aux_offset,
					  .flags = PTC_AUX_OVERWRITE,
					  .start_ns = start_ns,
					  .end_ns = perf_tsc_to_ns(&f->description.clock, c->reference_tsc)};

		if (piece.end_ns < start_ns)
			piece.end_ns = start_ns;
		start_ns = piece.end_ns;
		if (add_piece(p, &piece, e))
			return -1;
	}
	if (is_snapshot_missing(b, start_ns))
		return add_piece(p,
				 &(struct aux_piece){.stream = stream,
						     .flags = PTC_AUX_OVERWRITE,
						     .start_ns = start_ns,
						     .end_ns = b->overwritten.time_ns},
				 e);
	return 0;
}

/* A buffer with offsets that count on: its chunks are cut where AUX records end. */
struct sequence {
	struct aux_plan *plan;
	const struct perf_file_clock *clock;
	const struct buffer *b;
	uint32_t stream;
	size_t next;	   /* AUX record: of those before it, all bytes are in pieces */
	uint64_t start_ns; /* of the next piece */
};

/* The first AUX record that does not end before `at`; NULL: there is none. */
static const struct traced *traced_at(struct sequence *s, uint64_t at)
{
	const struct traced *t;

	for (; s->next < s->b->traced_count; s->next++) {
		t = &s->b->traced[s->next];
		if (t->bytes == 0 || t->aux_offset + t->bytes > at)
			return t;
	}
	return NULL;
}

/*
 * Cuts the next piece off [at, end) of a chunk. *ret_goes_on: the next chunk has more bytes of the same
 * record.
 */
static struct aux_piece cut_piece(struct sequence *s, const struct chunk *c, uint64_t at, uint64_t end,
				  bool *ret_goes_on)
{
	struct aux_piece piece = {.stream = s->stream,
				  .part = c->part,
				  .file_offset = c->file_offset + (at - c->aux_offset),
				  .bytes = end - at,
				  .aux_offset = at};
	const struct traced *now = traced_at(s, at);
	uint64_t until;

	*ret_goes_on = false;
	if (!now) { /* the record of it was lost: when perf read it is the latest that it can be of */
		piece.end_ns = perf_tsc_to_ns(s->clock, c->reference_tsc);
		return piece;
	}
	piece.end_ns = now->time_ns;
	if (now->aux_offset > at) { /* no record is of these bytes */
		if (now->aux_offset < end)
			piece.bytes = now->aux_offset - at;
		*ret_goes_on = now->aux_offset > end;
		return piece;
	}
	until = now->aux_offset + now->bytes;
	if (until < at)
		until = at;
	piece.flags = now->flags;
	if (until <= end) {
		piece.bytes = until - at;
		s->next++;
	} else {
		piece.flags &= ~(uint64_t)PTC_AUX_TRUNCATED;
		*ret_goes_on = true;
	}
	return piece;
}

/* end: where the next chunk begins, if that is before this one's end. */
static int plan_chunk(struct sequence *s, const struct chunk *c, uint64_t end, bool last, struct pt_error *e)
{
	uint64_t at = c->aux_offset;

	do {
		struct aux_piece piece;
		bool goes_on;

		if (last && s->b->traced_count && end - at <= PAD_MAX && !traced_at(s, at))
			return 0; /* padding */
		piece = cut_piece(s, c, at, end, &goes_on);
		if (piece.end_ns < s->start_ns)
			piece.end_ns = s->start_ns;
		piece.start_ns = s->start_ns;
		/* The bytes of one record are in no known order of time. */
		if (!goes_on)
			s->start_ns = piece.end_ns;
		at += piece.bytes;
		if ((piece.bytes || piece.flags) && add_piece(s->plan, &piece, e))
			return -1;
	} while (at < end);
	return 0;
}

/* Records of lost data after the last bytes. */
static int plan_losses(struct sequence *s, struct pt_error *e)
{
	struct aux_plan *p = s->plan;

	for (; s->next < s->b->traced_count; s->next++) {
		const struct traced *now = &s->b->traced[s->next];
		const struct aux_piece *before = p->count ? &p->pieces[p->count - 1] : NULL;
		struct aux_piece piece = {.stream = s->stream,
					  .flags = now->flags,
					  .aux_offset = now->aux_offset,
					  .start_ns = s->start_ns,
					  .end_ns = now->time_ns < s->start_ns ? s->start_ns : now->time_ns};

		if (before && before->stream == s->stream &&
		    piece.aux_offset < before->aux_offset + before->bytes)
			piece.aux_offset = before->aux_offset + before->bytes;
		s->start_ns = piece.end_ns;
		if (piece.flags && add_piece(p, &piece, e))
			return -1;
	}
	return 0;
}

static int plan_sequence(struct aux_plan *p, const struct perf_file *f, const struct buffer *b,
			 uint32_t stream, struct pt_error *e)
{
	struct sequence s = {.plan = p, .clock = &f->description.clock, .b = b, .stream = stream};

	if (b->chunk_count)
		s.start_ns = begin_ns(f, &b->chunks[0]);
	for (size_t i = 0; i < b->chunk_count; i++) {
		const struct chunk *c = &b->chunks[i];
		uint64_t end = c->aux_offset + c->bytes;
		bool last = i + 1 == b->chunk_count;

		if (!last && b->chunks[i + 1].aux_offset < end)
			end = b->chunks[i + 1].aux_offset;
		if (plan_chunk(&s, c, end, last, e))
			return -1;
	}
	return plan_losses(&s, e);
}

static int by_time(const void *a, const void *b)
{
	const struct aux_piece *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return (x->aux_offset > y->aux_offset) - (x->aux_offset < y->aux_offset);
}

int aux_plan_finish(struct aux_plan *p, const struct perf_file *f, struct pt_error *e)
{
	struct aux_found *found = p->found;

	if (found->thread_count)
		qsort(found->threads, found->thread_count, sizeof *found->threads, by_tid);
	p->streams = calloc(found->count + 1, sizeof *p->streams);
	if (!p->streams)
		return pt_fail_no_memory(e, "the list of AUX data");
	for (uint32_t i = 0; i < found->count; i++) {
		const struct buffer *b = &found->buffers[i];
		bool snapshot = f->description.pt.snapshot || goes_back(b);

		p->streams[i] =
		    (struct aux_stream){.cpu = b->cpu,
					.tid = b->named_tid,
					.pid = b->cpu < 0 && b->pid < 0 ? process_of(found, b->tid) : b->pid,
					.snapshot = snapshot};
		p->stream_count++;
		if (snapshot ? plan_snapshots(p, f, b, i, e) : plan_sequence(p, f, b, i, e))
			return -1;
	}
	if (p->count)
		qsort(p->pieces, p->count, sizeof *p->pieces, by_time);
	return 0;
}

void aux_plan_deinit(struct aux_plan *p)
{
	struct aux_found *found = p->found;

	if (found) {
		for (size_t i = 0; i < found->count; i++) {
			free(found->buffers[i].chunks);
			free(found->buffers[i].traced);
		}
		pt_hash_deinit(&found->by_owner);
		free(found->buffers);
		free(found->threads);
		free(found);
	}
	free(p->pieces);
	free(p->streams);
	*p = (struct aux_plan){0};
}
