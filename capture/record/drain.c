/* drain.c - see drain.h. */
#include "capture/record/drain.h"
#include "schema/bytes.h"

#include <stdlib.h>
#include <string.h>

static uint32_t attr_of(const struct hw_drain *d, uint64_t id)
{
	size_t low = 0, high = d->id_count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (d->ids[mid] < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low < d->id_count && d->ids[low] == id ? d->id_attrs[low] : d->sideband_attr;
}

static int keep_aux_record(struct hw_drain_ring *r, const struct hw_aux_record *a, struct pt_error *e)
{
	if (r->record_count == r->record_room) {
		size_t room = r->record_room ? 2 * r->record_room : 64;
		struct hw_aux_record *grown = realloc(r->records, room * sizeof *grown);

		if (!grown)
			return pt_fail_no_memory(e, "AUX records");
		r->records = grown;
		r->record_room = room;
	}
	r->records[r->record_count++] = *a;
	return 0;
}

/* What comes of it from now on is not older, if nothing of an earlier one is still to come. */
static void task_comes(struct hw_drain_ring *r, uint64_t time)
{
	if (r->presence == HW_TASK_AWAY && r->record_count == 0 && r->taken == r->head &&
	    time > r->published_ns)
		r->published_ns = time;
	r->presence = HW_TASK_ON;
}

/* What a record means for its ring. */
static int look(struct hw_drain *d, struct hw_drain_ring *r, const struct perf_event_header *h,
		const uint8_t *p, uint64_t time, struct pt_error *e)
{
	struct hw_aux_record a;

	switch (h->type) {
	case PERF_RECORD_AUX:
		a = (struct hw_aux_record){u64(p + 8), u64(p + 16), u64(p + 24), time};
		if (r->presence == HW_TASK_LEAVING)
			r->presence = HW_TASK_AWAY;
		if (a.flags & PERF_AUX_FLAG_TRUNCATED) {
			d->losses.truncated++;
			r->truncated = true;
		}
		if (a.flags & PERF_AUX_FLAG_PARTIAL)
			d->losses.partial++;
		return a.flags & PERF_AUX_FLAG_OVERWRITE ? 0 : keep_aux_record(r, &a, e);
	case PERF_RECORD_LOST:
		d->losses.records += u64(p + 16);
		r->lost += u64(p + 16);
		return 0;
	case PERF_RECORD_LOST_SAMPLES: d->losses.records += u64(p + 8); return 0;
	case PERF_RECORD_SWITCH_CPU_WIDE:
		if (r->task)
			return 0; /* anybody's */
				  /* fall through */
	case PERF_RECORD_SWITCH:
		if (h->misc & PERF_RECORD_MISC_SWITCH_OUT)
			r->presence = HW_TASK_LEAVING;
		else
			task_comes(r, time);
		return 0;
	case PERF_RECORD_ITRACE_START: task_comes(r, time); return 0;
	default: return 0;
	}
}

/* ---- Samples ---- */

/* AUX data that waits, behind this. */
struct waiting {
	uint32_t ring, bytes;
	uint64_t time_ns;
};

/* A sample is {id, IP?, pid, tid, time, cpu, 0, {u32 size, raw}?, {u64 size, AUX}?}. What of it is no AUX data goes to d->sorted. 0,
 * or -1: PT_ERR_NO_MEMORY. */
static int take_sample(struct hw_drain *d, uint32_t ring, const uint8_t *p, struct perf_event_header h,
		       uint32_t attr, uint64_t time, struct pt_error *e)
{
	uint64_t type = d->sample_types[attr], none = 0;
	size_t at = sizeof h + (type & PERF_SAMPLE_IP ? 40 : 32), size = h.size;
	struct waiting w = {.ring = ring, .time_ns = time};
	struct hw_bytes *to = &d->sorted[attr];

	if (type & PERF_SAMPLE_RAW && at + 4 <= size)
		at += 4 + (size_t)u32(p + at);
	if (!(type & PERF_SAMPLE_AUX) || at + 8 > size || u64(p + at) > size - at - 8)
		return hw_bytes_add(to, p, size, e);
	w.bytes = (uint32_t)u64(p + at);
	d->sample_count++;
	d->empty_samples += w.bytes == 0;
	h.size = (uint16_t)(size - w.bytes);
	return hw_bytes_add(to, &h, sizeof h, e) || hw_bytes_add(to, p + sizeof h, at - sizeof h, e) ||
		       hw_bytes_add(to, &none, sizeof none, e) ||
		       hw_bytes_add(to, p + at + 8 + w.bytes, size - at - 8 - w.bytes, e) ||
		       (w.bytes && (hw_bytes_add(&d->next_samples, &w, sizeof w, e) ||
				    hw_bytes_add(&d->next_samples, p + at + 8, w.bytes, e)))
		   ? -1
		   : 0;
}

static int put_samples(struct hw_drain *d, struct pt_error *e)
{
	struct hw_bytes done = d->samples;
	struct waiting w;

	for (size_t i = 0; i < done.count; i += sizeof w + w.bytes) {
		const uint8_t *bytes = done.bytes + i + sizeof w;
		struct hw_drain_ring *r;
		uint64_t offset;
		size_t known;

		memcpy(&w, done.bytes + i, sizeof w);
		r = &d->rings[w.ring];
		if (aux_sample_next(&r->samples, bytes, w.bytes, &known, &offset, e))
			return -1;
		if (known < w.bytes && ptc_put_aux(d->w, r->stream,
						   &(struct ptc_aux){.aux_offset = offset,
								     .flags = PTC_AUX_OVERWRITE,
								     .time_ns = w.time_ns,
								     .bytes = bytes + known,
								     .size = w.bytes - known},
						   e))
			return -1;
		d->aux_bytes += w.bytes - known;
	}
	hw_bytes_clear(&done);
	d->samples = d->next_samples;
	d->next_samples = done;
	return 0;
}

/* ---- Records ---- */

/* Where pid, tid and time of a record are; those of a sample stand before what is of it alone, those of others at the end. */
static const uint8_t *stamp(const struct hw_drain *d, const uint8_t *p, const struct perf_event_header *h,
			    uint32_t *ret_attr)
{
	*ret_attr = d->sideband_attr;
	if (h->type != PERF_RECORD_SAMPLE)
		return h->size >= 40 ? p + h->size - 32 : NULL;
	if (h->size < 40)
		return NULL;
	*ret_attr = attr_of(d, u64(p + 8));
	if (!(d->sample_types[*ret_attr] & PERF_SAMPLE_IP))
		return p + 16;
	return h->size >= 48 ? p + 24 : NULL;
}

/* To d->raw: those that were copied out of the ring, and those that are in it. */
static int get_records(struct hw_drain *d, struct hw_drain_ring *r, struct pt_error *e)
{
	int ret = -1;

	pthread_mutex_lock(&d->lock);
	if (r->early.count) {
		struct hw_bytes swap = d->raw;

		d->early -= r->early.count;
		d->raw = r->early;
		r->early = swap;
	}
	if (d->early_error.kind)
		*e = d->early_error;
	else
		ret = hw_ring_records(&r->ring, &d->raw, e);
	pthread_mutex_unlock(&d->lock);
	return ret;
}

static int take_records(struct hw_drain *d, struct hw_drain_ring *r, struct pt_error *e)
{
	/* Who was about to leave before this round has left by now, and its AUX data was published. */
	if (r->presence == HW_TASK_LEAVING)
		r->presence = HW_TASK_AWAY;
	if (get_records(d, r, e))
		return -1;
	d->sideband_bytes += d->raw.count;
	for (size_t i = 0; i < d->raw.count;) {
		const uint8_t *p = d->raw.bytes + i;
		struct perf_event_header h;
		uint64_t time = 0;
		int32_t pid = -1, tid = -1;
		const uint8_t *t;
		uint32_t attr;

		memcpy(&h, p, sizeof h);
		t = stamp(d, p, &h, &attr);
		if (t) {
			pid = (int32_t)u32(t);
			tid = (int32_t)u32(t + 4);
			time = u64(t + 8);
		}
		if (t && h.type != PERF_RECORD_SAMPLE && look(d, r, &h, p, time, e))
			return -1;
		if (d->on_record && d->on_record(d->arg, r, p, time, pid, tid, attr, e))
			return -1;
		if (h.type == PERF_RECORD_SWITCH && r->all_switches) {
			i += h.size;
			continue;
		}
		if (t && h.type == PERF_RECORD_SAMPLE
			? take_sample(d, (uint32_t)(r - d->rings), p, h, attr, time, e)
			: hw_bytes_add(&d->sorted[attr], p, h.size, e))
			return -1;
		i += h.size;
	}
	for (uint32_t a = 0; a < HW_DRAIN_ATTRS; a++) {
		if (d->sorted[a].count &&
		    ptc_put_sideband(d->w, a, d->sorted[a].bytes, d->sorted[a].count, e))
			return -1;
		hw_bytes_clear(&d->sorted[a]);
	}
	hw_bytes_clear(&d->raw);
	return 0;
}

/* Records that would soon be lost. */
static void stash_records(struct hw_drain *d, struct hw_drain_ring *r)
{
	uint64_t head = __atomic_load_n(&r->ring.page->data_head, __ATOMIC_ACQUIRE),
		 n = head - r->ring.page->data_tail;

	if (n < r->ring.data_size / 3 || d->early + n > HW_EARLY_MAX || d->early_error.kind)
		return;
	if (hw_ring_records(&r->ring, &r->early, &d->early_error) == 0)
		d->early += n;
}

/* AUX data, likewise. */
static void stash_aux(struct hw_drain *d, struct hw_drain_ring *r)
{
	uint64_t from, head;

	if (!r->stream || !r->ring.aux || r->busy || r->overwrite)
		return;
	from = r->stash ? r->stash_last->offset + r->stash_last->size : r->taken;
	head = hw_ring_aux_head(&r->ring);
	if (head - from < r->ring.aux_size / 3 || d->stashed + (head - from) > HW_STASH_MAX)
		return;
	while (from < head) {
		const uint8_t *bytes;
		uint64_t n = hw_ring_aux(&r->ring, from, head - from, &bytes);
		struct hw_stash *s = malloc(sizeof *s + n);

		if (!s)
			return; /* it stays in its ring */
		*s = (struct hw_stash){.offset = from, .size = n};
		memcpy(s->bytes, bytes, n);
		if (r->stash)
			r->stash_last->next = s;
		else
			r->stash = s;
		r->stash_last = s;
		d->stashed += n;
		from += n;
		hw_ring_aux_done(&r->ring, from);
	}
}

void hw_drain_stash(struct hw_drain *d)
{
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->ring_count; i++) {
		stash_records(d, &d->rings[i]);
		stash_aux(d, &d->rings[i]);
	}
	pthread_mutex_unlock(&d->lock);
}

