/*
 * ring.h - a perf ring buffer as its reader sees it: the control page, the data area, the AUX area. Memory
 * only, no system call, so that a test's double of the kernel can be the writer.
 *
 * The rules are those of struct perf_event_mmap_page in the kernel's perf_event.h. The kernel moves data_head
 * and aux_head, the reader data_tail and aux_tail; all four are positions in an endless sequence, not in the
 * buffer. What lies between tail and head may be read, and is never overwritten before the tail has moved
 * past it. Without room the kernel drops: PERF_RECORD_LOST reports records, PERF_AUX_FLAG_TRUNCATED AUX data.
 * In overwrite mode (the AUX area mapped read-only) there is no aux_tail, and intel_pt's aux_head is a
 * position in the buffer: see snapshot.h.
 */
#ifndef CAPTURE_RECORD_RING_H
#define CAPTURE_RECORD_RING_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/record/byte_buffer.h"
#include "schema/error.h"

/* The memory is the owner's. */
struct hw_ring {
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	uint64_t data_size; /* a power of two */
	const uint8_t *aux; /* NULL: none */
	uint64_t aux_size;  /* a power of two, at least two pages */
};

/*
 * Appends all records that are there to `to`, back to back, and gives their room back to the kernel; at most
 * data_size bytes. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (a record with an impossible size: the
 * buffer's contents cannot be trusted any more).
 */
int hw_ring_records(struct hw_ring *r, struct hw_bytes *to, struct pt_error *e);

/* The position up to which AUX data is written. */
uint64_t hw_ring_aux_head(const struct hw_ring *r);

/* AUX bytes from a position on: as many as are contiguous, at most max; *ret_bytes points into the ring. */
uint64_t hw_ring_aux(const struct hw_ring *r, uint64_t from, uint64_t max, const uint8_t **ret_bytes);

/*
 * Gives the whole pages before position `to` back to the kernel. Not the beginning of the page at `to`:
 * intel_pt's pt_buffer_reset_markers() finds the page to stop before by adding the page numbers of head and
 * of the free room, without what their remainders carry. With a tail inside a page that can be head's own
 * page, and the CPU continues for a lap, over what was not read.
 */
void hw_ring_aux_done(struct hw_ring *r, uint64_t to);

#endif
