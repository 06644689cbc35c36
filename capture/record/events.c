/* events.c - events that are open: start, stop, wait, count what is lost, declare them; see events.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/record/events_internal.h"
#include "capture/record/proc.h"

void hw_events_close(struct hw_events *ev)
{
	for (size_t i = 0; i < ev->ring_count; i++) {
		struct hw_ring *r = &ev->rings[i].ring;

		if (r->aux)
			munmap((void *)(uintptr_t)r->aux, r->aux_size);
		if (r->page)
			munmap(r->page, HW_PAGE + r->data_size);
	}
	for (size_t i = 0; i < ev->count; i++)
		close(ev->events[i].fd);
	free(ev->events);
	free(ev->rings);
	if (ev->opened)
		close(ev->epoll);
	memset(ev, 0, sizeof *ev);
}

int hw_events_filter(struct hw_events *ev, const char *filter, struct pt_error *e)
{
	for (size_t i = 0; i < ev->count; i++)
		if (ev->events[i].kind == HW_EVENT_PT &&
		    ev->calls->ioctl(ev->events[i].fd, PERF_EVENT_IOC_SET_FILTER, (void *)(uintptr_t)filter))
			return hw_filter_refused(filter, e);
	return 0;
}

/* ---- Running ---- */

void hw_events_enable_ring(struct hw_events *ev, size_t ring, bool enable)
{
	for (size_t i = 0; i < ev->count; i++)
		if (ev->events[i].kind == HW_EVENT_PT && (ring == SIZE_MAX || ev->events[i].ring == ring))
			ev->calls->ioctl(ev->events[i].fd,
					 enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, NULL);
}

void hw_events_start(struct hw_events *ev)
{
	for (size_t i = 0; i < ev->count; i++)
		if (ev->events[i].kind == HW_EVENT_TRACE || ev->events[i].kind == HW_EVENT_TRIGGER)
			ev->calls->ioctl(ev->events[i].fd, PERF_EVENT_IOC_ENABLE, NULL);
	hw_events_enable(ev);
}

void hw_events_enable(struct hw_events *ev)
{
	hw_events_enable_ring(ev, SIZE_MAX, true);
}

void hw_events_disable(struct hw_events *ev)
{
	hw_events_enable_ring(ev, SIZE_MAX, false);
}

void hw_events_wait(struct hw_events *ev, int timeout_ms)
{
	struct epoll_event one;

	/* Which ring it is does not matter: a round reads all. */
	epoll_wait(ev->epoll, &one, 1, timeout_ms);
}

uint64_t hw_events_lost(const struct hw_events *ev, size_t ring, uint64_t *ret_id)
{
	uint64_t values[3], lost = 0, max = 0; /* value, id, lost */

	*ret_id = 0;
	for (size_t i = 0; ev->read_format & PERF_FORMAT_LOST && i < ev->count; i++) {
		if (ev->events[i].ring != ring ||
		    read(ev->events[i].fd, values, sizeof values) != sizeof values)
			continue;
		lost += values[2];
		if (values[2] > max) {
			max = values[2];
			*ret_id = values[1];
		}
	}
	return lost;
}

/* ---- Into the container ---- */

static int by_id(const void *a, const void *b)
{
	const struct hw_event *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* Fills the map from sample ids to attrs. */
static int map_ids(const struct hw_events *ev, struct hw_drain_events *ret, struct pt_error *e)
{
	struct hw_event *sorted = malloc(ev->count * sizeof *sorted);

	free(ret->ids); /* of the container before */
	free(ret->attrs);
	ret->ids = malloc(ev->count * sizeof *ret->ids);
	ret->attrs = malloc(ev->count * sizeof *ret->attrs);
	if (!sorted || !ret->ids || !ret->attrs) {
		free(sorted);
		return pt_fail_no_memory(e, "events");
	}
	memcpy(sorted, ev->events, ev->count * sizeof *sorted);
	qsort(sorted, ev->count, sizeof *sorted, by_id);
	for (size_t i = 0; i < ev->count; i++) {
		ret->ids[i] = sorted[i].id;
		ret->attrs[i] = sorted[i].attr;
	}
	ret->count = ev->count;
	free(sorted);
	return 0;
}

static int declare_attrs(const struct hw_events *ev, struct ptc_writer *w, struct hw_drain_events *ret,
			 struct pt_error *e)
{
	uint64_t *ids = malloc(ev->count * sizeof *ids);
	int r = ids ? 0 : pt_fail_no_memory(e, "events");

	for (uint32_t a = 0; a < ev->attr_count && r == 0; a++) {
		const struct hw_event_attr *attr = &ev->attrs[a];
		struct ptc_attr put;
		uint32_t n = 0;

		for (size_t i = 0; i < ev->count; i++)
			if (ev->events[i].attr == a)
				ids[n++] = ev->events[i].id;
		if (attr->kind == HW_EVENT_SIDEBAND)
			ret->sideband_attr = a;
		ret->sample_types[a] = attr->attr.sample_type;
		put = ptc_host_attr(attr->name, &attr->attr, sizeof attr->attr, ids, n);
		r = ptc_put_attr(w, &put, e);
	}
	free(ids);
	return r;
}

static int declare_streams(struct hw_events *ev, struct ptc_writer *w, struct pt_error *e)
{
	for (size_t i = 0; i < ev->ring_count; i++) {
		struct hw_drain_ring *r = &ev->rings[i];
		struct ptc_stream s = {.cpu = r->cpu,
				       .pid = r->tid > 0 ? hw_proc_of_thread(r->tid) : -1,
				       .tid = r->tid,
				       .snapshot = ev->overwrite};
		int64_t n;

		if (!r->ring.aux)
			continue;
		n = ptc_put_stream(w, &s, e);
		if (n < 0)
			return -1;
		/* (In a later container it is the same, and another thread reads it.) */
		if (r->stream != (uint32_t)n)
			r->stream = (uint32_t)n;
	}
	return 0;
}

int hw_events_declare(struct hw_events *ev, struct ptc_writer *w, struct hw_drain *d, struct pt_error *e)
{
	if (map_ids(ev, &d->events, e) || declare_attrs(ev, w, &d->events, e) || declare_streams(ev, w, e))
		return -1;
	for (size_t i = 0; i < ev->count; i++)
		if (ev->events[i].kind == HW_EVENT_KERNEL &&
		    ev->attrs[ev->events[i].attr].attr.context_switch)
			ev->rings[ev->events[i].ring].all_switches = true;
	d->rings = ev->rings;
	d->ring_count = ev->ring_count;
	return 0;
}
