/*
 * call_sums.h - calls that are not written, summed up by call path and thread (schema/records.h, "Detail").
 *
 * Below call_stacks.h, which adds each call that has returned, in whatever thread it runs: each shard has sums
 * of its own. Memory grows with call paths and threads, and not with time.
 */
#ifndef DECODE_OUTPUT_CALL_SUMS_H
#define DECODE_OUTPUT_CALL_SUMS_H

#include <stdbool.h>

#include "decode/output/call_paths.h"
#include "decode/output/definitions.h"

struct pt_call_sums;

struct pt_call_sums *pt_call_sums_create(void);	   /* NULL: no memory */
void pt_call_sums_destroy(struct pt_call_sums *s); /* NULL is fine */

/* The call's path has that id (call_paths.h; 0 unknown). False: no memory. */
bool pt_call_sums_add(struct pt_call_sums *s, const struct ptr_call *call, uint32_t id);

/* Writes the sums of all `count`, in the order of call paths' numbers, which all have one by now, and of
 * threads. Once: they are not to be added to after that. A failure is kept in m. */
void pt_call_sums_put(struct pt_call_sums *const *all, unsigned count, const struct pt_call_paths *paths,
		      struct pt_emit *m);

#endif
