/*
 * sample_id.h - the fields that every perf record of a capture ends with.
 *
 * All events are opened with sample_id_all and at least the sample_type HW_SAMPLE_TYPE, so each record that
 * is no sample has a struct hw_sample_id at its end (perf_event_open(2), "struct sample_id").
 * PERF_SAMPLE_IDENTIFIER puts the id last there, and first in a sample, so a record's event is known before
 * anything else of it.
 */
#ifndef CAPTURE_RECORD_SAMPLE_ID_H
#define CAPTURE_RECORD_SAMPLE_ID_H

#include <linux/perf_event.h>
#include <stdint.h>

#define HW_SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

struct hw_sample_id {
	int32_t pid, tid;
	uint64_t time_ns; /* perf's clock */
	uint32_t cpu, reserved;
	uint64_t id; /* of the event */
};

#endif