/* The bytes from r->taken on, in a row, at most `most`: of the stash, or of the ring. */
static uint64_t next_bytes(struct hw_drain *d, struct hw_drain_ring *r, uint64_t most, const uint8_t **ret)
{
	const struct hw_stash *s;
	uint64_t n;

	pthread_mutex_lock(&d->lock);
	s = r->stash;
	r->busy = !s;
	pthread_mutex_unlock(&d->lock);
	if (!s)
		return hw_ring_aux(&r->ring, r->taken, most, ret);
	*ret = s->bytes + (r->taken - s->offset);
	n = s->offset + s->size - r->taken;
	return n < most ? n : most;
}

static void taken(struct hw_drain *d, struct hw_drain_ring *r, uint64_t n)
{
	struct hw_stash *s;

	pthread_mutex_lock(&d->lock);
	s = r->stash;
	r->taken += n;
	if (r->busy)
		hw_ring_aux_done(&r->ring, r->taken);
	r->busy = false;
	if (s && r->taken == s->offset + s->size) {
		r->stash = s->next;
		d->stashed -= s->size;
		free(s);
	}
	pthread_mutex_unlock(&d->lock);
}

/* [r->taken, to) of one PERF_RECORD_AUX, or of none (a NULL record: the kernel had to drop it). */
static int put_piece(struct hw_drain *d, struct hw_drain_ring *r, struct ptc_aux_writer *aux_writer,
		     uint64_t to, const struct hw_aux_record *a, struct pt_error *e)
{
	do {
		struct ptc_aux aux = {
		    .aux_offset = r->taken, .flags = a ? a->flags : 0, .time_ns = a ? a->time_ns : 0};
		uint64_t n = next_bytes(d, r, to - r->taken, &aux.bytes);

		aux.size = n;
		/* The loss is behind the record's last byte. */
		if (a && r->taken + n != a->offset + a->size)
			aux.flags &= ~(uint64_t)PERF_AUX_FLAG_TRUNCATED;
		if (aux_writer ? ptc_aux_writer_put(aux_writer, r->stream, &aux, e)
			       : ptc_put_aux(d->w, r->stream, &aux, e))
			return -1;
		__atomic_fetch_add(&d->aux_bytes, n, __ATOMIC_RELAXED);
		taken(d, r, n);
	} while (r->taken < to);
	return 0;
}

