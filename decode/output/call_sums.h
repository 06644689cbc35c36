/*
 * call_sums.h - calls that are not written, summed up by call path and thread (schema/records.h, "Detail").
 *
 * Below call_stacks.h, which adds each call that has returned, in its own thread if there is one. Memory grows
 * with call paths and threads, and not with time.
 */
#ifndef DECODE_OUTPUT_CALL_SUMS_H
#define DECODE_OUTPUT_CALL_SUMS_H

#include <stdbool.h>

#include "decode/output/definitions.h"

struct pt_call_sums;

struct pt_call_sums *pt_call_sums_create(void);	   /* NULL: no memory */
void pt_call_sums_destroy(struct pt_call_sums *s); /* NULL is fine */

/* False: no memory. */
bool pt_call_sums_add(struct pt_call_sums *s, const struct ptr_call *call);

/* Writes the sums: of each call path those of the thread that had it first, then the other threads'. A failure
 * is kept in m. */
void pt_call_sums_put(const struct pt_call_sums *s, struct pt_emit *m);

#endif
