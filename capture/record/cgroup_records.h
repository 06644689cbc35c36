/*
 * cgroup_records.h - the control groups that are there when recording begins: PERF_RECORD_CGROUP records,
 * as the kernel writes them of those that are made later (as perf record does,
 * tools/perf/util/synthetic-events.c).
 */
#ifndef CAPTURE_RECORD_CGROUP_RECORDS_H
#define CAPTURE_RECORD_CGROUP_RECORDS_H

#include "capture/record/byte_buffer.h"
#include "capture/record/task_records.h"

/*
 * Appends a record of each group of the hierarchy that perf events belong to (cgroup.h); one that goes
 * meanwhile, or that may not be read, has none. mounts: /proc/self/mounts. 0, or -1: PT_ERR_REFUSED (none
 * is mounted), PT_ERR_NO_MEMORY.
 */
int hw_cgroup_records(struct hw_bytes *to, const char *mounts, const struct hw_record_origin *origin,
		      struct pt_error *e);

#endif
