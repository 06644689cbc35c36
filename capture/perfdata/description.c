/* description.c - see description.h. */
#include "capture/perfdata/description.h"
#include "schema/array.h"
#include "schema/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX 65536
#define IDS_MAX	   ((size_t)4 << 20)

void perf_description_deinit(struct perf_description *d)
{
	for (size_t i = 0; i < d->event_count; i++) {
		free(d->events[i].name);
		free(d->events[i].ids);
	}
	for (size_t i = 0; i < d->build_id_count; i++)
		free(d->build_ids[i].name);
	for (int i = 0; i < PERF_TEXTS; i++)
		free(d->text[i]);
	for (size_t i = 0; i < PERF_CPU_TYPES_MAX; i++) {
		free(d->cpu_types[i].name);
		free(d->cpu_types[i].cpus);
	}
	free(d->events);
	free(d->ids);
	pt_hash_deinit(&d->by_id);
	free(d->build_ids);
	free(d->tracing_data);
	free(d->bpf);
	*d = (struct perf_description){0};
}

int perf_description_add_event(struct perf_description *d, const uint8_t *attr, size_t bytes,
			       struct pt_error *e)
{
	struct perf_file_event *ev;

	if (d->event_count == EVENTS_MAX)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "the perf.data has more than %u events",
			       EVENTS_MAX);
	if (pt_array_grow(&d->events, d->event_count, &d->event_room, e))
		return -1;
	ev = &d->events[d->event_count];
	*ev = (struct perf_file_event){.name = strdup("")};
	if (!ev->name)
		return pt_fail_no_memory(e, "the perf.data");
	if (bytes > sizeof ev->attr)
		bytes = sizeof ev->attr;
	memcpy(&ev->attr, attr, bytes);
	ev->attr.size = (uint32_t)bytes;
	d->samples_aux |= (ev->attr.sample_type & PERF_SAMPLE_AUX) != 0;
	d->event_count++;
	return 0;
}

/* The event's own list of ids. */
static int add_event_ids(struct perf_file_event *ev, const uint8_t *ids, size_t count, struct pt_error *e)
{
	uint64_t *grown = realloc(ev->ids, (ev->id_count + count + 1) * sizeof *grown);

	if (!grown)
		return pt_fail_no_memory(e, "the perf.data");
	ev->ids = grown;
	for (size_t i = 0; i < count; i++)
		grown[ev->id_count++] = u64(ids + 8 * i);
	return 0;
}

static uint64_t key_of(const void *ids, uint32_t n)
{
	return pt_hash_mix(((const struct perf_file_id *)ids)[n - 1].id);
}

static struct perf_file_id *find_id(const struct perf_description *d, uint64_t id)
{
	uint32_t n;

	if (!d->id_count)
		return NULL;
	for (uint32_t i = pt_hash_first(&d->by_id, pt_hash_mix(id)); (n = d->by_id.slots[i]);
	     i = pt_hash_next(&d->by_id, i))
		if (d->ids[n - 1].id == id)
			return &d->ids[n - 1];
	return NULL;
}

/* An event's list of ids says less than ID_INDEX, which does not say the event. */
static void join(struct perf_file_id *to, const struct perf_file_id *id)
{
	uint32_t event = to->event;

	if (id->event == PERF_EVENT_UNKNOWN) {
		*to = *id;
		to->event = event;
	} else if (id->event < event) {
		to->event = id->event;
	}
}

int perf_description_add_id(struct perf_description *d, const struct perf_file_id *id, struct pt_error *e)
{
	struct perf_file_id *known = find_id(d, id->id);

	if (known) {
		join(known, id);
		return 0;
	}
	if (d->id_count == IDS_MAX)
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "the perf.data has more than %zu sample ids", IDS_MAX);
	if ((!d->by_id.slots && pt_hash_init(&d->by_id, 6, e)) ||
	    pt_array_grow(&d->ids, d->id_count, &d->id_room, e) ||
	    pt_hash_insert(&d->by_id, pt_hash_mix(id->id), (uint32_t)d->id_count + 1, key_of, d->ids, e))
		return -1;
	d->ids[d->id_count++] = *id;
	return 0;
}

int perf_description_add_ids(struct perf_description *d, uint32_t event, const uint8_t *ids, size_t count,
			     struct pt_error *e)
{
	for (size_t i = 0; i < count; i++) {
		struct perf_file_id id = {
		    .id = u64(ids + 8 * i), .event = event, .cpu = -1, .tid = -1, .vcpu = -1};

		if (perf_description_add_id(d, &id, e))
			return -1;
	}
	return add_event_ids(&d->events[event], ids, count, e);
}

void perf_description_name_machines(struct perf_description *d)
{
	for (size_t i = 0; i < d->id_count; i++)
		if (d->ids[i].event < d->event_count && d->ids[i].machine_pid > 0)
			d->events[d->ids[i].event].machine_pid = d->ids[i].machine_pid;
}

const struct perf_file_id *perf_description_find_id(const struct perf_description *d, uint64_t id)
{
	return find_id(d, id);
}

uint64_t perf_tsc_to_ns(const struct perf_file_clock *clock, uint64_t tsc)
{
	if (!clock->mult || clock->shift > 63)
		return 0;
	return clock->zero + (uint64_t)(((unsigned __int128)tsc * clock->mult) >> clock->shift);
}

void perf_build_id_text(char to[41], const uint8_t *bytes, uint32_t count)
{
	to[0] = 0;
	for (uint32_t i = 0; i < count && i < 20; i++)
		snprintf(to + 2 * (size_t)i, 3, "%02x", bytes[i]);
}
