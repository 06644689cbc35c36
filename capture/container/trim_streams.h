/*
 * trim_streams.h - where a container's streams are cut for a time range.
 *
 * A stream is cut where a decoder can begin: at a PSB. The range's beginning is the last PSB but one that is
 * not after it (so that the clock has been corrected once when the range begins). Its end is that of the second
 * PSB+ that is not before it: up to when its last branches can have been is known by a branch that comes after
 * them. A PSB inside a guest has the guest's TSC and is no place to cut.
 */
#ifndef CAPTURE_CONTAINER_TRIM_STREAMS_H
#define CAPTURE_CONTAINER_TRIM_STREAMS_H

#include "capture/container/trim_range.h"
#include "capture/pt/packet_len.h"
#include "schema/container.h"

struct trim_stream {
	uint8_t tail[PT_PSB_PLUS_MAX]; /* the last bytes, in which a PSB+ may begin */
	size_t tail_bytes;
	uint64_t tail_offset; /* of tail[0] in the AUX data */
	bool timed;	      /* it has a PSB with a time, the first of which is: */
	uint64_t first_tsc;
	uint64_t at[2], at_tsc[2]; /* the last two PSBs not after the range's beginning; [1] is the later */
	unsigned at_count;
	unsigned after_count; /* PSBs not before the range's end; two at most */
	uint64_t from, to;    /* the cut, half-open */
	uint64_t to_tsc;
};

/* Zeroed: none. */
struct trim_streams {
	struct trim_stream *all; /* [number - 1] */
	size_t count, room;
};

void trim_streams_deinit(struct trim_streams *s);

/*
 * Takes a chunk; PTC_STREAM and PTC_AUX count. first_only: only each stream's first PSB is wanted. 0,
 * or -1: PT_ERR_BAD_INPUT, PT_ERR_NO_MEMORY.
 */
int trim_streams_take(struct trim_streams *s, const struct ptc_chunk *c, const struct trim_range *range,
		      bool first_only, struct pt_error *e);

/* The TSC of the first PSB; 0: none has one. */
uint64_t trim_streams_first_tsc(const struct trim_streams *s);

/* Sets the cuts, when all chunks were taken. *ret: the first TSC in them and the last; UINT64_MAX: up
 * to the end. False: nothing is left. */
bool trim_streams_cut(struct trim_streams *s, struct trim_range *ret);

/*
 * Writes what of a PTC_AUX chunk is within its stream's cut. 0, or -1: the writer's errors, PT_ERR_BAD_INPUT.
 */
int trim_streams_copy(const struct trim_streams *s, struct ptc_writer *w, const struct ptc_chunk *c,
		      struct pt_error *e);

#endif
