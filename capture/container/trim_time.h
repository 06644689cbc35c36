/*
 * trim_time.h - a time range of a container: its streams are cut (trim_streams.h), and of its
 * sideband what is needed is kept (trim_sideband.h).
 */
#ifndef CAPTURE_CONTAINER_TRIM_TIME_H
#define CAPTURE_CONTAINER_TRIM_TIME_H

#include "capture/container/trim_range.h"
#include "schema/container.h"

struct trim_time;

/*
 * Reads the container in fd, a file, from its beginning for the TSC of its first PSB, which is 0 when
 * none has one. Fills *meta. 0, or -1: as ptc_next(). A cut container is read up to its end, here
 * and below.
 */
int trim_first_tsc(int fd, struct ptc_meta *meta, uint64_t *ret, struct pt_error *e);

/* Reads the container twice and finds the cuts. NULL: as ptc_next(); PT_ERR_REFUSED: there is nothing
 * in the range. */
struct trim_time *trim_time_create(int fd, const struct ptc_meta *meta, const struct trim_range *range,
				   struct pt_error *e);
void trim_time_destroy(struct trim_time *t);

/* Writes what the range needs of a chunk, in another reading: of AUX data, sideband, the kernel's
 * later code, rounds. Others as container_copy_chunk(). 0, or -1: the writer's errors. */
int trim_time_copy(const struct trim_time *t, struct ptc_writer *w, const struct ptc_chunk *c,
		   struct pt_error *e);

#endif