static int take_aux(struct hw_drain *d, struct hw_drain_ring *r, struct ptc_aux_writer *aux_writer,
		    struct pt_error *e)
{
	size_t used = 0;
	uint64_t to;

	if (!r->stream || !r->ring.aux || r->overwrite)
		return 0;
	for (; used < r->record_count; used++) {
		struct hw_aux_record *a = &r->records[used];
		uint64_t end = a->offset + a->size;

		if (a->offset > r->head || end > r->head)
			break; /* published after the round's begin */
		if (end < r->taken)
			continue;
		if (a->offset > r->taken && put_piece(d, r, aux_writer, a->offset, NULL, e))
			return -1;
		/* A record of no bytes can still tell of a loss. */
		if ((end > r->taken || a->flags) && put_piece(d, r, aux_writer, end, a, e))
			return -1;
		if (a->time_ns > r->published_ns)
			r->published_ns = a->time_ns;
	}
	r->record_count -= used;
	if (used && r->record_count)
		memmove(r->records, r->records + used, r->record_count * sizeof *r->records);
	/* Data without a record: its record may still be under way behind one that an interrupt interrupted. When it has
	 * not come by the next round, the kernel had to drop it. */
	to = r->record_count && r->records[0].offset < r->last_head ? r->records[0].offset : r->last_head;
	r->last_head = r->head;
	return to > r->taken ? put_piece(d, r, aux_writer, to, NULL, e) : 0;
}

