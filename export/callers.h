/*
 * callers.h - whose child a call is, while calls come in the order of returning, which is before their callers do.
 *
 * A call's caller is the thread's next call that returns at one depth less. All calls of one depth that wait for the same
 * caller share a place, which they get at once and in which the caller's number stands when it has come. Places are in
 * a scratch file, but for those used last: memory stays flat.
 */
#ifndef EXPORT_CALLERS_H
#define EXPORT_CALLERS_H

#include <stdint.h>

#include "schema/error.h"

struct callers;

/* scratch: a file of the caller's. NULL: PT_ERR_NO_MEMORY. */
struct callers *callers_create(int scratch, struct pt_error *e);
void callers_destroy(struct callers *c);
/* The call `number` (>= 1) of that depth returned: it is the caller of what waits one below. 0 or -1. */
int callers_returned(struct callers *c, uint32_t thread, uint32_t depth, uint64_t number, struct pt_error *e);
/* The place for the caller of a call of that depth; after callers_returned() for it. 0: it has none. 0 or -1. */
int callers_wait(struct callers *c, uint32_t thread, uint32_t depth, uint64_t *ret_place, struct pt_error *e);
/* After the last: the number in the place, 0 when no caller has come. 0 or -1. */
int callers_get(struct callers *c, uint64_t place, uint64_t *ret_number, struct pt_error *e);

#endif
