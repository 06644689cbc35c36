/*
 * sample_fields.h - through the fields of a PERF_RECORD_SAMPLE (perf_event_open(2)): the order and the sizes
 * are those of the kernel's perf_output_sample().
 *
 * A cursor that comes to the end is cut: what it reads is 0 then, and what it is to skip is not skipped.
 */
#ifndef SCHEMA_SAMPLE_FIELDS_H
#define SCHEMA_SAMPLE_FIELDS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

struct pt_sample_cursor {
	const uint8_t *at, *end;
	bool cut;
};

/* What an event's perf_event_attr says of the fields of its samples. */
struct pt_sample_shape {
	uint64_t sample_type, read_format, branch_sample_type, regs_user, regs_intr;
};
struct pt_sample_shape pt_sample_shape_of(const struct perf_event_attr *attr);

uint64_t pt_sample_u64(struct pt_sample_cursor *c);
uint32_t pt_sample_u32(struct pt_sample_cursor *c);
void pt_sample_skip(struct pt_sample_cursor *c, uint64_t words); /* of 8 bytes */

/* PERF_SAMPLE_READ, if the samples have it: struct read_format, of one event or of a group. */
void pt_sample_skip_read(struct pt_sample_cursor *c, const struct pt_sample_shape *shape);
/* What is between PERF_SAMPLE_RAW and PERF_SAMPLE_CGROUP. */
void pt_sample_skip_to_cgroup(struct pt_sample_cursor *c, const struct pt_sample_shape *shape);

#endif
