/* sample.c - see sample.h. */
#include "decode/sideband/sample.h"

#include <string.h>

/* Those that are too short for it have none. */
static void read_cgroup(struct pt_sample_cursor *c, const struct pt_sample_shape *shape,
			struct pt_sample *ret)
{
	pt_sample_skip_to_cgroup(c, shape);
	ret->cgroup = pt_sample_u64(c);
	ret->has_cgroup = !c->cut;
}

bool pt_sample_parse(const uint8_t *record, size_t size, const struct pt_sample_shape *shape,
		     struct pt_sample *ret)
{
	struct perf_event_header h;
	struct pt_sample_cursor c = {.at = record + sizeof h, .end = record + size};
	uint64_t type = shape->sample_type;
	uint32_t bytes;

	memset(ret, 0, sizeof *ret);
	memcpy(&h, record, sizeof h);
	if (h.type != PERF_RECORD_SAMPLE)
		return false;
	ret->pid = ret->tid = ret->cpu = -1;
	ret->has_id = type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID);
	if (type & PERF_SAMPLE_IDENTIFIER)
		ret->id = pt_sample_u64(&c);
	if ((ret->has_ip = type & PERF_SAMPLE_IP))
		ret->ip = pt_sample_u64(&c);
	if ((ret->has_tid = type & PERF_SAMPLE_TID)) {
		ret->pid = (int32_t)pt_sample_u32(&c);
		ret->tid = (int32_t)pt_sample_u32(&c);
	}
	if ((ret->has_time = type & PERF_SAMPLE_TIME))
		ret->time_ns = pt_sample_u64(&c);
	if ((ret->has_addr = type & PERF_SAMPLE_ADDR))
		ret->addr = pt_sample_u64(&c);
	if (type & PERF_SAMPLE_ID)
		ret->id = pt_sample_u64(&c);
	if (type & PERF_SAMPLE_STREAM_ID)
		pt_sample_u64(&c);
	if ((ret->has_cpu = type & PERF_SAMPLE_CPU)) {
		ret->cpu = (int32_t)pt_sample_u32(&c);
		pt_sample_u32(&c);
	}
	if ((ret->has_period = type & PERF_SAMPLE_PERIOD))
		ret->period = pt_sample_u64(&c);
	pt_sample_skip_read(&c, shape);
	if (type & PERF_SAMPLE_CALLCHAIN)
		pt_sample_skip(&c, pt_sample_u64(&c));
	if (type & PERF_SAMPLE_RAW) {
		bytes = pt_sample_u32(&c);
		if (c.cut || bytes > (size_t)(c.end - c.at))
			return false;
		ret->raw = c.at;
		ret->raw_bytes = bytes;
		c.at += bytes;
	}
	if (c.cut)
		return false;
	if (type & PERF_SAMPLE_CGROUP)
		read_cgroup(&c, shape, ret);
	return true;
}

bool pt_sample_identifier(const uint8_t *record, size_t size, uint64_t *ret)
{
	struct pt_sample_cursor c = {.at = record + sizeof(struct perf_event_header), .end = record + size};

	*ret = pt_sample_u64(&c);
	return !c.cut;
}
