/*
 * aux_tail.h - the end of a stream's AUX data, from its last PSB on. A decoder begins at a PSB (SDM vol. 3,
 * "Decoder Synchronization (PSB+)"), so this is what the next container of a capture begins with
 * (--switch-output).
 */
#ifndef CAPTURE_RECORD_AUX_TAIL_H
#define CAPTURE_RECORD_AUX_TAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/record/byte_buffer.h"
#include "schema/container.h"

/* A longer one is not kept. psb_period asks for 2 KB to 64 MB; perf's own is 16 KB. */
#define HW_AUX_TAIL_MAX ((size_t)4 << 20)

/* Zeroed: nothing. */
struct hw_aux_tail {
	/* from a PSB on; none: no PSB is known, or it was too long, or data was lost after it */
	struct hw_bytes bytes;
	uint64_t end;	   /* position in the stream after the last byte that was added */
	uint64_t since_ns; /* perf's clock: the PSB is not older; 0 unknown */
};

/*
 * Adds bytes that follow; others than those at t->end begin anew. not_before_ns: perf's clock, none of the
 * bytes is older. Without memory nothing is kept.
 */
void hw_aux_tail_add(struct hw_aux_tail *t, const struct ptc_aux *aux, uint64_t not_before_ns);
/* Frees its bytes; the position is kept. */
void hw_aux_tail_drop(struct hw_aux_tail *t);
void hw_aux_tail_deinit(struct hw_aux_tail *t);

#endif
