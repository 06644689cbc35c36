/* sample.c - see sample.h. The order of the fields is that of the kernel's perf_output_sample() and
 * perf_event__output_id_sample(). */
#include "capture/perfdata/sample.h"
#include "schema/bytes.h"
#include "schema/sample_fields.h"

#include <string.h>

#define TRAILER_TYPES                                                                                        \
	((uint64_t)(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |            \
		    PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER))

uint64_t perf_stamp_shape(const struct perf_event_attr *attr)
{
	return attr->sample_id_all ? (attr->sample_type & TRAILER_TYPES) | (uint64_t)1 << 63 : 0;
}

/* The event of an id. One event, or several that write no ids, need none: then it is the first. */
static void set_event(const struct perf_description *d, struct perf_stamp *s, bool has_id, uint64_t id)
{
	if (has_id)
		s->id = perf_description_find_id(d, id);
	if (s->id && s->id->event < d->event_count)
		s->event = s->id->event;
	else if (d->event_count)
		s->event = 0;
}

/*
 * Takes the last word off a trailer. NULL: the event does not write this field, or the record ends before it.
 */
static const uint8_t *take_last(const uint8_t *begin, const uint8_t **end, uint64_t type, uint64_t field)
{
	if (!(type & field) || *end - begin < 8)
		return NULL;
	*end -= 8;
	return *end;
}

/* From its end on: what comes before it has another length in each type of record. */
static void read_trailer(const struct perf_description *d, const struct perf_record *r, struct perf_stamp *s)
{
	const uint8_t *begin = r->bytes + sizeof(struct perf_event_header), *end = r->bytes + r->size;
	const struct perf_event_attr *attr = &d->events[0].attr;
	uint64_t type = attr->sample_type;
	const uint8_t *id, *second_id, *p;

	if (!attr->sample_id_all)
		return;
	id = take_last(begin, &end, type, PERF_SAMPLE_IDENTIFIER);
	if ((p = take_last(begin, &end, type, PERF_SAMPLE_CPU)))
		s->cpu = (int32_t)u32(p);
	take_last(begin, &end, type, PERF_SAMPLE_STREAM_ID);
	second_id = take_last(begin, &end, type, PERF_SAMPLE_ID);
	if (!id)
		id = second_id;
	if ((p = take_last(begin, &end, type, PERF_SAMPLE_TIME)))
		s->time_ns = u64(p);
	if ((p = take_last(begin, &end, type, PERF_SAMPLE_TID))) {
		s->pid = (int32_t)u32(p);
		s->tid = (int32_t)u32(p + 4);
	}
	set_event(d, s, id != NULL, id ? u64(id) : 0);
}

/* Skips what is between a sample's period and its AUX data. */
static void skip_middle(struct pt_sample_cursor *c, const struct pt_sample_shape *shape)
{
	uint64_t type = shape->sample_type;

	pt_sample_skip_read(c, shape);
	if (type & PERF_SAMPLE_CALLCHAIN)
		pt_sample_skip(c, pt_sample_u64(c));
	if (type & PERF_SAMPLE_RAW) {
		/* u32 size and that many bytes; both together fill whole words. */
		if (c->end - c->at < 8)
			c->cut = true;
		else
			pt_sample_skip(c, ((uint64_t)u32(c->at) + 4 + 7) / 8);
	}
	pt_sample_skip_to_cgroup(c, shape);
	pt_sample_skip(c, !!(type & PERF_SAMPLE_CGROUP));
	pt_sample_skip(c, !!(type & PERF_SAMPLE_DATA_PAGE_SIZE));
	pt_sample_skip(c, !!(type & PERF_SAMPLE_CODE_PAGE_SIZE));
}

/* The id is the first field, or follows IP, TID, TIME and ADDR; all events have it at the same place. */
static void find_sample_event(const struct perf_description *d, const struct pt_sample_cursor *c,
			      struct perf_stamp *s)
{
	uint64_t type = d->events[0].attr.sample_type;
	struct pt_sample_cursor id = *c;

	if (!(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID))) {
		set_event(d, s, false, 0);
		return;
	}
	if (!(type & PERF_SAMPLE_IDENTIFIER))
		pt_sample_skip(&id,
			       (uint64_t)__builtin_popcountll(type & (PERF_SAMPLE_IP | PERF_SAMPLE_TID |
								      PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR)));
	set_event(d, s, true, pt_sample_u64(&id));
}

static int read_sample(const struct perf_description *d, const struct perf_record *r, struct perf_stamp *s,
		       struct pt_error *e)
{
	struct pt_sample_cursor c = {.at = r->bytes + sizeof(struct perf_event_header),
				     .end = r->bytes + r->size};
	const struct perf_event_attr *attr;
	uint64_t type, v;

	find_sample_event(d, &c, s);
	attr = &d->events[s->event].attr;
	type = attr->sample_type;
	pt_sample_skip(&c, !!(type & PERF_SAMPLE_IDENTIFIER));
	pt_sample_skip(&c, !!(type & PERF_SAMPLE_IP));
	if (type & PERF_SAMPLE_TID) {
		v = pt_sample_u64(&c);
		s->pid = (int32_t)(uint32_t)v;
		s->tid = (int32_t)(v >> 32);
	}
	if (type & PERF_SAMPLE_TIME)
		s->time_ns = pt_sample_u64(&c);
	pt_sample_skip(&c, !!(type & PERF_SAMPLE_ADDR));
	pt_sample_skip(&c, !!(type & PERF_SAMPLE_ID));
	pt_sample_skip(&c, !!(type & PERF_SAMPLE_STREAM_ID));
	if (type & PERF_SAMPLE_CPU)
		s->cpu = (int32_t)(uint32_t)pt_sample_u64(&c);
	pt_sample_skip(&c, !!(type & PERF_SAMPLE_PERIOD));
	if (type & PERF_SAMPLE_AUX) {
		const struct pt_sample_shape shape = pt_sample_shape_of(attr);

		skip_middle(&c, &shape);
		v = pt_sample_u64(&c);
		if (!c.cut && v > (uint64_t)(c.end - c.at))
			c.cut = true;
		s->aux_at = (uint32_t)(c.at - r->bytes);
		s->aux_bytes = (uint32_t)v;
	}
	if (c.cut)
		return pt_fail(e, PT_ERR_BAD_INPUT, r->offset,
			       "a sample of event %u ends too early, after %u bytes", s->event, r->size);
	return 0;
}

int perf_stamp_read(const struct perf_description *d, const struct perf_record *r, struct perf_stamp *ret,
		    struct pt_error *e)
{
	*ret = (struct perf_stamp){.event = PERF_EVENT_UNKNOWN, .pid = -1, .tid = -1, .cpu = -1};
	if (d->event_count == 0)
		return 0;
	if (r->type != PERF_RECORD_SAMPLE)
		read_trailer(d, r, ret);
	else if (read_sample(d, r, ret, e))
		return -1;
	/* Records that do not say their CPU have an id for each. */
	if (ret->cpu < 0 && ret->id)
		ret->cpu = ret->id->cpu;
	return 0;
}
