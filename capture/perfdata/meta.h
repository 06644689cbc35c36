/*
 * meta.h - META lines of an import (their keys: schema/container.h), from what a perf.data says about its
 * recording.
 *
 * All functions return 0, or -1: the writer's errors; perf_meta_put() also PT_ERR_IO (no random numbers for
 * the uuid).
 */
#ifndef CAPTURE_PERFDATA_META_H
#define CAPTURE_PERFDATA_META_H

#include "capture/perfdata/description.h"
#include "schema/container.h"

/*
 * pt_event: the event of intel_pt, UINT32_MAX: there is none. user_only: no kernel code was traced. command:
 * of a recording that has none; NULL.
 */
int perf_meta_put(struct ptc_writer *w, const struct perf_description *d, uint32_t pt_event, bool user_only,
		  const char *command, struct pt_error *e);

/* The clock of the host (machine_pid 0) or a guest; nothing when it is unknown. */
int perf_meta_put_clock(struct ptc_writer *w, int32_t machine_pid, const struct perf_file_clock *clock,
			struct pt_error *e);

/* Guest TSC = host TSC + offset. */
int perf_meta_put_tsc_offset(struct ptc_writer *w, int32_t machine_pid, uint32_t vcpu, int64_t offset,
			     struct pt_error *e);

/* A guest's own names: its host name and kernel. */
int perf_meta_put_guest(struct ptc_writer *w, int32_t machine_pid, const struct perf_description *d,
			struct pt_error *e);

/*
 * Of guests of which perf inject has put the records into the file: their times are the host's, and so is the
 * trace's TSC.
 */
int perf_meta_put_injected(struct ptc_writer *w, const struct perf_description *d, struct pt_error *e);

#endif
