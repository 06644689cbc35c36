/*
 * order.h - the kernel's records of a perf.data in the order of their time.
 *
 * perf writes the rings of all CPUs one after the other, again and again. A FINISHED_ROUND record says that a
 * round is over, and nothing after it is older than the youngest record of the round before it (perf's own
 * rule). So two rounds are held. Where there are no rounds, at most ORDER_BYTES_MAX are. Several files (`perf
 * record --threads`) are each in order, or nearly: the file with the oldest last record is read next, and
 * as much is held.
 */
#ifndef CAPTURE_PERFDATA_ORDER_H
#define CAPTURE_PERFDATA_ORDER_H

#include "capture/perfdata/file.h"
#include "capture/perfdata/sample.h"

#define ORDER_BYTES_MAX ((size_t)48 << 20)

struct perf_order;

/* A record of the kernel's (type < PERF_USER_FIRST). */
struct ordered_record {
	struct perf_stamp stamp;
	uint64_t order; /* its number in the file */
	uint16_t size;
	uint8_t bytes[]; /* perf_event_header first */
};

/* Reads f's records from where it is; f is to live as long. NULL: no memory. */
struct perf_order *perf_order_create(struct perf_file *f);
void perf_order_destroy(struct perf_order *o);

/*
 * The oldest record, which remains the order's until it is taken: 1; 0 at the end; -1 as perf_file_next() and
 * perf_stamp_read().
 */
int perf_order_peek(struct perf_order *o, const struct ordered_record **ret, struct pt_error *e);
/* Takes what peek returned; free() it. */
struct ordered_record *perf_order_take(struct perf_order *o);

/* How many records came too late to be put in order. */
uint64_t perf_order_late(const struct perf_order *o);

#endif
