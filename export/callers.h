/*
 * callers.h - which call is the caller of which. Calls come in the order of returning, callees before
 * their callers.
 *
 * A call's caller is the next call of its stack (struct ptr_call) that returns at one depth less. All
 * calls of one depth that wait for the same caller share a place. They get it at once, and the caller's
 * number stands in it when the caller has returned. Places are in a scratch file but for those used
 * last, so that memory is bounded.
 */
#ifndef EXPORT_CALLERS_H
#define EXPORT_CALLERS_H

#include <stdint.h>

#include "schema/error.h"

struct callers;

/* scratch: a file of the caller's. NULL: PT_ERR_NO_MEMORY. */
struct callers *callers_create(int scratch, struct pt_error *e);
void callers_destroy(struct callers *c); /* NULL is fine */

/*
 * Of each call first callers_returned(), then callers_wait(). Numbers are >= 1; depth 0 is the bottom
 * of the stack. Both return 0, or -1: PT_ERR_IO, PT_ERR_NO_MEMORY.
 */
/* The call `number` returned: it is the caller of the calls of its stack that wait one level deeper. */
int callers_returned(struct callers *c, uint32_t stack, uint32_t depth, uint64_t number, struct pt_error *e);
/* The place for the caller of a call of that depth; 0 for depth 0, which has none. */
int callers_wait(struct callers *c, uint32_t stack, uint32_t depth, uint64_t *ret_place, struct pt_error *e);

/* After the last call: the number in the place; 0 when no caller has returned, or for place 0. 0 or -1. */
int callers_get(struct callers *c, uint64_t place, uint64_t *ret_number, struct pt_error *e);

#endif
