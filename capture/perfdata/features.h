/*
 * features.h - takes what describes a recording out of a perf.data's bytes: its features (perf's HEADER_*,
 * util/header.c), and the records that say such things in pipe mode.
 *
 * What is malformed in them is left out: they are for people, and for finding code.
 */
#ifndef CAPTURE_PERFDATA_FEATURES_H
#define CAPTURE_PERFDATA_FEATURES_H

#include "capture/perfdata/description.h"
#include "capture/perfdata/record.h"

/* Takes the n bytes of a feature (enum perf_feature; others are passed over). 0, or -1: PT_ERR_NO_MEMORY. */
int perf_feature_take(struct perf_description *d, unsigned feature, const uint8_t *bytes, size_t n,
		      struct pt_error *e);

/*
 * Takes a record that describes the recording: events, features, build ids, ID_INDEX, AUXTRACE_INFO,
 * TIME_CONV. Others are passed over; TRACING_DATA, too: what it says is in the bytes after it. 0, or -1:
 * PT_ERR_BAD_INPUT (an event that is cut, too many events or ids), PT_ERR_NO_MEMORY.
 */
int perf_feature_take_record(struct perf_description *d, const struct perf_record *r, struct pt_error *e);

#endif
