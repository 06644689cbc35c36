/* aux_data.c - see aux_data.h. */
#include "capture/perfdata/aux_data.h"
#include "capture/pt/packet_len.h"
#include "schema/bytes.h"
#include "schema/container.h"

#include <search.h>
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
};

struct thread {
	int32_t tid, pid;
};

struct aux_found {
	struct thread *threads; /* in the order of the file */
	size_t thread_count, thread_room;
	void *buffers;	       /* tsearch()'s, of all */
	struct buffer **order; /* of first appearance */
	uint32_t count, room;
};

uint64_t perf_tsc_to_ns(const struct perf_file_clock *clock, uint64_t tsc)
{
	if (!clock->mult || clock->shift > 63)
		return 0;
	return clock->zero + (uint64_t)(((unsigned __int128)tsc * clock->mult) >> clock->shift);
}

/* Room for one more of an array. */
static void *grow(void *array, size_t count, size_t *room, size_t each)
{
	size_t more = *room ? 2 * *room : 16;
	void *grown = array;

	if (count < *room)
		return array;
	grown = realloc(array, more * each);
	if (grown)
		*room = more;
	return grown;
}

int aux_plan_init(struct aux_plan *p, struct pt_error *e)
{
	*p = (struct aux_plan){.found = calloc(1, sizeof(struct aux_found))};
	return p->found ? 0 : pt_fail_no_memory(e, "the list of AUX data");
}

static int by_owner(const void *a, const void *b)
{
	const struct buffer *x = a, *y = b;

	return x->cpu != y->cpu ? (x->cpu > y->cpu) - (x->cpu < y->cpu)
				: (x->tid > y->tid) - (x->tid < y->tid);
}

static struct buffer *buffer_of(struct aux_found *found, int32_t cpu, int32_t tid, struct pt_error *e)
{
	const struct buffer key = {.cpu = cpu, .tid = cpu >= 0 ? -1 : tid};
	struct buffer *const *known = tfind(&key, &found->buffers, by_owner);
	size_t room = found->room;
	struct buffer *b, **order;

	if (known)
		return *known;
	if (found->count == STREAMS_MAX) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "AUX data of more than %u threads", STREAMS_MAX);
		return NULL;
	}
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers */
	order = grow(found->order, found->count, &room, sizeof *order);
	b = order ? calloc(1, sizeof *b) : NULL;
	if (order) {
		found->order = order;
		found->room = (uint32_t)room;
	}
	if (!b) {
		pt_fail_no_memory(e, "the list of AUX data");
		return NULL;
	}
	*b = key;
	b->pid = -1;
	b->named_tid = b->tid;
	if (!tsearch(b, &found->buffers, by_owner)) {
		free(b);
		pt_fail_no_memory(e, "the list of AUX data");
		return NULL;
	}
	order[found->count++] = b;
	return b;
}

static int add_chunk(struct aux_plan *p, const struct perf_record *r, struct pt_error *e)
{
	/* struct perf_record_auxtrace: header, size, offset, reference, u32 idx, tid, cpu, reserved */
	int32_t tid = (int32_t)u32(r->bytes + 36), cpu = (int32_t)u32(r->bytes + 40);
	struct buffer *b = buffer_of(p->found, cpu < -1 ? -1 : cpu, tid, e);
	struct chunk *c;

	if (!b)
		return -1;
	if (r->aux_bytes > UINT64_MAX - u64(r->bytes + 16))
		return pt_fail(e, PT_ERR_BAD_INPUT, r->offset, "AUX data from offset 0x%llx on, 0x%llx bytes",
			       (unsigned long long)u64(r->bytes + 16), (unsigned long long)r->aux_bytes);
	c = grow(b->chunks, b->chunk_count, &b->chunk_room, sizeof *c);
	if (!c)
		return pt_fail_no_memory(e, "the list of AUX data");
	b->chunks = c;
	b->named_tid = tid;
	c[b->chunk_count++] = (struct chunk){.file_offset = r->aux_offset,
					     .bytes = r->aux_bytes,
					     .aux_offset = u64(r->bytes + 16),
					     .reference_tsc = u64(r->bytes + 24),
					     .part = r->part};
	return 0;
}

static int add_traced(struct aux_plan *p, const struct perf_file *f, const struct perf_record *r,
		      struct pt_error *e)
{
	struct traced now, *last, *grown;
	struct perf_stamp stamp;
	struct buffer *b;

