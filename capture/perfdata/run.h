/*
 * run.h - a perf.data becomes a container.
 *
 * Two passes over the file: the first finds events, AUX data and its times; the second writes. So the
 * container keeps the order that schema/container.h promises, whatever the order of the file.
 */
#ifndef CAPTURE_PERFDATA_RUN_H
#define CAPTURE_PERFDATA_RUN_H

#include "capture/perfdata/notes.h"
#include "capture/perfdata/request.h"
#include "schema/error.h"

/*
 * Writes the container to fd. *notes is filled, and to be freed in any case. 0, or -1: PT_ERR_IO,
 * PT_ERR_CLOSED, PT_ERR_BAD_INPUT, PT_ERR_TRUNCATED, PT_ERR_NO_MEMORY, PT_ERR_REFUSED.
 */
int import_perf_run(const struct import_perf_request *r, int fd, struct import_perf_notes *notes,
		    struct pt_error *e);

#endif
