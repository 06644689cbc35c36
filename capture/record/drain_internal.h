/*
 * drain_internal.h - what the drain's files share: drain.c (rounds), drain_aux.c (AUX data), drain_records.c,
 * drain_spill.c, drain_threads.c.
 */
#ifndef CAPTURE_RECORD_DRAIN_INTERNAL_H
#define CAPTURE_RECORD_DRAIN_INTERNAL_H

#include "capture/record/drain.h"

/* ---- drain_aux.c ---- */

/* Whether rounds read its AUX data. */
bool hw_drain_has_aux(const struct hw_drain_ring *r);

/*
 * The AUX data that was there when the round began may be taken, and what the round before released has all
 * its records.
 */
void hw_drain_release(struct hw_drain_ring *r);

/*
 * Takes some of the ring's released AUX data, a chunk at most. aux_writer NULL: by the drain's writer itself.
 * By one thread at a time for each ring. 1: there may be more; 0: there is no more; -1: the writer's errors.
 */
int hw_drain_take(struct hw_drain *d, struct hw_drain_ring *r, struct ptc_aux_writer *aux_writer,
		  struct pt_error *e);

/* ---- drain_records.c ---- */

/* Fetches the records of all rings, then puts them, and notes what they mean for their rings. 0, or -1. */
int hw_drain_records(struct hw_drain *d, struct pt_error *e);

/*
 * Puts the AUX data of the samples of the round before; this round's become those of the round before. 0, or
 * -1.
 */
int hw_drain_samples(struct hw_drain *d, struct pt_error *e);

/* ---- drain_spill.c ---- */

/*
 * Moves a ring's records to the end of d->raw, r->raw_bytes: those copied out of the ring, then those that are
 * in it. 0, or -1.
 */
int hw_drain_fetch_records(struct hw_drain *d, struct hw_drain_ring *r, struct pt_error *e);

/*
 * AUX bytes from r->taken on, as many as are contiguous, at most max; hw_drain_aux_taken() must follow, when
 * the writer has them or the first of them. r->lock is held.
 */
uint64_t hw_drain_next_aux(struct hw_drain_ring *r, uint64_t max, const uint8_t **ret);
void hw_drain_aux_taken(struct hw_drain *d, struct hw_drain_ring *r, uint64_t n);

/* Copies out of the ring what would soon be lost; hw_drain_spill() of one ring. */
void hw_drain_spill_ring(struct hw_drain *d, struct hw_drain_ring *r);

/* Starts the events again that lost AUX data has switched off, of the rings that have room. */
void hw_drain_restart(struct hw_drain *d);

/* Frees what was copied out of the rings. */
void hw_drain_spill_deinit(struct hw_drain *d);

#endif