	if (r->size < AUX_HEAD || perf_stamp_read(f, r, &stamp, e))
		return r->size < AUX_HEAD ? 0 : -1;
	now = (struct traced){.aux_offset = u64(r->bytes + 8),
			      .bytes = u64(r->bytes + 16),
			      .flags = u64(r->bytes + 24),
			      .time_ns = stamp.time_ns};
	if ((now.flags & PTC_AUX_OVERWRITE) || now.bytes > UINT64_MAX - now.aux_offset)
		return 0;
	if (f->pt.per_cpu ? stamp.cpu < 0 : stamp.tid < 0)
		return 0;
	b = buffer_of(p->found, f->pt.per_cpu ? stamp.cpu : -1, f->pt.per_cpu ? -1 : stamp.tid, e);
	if (!b)
		return -1;
	if (b->cpu < 0 && stamp.pid > 0)
		b->pid = stamp.pid;
	last = b->traced_count ? &b->traced[b->traced_count - 1] : NULL;
	if (last && !last->flags && last->aux_offset + last->bytes == now.aux_offset &&
	    last->bytes + now.bytes <= JOINED_BYTES) {
		last->bytes += now.bytes;
		last->flags = now.flags;
		last->time_ns = now.time_ns;
		return 0;
	}
	grown = grow(b->traced, b->traced_count, &b->traced_room, sizeof *grown);
	if (!grown)
		return pt_fail_no_memory(e, "the list of AUX data");
	b->traced = grown;
	grown[b->traced_count++] = now;
	return 0;
}

int aux_plan_add(struct aux_plan *p, const struct perf_file *f, const struct perf_record *r,
		 struct pt_error *e)
{
	return r->type == PERF_USER_AUXTRACE ? add_chunk(p, r, e) : add_traced(p, f, r, e);
}

int aux_plan_thread(struct aux_plan *p, int32_t pid, int32_t tid, struct pt_error *e)
{
	struct aux_found *found = p->found;
	struct thread *grown;

	if (found->thread_count == STREAMS_MAX)
		return 0;
	grown = grow(found->threads, found->thread_count, &found->thread_room, sizeof *grown);
	if (!grown)
		return pt_fail_no_memory(e, "the list of AUX data");
	found->threads = grown;
	grown[found->thread_count++] = (struct thread){.tid = tid, .pid = pid};
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

/* The time of the PSB that a buffer's data begins with, so that nobody waits for it from the start; 0 when it does not
 * begin so, or within a guest (whose TSC is another). */
static uint64_t begin_ns(struct perf_file *f, const struct chunk *c)
{
	uint8_t bytes[PSB_PLUS_MAX], *pip;
	size_t n = c->bytes < sizeof bytes ? c->bytes : sizeof bytes;
	struct pt_error unread;
	uint64_t tsc;

	if (perf_file_read_aux(f, c->part, c->file_offset, bytes, n, &unread) || !pt_is_psb(bytes, n) ||
	    !pt_psb_tsc(bytes, n, &tsc))
		return 0;
	/* PIP: 02 43, and bit 0 of what follows is NR, set in a guest. */
	for (pip = bytes; (pip = memmem(pip, n - (size_t)(pip - bytes), "\x02\x43", 2)); pip++)
		if (pip + 2 < bytes + n && (pip[2] & 1))
			return 0;
	return perf_tsc_to_ns(&f->clock, tsc);
}

static int add_piece(struct aux_plan *p, const struct aux_piece *piece, struct pt_error *e)
{
	struct aux_piece *grown = grow(p->pieces, p->count, &p->room, sizeof *grown);

	if (!grown)
		return pt_fail_no_memory(e, "the list of AUX data");
	p->pieces = grown;
	grown[p->count++] = *piece;
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
					  .end_ns = perf_tsc_to_ns(&f->clock, c->reference_tsc)};

		if (piece.end_ns < start_ns)
			piece.end_ns = start_ns;
		start_ns = piece.end_ns;
		if (add_piece(p, &piece, e))
			return -1;
	}
	return 0;
}

/* The chunks cut where AUX records end. */
static int plan_sequence(struct aux_plan *p, struct perf_file *f, const struct buffer *b, uint32_t stream,
			 struct pt_error *e)
{
	uint64_t start_ns = b->chunk_count ? begin_ns(f, &b->chunks[0]) : 0;
	size_t t = 0;

