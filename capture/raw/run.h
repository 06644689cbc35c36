/*
 * run.h - raw AUX bytes, and what is known of them, become a container.
 */
#ifndef CAPTURE_RAW_RUN_H
#define CAPTURE_RAW_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/perfdata/notes.h"
#include "capture/perfdata/request.h"
#include "capture/raw/aux_data.h"
#include "capture/raw/code.h"
#include "capture/raw/perf_records.h"
#include "schema/error.h"

/* What the command line says. */
struct raw_request {
	struct raw_aux *raws; /* pid and tid -1: not said */
	size_t raw_count, raw_room;
	struct raw_records_file *sides;
	size_t side_count, side_room;
	uint64_t sample_type;		  /* of the sideband's records */
	struct import_perf_request files; /* where those are that the sideband names */
	struct import_code *code;
	const char *comm;   /* of the traced threads; NULL: the first code file's name */
	int32_t pid, tid;   /* of all --raw that have none of their own; -1: not said */
	bool kernel;	    /* kernel code was traced, too */
	int level;	    /* zstd's */
	const char *output; /* what the container is called: output_name() */
	const char *command;
	/* META, unless it is not said */
	bool has_cpu, has_ratio;
	uint64_t family, model, stepping, ctc_numerator, ctc_denominator;
	const char *mtc_freq, *nom_freq, *pt_config; /* numbers as they are written; NULL: not said */
	const char *filter;			     /* META addr_filter; NULL: none */
	bool has_clock;
	struct perf_file_clock clock;
};

/*
 * Writes the container to fd. raws get the threads that they are of. *notes is filled, and to be freed in any
 * case. 0, or -1: PT_ERR_USAGE (two --raw of one thread or CPU), PT_ERR_IO, PT_ERR_CLOSED, PT_ERR_BAD_INPUT,
 * PT_ERR_TRUNCATED, PT_ERR_REFUSED, PT_ERR_NO_MEMORY.
 */
int raw_import_run(struct raw_request *r, int fd, struct import_perf_notes *notes, struct pt_error *e);

#endif
