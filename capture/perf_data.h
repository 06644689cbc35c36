/*
 * perf_data.h - writes a perf.data with Intel PT in it, as `perf record` does, for `perf script --itrace` and
 * `perf report`. Checked with perf 6.1.
 *
 * The file is written from front to back, and its header last: it must be a file. Layout: header, data section,
 * features, sample ids, attributes (whose place a perf.data leaves open, so nothing has to be known beforehand).
 */
#ifndef CAPTURE_PERF_DATA_H
#define CAPTURE_PERF_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <linux/perf_event.h>

#include "schema/container.h"

struct perf_data_event {
	struct perf_event_attr attr;
	char *name;
	uint64_t *ids;
	uint32_t id_count;
};

struct perf_data {
	FILE *file;
	uint64_t offset; /* bytes written */
	struct perf_data_event *events;
	uint32_t event_count, event_room;
	uint32_t pt_event; /* index, once there is one */
	bool has_pt_event, has_switches, per_cpu, snapshot;
	uint64_t *index; /* pairs: offset of an AUXTRACE record, its size without the AUX bytes */
	size_t index_count, index_room;
	uint32_t cpus;
};

/* One piece of AUX data, ending between two packets. */
struct perf_data_aux {
	uint32_t queue;		/* 0, 1...: one a stream */
	int32_t cpu, pid, tid;	/* -1: any */
	uint64_t offset, flags; /* as in PERF_RECORD_AUX */
	uint64_t time_ns;	/* 0 unknown */
	const uint8_t *bytes;
	uint64_t size;
	bool gap; /* it does not join the one before */
};

/* fd stays the caller's and must be seekable. 0, or -1 (PT_ERR_IO, PT_ERR_NO_MEMORY), as all here. */
int perf_data_begin(struct perf_data *p, int fd, struct pt_error *e);
/* An event of the container. is_pt: it is the one that recorded the AUX data. */
int perf_data_event(struct perf_data *p, const struct ptc_attr *attr, bool is_pt, struct pt_error *e);
/* Records as they are. */
int perf_data_records(struct perf_data *p, const void *records, size_t bytes, struct pt_error *e);
/* Before the first call without an event for it, one is made up from META. */
int perf_data_aux(struct perf_data *p, const struct ptc_meta *meta, const struct perf_data_aux *aux,
		  struct pt_error *e);
/* Writes what is left. */
int perf_data_finish(struct perf_data *p, const struct ptc_meta *meta, struct pt_error *e);
/* Frees everything; a zeroed one is fine. */
void perf_data_deinit(struct perf_data *p);

#endif
