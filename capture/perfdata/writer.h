/*
 * writer.h - writes a perf.data with Intel PT in it, as `perf record` does, for `perf script --itrace` and
 * `perf report`; or one of records alone: a guest's for `perf inject --guest-data`, or those of a container
 * without PT. Checked with perf 6.1.
 *
 * Layout: header, data section, features, sample ids, attributes. A perf.data leaves open where the
 * attributes are, so nothing has to be known beforehand: the file is written from front to back, and its
 * header last.
 *
 * All functions return 0, or -1: PT_ERR_IO, PT_ERR_NO_MEMORY.
 */
#ifndef CAPTURE_PERFDATA_WRITER_H
#define CAPTURE_PERFDATA_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/perfdata/contents.h"
#include "capture/perfdata/out.h"
#include "schema/container.h"

struct perf_data {
	struct perf_out out;
	struct perf_contents contents;
	bool has_head;	     /* the records before all others are there */
	bool has_init;	     /* FINISHED_INIT is there, which ends what comes before the AUX data */
	size_t filter_bytes; /* room for the address filters in AUXTRACE_INFO */
	bool has_pt_event, has_switches, per_cpu;
	uint32_t pt_event; /* index, if has_pt_event */
	bool snapshot;	   /* the caller's: some AUX data is of snapshots */
};

/* One piece of AUX data, ending between two packets. */
struct perf_data_aux {
	uint32_t queue;		/* 0, 1...: one per stream */
	int32_t cpu, pid, tid;	/* -1: any */
	uint64_t offset, flags; /* as in PERF_RECORD_AUX */
	uint64_t time_ns;	/* 0 unknown */
	const uint8_t *bytes;
	uint64_t size;
};

/*
 * Begins a perf.data in fd, which remains the caller's and must be seekable. machine_pid: 0 the host; else a
 * guest, which has no AUX data. name, what the file is called in messages, and meta are to live as long;
 * what meta says when the first record is written is written to the records before all others.
 */
int perf_data_begin(struct perf_data *p, int fd, const char *name, int32_t machine_pid,
		    const struct ptc_meta *meta, struct pt_error *e);
/* Adds an event of the container. is_pt: it is the one that recorded the AUX data. */
int perf_data_event(struct perf_data *p, const struct ptc_attr *attr, bool is_pt, struct pt_error *e);
/* The event of that index is the one that recorded the AUX data. */
void perf_data_set_pt_event(struct perf_data *p, uint32_t event);
/* Writes a record as it is. */
int perf_data_record(struct perf_data *p, const void *record, size_t bytes, struct pt_error *e);
/*
 * Writes a PERF_RECORD_MMAP of the kernel's code [start, end), with its symbol _text at `text`: without one,
 * perf looks for no kernel.
 */
int perf_data_kernel(struct perf_data *p, uint64_t start, uint64_t end, uint64_t text, struct pt_error *e);
/* Writes a piece of AUX data. When there is no event for it yet, one is made up from META. */
int perf_data_aux(struct perf_data *p, const struct perf_data_aux *aux, struct pt_error *e);
/* Writes what is left. */
int perf_data_finish(struct perf_data *p, struct pt_error *e);
/* Frees everything; a zeroed one is fine. */
void perf_data_deinit(struct perf_data *p);

#endif
