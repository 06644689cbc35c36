/*
 * trim_time.h - a time range of a container: where each stream is cut, and which sideband is still needed.
 *
 * A stream is cut where a decoder can begin: at a PSB. The range's beginning is the last PSB but one that is not behind it
 * (so that the clock has been corrected once when the range begins), its end the first PSB that is not before it. A PSB
 * inside a guest has the guest's TSC and is no place to cut.
 */
#ifndef CAPTURE_CONTAINER_TRIM_TIME_H
#define CAPTURE_CONTAINER_TRIM_TIME_H

#include <stdbool.h>

#include "schema/container.h"

struct trim_range {
	uint64_t from_tsc, to_tsc; /* half-open */
};

struct trim_time;

/*
 * "A..B", either may be missing: seconds of the perf clock ("12.345678901"), "+" and seconds since the first AUX data's
 * PSB, or "tsc:" and a TSC (also with +). first_tsc: of that PSB. 0, or -1: PT_ERR_USAGE.
 */
int trim_range_parse(const char *text, const struct ptc_meta *meta, uint64_t first_tsc,
		     struct trim_range *ret, struct pt_error *e);

/* Reads the container in fd, a file, from its beginning for the TSC of its first PSB, which is 0 when none has one. Fills
 * *meta. 0, or -1. A cut container is read as far as it goes, here and below. */
int trim_first_tsc(int fd, struct ptc_meta *meta, uint64_t *ret, struct pt_error *e);

/* Reads it twice and finds the cuts. NULL: as ptc_next(); PT_ERR_REFUSED when there is nothing in the range. */
struct trim_time *trim_time_create(int fd, const struct ptc_meta *meta, const struct trim_range *range,
				   struct pt_error *e);
void trim_time_destroy(struct trim_time *t);

/*
 * Writes of the chunk what the range needs, in another reading: AUX data between its stream's cuts; sideband up to the end,
 * before the beginning without what has no effect any more (who ran before whoever ran last, samples); guests' sideband,
 * whose clock is another, all. Others as container_copy_chunk(). 0, or -1.
 */
int trim_time_copy(struct trim_time *t, struct ptc_writer *w, const struct ptc_chunk *c, struct pt_error *e);

#endif
