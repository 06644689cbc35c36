/*
 * trim_sideband.h - which sideband records a time range needs: those in it, and those before it that
 * still have an effect. That is all but samples, losses, and switches that are not the last of their
 * CPU or thread. Guests' records have another clock and are kept.
 */
#ifndef CAPTURE_CONTAINER_TRIM_SIDEBAND_H
#define CAPTURE_CONTAINER_TRIM_SIDEBAND_H

#include <stdbool.h>

#include "schema/container.h"

/* An attr. */
struct trim_event {
	uint64_t sample_type;
	bool guest;
};

/* A sample id of an attr. */
struct trim_id {
	uint64_t id;
	uint32_t event;
};

/* The last switch of a CPU (tid -1), or of a thread (cpu -1), before the range. */
struct trim_switch {
	uint32_t attr;
	int32_t cpu, tid;
	uint64_t time_ns;
};

/* Zeroed: no attr. */
struct trim_sideband {
	struct trim_event *events;
	size_t event_count, event_room;
	struct trim_id *ids; /* by id, then event, once the range is set */
	size_t id_count, id_room;
	struct trim_switch *switches;
	size_t switch_count, switch_room;
	uint64_t from_ns, to_ns;
};

void trim_sideband_deinit(struct trim_sideband *s);

/* Takes a PTC_ATTR chunk. 0, or -1: PT_ERR_BAD_INPUT, PT_ERR_NO_MEMORY. */
int trim_sideband_attr(struct trim_sideband *s, const struct ptc_chunk *c, struct pt_error *e);
/* Sets the range [from_ns, to_ns], when all attrs were taken. */
void trim_sideband_range(struct trim_sideband *s, uint64_t from_ns, uint64_t to_ns);
/* Takes the switches of a PTC_SIDEBAND chunk; all chunks are to be taken before the first is copied.
 * 0, or -1, as above. */
int trim_sideband_take(struct trim_sideband *s, const struct ptc_chunk *c, struct pt_error *e);
/* Writes the records of a PTC_SIDEBAND chunk that are needed. 0, or -1: the writer's errors, and as above. */
int trim_sideband_copy(const struct trim_sideband *s, struct ptc_writer *w, const struct ptc_chunk *c,
		       struct pt_error *e);

#endif
