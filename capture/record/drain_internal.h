/*
 * drain_internal.h - what the drain's files share: drain.c (rounds, AUX data), drain_records.c,
 * drain_spill.c.
 */
#ifndef CAPTURE_RECORD_DRAIN_INTERNAL_H
#define CAPTURE_RECORD_DRAIN_INTERNAL_H

#include "capture/record/drain.h"

/* ---- drain_records.c ---- */

/* Puts a ring's records, and notes what they mean for the ring. 0, or -1. */
int hw_drain_records(struct hw_drain *d, struct hw_drain_ring *r, struct pt_error *e);

/*
 * Puts the AUX data of the samples of the round before; this round's become those of the round before. 0, or
 * -1.
 */
int hw_drain_samples(struct hw_drain *d, struct pt_error *e);

/* ---- drain_spill.c ---- */

/*
 * Moves a ring's records to d->raw, which is empty: those copied out of the ring, then those that are in it.
 * 0, or -1.
 */
int hw_drain_fetch_records(struct hw_drain *d, struct hw_drain_ring *r, struct pt_error *e);

/*
 * AUX bytes from r->taken on, as many as are contiguous, at most max; hw_drain_aux_taken() must follow, when
 * they or the first of them are in the container.
 */
uint64_t hw_drain_next_aux(struct hw_drain *d, struct hw_drain_ring *r, uint64_t max, const uint8_t **ret);
void hw_drain_aux_taken(struct hw_drain *d, struct hw_drain_ring *r, uint64_t n);

/* Starts the events again that lost AUX data has switched off, of the rings that have room. */
void hw_drain_restart(struct hw_drain *d);

/* Frees what was copied out of the ring. */
void hw_drain_spill_deinit(struct hw_drain_ring *r);

#endif
