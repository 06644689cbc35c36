/* put_records.c - see put_records.h. */
#include "capture/perfdata/put_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAITING_BYTES ((size_t)64 << 10) /* records are sorted by event within that many bytes */
#define WAITING_MAX   (WAITING_BYTES / 8)

struct perf_put_entry {
	uint32_t attr, at, size;
};

/* Of an event without a name: a recording through a pipe may have none. */
static void make_name(const struct perf_description *d, const struct perf_event_attr *attr, char name[64])
{
	if (d->pt.present && attr->type == d->pt.pmu_type)
		strcpy(name, "intel_pt//");
	else
		snprintf(name, 64, "type %u config 0x%llx", attr->type, (unsigned long long)attr->config);
}

/* The first event of the machine of which the records have the same trailers as event i's: i itself,
 * if no other. */
static size_t first_of_shape(const struct perf_description *d, size_t i)
{
	const struct perf_file_event *all = d->events;

	for (size_t k = 0; k < i; k++)
		if (perf_stamp_shape(&all[k].attr) == perf_stamp_shape(&all[i].attr) &&
		    all[k].machine_pid == all[i].machine_pid)
			return k;
	return i;
}

int perf_put_init(struct perf_put *s, struct ptc_writer *w, const struct perf_description *d,
		  int32_t machine_pid, uint32_t *next_attr, struct pt_error *e)
{
	*s = (struct perf_put){.w = w, .description = d};
	s->attr_of = calloc(d->event_count + 1, sizeof *s->attr_of);
	s->shape_of = calloc(d->event_count + 1, sizeof *s->shape_of);
	s->bytes = malloc(WAITING_BYTES);
	s->sorted = malloc(WAITING_BYTES);
	s->entries = calloc(WAITING_MAX, sizeof *s->entries);
	if (!s->attr_of || !s->shape_of || !s->bytes || !s->sorted || !s->entries)
		return pt_fail_no_memory(e, "the records");
	for (size_t i = 0; i < d->event_count; i++) {
		const struct perf_file_event *ev = &d->events[i];
		int32_t machine = ev->machine_pid ? ev->machine_pid : machine_pid;
		char made_up[64];
		struct ptc_attr put;

		make_name(d, &ev->attr, made_up);
		put = ptc_host_attr(ev->name[0] ? ev->name : made_up, &ev->attr, ev->attr.size, ev->ids,
				    ev->id_count);
		put.machine_pid = machine;
		if (ptc_put_attr(w, &put, e))
			return -1;
		s->attr_of[i] = (*next_attr)++;
		s->shape_of[i] = s->attr_of[first_of_shape(d, i)];
	}
	return 0;
}

void perf_put_deinit(struct perf_put *s)
{
	free(s->attr_of);
	free(s->shape_of);
	free(s->bytes);
	free(s->sorted);
	free(s->entries);
	*s = (struct perf_put){0};
}

/* A chunk for each attr, in the order of its first record. */
int perf_put_flush(struct perf_put *s, struct pt_error *e)
{
	for (size_t first = 0; first < s->entry_count; first++) {
		uint32_t attr = s->entries[first].attr;
		size_t n = 0;

		if (s->entries[first].size == 0)
			continue;
		for (size_t i = first; i < s->entry_count; i++) {
			struct perf_put_entry *entry = &s->entries[i];

			if (entry->attr != attr)
				continue;
			memcpy(s->sorted + n, s->bytes + entry->at, entry->size);
			n += entry->size;
			entry->size = 0;
		}
		if (ptc_put_sideband(s->w, attr, s->sorted, n, e))
			return -1;
	}
	s->entry_count = 0;
	s->count = 0;
	return 0;
}

/* Copies the first size bytes of the record to where records wait: all, or a sample without its AUX data. */
static void append(struct perf_put *s, const struct ordered_record *r, size_t size)
{
	uint8_t *to = s->bytes + s->count;
	struct perf_event_header h;

	memcpy(to, r->bytes, size);
	if (size != r->size) {
		memcpy(&h, to, sizeof h);
		h.size = (uint16_t)size;
		memcpy(to, &h, sizeof h);
		memset(to + r->stamp.aux_at - 8, 0, 8); /* the AUX data's size */
	}
	s->count += size;
}

int perf_put_record(struct perf_put *s, const struct ordered_record *r, struct pt_error *e)
{
	size_t events = s->description->event_count, size = r->size;
	uint32_t event = r->stamp.event < events ? r->stamp.event : 0, attr = 0;
	struct perf_event_header h;

	memcpy(&h, r->bytes, sizeof h);
	if (events)
		attr = h.type == PERF_RECORD_SAMPLE ? s->attr_of[event] : s->shape_of[event];
	if (r->stamp.aux_at)
		size -= r->stamp.aux_bytes;
	if ((s->count + size > WAITING_BYTES || s->entry_count == WAITING_MAX) && perf_put_flush(s, e))
		return -1;
	s->entries[s->entry_count++] =
	    (struct perf_put_entry){.attr = attr, .at = (uint32_t)s->count, .size = (uint32_t)size};
	append(s, r, size);
	return 0;
}
