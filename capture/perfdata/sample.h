/*
 * sample.h - the stamp of a kernel's record: its event, thread, CPU and time. perf_event_open(2) puts them
 * into samples and, with sample_id_all, at the end of all other records.
 */
#ifndef CAPTURE_PERFDATA_SAMPLE_H
#define CAPTURE_PERFDATA_SAMPLE_H

#include "capture/perfdata/description.h"
#include "capture/perfdata/record.h"

struct perf_stamp {
	uint32_t event;		       /* index in the description's, or PERF_EVENT_UNKNOWN */
	uint64_t time_ns;	       /* 0 unknown */
	int32_t pid, tid, cpu;	       /* -1 unknown */
	const struct perf_file_id *id; /* NULL unknown */
	uint32_t aux_at, aux_bytes;    /* a sample's AUX data: where in the record; aux_at 0: it has none */
};

/*
 * The stamp of a record of type < PERF_USER_FIRST. 0, or -1: PT_ERR_BAD_INPUT, a sample is shorter than what
 * its event says is in it.
 */
int perf_stamp_read(const struct perf_description *d, const struct perf_record *r, struct perf_stamp *ret,
		    struct pt_error *e);

/* What the event puts at the end of its records: events of equal shape write equal trailers. */
uint64_t perf_stamp_shape(const struct perf_event_attr *attr);

#endif