	for (size_t i = 0; i < b->chunk_count; i++) {
		const struct chunk *c = &b->chunks[i];
		uint64_t at = c->aux_offset, end = at + c->bytes;
		bool last = i + 1 == b->chunk_count;

		if (!last && b->chunks[i + 1].aux_offset < end)
			end = b->chunks[i + 1].aux_offset;
		do {
			struct aux_piece piece = {.stream = stream,
						  .part = c->part,
						  .file_offset = c->file_offset + (at - c->aux_offset),
						  .bytes = end - at,
						  .aux_offset = at};
			const struct traced *now;
			bool goes_on = false; /* into the next chunk */

			while (t < b->traced_count && b->traced[t].aux_offset + b->traced[t].bytes <= at &&
			       b->traced[t].bytes)
				t++;
			now = t < b->traced_count ? &b->traced[t] : NULL;
			if (!now) {
				/* Padding, or the record of it was lost. */
				if (last && b->traced_count && piece.bytes <= PAD_MAX)
					break;
				piece.end_ns = perf_tsc_to_ns(&f->clock, c->reference_tsc);
			} else if (now->aux_offset > at) {
				if (now->aux_offset < end)
					piece.bytes = now->aux_offset - at;
				goes_on = now->aux_offset > end;
				piece.end_ns = now->time_ns;
			} else {
				uint64_t until = now->aux_offset + now->bytes;

				if (until < at)
					until = at;
				piece.flags = now->flags;
				if (until <= end) {
					piece.bytes = until - at;
					t++;
				} else {
					piece.flags &= ~(uint64_t)PTC_AUX_TRUNCATED;
					goes_on = true;
				}
				piece.end_ns = now->time_ns;
			}
			if (piece.end_ns < start_ns)
				piece.end_ns = start_ns;
			piece.start_ns = start_ns;
			/* What one record told of is in no order of time, as far as is known. */
			if (!goes_on)
				start_ns = piece.end_ns;
			at += piece.bytes;
			if ((piece.bytes || piece.flags) && add_piece(p, &piece, e))
				return -1;
		} while (at < end);
	}
	/* A record of lost data may have no bytes to stand behind. */
	for (; t < b->traced_count; t++) {
		const struct traced *now = &b->traced[t];
		const struct aux_piece *before = p->count ? &p->pieces[p->count - 1] : NULL;
		struct aux_piece piece = {.stream = stream,
					  .flags = now->flags,
					  .aux_offset = now->aux_offset,
					  .start_ns = start_ns,
					  .end_ns = now->time_ns < start_ns ? start_ns : now->time_ns};

		if (before && before->stream == stream &&
		    piece.aux_offset < before->aux_offset + before->bytes)
			piece.aux_offset = before->aux_offset + before->bytes;
		start_ns = piece.end_ns;
		if (piece.flags && add_piece(p, &piece, e))
			return -1;
	}
	return 0;
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

int aux_plan_finish(struct aux_plan *p, struct perf_file *f, struct pt_error *e)
{
	struct aux_found *found = p->found;

	if (found->thread_count)
		qsort(found->threads, found->thread_count, sizeof *found->threads, by_tid);
	p->streams = calloc(found->count + 1, sizeof *p->streams);
	if (!p->streams)
		return pt_fail_no_memory(e, "the list of AUX data");
	for (uint32_t i = 0; i < found->count; i++) {
		const struct buffer *b = found->order[i];
		uint32_t stream = p->stream_count;
		bool snapshot = f->pt.snapshot || goes_back(b);

		/* Of a buffer that gave nothing, only its losses are told. */
		p->streams[stream] =
		    (struct aux_stream){.cpu = b->cpu,
					.tid = b->named_tid,
					.pid = b->cpu < 0 && b->pid < 0 ? process_of(found, b->tid) : b->pid,
					.snapshot = snapshot};
		p->stream_count++;
		if (snapshot ? plan_snapshots(p, f, b, stream, e) : plan_sequence(p, f, b, stream, e))
			return -1;
	}
	if (p->count)
		qsort(p->pieces, p->count, sizeof *p->pieces, by_time);
	return 0;
}

void aux_plan_deinit(struct aux_plan *p)
{
	for (uint32_t i = 0; p->found && i < p->found->count; i++) {
		tdelete(p->found->order[i], &p->found->buffers, by_owner);
		free(p->found->order[i]->chunks);
		free(p->found->order[i]->traced);
		free(p->found->order[i]);
	}
	if (p->found) {
		free(p->found->order);
		free(p->found->threads);
	}
	free(p->found);
	free(p->pieces);
	free(p->streams);
	*p = (struct aux_plan){0};
}
