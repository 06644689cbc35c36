/*
 * aux_data.h - where the AUX data of a perf.data is, and from which time it is.
 *
 * perf writes AUX data when it finds time for it: what is at one place of the file may reach far back in
 * time. The kernel's PERF_RECORD_AUX say from when it is: bytes [aux_offset, aux_offset + aux_size) of a
 * buffer were traced before the record's time, and after the time of the buffer's record before. From them a
 * first pass over the file makes a plan: pieces of AUX data, each with these two times, in the order of the
 * first. A container in this order, each piece after the sideband that is older than its second time, has
 * what a decoder needs before it is needed.
 *
 * Of a buffer that is overwritten (snapshots), what was traced after the last snapshot is a piece without
 * bytes.
 *
 * Memory: about 100 bytes for each 64 KB of AUX data.
 */
#ifndef CAPTURE_PERFDATA_AUX_DATA_H
#define CAPTURE_PERFDATA_AUX_DATA_H

#include "capture/perfdata/file.h"

struct aux_piece {
	uint32_t stream;      /* index into the plan's */
	uint32_t part;	      /* of the perf.data */
	uint64_t file_offset; /* of its bytes in the part */
	uint64_t bytes;
	uint64_t aux_offset; /* of its bytes in the buffer's AUX data */
	uint64_t flags;	     /* PTC_AUX_* */
	uint64_t start_ns;   /* all of it is younger; 0 unknown */
	uint64_t end_ns;     /* all of it is older; 0 unknown */
};

/* The buffer of a CPU or of a thread. */
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

/*
 * An empty plan. Then all records of the first pass are added, when the file's description has their events
 * and AUXTRACE_INFO; then the plan is finished. 0, or -1 (PT_ERR_NO_MEMORY), as all here.
 */
int aux_plan_init(struct aux_plan *p, struct pt_error *e);
/* Takes a PERF_RECORD_AUX or an AUXTRACE record. -1: PT_ERR_BAD_INPUT, too. */
int aux_plan_add(struct aux_plan *p, const struct perf_description *d, const struct perf_record *r,
		 struct pt_error *e);
/* Thread tid is of process pid: for buffers of threads with AUX records that have no pid. */
int aux_plan_thread(struct aux_plan *p, int32_t pid, int32_t tid, struct pt_error *e);
/* Makes pieces and streams. */
int aux_plan_finish(struct aux_plan *p, const struct perf_file *f, struct pt_error *e);
void aux_plan_deinit(struct aux_plan *p);

#endif
