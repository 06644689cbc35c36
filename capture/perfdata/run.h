/*
 * run.h - a perf.data becomes a container.
 *
 * Two passes over the file: the first finds events, AUX data and its times; the second writes. What the container
 * promises of its order (schema/container.h) is so kept, whatever the order of the file.
 */
#ifndef CAPTURE_PERFDATA_RUN_H
#define CAPTURE_PERFDATA_RUN_H

#include "capture/perfdata/notes.h"
#include "capture/perfdata/request.h"
#include "schema/error.h"

/* Writes the container to fd. 0, or -1: PT_ERR_IO, _CLOSED, _BAD_INPUT, _TRUNCATED, _NO_MEMORY, _REFUSED. Notes are to
 * be freed in any case. */
int import_perf_run(const struct import_perf_request *r, int fd, struct import_perf_notes *notes,
		    struct pt_error *e);

#endif
