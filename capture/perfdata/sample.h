/*
 * sample.h - whose a perf record is, and when it was written: the fields that perf_event_open(2) puts into
 * samples and, with sample_id_all, behind all other records of the kernel.
 */
#ifndef CAPTURE_PERFDATA_SAMPLE_H
#define CAPTURE_PERFDATA_SAMPLE_H

#include "capture/perfdata/file.h"

struct perf_stamp {
	uint32_t event;		       /* index in the file's; UINT32_MAX: unknown */
	uint64_t time_ns;	       /* 0 unknown */
	int32_t pid, tid, cpu;	       /* -1 unknown */
	const struct perf_file_id *id; /* NULL unknown */
	uint32_t aux_at, aux_bytes;    /* a sample's AUX data: where in the record; aux_at 0: it has none */
};

/*
 * The stamp of a record of type < PERF_USER_FIRST. 0, or -1: PT_ERR_BAD_INPUT when a sample is shorter than what its
 * event says is in it.
 */
int perf_stamp_read(const struct perf_file *f, const struct perf_record *r, struct perf_stamp *ret,
		    struct pt_error *e);

/* What an event puts at the end of records: two events with equal ones write the same trailers. */
uint64_t perf_stamp_shape(const struct perf_event_attr *attr);

#endif
