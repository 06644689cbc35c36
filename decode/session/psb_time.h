/*
 * psb_time.h - the host TSC of the PSB+ groups in PT bytes, found without decoding what lies between them.
 *
 * A PSB+ counts if it is whole and has a TSC packet of the host. In a guest (PIP with NR) the TSC packet is
 * the guest's, and the PSB+ is passed over. Pure: no I/O.
 */
#ifndef DECODE_SESSION_PSB_TIME_H
#define DECODE_SESSION_PSB_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The offset in bytes of the last PSB that is not later than tsc; 0 if there is none. *ret_later: a PSB
 * later than tsc follows, so the time tsc lies in these bytes or before them.
 */
size_t pt_psb_time_last(const uint8_t *bytes, size_t size, uint64_t tsc, bool *ret_later);

/* The TSC of the first PSB+ that counts; UINT64_MAX if there is none. */
uint64_t pt_psb_time_first(const uint8_t *bytes, size_t size);

/* More bytes than a PSB+ has. */
#define PT_PSB_PLUS_BYTES 256

/* Looks for the first PSB+ in bytes that come in pieces, without gaps: it may begin in one piece and end in
 * the next. Zeroed before the first piece. */
struct pt_first_psb {
	bool found;   /* in a piece that has come */
	size_t count; /* of last: the bytes that came last, in which the PSB+ may begin */
	uint8_t last[PT_PSB_PLUS_BYTES];
};

/* The next piece. True when the first PSB+ is whole now, is in a guest (PIP with NR) and has a TSC packet:
 * then f->last has the bytes before the piece. */
bool pt_first_psb_in_guest(struct pt_first_psb *f, const uint8_t *bytes, size_t size);

#endif
