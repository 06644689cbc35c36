/*
 * aux_sample.h - the AUX data of samples (PERF_SAMPLE_AUX) as a stream. Each sample has the last bytes of the
 * trace before it; what it has in common with the sample before it is put once.
 *
 * Two samples join where the end of one is the beginning of the next and a PSB with its TSC lies in it: equal
 * bytes without one may be a loop's. Else there is a gap between them, of unknown length; AUX_SAMPLE_GAP
 * bytes stand for it.
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
 * Adds the next sample's bytes, n at most UINT16_MAX. *ret_known: how many of the first bytes the stream has
 * already; the others belong to *ret_offset (none are left when all are known). 0, or -1: PT_ERR_NO_MEMORY.
 */
int aux_sample_next(struct aux_sample *s, const uint8_t *bytes, size_t n, size_t *ret_known,
		    uint64_t *ret_offset, struct pt_error *e);
void aux_sample_deinit(struct aux_sample *s);

/*
 * Whether a PSB with its TSC is among the bytes: then they are from one place of a trace, and from no other.
 */
bool aux_sample_has_time(const uint8_t *bytes, size_t n);

#endif
