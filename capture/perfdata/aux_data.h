/*
 * aux_data.h - where the AUX data of a perf.data lies and which time it is of.
 *
 * perf writes AUX data when it finds time for it: what stands at one place of the file may reach far back in time. The
 * kernel's PERF_RECORD_AUX tell it: bytes [aux_offset, aux_offset + aux_size) of a buffer were traced before the
 * record's time, and after that of the record before. The plan is made on a first pass over the file: pieces of AUX
 * data, each with these two times, in the order of the first. Who writes them in this order, each behind the sideband
 * that is older than its second time, writes what a decoder needs before it is needed.
 *
 * Memory: about 100 bytes for each 64 KB of AUX data.
 */
#ifndef CAPTURE_PERFDATA_AUX_DATA_H
#define CAPTURE_PERFDATA_AUX_DATA_H

#include "capture/perfdata/file.h"
#include "capture/perfdata/sample.h"

struct aux_piece {
	uint32_t stream;      /* index into the plan's */
	uint32_t part;	      /* of the file */
	uint64_t file_offset; /* of its bytes */
	uint64_t bytes;
	uint64_t aux_offset; /* in the stream's AUX sequence */
	uint64_t flags;	     /* PTC_AUX_* */
	uint64_t start_ns;   /* all of it is younger; 0 unknown */
	uint64_t end_ns;     /* all of it is older; 0 unknown */
};

struct aux_stream {
	int32_t cpu;   /* -1: a thread's buffer */
	int32_t tid;   /* the thread; of a CPU's buffer the one that perf names there, -1 any */
	int32_t pid;   /* of a thread's buffer, -1 unknown */
	bool snapshot; /* offsets say nothing: pieces may overlap */
};

struct aux_plan {
	struct aux_piece *pieces;
	size_t count, room;
	struct aux_stream *streams;
	uint32_t stream_count;
	uint64_t bytes; /* of all pieces */
	struct aux_found *found;
};

/* An empty plan for f, whose events and AUXTRACE_INFO are to be known when records are added. 0, or -1
 * (PT_ERR_NO_MEMORY), as all here. */
int aux_plan_init(struct aux_plan *p, struct pt_error *e);
/* Takes a PERF_RECORD_AUX or an AUXTRACE record; -1: PT_ERR_BAD_INPUT, too. */
int aux_plan_add(struct aux_plan *p, const struct perf_file *f, const struct perf_record *r,
		 struct pt_error *e);
/* A record of thread tid of process pid was seen: for buffers of threads whose AUX records do not tell. */
int aux_plan_thread(struct aux_plan *p, int32_t pid, int32_t tid, struct pt_error *e);
/* Makes pieces and streams of them. */
int aux_plan_finish(struct aux_plan *p, struct perf_file *f, struct pt_error *e);
void aux_plan_deinit(struct aux_plan *p);

/* perf's clock of a TSC value: ns; 0 when the recording does not tell. */
uint64_t perf_tsc_to_ns(const struct perf_file_clock *clock, uint64_t tsc);

#endif
