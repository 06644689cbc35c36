/*
 * events_internal.h - what the events' files share: events.c (events that are open), events_attrs.c (which
 * there are), events_open.c (rings, and opening), events_refused.c (why something could not be opened).
 */
#ifndef CAPTURE_RECORD_EVENTS_INTERNAL_H
#define CAPTURE_RECORD_EVENTS_INTERNAL_H

#include <string.h>

#include "capture/record/events.h"

#define HW_PAGE 4096

/* The word after aux_sample_size, which headers before Linux 6.13 call reserved: enum hw_aux_action bits. */
#define HW_AUX_ACTION_AT (offsetof(struct perf_event_attr, aux_sample_size) + sizeof(uint32_t))

static inline unsigned hw_aux_action(const struct perf_event_attr *a)
{
	uint32_t v;

	memcpy(&v, (const uint8_t *)a + HW_AUX_ACTION_AT, sizeof v);
	return v;
}

static inline void hw_set_aux_action(struct perf_event_attr *a, unsigned action)
{
	uint32_t v = action;

	memcpy((uint8_t *)a + HW_AUX_ACTION_AT, &v, sizeof v);
}

/* ---- events_attrs.c ---- */

/* Fills ev->attrs: PT first. 0, or -1: hw_event_named()'s errors, PT_ERR_USAGE for too many. */
int hw_events_make_attrs(struct hw_events *ev, const struct hw_events_options *o, struct pt_error *e);

/* ---- events_refused.c: errors by errno, which is unchanged; each returns -1 ---- */

int hw_event_refused(const struct hw_event_attr *a, int32_t tid, int32_t cpu, struct pt_error *e);
int hw_ring_refused(const struct hw_events *ev, const char *what, bool aux, struct pt_error *e);
int hw_filter_refused(const char *filter, struct pt_error *e);

#endif
