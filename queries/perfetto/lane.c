/* lane.c - see lane.h. */
#include "queries/perfetto/lane.h"

#include <stdlib.h>

#include "schema/array.h"

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void end_one(struct lane *l)
{
	l->last_ns = later(l->last_ns, l->open[--l->count].end_ns);
	packets_end(l->packets, l->track, l->last_ns);
}

static void end_all(struct lane *l)
{
	while (l->count)
		end_one(l);
}

static bool is_over(const struct lane_slice *open, const struct packet_event *event,
		    const struct lane_slice *next)
{
	if (open->end_order != LANE_UNKNOWN && next->begin_order != LANE_UNKNOWN)
		return open->end_order <= next->begin_order;
	if (next->begin_order != LANE_UNKNOWN && open->end_ns == event->time_ns)
		return next->end_ns > open->end_ns;
	return open->end_ns <= event->time_ns;
}

int lane_add(struct lane *l, const struct packet_event *event, const struct lane_slice *slice,
	     struct pt_error *e)
{
	struct packet_event at = *event;

	if (event->track != l->track) {
		end_all(l);
		l->track = event->track;
		l->last_ns = INT64_MIN;
	}
	while (l->count && is_over(&l->open[l->count - 1], event, slice))
		end_one(l);
	if (pt_array_grow(&l->open, l->count, &l->room, e) < 0)
		return -1;
	l->last_ns = at.time_ns = later(l->last_ns, event->time_ns);
	packets_begin(l->packets, &at);
	l->open[l->count++] = *slice;
	return 0;
}

void lane_finish(struct lane *l)
{
	end_all(l);
	free(l->open);
	l->open = NULL;
}
