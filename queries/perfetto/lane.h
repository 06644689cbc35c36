/*
 * lane.h - slices of one track, given in the order of their beginnings: written as begins and ends that nest.
 */
#ifndef QUERIES_PERFETTO_LANE_H
#define QUERIES_PERFETTO_LANE_H

#include "queries/perfetto/packets.h"

struct lane_slice {
	int64_t end_ns;
	int64_t begin_order,
	    end_order; /* numbers by which what came first is known when times are alike; LANE_UNKNOWN */
};
#define LANE_UNKNOWN INT64_MIN

struct lane {
	struct packets *packets;
	uint64_t track; /* 0: none yet */
	int64_t last_ns;
	struct lane_slice *open; /* the innermost one last */
	size_t count, room;
};

/*
 * Begins a slice, having ended those that do not hold it: whose end_order is not above its begin_order, or
 * where one of them is not known, whose time is over. (When only its own end_order is not known, what
 * begins and ends as it ends is in it.) event->track is the lane's: another one ends all slices of that
 * before. An end is never before what is inside it has begun. 0, or -1: PT_ERR_NO_MEMORY.
 */
int lane_add(struct lane *l, const struct packet_event *event, const struct lane_slice *slice,
	     struct pt_error *e);
void lane_finish(struct lane *l); /* ends them all, and frees */

#endif
