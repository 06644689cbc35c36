/*
 * snapshot.h - AUX rings that are overwritten, and what is in them when somebody wants it.
 *
 * In this mode the AUX area is mapped read-only and intel_pt writes around it without end; when the event stops, aux_head is
 * the position in the buffer behind its last byte (arch/x86/events/intel/pt.c, buf->snapshot). Whether it has been all around the
 * first time shows by what is behind: the kernel hands out zeroed pages. From one snapshot to the next the bytes before the
 * last head tell: when they are as they were, what is new follows on from there; when not, some of it is gone, and the piece
 * gets an offset with a gap before it.
 */
#ifndef CAPTURE_RECORD_SNAPSHOT_H
#define CAPTURE_RECORD_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/record/ring.h"

#define HW_SNAPSHOT_REF 4096

struct hw_snapshot {
	bool any, wrapped;
	uint64_t head; /* of the last snapshot, in the buffer */
	uint64_t end;  /* its end in the stream */
	uint8_t ref[HW_SNAPSHOT_REF];
	uint64_t ref_bytes;
};

/* What of the buffer is new: from `from` on, `bytes` of it, around the buffer's end if need be, at `offset` in the stream. */
struct hw_snapshot_piece {
	uint64_t from, bytes, offset;
	bool gap; /* bytes before it are gone */
};

/* The event must be stopped. */
struct hw_snapshot_piece hw_snapshot_take(struct hw_snapshot *s, const struct hw_ring *r);

#endif
