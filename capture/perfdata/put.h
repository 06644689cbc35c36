/*
 * put.h - the records and AUX data of a perf.data on their way into a container.
 */
#ifndef CAPTURE_PERFDATA_PUT_H
#define CAPTURE_PERFDATA_PUT_H

#include "capture/pt/aux_sample.h"
#include "capture/perfdata/aux_data.h"
#include "capture/perfdata/file.h"
#include "capture/perfdata/order.h"
#include "schema/container.h"

/* ---- Sideband: records as the kernel wrote them, in chunks of one event each. */

struct perf_put {
	struct ptc_writer *w;
	const struct perf_file *file;
	uint32_t *attr_of; /* [event]: the container's attr */
	/* [event]: the first attr of the same machine and trailers: for what is no sample */
	uint32_t *shape_of;
	uint8_t *bytes, *sorted;
	size_t count; /* of bytes that wait */
	struct perf_put_entry *entries;
	size_t entry_count;
};

/* Writes the events as attrs; machine_pid is that of those events that have none of their own. next_attr: the number
 * of the next attr in the container, moved on. 0, or -1: the writer's errors, PT_ERR_NO_MEMORY, as all here. */
int perf_put_init(struct perf_put *s, struct ptc_writer *w, const struct perf_file *f, int32_t machine_pid,
		  uint32_t *next_attr, struct pt_error *e);
void perf_put_deinit(struct perf_put *s);
/* The record waits for others of its time; a sample's AUX data is left out of it. */
int perf_put_record(struct perf_put *s, const struct ordered_record *r, struct pt_error *e);
int perf_put_flush(struct perf_put *s, struct pt_error *e);

/* ---- AUX data. */

struct aux_put_stream {
	int64_t number; /* in the container; 0: not yet declared */
	int32_t cpu, tid;
	bool snapshot;
	uint64_t end;		   /* offset behind what was written */
	struct aux_piece previous; /* snapshot: the last one, to find what it has in common with the next */
	uint64_t previous_offset, previous_bytes; /* the same by perf's own offsets */
	struct aux_sample samples;		  /* of samples */
};

struct aux_put {
	struct ptc_writer *w;
	struct perf_file *file;
	struct aux_put_stream *streams;
	size_t count, room;
	void *sampled; /* tsearch()'s: the streams of samples, by CPU and thread */
	uint32_t attr; /* of the intel_pt event, UINT32_MAX: none */
	uint8_t *buffer;
};

int aux_put_init(struct aux_put *a, struct ptc_writer *w, struct perf_file *f, uint32_t attr,
		 struct pt_error *e);
void aux_put_deinit(struct aux_put *a);
/* Declares a stream; *ret is its index here. */
int aux_put_stream(struct aux_put *a, const struct aux_stream *of, uint32_t *ret, struct pt_error *e);
/* Writes a piece of the plan into the stream of that index; of snapshots only what the one before had not. -1: also
 * what perf_file_read_aux() returns. */
int aux_put_piece(struct aux_put *a, uint32_t stream, const struct aux_piece *piece, struct pt_error *e);
/* Writes the AUX data of a sample. */
int aux_put_sample(struct aux_put *a, const struct ordered_record *r, struct pt_error *e);

#endif
