/*
 * ring.h - a perf ring buffer as its reader sees it: the control page, the data area, the AUX area. Memory only: no
 * system call, so that a test's double of the kernel can stand on the other side.
 *
 * The rules are those of struct perf_event_mmap_page in the kernel's perf_event.h: the kernel moves data_head and aux_head
 * (positions in an endless sequence, not in the buffer), the reader data_tail and aux_tail; what lies between tail and head
 * may be read, and is never overwritten before the tail has moved past it. When there is no room the kernel drops: a
 * PERF_RECORD_LOST tells of records, PERF_AUX_FLAG_TRUNCATED of AUX data. In the overwrite mode (the AUX area mapped
 * read-only) aux_tail does not exist, and intel_pt's aux_head is a position in the buffer: see snapshot.h.
 */
#ifndef CAPTURE_RECORD_RING_H
#define CAPTURE_RECORD_RING_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

struct hw_ring {
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	uint64_t data_size; /* a power of two */
	const uint8_t *aux; /* NULL: none */
	uint64_t aux_size;  /* a power of two, at least two pages */
};

/* Bytes that grow as they must; the owner frees `bytes`. */
struct hw_bytes {
	uint8_t *bytes;
	size_t count, room;
};
/* Makes room for n more bytes behind count. 0, or -1: PT_ERR_NO_MEMORY. */
int hw_bytes_reserve(struct hw_bytes *b, size_t n, struct pt_error *e);
int hw_bytes_add(struct hw_bytes *b, const void *from, size_t n, struct pt_error *e);
/* Empties it. A flood's memory is given back, little is kept. */
void hw_bytes_clear(struct hw_bytes *b);

/*
 * Appends all records that are there to `to`, back to back, and gives their room back to the kernel. At most data_size
 * bytes. 0, or -1: PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT (a record with an impossible size: the buffer's contents cannot be
 * trusted any more).
 */
int hw_ring_records(struct hw_ring *r, struct hw_bytes *to, struct pt_error *e);

/* How far AUX data is written. What lies between what was read and that is at hw_ring_aux(). */
uint64_t hw_ring_aux_head(const struct hw_ring *r);
/* The bytes from position `from` on: as many as lie in a row, at most `most`; *ret_bytes points into the ring. */
uint64_t hw_ring_aux(const struct hw_ring *r, uint64_t from, uint64_t most, const uint8_t **ret_bytes);
/*
 * Gives the whole pages before position `to` back to the kernel. Not the begin of the page at `to`: intel_pt's
 * pt_buffer_reset_markers() finds the page to stop before by adding the page numbers of head and of the free room, without
 * what their remainders carry; with a tail inside a page that can be head's own page, and the CPU goes on for a lap, over
 * what was not read.
 */
void hw_ring_aux_done(struct hw_ring *r, uint64_t to);

#endif
