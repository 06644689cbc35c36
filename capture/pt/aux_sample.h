/*
 * aux_sample.h - the AUX data of samples (PERF_SAMPLE_AUX), each the last bytes of the trace before it, as a
 * stream: what a sample has in common with the one before it is put once.
 *
 * Two samples join where the end of one is the beginning of the next and a PSB with its TSC lies in it: bytes
 * that are alike without may be a loop's. Else there is a gap between them of which nobody knows how long it
 * is: AUX_SAMPLE_GAP bytes stand for it.
 */
#ifndef CAPTURE_PT_AUX_SAMPLE_H
#define CAPTURE_PT_AUX_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/error.h"

#define AUX_SAMPLE_GAP 16 /* bytes of the stream's offset */

/* Zeroed: no sample yet. */
struct aux_sample {
	uint8_t *last; /* the last sample's bytes */
	size_t last_bytes, last_room;
	uint64_t end; /* of the stream */
};

/*
 * The next sample's bytes, n at most UINT16_MAX. *ret_known: so many of the first are in the stream already;
 * the others go to *ret_offset (none are left when all are known). 0, or -1: PT_ERR_NO_MEMORY.
 */
int aux_sample_next(struct aux_sample *s, const uint8_t *bytes, size_t n, size_t *ret_known,
		    uint64_t *ret_offset, struct pt_error *e);
void aux_sample_deinit(struct aux_sample *s);

/*
 * Whether a PSB with its TSC is among the bytes: they are from one place of a trace then, and from no other.
 */
bool aux_sample_has_time(const uint8_t *bytes, size_t n);

#endif
