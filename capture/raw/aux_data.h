/*
 * aux_data.h - raw AUX bytes, of one buffer or of several, on their way into a container.
 */
#ifndef CAPTURE_RAW_AUX_DATA_H
#define CAPTURE_RAW_AUX_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "capture/perfdata/description.h"
#include "schema/container.h"

/* A --raw of the command line. */
struct raw_aux {
	const char *path; /* may be compressed with zstd; "-": standard input */
	int32_t cpu;	  /* the buffer is this CPU's; -1: a thread's */
	int32_t pid, tid; /* the thread; of a CPU the one that runs there first */
};

/* Declares the streams, numbered in this order. 0, or -1: the writer's errors. */
int raw_aux_streams(const struct raw_aux *aux, size_t count, struct ptc_writer *w, struct pt_error *e);

/*
 * Writes the streams' bytes; all sideband is to be written before. With a clock (mult not 0) the streams'
 * pieces are in the order of their PSBs' times, with the PTC_ROUND that let a decoder go on. Memory: about 1
 * MB for each stream. 0, or -1: the writer's errors; PT_ERR_IO, PT_ERR_BAD_INPUT (no byte in one),
 * PT_ERR_TRUNCATED, PT_ERR_NO_MEMORY.
 */
int raw_aux_put(const struct raw_aux *aux, size_t count, const struct perf_file_clock *clock,
		struct ptc_writer *w, struct pt_error *e);

#endif
