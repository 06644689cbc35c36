/* export_aux.c - see export_aux.h. */
#include "capture/perfdata/export_aux.h"
#include "capture/pt/config.h"
#include "capture/pt/packet_len.h"
#include "schema/array.h"

#include <stdlib.h>
#include <string.h>

#define HOLD_MAX ((size_t)4 << 20) /* that many bytes without a PSB are cut at any packet */

/* Where the last PSB begins; 0: there is none, but perhaps one at the very beginning. */
static size_t last_psb(const struct export_queue *q)
{
	for (size_t at = q->count < PT_PSB_BYTES ? 0 : q->count - PT_PSB_BYTES; at > 0; at--)
		if (q->bytes[at] == 0x02 && pt_is_psb(q->bytes + at, q->count - at))
			return at;
	return 0;
}

/* How many bytes to write, up to the end of a packet, when no more will come. */
static size_t whole_at_end(const struct export_queue *q)
{
	size_t from = last_psb(q), whole;
	int block = 0;

	if (from == 0 && !q->aligned && !pt_is_psb(q->bytes, q->count))
		return q->count;
	whole = from + pt_whole_packets(q->bytes + from, q->count - from);
	/* Where it stops at something that is no packet, perf is to say so. */
	if (whole < q->count && pt_packet_len(q->bytes + whole, q->count - whole, &block) == PT_PACKET_CUT)
		return whole;
	return q->count;
}

/* How many bytes to write now; 0: wait for more. */
static size_t whole_so_far(const struct export_queue *q)
{
	size_t at = last_psb(q);

	if (at || q->count < HOLD_MAX)
		return at;
	at = q->aligned ? pt_whole_packets(q->bytes, q->count) : 0;
	return at ? at : q->count;
}

/*
 * When the first n bytes of the queue were traced, at the latest, and its other bytes at the earliest: a
 * reader takes the time of a PERF_RECORD_AUX for that. Where a PSB is the border, its TSC says it. False: the
 * TSC is not there yet.
 */
static bool border_time(const struct export_aux *a, const struct export_queue *q, size_t n, uint64_t *ret)
{
	const struct ptc_meta *meta = a->to->contents.meta;
	uint64_t mult = ptc_meta_number(meta, "time_mult", 0), shift = ptc_meta_number(meta, "time_shift", 0);
	uint64_t tsc, ns;

	*ret = q->time_ns;
	if (n == q->count || !mult || shift > 63 || !pt_is_psb(q->bytes + n, q->count - n))
		return true;
	if (!pt_psb_tsc(q->bytes + n, q->count - n, &tsc))
		return !(ptc_meta_number(meta, "pt_config", PT_CONFIG_TSC) & PT_CONFIG_TSC);
	ns = ptc_meta_number(meta, "time_zero", 0) + (uint64_t)((unsigned __int128)tsc * mult >> shift);
	if (ns < *ret)
		*ret = ns;
	return true;
}

/* Writes the first n bytes; all: no more will come, and the others are left out. */
static int put_piece(struct export_aux *a, struct export_queue *q, bool all, size_t n, uint64_t time_ns,
		     struct pt_error *e)
{
	struct perf_data_aux aux = {.queue = (uint32_t)(q - a->queues),
				    .cpu = q->stream.cpu,
				    .pid = q->stream.pid,
				    .tid = q->stream.tid,
				    .offset = q->offset,
				    .flags = all ? q->flags : q->flags & ~(uint64_t)PTC_AUX_TRUNCATED,
				    .time_ns = time_ns,
				    .bytes = q->bytes,
				    .size = n};

	if ((n || (all && q->flags)) && perf_data_aux(a->to, &aux, e))
		return -1;
	q->aligned = n > 0;
	if (all) {
		a->cut_bytes += q->count - n;
		q->offset += q->count;
		q->count = 0;
		q->flags = 0;
		return 0;
	}
	q->offset += n;
	q->count -= n;
	if (q->count)
		memmove(q->bytes, q->bytes + n, q->count);
	return 0;
}

static int flush(struct export_aux *a, struct export_queue *q, bool all, struct pt_error *e)
{
	size_t n = all ? whole_at_end(q) : whole_so_far(q);
	uint64_t time_ns = q->time_ns;

	/* With more bytes the PSB's TSC will be there. */
	if (!all && !border_time(a, q, n, &time_ns) && q->count < HOLD_MAX)
		return 0;
	return put_piece(a, q, all, n, time_ns, e);
}

static int append(struct export_queue *q, const struct ptc_aux *aux, struct pt_error *e)
{
	if (q->count + aux->size > q->room) {
		size_t room = 2 * (q->count + aux->size);
		uint8_t *grown = realloc(q->bytes, room);

		if (!grown)
			return pt_fail_no_memory(e, "AUX data");
		q->bytes = grown;
		q->room = room;
	}
	if (aux->size)
		memcpy(q->bytes + q->count, aux->bytes, aux->size);
	q->count += aux->size;
	q->flags |= aux->flags & ~PTC_AUX_CONTEXT; /* perf has no such flag, and decodes those bytes, too */
	q->time_ns = aux->time_ns;
	return 0;
}

int export_aux_take(struct export_aux *a, const struct ptc_chunk *c, struct pt_error *e)
{
	struct export_queue *q;
	struct ptc_aux aux;
	bool ends;

	if (ptc_parse_aux(c, &aux, e))
		return -1;
	if (c->stream == 0 || c->stream > a->count)
		return pt_fail(e, PT_ERR_BAD_INPUT, c->offset,
			       "AUX data of stream %u, which was not declared", c->stream);
	q = &a->queues[c->stream - 1];
	if (aux.aux_offset != q->offset + q->count) {
		if (flush(a, q, true, e))
			return -1;
		q->offset = aux.aux_offset;
		q->aligned = false;
	}
	if (append(q, &aux, e))
		return -1;
	ends = (aux.flags & PTC_AUX_TRUNCATED) || q->stream.snapshot;
	return aux.size || ends ? flush(a, q, ends, e) : 0;
}

int export_aux_stream(struct export_aux *a, const struct ptc_chunk *c, struct pt_error *e)
{
	struct ptc_stream stream;

	if (ptc_parse_stream(c, &stream, e))
		return -1;
	if (c->stream != a->count + 1)
		return pt_fail(e, PT_ERR_BAD_INPUT, c->offset, "stream %u is declared out of order",
			       c->stream);
	if (pt_array_grow(&a->queues, a->count, &a->room, e))
		return -1;
	a->queues[a->count++] = (struct export_queue){.stream = stream};
	if (stream.snapshot)
		a->to->snapshot = true;
	return 0;
}

int export_aux_finish(struct export_aux *a, struct pt_error *e)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->queues[i].count && flush(a, &a->queues[i], true, e))
			return -1;
	return 0;
}

void export_aux_deinit(struct export_aux *a)
{
	for (size_t i = 0; i < a->count; i++)
		free(a->queues[i].bytes);
	free(a->queues);
	*a = (struct export_aux){0};
}
