/*
 * export_aux.h - a container's AUX data, cut for a perf.data: perf wants each piece to end between two
 * packets, and the time of its PERF_RECORD_AUX to be when it was traced, at the latest.
 */
#ifndef CAPTURE_PERFDATA_EXPORT_AUX_H
#define CAPTURE_PERFDATA_EXPORT_AUX_H

#include "capture/perfdata/writer.h"
#include "schema/container.h"

/* A stream's bytes that are not written yet. */
struct export_queue {
	struct ptc_stream stream;
	uint8_t *bytes;
	size_t count, room;
	uint64_t offset; /* of bytes[0] in the AUX data */
	uint64_t flags, time_ns;
	bool aligned; /* a packet begins at bytes[0] */
};

/* Zeroed with `to` set: no stream. */
struct export_aux {
	struct perf_data *to;
	struct export_queue *queues; /* [stream - 1] */
	size_t count, room;
	uint64_t cut_bytes; /* of packets that were not whole, and are left out */
};

/* Takes a PTC_STREAM chunk. 0, or -1: PT_ERR_BAD_INPUT, PT_ERR_NO_MEMORY. */
int export_aux_stream(struct export_aux *a, const struct ptc_chunk *c, struct pt_error *e);
/* Takes a PTC_AUX chunk. 0, or -1: PT_ERR_BAD_INPUT, PT_ERR_IO, PT_ERR_NO_MEMORY. */
int export_aux_take(struct export_aux *a, const struct ptc_chunk *c, struct pt_error *e);
/* Writes what waits. 0, or -1: PT_ERR_IO, PT_ERR_NO_MEMORY. */
int export_aux_finish(struct export_aux *a, struct pt_error *e);
void export_aux_deinit(struct export_aux *a);

#endif
