/* drain_records.c - the records of a round, and the AUX data in samples; see drain.h. */
#include "capture/record/drain_internal.h"
#include "capture/record/sample_id.h"
#include "schema/array.h"
#include "schema/bytes.h"

#include <stdlib.h>
#include <string.h>

/* ---- Which event a record is of ---- */

static uint32_t attr_of(const struct hw_drain_events *events, uint64_t id)
{
	size_t low = 0, high = events->count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (events->ids[mid] < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low < events->count && events->ids[low] == id ? events->attrs[low] : events->sideband_attr;
}

/* Where pid, tid and time of a sample are, NULL: it is too short; *attr becomes its event's. */
static const uint8_t *sample_id(const struct hw_drain_events *events, const uint8_t *p, size_t size,
				uint32_t *attr)
{
	if (size < 40)
		return NULL;
	*attr = attr_of(events, u64(p + 8));
	if (!(events->sample_types[*attr] & PERF_SAMPLE_IP))
		return p + 16;
	return size >= 48 ? p + 24 : NULL;
}

static struct hw_record parse(const struct hw_drain_events *events, const uint8_t *p)
{
	struct hw_record r = {.bytes = p, .attr = events->sideband_attr, .pid = -1, .tid = -1};
	const uint8_t *id = NULL;

	memcpy(&r.header, p, sizeof r.header);
	if (r.header.type == PERF_RECORD_SAMPLE)
		id = sample_id(events, p, r.header.size, &r.attr);
	else if (r.header.size >= sizeof r.header + sizeof(struct hw_sample_id))
		id = p + r.header.size - sizeof(struct hw_sample_id);
	if (id) {
		r.has_id = true;
		r.pid = (int32_t)u32(id);
		r.tid = (int32_t)u32(id + 4);
		r.time_ns = u64(id + 8);
	}
	return r;
}

/* ---- What a record means for its ring ---- */

/* AUX data that is still to come is not older than this, unless some of an earlier task's is among it. */
static void task_comes(struct hw_drain_ring *r, uint64_t time_ns)
{
	pthread_mutex_lock(&r->lock);
	if (r->presence == HW_TASK_AWAY && r->aux_record_count == 0 && r->taken == r->head &&
	    time_ns > r->published_ns)
		r->published_ns = time_ns;
	pthread_mutex_unlock(&r->lock);
	r->presence = HW_TASK_ON;
}

static int add_aux_record(struct hw_drain_ring *r, const struct hw_aux_record *a, struct pt_error *e)
{
	int ret;

	pthread_mutex_lock(&r->lock);
	if (r->aux_record_first && r->aux_record_count == r->aux_record_room) {
		r->aux_record_count -= r->aux_record_first;
		memmove(r->aux_records, r->aux_records + r->aux_record_first,
			r->aux_record_count * sizeof *r->aux_records);
		r->aux_record_first = 0;
	}
	ret = pt_array_grow(&r->aux_records, r->aux_record_count, &r->aux_record_room, e);
	if (ret == 0)
		r->aux_records[r->aux_record_count++] = *a;
	pthread_mutex_unlock(&r->lock);
	return ret;
}

static int note_aux(struct hw_drain *d, struct hw_drain_ring *r, const struct hw_record *record,
		    struct pt_error *e)
{
	const uint8_t *p = record->bytes;
	struct hw_aux_record a = {u64(p + 8), u64(p + 16), u64(p + 24), record->time_ns};

	if (r->presence == HW_TASK_LEAVING)
		r->presence = HW_TASK_AWAY;
	if (a.flags & PERF_AUX_FLAG_TRUNCATED)
		d->losses.truncated++;
	if (a.flags & PERF_AUX_FLAG_PARTIAL)
		d->losses.partial++;
	if (a.flags & PERF_AUX_FLAG_OVERWRITE)
		return 0;
	return add_aux_record(r, &a, e);
}

static int note(struct hw_drain *d, struct hw_drain_ring *r, const struct hw_record *record,
		struct pt_error *e)
{
	const uint8_t *p = record->bytes;

	switch (record->header.type) {
	case PERF_RECORD_AUX: return note_aux(d, r, record, e);
	case PERF_RECORD_LOST:
		d->losses.records += u64(p + 16);
		r->lost += u64(p + 16);
		return 0;
	case PERF_RECORD_LOST_SAMPLES: d->losses.records += u64(p + 8); return 0;
	/* (SWITCH_CPU_WIDE is any task's, traced or not. A whole CPU's event goes on through it, and publishes
	 * nothing.) */
	case PERF_RECORD_SWITCH:
		if (record->header.misc & PERF_RECORD_MISC_SWITCH_OUT)
			r->presence = HW_TASK_LEAVING;
		else
			task_comes(r, record->time_ns);
		return 0;
	case PERF_RECORD_ITRACE_START: task_comes(r, record->time_ns); return 0;
	default: return 0;
	}
}

/* ---- Samples ---- */

/* Before each sample's AUX data in hw_drain.samples. */
struct waiting {
	uint32_t ring, bytes;
	uint64_t time_ns;
};

/*
 * A sample is {id, IP?, pid, tid, time, cpu, 0, {u32 size, raw}?, cgroup?, {u64 size, AUX}?}. Adds it
 * without its AUX data, of which the size becomes 0, to the sorted records, and the AUX data to the next
 * round's. 0, or -1: PT_ERR_NO_MEMORY.
 */
static int cut_sample(struct hw_drain *d, const struct hw_drain_ring *r, const struct hw_record *record,
		      struct pt_error *e)
{
	uint64_t type = d->events.sample_types[record->attr], none = 0;
	struct perf_event_header h = record->header;
	size_t at = sizeof h + (type & PERF_SAMPLE_IP ? 40 : 32), size = h.size;
	struct waiting w = {.ring = (uint32_t)(r - d->rings), .time_ns = record->time_ns};
	struct hw_bytes *to = &d->sorted[record->attr];
	const uint8_t *p = record->bytes;

	if (type & PERF_SAMPLE_RAW && at + 4 <= size)
		at += 4 + (size_t)u32(p + at);
	if (type & PERF_SAMPLE_CGROUP)
		at += 8;
	if (!(type & PERF_SAMPLE_AUX) || at + 8 > size || u64(p + at) > size - at - 8)
		return hw_bytes_add(to, p, size, e);
	w.bytes = (uint32_t)u64(p + at);
	d->sample_count++;
	d->empty_samples += w.bytes == 0;
	h.size = (uint16_t)(size - w.bytes);
	if (hw_bytes_add(to, &h, sizeof h, e) || hw_bytes_add(to, p + sizeof h, at - sizeof h, e) ||
	    hw_bytes_add(to, &none, sizeof none, e) ||
	    hw_bytes_add(to, p + at + 8 + w.bytes, size - at - 8 - w.bytes, e))
		return -1;
	if (w.bytes == 0)
		return 0;
	return hw_bytes_add(&d->next_samples, &w, sizeof w, e) ||
		       hw_bytes_add(&d->next_samples, p + at + 8, w.bytes, e)
		   ? -1
		   : 0;
}

int hw_drain_samples(struct hw_drain *d, struct pt_error *e)
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

/* ---- A ring's records ---- */

static int take(struct hw_drain *d, struct hw_drain_ring *r, const struct hw_record *record,
		struct pt_error *e)
{
	bool sample = record->header.type == PERF_RECORD_SAMPLE;

	if (record->has_id && !sample && note(d, r, record, e))
		return -1;
	if (d->on_record && d->on_record(d->arg, record, e))
		return -1;
	if (record->header.type == PERF_RECORD_SWITCH && r->all_switches)
		return 0;
	if (sample && record->has_id)
		return cut_sample(d, r, record, e);
	return hw_bytes_add(&d->sorted[record->attr], record->bytes, record->header.size, e);
}

int hw_drain_put_records(struct hw_drain *d, struct pt_error *e)
{
	for (uint32_t a = 0; a < HW_DRAIN_ATTRS; a++) {
		if (d->sorted[a].count &&
		    ptc_put_sideband(d->w, a, d->sorted[a].bytes, d->sorted[a].count, e))
			return -1;
		hw_bytes_clear(&d->sorted[a]);
	}
	return 0;
}

/* PERF_RECORD_FORK: {u32 pid, ppid, tid, ptid} after the header. */
static void note_forks(const struct hw_drain *d, size_t from)
{
	struct perf_event_header h;

	for (size_t i = from; i < d->raw.count; i += h.size) {
		const uint8_t *p = d->raw.bytes + i;

		memcpy(&h, p, sizeof h);
		if (h.type == PERF_RECORD_FORK && h.size >= 24 && u32(p + 8) != u32(p + 12))
			d->forked(d->arg, (int32_t)u32(p + 8), (int32_t)u32(p + 12));
	}
}

static int fetch(struct hw_drain *d, struct hw_drain_ring *r, struct pt_error *e)
{
	size_t from = d->raw.count;

	/* A task that was about to leave before this round has left by now, and its AUX data was
	 * published. */
	if (r->presence == HW_TASK_LEAVING)
		r->presence = HW_TASK_AWAY;
	if (hw_drain_fetch_records(d, r, e))
		return -1;
	if (d->forked)
		note_forks(d, from);
	return 0;
}

/* at: where the ring's are in d->raw. */
static int put_ring(struct hw_drain *d, struct hw_drain_ring *r, size_t at, struct pt_error *e)
{
	size_t end = at + r->raw_bytes;

	while (at < end) {
		struct hw_record record = parse(&d->events, d->raw.bytes + at);

		if (take(d, r, &record, e))
			return -1;
		at += record.header.size;
	}
	return hw_drain_put_records(d, e);
}

int hw_drain_records(struct hw_drain *d, struct pt_error *e)
{
	size_t at = 0;

	hw_bytes_clear(&d->raw);
	for (size_t i = 0; i < d->ring_count; i++)
		if (fetch(d, &d->rings[i], e))
			return -1;
	for (size_t i = 0; i < d->ring_count; i++) {
		if (put_ring(d, &d->rings[i], at, e))
			return -1;
		at += d->rings[i].raw_bytes;
	}
	hw_bytes_clear(&d->raw);
	return 0;
}
