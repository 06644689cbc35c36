/* mapping_records.c - see mapping_records.h. */
#include "capture/record/mapping_records.h"

#include <linux/perf_event.h>
#include <string.h>

struct putting {
	const struct hw_mapping_records *r;
	size_t from, to; /* what has its images, and is not put */
};

static int put(void *arg, struct pt_error *e)
{
	struct putting *p = arg;
	const struct hw_mapping_records *r = p->r;
	size_t from = p->from;

	p->from = p->to;
	return p->to > from
		   ? ptc_put_sideband_flags(r->w, r->attr, r->flags, r->bytes + from, p->to - from, e)
		   : 0;
}

static int put_image(struct hw_images *images, const struct hw_mapping_records *r, const uint8_t *record,
		     struct pt_error *e)
{
	struct hw_mapping m = hw_mapping_of(record);

	m.time_ns = r->time_ns;
	return m.pid > 0 ? hw_images_mapping(images, &m, e) : 0;
}

int hw_mapping_records_put(struct hw_images *images, const struct hw_mapping_records *r, struct pt_error *e)
{
	struct putting p = {.r = r};
	struct hw_images_pending pending = {.put = put, .arg = &p};
	struct perf_event_header h;
	int ret = 0;

	hw_images_pending(images, &pending);
	for (; ret == 0 && p.to < r->count; p.to += h.size) {
		memcpy(&h, r->bytes + p.to, sizeof h);
		if (h.type == PERF_RECORD_MMAP2)
			ret = put_image(images, r, r->bytes + p.to, e);
	}
	hw_images_pending_end(images, &pending);
	return ret ? -1 : put(&p, e);
}
