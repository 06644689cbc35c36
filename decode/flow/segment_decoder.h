/*
 * segment_decoder.h - a thread's decoder of segments: segment.c runs it, segment_begin.c finds where segments
 * begin, segment_answers.c answers its flow. Private to these; segment.h is the contract.
 */
#ifndef DECODE_FLOW_SEGMENT_DECODER_H
#define DECODE_FLOW_SEGMENT_DECODER_H

#include "decode/flow/segment_log.h"

struct segment_known_code {
	struct img_space *space;
	struct pt_code *code;
	uint64_t task; /* the last one that used it */
};

struct pt_segment_decoder {
	struct pt_segment_config config;
	struct pt_graph graph;
	struct segment_known_code *codes;
	size_t code_count, code_room;
	uint64_t task_count; /* so far, with the one at hand */
	/* The task at hand. */
	const struct pt_segment_task *task;
	struct pt_segment *segment; /* the last one */
	struct pt_flow *flow;
	/* The environment was needed, first by the packet at asked_offset: what comes up to the next segment's
	 * begin is the flow's own to decode, and is not logged. Also before the first segment. */
	bool asked;
	uint64_t asked_offset;
	bool lost;	     /* it has asked for code in the host that it does not know: only a PSB helps */
	bool ended;	     /* no memory: what comes cannot be decoded here */
	bool user_entered;   /* the segment has a USER entry */
	bool begun, cyc_run; /* as in struct segment_checkpoint */
	size_t most_runs;    /* of a segment of the last task: the next ones begin with room for them */
};

/* ---- Where segments begin: segment_begin.c ---------------------------------------------------------- */

/* The task's first segment begins. Returns where; NULL: there is none. */
const uint8_t *pt_segment_begin_task(struct pt_segment_decoder *d);
/* Passes what is the flow's own, packet by packet: what asks, at asked_offset, and up to where another segment
 * can begin. Begins that. Returns where; NULL: there is none. */
const uint8_t *pt_segment_begin_next(struct pt_segment_decoder *d, const uint8_t *at);

/* ---- What its flow asks: segment_answers.c ---------------------------------------------------------- */

/* What the flow of a decoder, which is its arg, asks and reports. */
extern const struct pt_flow_env pt_segment_env;
extern const struct pt_flow_output pt_segment_output;

/* The segment has made use of the user's code before the environment was asked whose it is: where tracing
 * stops with a branch from the kernel to user space. */
static inline bool pt_segment_user_unasked(const struct pt_segment_decoder *d)
{
	return d->flow->user_wanted && d->segment && d->segment->in_kernel && !d->user_entered;
}

/* ---- Its code: segment_decoder.c -------------------------------------------------------------------- */

/* The space's code in the decoder's graph, as the space is now; NULL without a space. If that cannot be, the
 * decoder has ended, and NULL. */
struct pt_code *pt_segment_code_of(struct pt_segment_decoder *d, struct img_space *space);

#endif