static int read_ring(void *arg, size_t ring, struct ptc_aux_writer *aux_writer, struct pt_error *e)
{
	struct hw_drain *d = arg;

	return take_aux(d, &d->rings[ring], aux_writer, e);
}

static int take_all_aux(struct hw_drain *d, struct pt_error *e)
{
	size_t full = 0;

	for (size_t i = 0; i < d->ring_count; i++)
		full += d->rings[i].stream && d->rings[i].ring.aux && d->rings[i].head != d->rings[i].taken;
	if (d->readers && full > 1)
		return ptc_flush_meta(d->w, e) ||
			       hw_drain_threads_run(d->readers, d->ring_count, read_ring, d, e)
			   ? -1
			   : 0;
	for (size_t i = 0; i < d->ring_count; i++)
		if (take_aux(d, &d->rings[i], NULL, e))
			return -1;
	return 0;
}

int hw_drain_round(struct hw_drain *d, uint64_t now_ns, struct pt_error *e)
{
	uint64_t bound = now_ns;
	unsigned fill;

	d->fill = 0;
	for (size_t i = 0; i < d->ring_count; i++) {
		struct hw_drain_ring *r = &d->rings[i];

		r->truncated = false;
		if (r->overwrite)
			bound = 0; /* a snapshot can be taken of what is long past */
		if (!r->stream || !r->ring.aux || r->overwrite)
			continue;
		r->head = hw_ring_aux_head(&r->ring);
		fill = (unsigned)((r->head - r->taken) * 100 / r->ring.aux_size);
		if (fill > d->fill)
			d->fill = fill;
	}
	for (size_t i = 0; i < d->ring_count; i++)
		if (take_records(d, &d->rings[i], e))
			return -1;
	if (put_samples(d, e))
		return -1;
	if (take_all_aux(d, e))
		return -1;
	for (size_t i = 0; i < d->ring_count; i++) {
		struct hw_drain_ring *r = &d->rings[i];

		if (!r->stream || !r->ring.aux ||
		    (r->task && r->presence == HW_TASK_AWAY && r->taken == hw_ring_aux_head(&r->ring)))
			continue;
		if (r->published_ns < bound)
			bound = r->published_ns;
	}
	if (bound <= d->round_ns)
		return 0;
	d->round_ns = bound;
	return ptc_put_round(d->w, bound, e);
}

void hw_drain_deinit(struct hw_drain *d)
{
	for (size_t i = 0; i < d->ring_count; i++) {
		free(d->rings[i].records);
		free(d->rings[i].early.bytes);
		aux_sample_deinit(&d->rings[i].samples);
		while (d->rings[i].stash) {
			struct hw_stash *s = d->rings[i].stash;

			d->rings[i].stash = s->next;
			free(s);
		}
	}
	for (uint32_t a = 0; a < HW_DRAIN_ATTRS; a++)
		free(d->sorted[a].bytes);
	free(d->samples.bytes);
	free(d->next_samples.bytes);
	free(d->raw.bytes);
	free(d->ids);
	free(d->id_attrs);
}
