/* trim_sideband.c - see trim_sideband.h. */
#include "capture/container/trim_sideband.h"
#include "schema/array.h"
#include "schema/bytes.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void trim_sideband_deinit(struct trim_sideband *s)
{
	free(s->events);
	free(s->ids);
	free(s->switches);
	*s = (struct trim_sideband){0};
}

/* ---- Events ---- */

static int by_id(const void *a, const void *b)
{
	const struct trim_id *x = a, *y = b;

	return x->id != y->id ? (x->id > y->id) - (x->id < y->id)
			      : (x->event > y->event) - (x->event < y->event);
}

/* The first event with that id, in the container's order; `otherwise`: there is none. All are known. */
static uint32_t event_of(const struct trim_sideband *s, uint64_t id, uint32_t otherwise)
{
	size_t low = 0, high = s->id_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->ids[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->id_count && s->ids[low].id == id ? s->ids[low].event : otherwise;
}

int trim_sideband_attr(struct trim_sideband *s, const struct ptc_chunk *c, struct pt_error *e)
{
	const size_t at = offsetof(struct perf_event_attr, sample_type);
	struct ptc_attr a;

	if (ptc_parse_attr(c, &a, e) || pt_array_grow(&s->events, s->event_count, &s->event_room, e))
		return -1;
	for (uint32_t i = 0; i < a.count; i++) {
		if (pt_array_grow(&s->ids, s->id_count, &s->id_room, e))
			return -1;
		s->ids[s->id_count++] =
		    (struct trim_id){.id = u64(a.ids + 8 * (size_t)i), .event = (uint32_t)s->event_count};
	}
	s->events[s->event_count++] = (struct trim_event){
	    .sample_type = a.attr_bytes >= at + 8 ? u64(a.attr + at) : 0, .guest = a.machine_pid != 0};
	return 0;
}

void trim_sideband_range(struct trim_sideband *s, uint64_t from_ns, uint64_t to_ns)
{
	if (s->id_count)
		qsort(s->ids, s->id_count, sizeof *s->ids, by_id);
	s->from_ns = from_ns;
	s->to_ns = to_ns;
}

/* ---- Records ---- */

struct record {
	struct perf_event_header h;
	const struct trim_event *event; /* NULL unknown */
	uint32_t attr;
	uint64_t time_ns; /* 0 unknown */
	int32_t cpu, tid; /* -1 unknown */
};

/* A field of the record by its PERF_SAMPLE_ bit. */
static void take_field(struct record *r, uint64_t bit, const uint8_t *field)
{
	if (bit == PERF_SAMPLE_TIME)
		r->time_ns = u64(field);
	else if (bit == PERF_SAMPLE_CPU)
		r->cpu = (int32_t)u64(field);
	else if (bit == PERF_SAMPLE_TID)
		r->tid = (int32_t)(u64(field) >> 32);
}

/* A sample's fields, from its beginning. */
static void read_sample(struct record *r, const uint8_t *p)
{
	static const uint64_t order[] = {PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,   PERF_SAMPLE_TID,
					 PERF_SAMPLE_TIME,	 PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
					 PERF_SAMPLE_STREAM_ID,	 PERF_SAMPLE_CPU};
	size_t at = sizeof r->h;

	for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
		if (!(r->event->sample_type & order[i]))
			continue;
		if (r->h.size - at < 8)
			return;
		take_field(r, order[i], p + at);
		at += 8;
	}
}

/* struct sample_id, from the end of any other record. */
static void read_trailer(struct record *r, const uint8_t *p)
{
	static const uint64_t order[] = {PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_CPU,  PERF_SAMPLE_STREAM_ID,
					 PERF_SAMPLE_ID,	 PERF_SAMPLE_TIME, PERF_SAMPLE_TID};
	size_t end = r->h.size;

	for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
		if (!(r->event->sample_type & order[i]))
			continue;
		if (end - sizeof r->h < 8)
			return;
		end -= 8;
		take_field(r, order[i], p + end);
	}
}

static struct record read_record(const struct trim_sideband *s, uint32_t attr, const uint8_t *p)
{
	struct record r = {.attr = attr, .cpu = -1, .tid = -1};
	bool sample;

