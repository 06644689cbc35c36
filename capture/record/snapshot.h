/*
 * snapshot.h - AUX rings that are overwritten, and what a snapshot finds in them.
 *
 * In overwrite mode the AUX area is mapped read-only and intel_pt writes around it without end; when the
 * event stops, aux_head is the position in the buffer after its last byte (arch/x86/events/intel/pt.c,
 * buf->snapshot). Whether it has been around for the first time shows by the bytes after it: the kernel hands
 * out zeroed pages. From one snapshot to the next the bytes before the last head are compared: when they are
 * unchanged, the new data follows them; else some of it is gone, and the piece gets an offset with a gap
 * before it.
 */
#ifndef CAPTURE_RECORD_SNAPSHOT_H
#define CAPTURE_RECORD_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/record/ring.h"

#define HW_SNAPSHOT_REF 4096

/* What is known of a ring; zeroed: no snapshot yet. */
struct hw_snapshot {
	bool any, wrapped;
	uint64_t head;		      /* of the last snapshot, in the buffer */
	uint64_t end;		      /* the last snapshot's end in the stream */
	uint8_t ref[HW_SNAPSHOT_REF]; /* the bytes before head */
	uint64_t ref_bytes;
};

/* The new part of the buffer: `bytes` from position `from` on, around the buffer's end if need be. */
struct hw_snapshot_piece {
	uint64_t from, bytes;
	uint64_t offset; /* in the stream */
	bool gap;	 /* bytes before it are gone */
};

/* The event must be stopped. */
struct hw_snapshot_piece hw_snapshot_take(struct hw_snapshot *s, const struct hw_ring *r);

#endif
