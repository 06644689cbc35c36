/* sample_fields.c - see sample_fields.h. */
#include "schema/sample_fields.h"

#include "schema/bytes.h"

/* Of newer kernels' headers. */
#define FORMAT_LOST	(1U << 4)  /* PERF_FORMAT_LOST (Linux 6.0) */
#define BRANCH_COUNTERS (1U << 19) /* PERF_SAMPLE_BRANCH_COUNTERS (Linux 6.8): a word for each branch */

struct pt_sample_shape pt_sample_shape_of(const struct perf_event_attr *attr)
{
	return (struct pt_sample_shape){.sample_type = attr->sample_type,
					.read_format = attr->read_format,
					.branch_sample_type = attr->branch_sample_type,
					.regs_user = attr->sample_regs_user,
					.regs_intr = attr->sample_regs_intr};
}

uint64_t pt_sample_u64(struct pt_sample_cursor *c)
{
	c->cut |= c->end - c->at < 8;
	if (c->cut)
		return 0;
	c->at += 8;
	return u64(c->at - 8);
}

uint32_t pt_sample_u32(struct pt_sample_cursor *c)
{
	c->cut |= c->end - c->at < 4;
	if (c->cut)
		return 0;
	c->at += 4;
	return u32(c->at - 4);
}

void pt_sample_skip(struct pt_sample_cursor *c, uint64_t words)
{
	c->cut |= words > (uint64_t)(c->end - c->at) / 8;
	if (!c->cut)
		c->at += words * 8;
}

/* n items of so many words each; a record has at most 65,535 bytes. */
static void skip_all(struct pt_sample_cursor *c, uint64_t n, uint64_t each)
{
	pt_sample_skip(c, n <= UINT16_MAX ? n * each : UINT16_MAX);
}

void pt_sample_skip_read(struct pt_sample_cursor *c, const struct pt_sample_shape *shape)
{
	uint64_t format = shape->read_format, n = 1;
	uint64_t each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & FORMAT_LOST);

	if (!(shape->sample_type & PERF_SAMPLE_READ))
		return;
	if (format & PERF_FORMAT_GROUP)
		n = pt_sample_u64(c);
	pt_sample_skip(c, !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED));
	pt_sample_skip(c, !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING));
	skip_all(c, n, each);
}

static void skip_registers(struct pt_sample_cursor *c, uint64_t mask)
{
	if (pt_sample_u64(c)) /* the ABI; 0: none */
		pt_sample_skip(c, (uint64_t)__builtin_popcountll(mask));
}

static void skip_branches(struct pt_sample_cursor *c, uint64_t branch_sample_type)
{
	uint64_t n = pt_sample_u64(c);

	pt_sample_skip(c, !!(branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX));
	skip_all(c, n, branch_sample_type & BRANCH_COUNTERS ? 4 : 3);
}

static void skip_stack(struct pt_sample_cursor *c)
{
	uint64_t n = pt_sample_u64(c);

	pt_sample_skip(c, n / 8);
	pt_sample_skip(c, n != 0); /* how much of it is valid */
}

void pt_sample_skip_to_cgroup(struct pt_sample_cursor *c, const struct pt_sample_shape *shape)
{
	uint64_t type = shape->sample_type;

	if (type & PERF_SAMPLE_BRANCH_STACK)
		skip_branches(c, shape->branch_sample_type);
	if (type & PERF_SAMPLE_REGS_USER)
		skip_registers(c, shape->regs_user);
	if (type & PERF_SAMPLE_STACK_USER)
		skip_stack(c);
	pt_sample_skip(c, !!(type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT)));
	pt_sample_skip(c, !!(type & PERF_SAMPLE_DATA_SRC));
	pt_sample_skip(c, !!(type & PERF_SAMPLE_TRANSACTION));
	if (type & PERF_SAMPLE_REGS_INTR)
		skip_registers(c, shape->regs_intr);
	pt_sample_skip(c, !!(type & PERF_SAMPLE_PHYS_ADDR));
}
