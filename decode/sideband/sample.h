/*
 * sample.h - a PERF_RECORD_SAMPLE taken apart (perf_event_open(2), "PERF_RECORD_SAMPLE").
 *
 * Pure: bytes in, struct out.
 */
#ifndef DECODE_SIDEBAND_SAMPLE_H
#define DECODE_SIDEBAND_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/sample_fields.h"

struct pt_sample {
	bool has_ip, has_tid, has_time, has_addr, has_id, has_cpu, has_period, has_cgroup;
	uint64_t ip, time_ns, addr, id, period, cgroup;
	int32_t pid, tid, cpu;
	const uint8_t *raw; /* within the record; NULL when there are none */
	size_t raw_bytes;
};

/*
 * record: from its perf_event_header on, size (>= 8) bytes. Of the fields after the raw bytes only the
 * control group is read. False when the record is too short for what sample_type says is in it up to the
 * raw bytes, or is no sample.
 */
bool pt_sample_parse(const uint8_t *record, size_t size, const struct pt_sample_shape *shape,
		     struct pt_sample *ret);

/* The event's id alone, when sample_type has PERF_SAMPLE_IDENTIFIER, which puts it at the same place in the
 * samples of all events. False when the record is too short. */
bool pt_sample_identifier(const uint8_t *record, size_t size, uint64_t *ret);

#endif
