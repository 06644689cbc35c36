/* order.c - see order.h. */
#include "capture/perfdata/order.h"
#include "capture/perfdata/perf_user.h"
#include "schema/array.h"

#include <stdlib.h>
#include <string.h>

struct perf_order {
	struct perf_file *file;
	struct ordered_record **heap; /* the oldest first */
	size_t count, room, bytes;
	uint64_t arrived;     /* records read */
	uint64_t youngest_ns; /* of them */
	uint64_t round_ns;    /* youngest_ns when the last round ended */
	uint64_t complete_ns; /* no record that is still to be read is older */
	uint64_t gone_ns,
	    late;	   /* youngest that was taken; how many were read after a younger one was taken */
	uint64_t *part_ns; /* [part]: the youngest of it so far */
	bool at_end;
};

struct perf_order *perf_order_create(struct perf_file *f)
{
	struct perf_order *o = calloc(1, sizeof *o);

	if (!o)
		return NULL;
	o->file = f;
	o->part_ns = calloc(f->parts, sizeof *o->part_ns);
	if (!o->part_ns) {
		free(o);
		return NULL;
	}
	return o;
}

void perf_order_destroy(struct perf_order *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->count; i++)
		free(o->heap[i]);
	free(o->heap);
	free(o->part_ns);
	free(o);
}

uint64_t perf_order_late(const struct perf_order *o)
{
	return o->late;
}

static bool before(const struct ordered_record *a, const struct ordered_record *b)
{
	if (a->stamp.time_ns != b->stamp.time_ns)
		return a->stamp.time_ns < b->stamp.time_ns;
	return a->order < b->order;
}

/* Takes r. */
static int push(struct perf_order *o, struct ordered_record *r, struct pt_error *e)
{
	size_t i;

	if (pt_array_grow(&o->heap, o->count, &o->room, e)) {
		free(r);
		return -1;
	}
	for (i = o->count++; i > 0 && before(r, o->heap[(i - 1) / 2]); i = (i - 1) / 2)
		o->heap[i] = o->heap[(i - 1) / 2];
	o->heap[i] = r;
	o->bytes += sizeof *r + r->size;
	return 0;
}

struct ordered_record *perf_order_take(struct perf_order *o)
{
	struct ordered_record *top = o->heap[0], *last = o->heap[--o->count];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= o->count)
			break;
		if (child + 1 < o->count && before(o->heap[child + 1], o->heap[child]))
			child++;
		if (!before(o->heap[child], last))
			break;
		o->heap[i] = o->heap[child];
		i = child;
	}
	if (o->count)
		o->heap[i] = last;
	o->bytes -= sizeof *top + top->size;
	if (top->stamp.time_ns > o->gone_ns)
		o->gone_ns = top->stamp.time_ns;
	return top;
}

/* Of several files, each of them in order, the one with the oldest last record is read next. */
static void turn_to_oldest(struct perf_order *o)
{
	uint32_t oldest = 0;

	for (uint32_t i = 1; i < o->file->parts; i++)
		if (o->part_ns[i] < o->part_ns[oldest])
			oldest = i;
	if (!perf_file_turn_to(o->file, oldest))
		o->part_ns[oldest] = UINT64_MAX;
}

/* Reads one more record. 1; 0 at the end; -1. */
static int read_one(struct perf_order *o, struct pt_error *e)
{
	struct ordered_record *r;
	struct perf_record rec;
	int got;

	if (o->file->parts > 1)
		turn_to_oldest(o);
	got = perf_file_next(o->file, &rec, e);
	if (got <= 0)
		return got;
	/* A round of one file says nothing of the others. */
	if (rec.type == PERF_USER_FINISHED_ROUND && o->file->parts == 1) {
		o->complete_ns = o->round_ns;
		o->round_ns = o->youngest_ns;
	}
	if (rec.type >= PERF_USER_FIRST)
		return 1;
	r = malloc(sizeof *r + rec.size);
	if (!r)
		return pt_fail_no_memory(e, "the sideband");
	if (perf_stamp_read(&o->file->description, &rec, &r->stamp, e)) {
		pt_error_in(e, o->file->path);
		free(r);
		return -1;
	}
	/* perf's own records may have all bits set where they have no time. */
	if (r->stamp.time_ns == UINT64_MAX)
		r->stamp.time_ns = 0;
	r->order = o->arrived++;
	r->size = rec.size;
	memcpy(r->bytes, rec.bytes, rec.size);
	if (r->stamp.time_ns > o->youngest_ns)
		o->youngest_ns = r->stamp.time_ns;
	if (r->stamp.time_ns > o->part_ns[rec.part])
		o->part_ns[rec.part] = r->stamp.time_ns;
	if (r->stamp.time_ns && r->stamp.time_ns < o->gone_ns)
		o->late++;
	return push(o, r, e) ? -1 : 1;
}

int perf_order_peek(struct perf_order *o, const struct ordered_record **ret, struct pt_error *e)
{
	while (!o->at_end && o->bytes < ORDER_BYTES_MAX &&
	       (o->count == 0 || o->heap[0]->stamp.time_ns > o->complete_ns)) {
		int got = read_one(o, e);

		if (got < 0)
			return -1;
		o->at_end = got == 0;
	}
	if (o->count == 0)
		return 0;
	*ret = o->heap[0];
	return 1;
}
