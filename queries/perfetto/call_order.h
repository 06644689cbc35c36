/*
 * call_order.h - calls, put in in any order, come out thread by thread in the order of calling.
 *
 * A merge sort (Knuth, TAOCP vol. 3, 5.4) in an unnamed file: memory is bounded, however many there are.
 */
#ifndef QUERIES_PERFETTO_CALL_ORDER_H
#define QUERIES_PERFETTO_CALL_ORDER_H

#include <stdint.h>

#include "schema/error.h"

/* Branches: UNPACK_UNKNOWN, or what distinguishes calls of the same time: of those that were called with
 * the same branch the one that returned later is first. */
struct ordered_call {
	uint64_t track; /* of its thread */
	int64_t call_tsc, return_tsc, call_branch, return_branch;
	int64_t insn_count, cyc_count;
	uint32_t name; /* the caller's own */
};

struct call_order;

/* NULL: PT_ERR_NO_MEMORY. It takes 34 MB, and 16 KB for each half million of calls. */
struct call_order *call_order_create(struct pt_error *e);
void call_order_destroy(struct call_order *o); /* NULL is fine */

/* Takes a copy. 0, or -1: PT_ERR_IO (no file in $TMPDIR, /var/tmp without one; it is full),
 * PT_ERR_NO_MEMORY. */
int call_order_add(struct call_order *o, const struct ordered_call *call, struct pt_error *e);

/* Once, after the last one and before the first call_order_next(). 0, or -1: PT_ERR_IO, PT_ERR_NO_MEMORY. */
int call_order_sort(struct call_order *o, struct pt_error *e);
/* The next one, valid until the one after it. *ret NULL: that was all. 0, or -1: PT_ERR_IO. */
int call_order_next(struct call_order *o, const struct ordered_call **ret, struct pt_error *e);

#endif
