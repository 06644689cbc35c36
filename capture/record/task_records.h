/*
 * task_records.h - what the kernel reported before the events were opened: COMM and MMAP2 records of tasks
 * that run already, made from /proc (as perf record does, tools/perf/util/synthetic-events.c).
 */
#ifndef CAPTURE_RECORD_TASK_RECORDS_H
#define CAPTURE_RECORD_TASK_RECORDS_H

#include <stdint.h>

#include "capture/record/byte_buffer.h"
#include "capture/record/list.h"

/* What all records that are made at one time have in common. */
struct hw_record_origin {
	uint64_t time_ns; /* perf's clock */
	uint64_t id;	  /* of a sideband event */
};

/*
 * Appends the COMM records of all threads of a process and the MMAP2 records of its executable mappings. A
 * process that has ended adds nothing. 0, or -1: PT_ERR_NO_MEMORY.
 */
int hw_task_records(struct hw_bytes *to, int32_t pid, const struct hw_record_origin *origin,
		    struct pt_error *e);

/* Appends the COMM records alone, of all threads but those of these processes. 0, or -1: PT_ERR_NO_MEMORY. */
int hw_task_names(struct hw_bytes *to, const struct hw_list *except, const struct hw_record_origin *origin,
		  struct pt_error *e);

#endif
