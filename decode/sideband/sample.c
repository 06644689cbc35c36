/* sample.c - see sample.h. */
#include "decode/sideband/sample.h"

#include <linux/perf_event.h>
#include <string.h>

#define BRANCH_COUNTERS (1U << 19) /* PERF_SAMPLE_BRANCH_COUNTERS (Linux 6.8): a word for each branch */

struct cursor {
	const uint8_t *at, *end;
	bool failed;
};

static uint64_t u64(struct cursor *c)
{
	uint64_t v = 0;

	if (c->end - c->at < 8) {
		c->failed = true;
		return 0;
	}
	memcpy(&v, c->at, sizeof v);
	c->at += 8;
	return v;
}

static uint32_t u32(struct cursor *c)
{
	uint32_t v = 0;

	if (c->end - c->at < 4) {
		c->failed = true;
		return 0;
	}
	memcpy(&v, c->at, sizeof v);
	c->at += 4;
	return v;
}

static void skip(struct cursor *c, uint64_t words)
{
	if (words > (uint64_t)(c->end - c->at) / 8)
		c->failed = true;
	else
		c->at += words * 8;
}

/* struct read_format, of one event or of a group. */
static void skip_read(struct cursor *c, uint64_t format)
{
	uint64_t times =
	    !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) + !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	uint64_t each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST), n = 1;

	if (format & PERF_FORMAT_GROUP)
		n = u64(c);
	skip(c, times);
	if (n > 65536)
		c->failed = true;
	else
		skip(c, n * each);
}

static void skip_registers(struct cursor *c, uint64_t mask)
{
	if (u64(c)) /* the ABI; 0: none */
		skip(c, (uint64_t)__builtin_popcountll(mask));
}

static void skip_branches(struct cursor *c, uint64_t branch_sample_type)
{
	uint64_t n = u64(c), each = branch_sample_type & BRANCH_COUNTERS ? 4 : 3;

	skip(c, !!(branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX));
	skip(c, n <= UINT16_MAX ? each * n : UINT16_MAX);
}

/* What is between the raw bytes and the control group. */
static void skip_to_cgroup(struct cursor *c, const struct pt_sample_shape *shape)
{
	uint64_t type = shape->sample_type, n;

	if (type & PERF_SAMPLE_BRANCH_STACK)
		skip_branches(c, shape->branch_sample_type);
	if (type & PERF_SAMPLE_REGS_USER)
		skip_registers(c, shape->regs_user);
	if (type & PERF_SAMPLE_STACK_USER) {
		n = u64(c);
		skip(c, n / 8);
		skip(c, n != 0); /* how much of it is valid */
	}
	skip(c, !!(type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT)));
	skip(c, !!(type & PERF_SAMPLE_DATA_SRC));
	skip(c, !!(type & PERF_SAMPLE_TRANSACTION));
	if (type & PERF_SAMPLE_REGS_INTR)
		skip_registers(c, shape->regs_intr);
	skip(c, !!(type & PERF_SAMPLE_PHYS_ADDR));
}

/* Those that are too short for it have none. */
static void read_cgroup(struct cursor *c, const struct pt_sample_shape *shape, struct pt_sample *ret)
{
	skip_to_cgroup(c, shape);
	ret->cgroup = u64(c);
	ret->has_cgroup = !c->failed;
}

bool pt_sample_parse(const uint8_t *record, size_t size, const struct pt_sample_shape *shape,
		     struct pt_sample *ret)
{
	struct perf_event_header h;
	struct cursor c = {.at = record + sizeof h, .end = record + size};
	uint64_t type = shape->sample_type;
	uint32_t bytes;

	memset(ret, 0, sizeof *ret);
	memcpy(&h, record, sizeof h);
	if (h.type != PERF_RECORD_SAMPLE)
		return false;
	ret->pid = ret->tid = ret->cpu = -1;
	ret->has_id = type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID);
	if (type & PERF_SAMPLE_IDENTIFIER)
		ret->id = u64(&c);
	if ((ret->has_ip = type & PERF_SAMPLE_IP))
		ret->ip = u64(&c);
	if ((ret->has_tid = type & PERF_SAMPLE_TID)) {
		ret->pid = (int32_t)u32(&c);
		ret->tid = (int32_t)u32(&c);
	}
	if ((ret->has_time = type & PERF_SAMPLE_TIME))
		ret->time_ns = u64(&c);
	if ((ret->has_addr = type & PERF_SAMPLE_ADDR))
		ret->addr = u64(&c);
	if (type & PERF_SAMPLE_ID)
		ret->id = u64(&c);
	if (type & PERF_SAMPLE_STREAM_ID)
		u64(&c);
	if ((ret->has_cpu = type & PERF_SAMPLE_CPU)) {
		ret->cpu = (int32_t)u32(&c);
		u32(&c);
	}
	if ((ret->has_period = type & PERF_SAMPLE_PERIOD))
		ret->period = u64(&c);
	if (type & PERF_SAMPLE_READ)
		skip_read(&c, shape->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN)
		skip(&c, u64(&c));
	if (type & PERF_SAMPLE_RAW) {
		bytes = u32(&c);
		if (c.failed || bytes > (size_t)(c.end - c.at))
			return false;
		ret->raw = c.at;
		ret->raw_bytes = bytes;
		c.at += bytes;
	}
	if (c.failed)
		return false;
	if (type & PERF_SAMPLE_CGROUP)
		read_cgroup(&c, shape, ret);
	return true;
}

bool pt_sample_identifier(const uint8_t *record, size_t size, uint64_t *ret)
{
	struct cursor c = {.at = record + sizeof(struct perf_event_header), .end = record + size};

	*ret = u64(&c);
	return !c.failed;
}
