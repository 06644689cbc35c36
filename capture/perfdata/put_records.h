/*
 * put_records.h - the kernel's records of a perf.data into a container: one PTC_ATTR per event, and
 * PTC_SIDEBAND chunks of records as the kernel wrote them, each of one event.
 */
#ifndef CAPTURE_PERFDATA_PUT_RECORDS_H
#define CAPTURE_PERFDATA_PUT_RECORDS_H

#include "capture/perfdata/order.h"
#include "schema/container.h"

struct perf_put {
	struct ptc_writer *w;
	const struct perf_description *description;
	uint32_t *attr_of; /* [event]: the container's attr */
	uint32_t
	    *shape_of; /* [event]: first attr of the same machine and trailers: for all records but samples */
	uint8_t *bytes, *sorted; /* records that wait; room to sort them by attr */
	size_t count;		 /* of bytes that wait */
	struct perf_put_entry *entries;
	size_t entry_count;
};

/*
 * Writes the events as attrs. machine_pid: of events that have none of their own. *next_attr: number of the
 * container's next attr, moved on. w and d are to live as long. 0, or -1: the writer's errors,
 * PT_ERR_NO_MEMORY, as all here.
 */
int perf_put_init(struct perf_put *s, struct ptc_writer *w, const struct perf_description *d,
		  int32_t machine_pid, uint32_t *next_attr, struct pt_error *e);
void perf_put_deinit(struct perf_put *s);
/* The record waits for more of its event. A sample's AUX data is left out of it. */
int perf_put_record(struct perf_put *s, const struct ordered_record *r, struct pt_error *e);
/* Writes what waits. */
int perf_put_flush(struct perf_put *s, struct pt_error *e);

#endif
