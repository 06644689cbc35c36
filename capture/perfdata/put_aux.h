/*
 * put_aux.h - AUX data of a perf.data into a container: pieces of the plan (aux_data.h), and AUX data of
 * samples.
 */
#ifndef CAPTURE_PERFDATA_PUT_AUX_H
#define CAPTURE_PERFDATA_PUT_AUX_H

#include "capture/perfdata/aux_data.h"
#include "capture/perfdata/order.h"
#include "capture/pt/aux_sample.h"
#include "schema/container.h"
#include "schema/hash.h"

struct aux_put_stream {
	uint32_t number; /* in the container */
	int32_t cpu, tid;
	bool snapshot;
	uint64_t end;		   /* offset after what was written */
	struct aux_piece previous; /* snapshot: the last one, to find what it has in common with the next */
	struct aux_sample samples; /* of samples */
};

struct aux_put {
	struct ptc_writer *w;
	const struct perf_file *file;
	struct aux_put_stream *streams;
	size_t count, room;
	struct pt_hash sampled; /* numbers of streams of samples, from 1, by CPU and thread */
	uint32_t attr;		/* of the intel_pt event, UINT32_MAX: none */
	uint8_t *buffer;
};

/* w and f are to live as long. 0, or -1: the writer's errors, PT_ERR_NO_MEMORY, as all here. */
int aux_put_init(struct aux_put *a, struct ptc_writer *w, const struct perf_file *f, uint32_t attr,
		 struct pt_error *e);
void aux_put_deinit(struct aux_put *a);
/* Declares a stream; the first call's is number 0 for aux_put_piece(), and so on. */
int aux_put_stream(struct aux_put *a, const struct aux_stream *of, struct pt_error *e);
/*
 * Writes a piece of the plan; of snapshots only what the one before did not have. -1: also as
 * perf_file_read_aux().
 */
int aux_put_piece(struct aux_put *a, const struct aux_piece *piece, struct pt_error *e);
/* Writes the AUX data of a sample. */
int aux_put_sample(struct aux_put *a, const struct ordered_record *r, struct pt_error *e);

#endif
