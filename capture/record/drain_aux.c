/* drain_aux.c - released AUX data goes to the container's writer; see drain.h. */
#include "capture/record/drain_internal.h"

/*
 * Taken at a time, at most, so that the other rings of a drain thread wait no longer than that: a chunk, or
 * at the fastest levels four, of the sizes that the writer makes of them.
 */
#define TURN_BYTES (((uint64_t)1 << 20) - 128)

bool hw_drain_has_aux(const struct hw_drain_ring *r)
{
	return r->stream && r->ring.aux && !r->overwrite;
}

void hw_drain_release(struct hw_drain_ring *r)
{
	if (!hw_drain_has_aux(r))
		return;
	pthread_mutex_lock(&r->lock);
	r->before = r->released;
	r->released = r->head;
	pthread_mutex_unlock(&r->lock);
}

/* [taken, to) of one PERF_RECORD_AUX, or of none: the kernel had to drop it. */
struct piece {
	uint64_t to;
	struct hw_aux_record record;
	bool has_record;
};

/* The first record is done with. */
static void end_record(struct hw_drain_ring *r)
{
	const struct hw_aux_record *a = &r->aux_records[r->aux_record_first++];

	if (a->time_ns > r->published_ns)
		r->published_ns = a->time_ns;
	if (r->aux_record_first == r->aux_record_count)
		r->aux_record_first = r->aux_record_count = 0;
}

/* What is to be taken next; false: nothing. */
static bool next_piece(struct hw_drain_ring *r, struct piece *ret)
{
	uint64_t to = r->before;

	for (; r->aux_record_first < r->aux_record_count; end_record(r)) {
		const struct hw_aux_record *a = &r->aux_records[r->aux_record_first];
		uint64_t end = a->offset + a->size;

		if (a->offset > r->released || end > r->released) { /* published after the round began */
			to = a->offset < to ? a->offset : to;
			break;
		}
		if (end < r->taken)
			continue;
		if (a->offset > r->taken) {
			*ret = (struct piece){.to = a->offset};
			return true;
		}
		/* A record of no bytes can still report a loss. */
		if (end > r->taken || a->flags) {
			*ret = (struct piece){end, *a, true};
			return true;
		}
	}
	/* Data without a record: the record may not be published yet, as an interrupt's record becomes
	 * visible together with the one that it interrupted. When it is not there by the next round, the
	 * kernel had to drop it. */
	*ret = (struct piece){.to = to};
	return to > r->taken;
}

int hw_drain_take(struct hw_drain *d, struct hw_drain_ring *r, struct ptc_aux_writer *aux_writer,
		  struct pt_error *e)
{
	struct ptc_aux aux = {0};
	struct piece p;
	bool last;

	if (!hw_drain_has_aux(r))
		return 0;
	pthread_mutex_lock(&r->lock);
	if (!next_piece(r, &p)) {
		pthread_mutex_unlock(&r->lock);
		return 0;
	}
	aux.aux_offset = r->taken;
	aux.size = p.to - r->taken < TURN_BYTES ? p.to - r->taken : TURN_BYTES;
	aux.size = hw_drain_next_aux(r, aux.size, &aux.bytes);
	pthread_mutex_unlock(&r->lock);
	aux.flags = p.record.flags;
	aux.time_ns = p.record.time_ns;
	last = aux.aux_offset + aux.size == p.to;
	if (!last) /* the loss is after the record's last byte */
		aux.flags &= ~(uint64_t)PERF_AUX_FLAG_TRUNCATED;
	if (aux_writer ? ptc_aux_writer_put(aux_writer, r->stream, &aux, e)
		       : ptc_put_aux(d->w, r->stream, &aux, e))
		return -1;
	__atomic_fetch_add(&d->aux_bytes, aux.size, __ATOMIC_RELAXED);
	pthread_mutex_lock(&r->lock);
	if (d->tails)
		hw_aux_tail_add(&d->tails[r - d->rings], &aux, r->published_ns);
	hw_drain_aux_taken(d, r, aux.size);
	if (last && p.has_record)
		end_record(r);
	pthread_mutex_unlock(&r->lock);
	return 1;
}
