/*
 * perf_records.h - perf records beside a raw trace, in files of their own: one after the other, as the kernel
 * writes them (what ptxed calls pevent files, LLDB a context switch trace).
 *
 * They say who ran and what was mapped; the files that they name are looked for as import does for a
 * perf.data (perfdata/images.h). Records of perf itself (type 64 and above) are passed over, but for
 * TIME_CONV, which has the clock.
 */
#ifndef CAPTURE_RAW_PERF_RECORDS_H
#define CAPTURE_RAW_PERF_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/perfdata/description.h"
#include "capture/perfdata/notes.h"
#include "capture/perfdata/request.h"
#include "schema/container.h"

/* A --sideband of the command line. */
struct raw_records_file {
	const char *path;
	int32_t cpu; /* of records that have none; -1: not said */
};

struct raw_records;

/*
 * Reads the files; sample_type is perf_event_attr's, 0: the records have no trailers, and no time. *ret is to
 * be destroyed. 0, or -1: PT_ERR_IO, PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (a record that is too short or cut:
 * offset says where; over 1 GB).
 */
int raw_records_read(const struct raw_records_file *files, size_t count, uint64_t sample_type,
		     struct raw_records **ret, struct pt_error *e);
void raw_records_destroy(struct raw_records *s);

/* perf's clock; mult 0: there is no TIME_CONV record. */
struct perf_file_clock raw_records_clock(const struct raw_records *s);

/*
 * The thread of the first ITRACE_START record, for a buffer without a thread. False: there is none.
 */
bool raw_records_thread(const struct raw_records *s, int32_t *ret_pid, int32_t *ret_tid);

/* Which code the records need. */
struct raw_records_code {
	const struct import_perf_request *request; /* where it is */
	bool kernel;				   /* the kernel's, too */
	struct import_perf_notes *notes;	   /* for what cannot be found */
};

/*
 * Writes code, symbols, and the records in the order of their time. *next_attr: the number of their attr,
 * moved on. 0, or -1: the writer's errors, those of perfdata/machines.h.
 */
int raw_records_put(struct raw_records *s, struct ptc_writer *w, const struct raw_records_code *code,
		    uint32_t *next_attr, struct pt_error *e);

#endif
