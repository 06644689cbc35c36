/*
 * ring.h - the events of one CPU in a trace.dat, from the pages of its ring buffer. What is compressed is
 * decompressed chunk by chunk.
 *
 * Memory: 64 KB, or a chunk (about 40 KB).
 */
#ifndef CAPTURE_TRACECMD_RING_H
#define CAPTURE_TRACECMD_RING_H

#include "capture/tracecmd/head.h"
#include "capture/tracecmd/library.h"

struct dat_ring {
	int fd;		  /* of the file; the owner's */
	const char *path; /* for messages; the owner's */
	uint32_t cpu;
	enum trace_dat_compression compression;
	uint32_t page_bytes;
	uint64_t at,
	    end; /* in the file: the next bytes to read; where pages end, if they are not compressed */
	uint32_t chunks;    /* compressed: how many are left */
	uint8_t *window;    /* pages, and DAT_PAGE_SLACK after them */
	size_t window_room; /* without slack */
	size_t window_bytes, page_at;
	struct dat_page *page;
};

/* Which CPU's, and where it is. All of it is to live as long as its ring. */
struct dat_ring_place {
	const struct trace_dat_head *head;
	const struct trace_dat_buffer *buffer; /* of the head */
	uint32_t cpu;
	int fd; /* of the file */
	const char *path;
};

/*
 * Seeks to the first event of a CPU. l is to live as long. *ret is to be freed in any case. 0, or -1:
 * PT_ERR_IO, PT_ERR_NO_MEMORY, PT_ERR_BAD_INPUT, PT_ERR_TRUNCATED.
 */
int dat_ring_open(struct dat_ring *ret, const struct dat_library *l, const struct dat_ring_place *place,
		  struct pt_error *e);
void dat_ring_close(struct dat_ring *r);

/* The event where it is; its data is valid until dat_ring_next(): 1; 0: it is at the end; -1: as above. */
int dat_ring_event(struct dat_ring *r, struct dat_raw *ret, struct pt_error *e);
/* Moves to the next event. */
void dat_ring_next(struct dat_ring *r);

#endif