	memcpy(&r.h, p, sizeof r.h);
	sample = r.h.type == PERF_RECORD_SAMPLE;
	if (attr < s->event_count && s->events[attr].sample_type & PERF_SAMPLE_IDENTIFIER && r.h.size >= 16)
		r.attr = event_of(s, u64(sample ? p + 8 : p + r.h.size - 8), attr);
	if (r.attr >= s->event_count)
		return r;
	r.event = &s->events[r.attr];
	if (sample)
		read_sample(&r, p);
	else
		read_trailer(&r, p);
	return r;
}

/* ---- Switches ---- */

static bool is_switch(const struct record *r)
{
	return r->h.type == PERF_RECORD_SWITCH || r->h.type == PERF_RECORD_SWITCH_CPU_WIDE;
}

/* What is switched: a CPU when the record names both threads, else a thread. */
static struct trim_switch key_of(const struct record *r)
{
	bool wide = r->h.type == PERF_RECORD_SWITCH_CPU_WIDE;

	return (struct trim_switch){
	    .attr = r->attr, .cpu = wide ? r->cpu : -1, .tid = wide ? -1 : r->tid, .time_ns = r->time_ns};
}

static struct trim_switch *find_switch(const struct trim_sideband *s, const struct trim_switch *key)
{
	for (size_t i = 0; i < s->switch_count; i++)
		if (s->switches[i].attr == key->attr && s->switches[i].cpu == key->cpu &&
		    s->switches[i].tid == key->tid)
			return &s->switches[i];
	return NULL;
}

static int note_switch(struct trim_sideband *s, const struct record *r, struct pt_error *e)
{
	struct trim_switch key = key_of(r), *last = find_switch(s, &key);

	if (!last) {
		if (pt_array_grow(&s->switches, s->switch_count, &s->switch_room, e))
			return -1;
		s->switches[s->switch_count++] = key;
	} else if (key.time_ns > last->time_ns) {
		last->time_ns = key.time_ns;
	}
	return 0;
}

int trim_sideband_take(struct trim_sideband *s, const struct ptc_chunk *c, struct pt_error *e)
{
	const uint8_t *p;
	struct record r;
	uint32_t attr;
	uint64_t n;

	if (ptc_parse_sideband(c, &attr, &p, &n, e))
		return -1;
	for (; n; n -= r.h.size, p += r.h.size) {
		r = read_record(s, attr, p);
		if (is_switch(&r) && r.event && !r.event->guest && r.time_ns < s->from_ns &&
		    note_switch(s, &r, e))
			return -1;
	}
	return 0;
}

/* ---- What is needed ---- */

static bool is_needed(const struct trim_sideband *s, const struct record *r)
{
	if (!r->event || r->event->guest || !r->time_ns)
		return true;
	if (r->time_ns > s->to_ns)
		return false;
	if (r->time_ns >= s->from_ns)
		return true;
	if (is_switch(r)) {
		struct trim_switch key = key_of(r), *last = find_switch(s, &key);

		return last && last->time_ns == r->time_ns;
	}
	return r->h.type != PERF_RECORD_SAMPLE && r->h.type != PERF_RECORD_AUX &&
	       r->h.type != PERF_RECORD_LOST && r->h.type != PERF_RECORD_LOST_SAMPLES;
}

int trim_sideband_copy(const struct trim_sideband *s, struct ptc_writer *w, const struct ptc_chunk *c,
		       struct pt_error *e)
{
	uint64_t n, count = 0;
	const uint8_t *p;
	struct record r;
	uint8_t *kept;
	uint32_t attr;
	int ret = 0;

	if (ptc_parse_sideband(c, &attr, &p, &n, e))
		return -1;
	kept = malloc(n + 1);
	if (!kept)
		return pt_fail_no_memory(e, NULL);
	for (; n; n -= r.h.size, p += r.h.size) {
		r = read_record(s, attr, p);
		if (!is_needed(s, &r))
			continue;
		memcpy(kept + count, p, r.h.size);
		count += r.h.size;
	}
	if (count)
		ret = ptc_put_sideband_flags(w, attr, ptc_sideband_flags(c), kept, count, e);
	free(kept);
	return ret;
}
