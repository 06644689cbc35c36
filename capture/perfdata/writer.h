/*
 * writer.h - writes a perf.data with Intel PT in it, as `perf record` does, for `perf script --itrace` and
 * `perf report`; or one of records alone: a guest's for `perf inject --guest-data`, or what had no PT.
 * Checked with perf 6.1.
 *
 * The file is written from front to back, and its header last: it must be a file. Layout: header, data
 * section, features, sample ids, attributes (whose place a perf.data leaves open, so nothing has to be known
 * beforehand).
 */
#ifndef CAPTURE_PERFDATA_WRITER_H
#define CAPTURE_PERFDATA_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <linux/perf_event.h>

#include "schema/container.h"

#define PERF_DATA_ATTR_BYTES 128 /* PERF_ATTR_SIZE_VER7: what perf 6.1 writes */

struct perf_data_event {
	struct perf_event_attr attr;
	char *name;
	uint64_t *ids;
	uint32_t id_count;
};

/* A tracepoint's `format` file. */
struct perf_data_format {
	char *system, *text;
	size_t text_bytes;
};

/* What a sample id's records tell: the CPU, of which perf inject makes the vCPU. */
struct perf_data_id {
	uint64_t id;
	uint32_t cpu;
};

/* A build id of a file that was mapped. */
struct perf_data_build_id {
	char *name;
	uint8_t bytes[20];
	uint8_t count;
};

struct perf_data {
	FILE *file;
	/* 0: the host; else of a guest: META is machine.PID.*, and there is no AUX data */
	int32_t machine_pid;
	uint64_t offset;	  /* bytes written */
	bool begun, initial;	  /* the first records are there; and what was recorded before the AUX data */
	struct perf_data_id *ids; /* of a guest */
	size_t id_count;
	struct perf_data_build_id *build_ids;
	size_t build_id_count;
	size_t filter_bytes; /* room for the address filters in AUXTRACE_INFO */
	struct perf_data_format *formats;
	size_t format_count;
	struct perf_data_event *events;
	uint32_t event_count, event_room;
	uint32_t pt_event; /* index, once there is one */
	bool has_pt_event, has_switches, per_cpu, snapshot;
	bool without_pt; /* other events are all that there is, which is known at the end */
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
int perf_data_begin(struct perf_data *p, int fd, int32_t machine_pid, struct pt_error *e);
/* An event of the container. is_pt: it is the one that recorded the AUX data. */
int perf_data_event(struct perf_data *p, const struct ptc_attr *attr, bool is_pt, struct pt_error *e);
/* A tracepoint's format. */
int perf_data_format(struct perf_data *p, const struct ptc_tracepoint *t, struct pt_error *e);
/* A file's build id, for perf's build-id cache, and for "[vdso]", which has no other way to be found. */
int perf_data_build_id(struct perf_data *p, const struct ptc_image *image, struct pt_error *e);
/* A record as it is. META that is there before the first of them is in the file's head. */
int perf_data_record(struct perf_data *p, const struct ptc_meta *meta, const void *record, size_t bytes,
		     struct pt_error *e);
/*
 * A PERF_RECORD_MMAP of the kernel's code [start, end), whose symbol _text is at `text`: perf looks for no
 * kernel without.
 */
int perf_data_kernel(struct perf_data *p, const struct ptc_meta *meta, uint64_t start, uint64_t end,
		     uint64_t text, struct pt_error *e);
/* Before the first call without an event for it, one is made up from META. */
int perf_data_aux(struct perf_data *p, const struct ptc_meta *meta, const struct perf_data_aux *aux,
		  struct pt_error *e);
/* Writes what is left. */
int perf_data_finish(struct perf_data *p, const struct ptc_meta *meta, struct pt_error *e);
/* Frees everything; a zeroed one is fine. */
void perf_data_deinit(struct perf_data *p);

/* ---- For its own parts ---- */

int perf_data_put(struct perf_data *p, const void *bytes, size_t n, struct pt_error *e);
int perf_data_put32(struct perf_data *p, uint32_t v, struct pt_error *e);
int perf_data_put64(struct perf_data *p, uint64_t v, struct pt_error *e);
int perf_data_seek(struct perf_data *p, uint64_t offset, struct pt_error *e);
/* META's value for this machine; NULL: there is none. */
const char *perf_data_meta(const struct perf_data *p, const struct ptc_meta *meta, const char *key);
/* The features behind the data, and in front of them where each is. Their bits in *ret. */
int perf_data_features(struct perf_data *p, const struct ptc_meta *meta, uint64_t *ret, struct pt_error *e);

#endif
