/*
 * records_encode.h - the bytes of records (records.h, "Bytes"): numbers, differences, and the two types of
 * which there are millions. Who calls has made room.
 *
 * Private to the writer: records_write.c; and records_calls.c, which encodes before, in another thread.
 */
#ifndef SCHEMA_RECORDS_ENCODE_H
#define SCHEMA_RECORDS_ENCODE_H

#include "schema/records_format.h"

/* What a record is a difference to; 0 at a block's begin. */
struct ptr_previous {
	uint64_t tsc; /* the last RUN's */
	uint64_t ip;
	uint32_t slice; /* the last RUN's */
	struct ptr_previous_call call;
};

enum { PTR_RUN_BYTES_MAX = 46, PTR_CALL_BYTES_MAX = 97 };

static inline uint8_t *put_z(uint8_t *p, int64_t v)
{
	return pt_leb128_put(p, pt_zigzag((uint64_t)v));
}

/* A count that may be unknown. */
static inline uint8_t *put_count(uint8_t *p, uint64_t v)
{
	return pt_leb128_put(p, v + 1);
}

static inline uint8_t *put_tsc(const struct ptr_previous *previous, uint8_t *p, uint64_t tsc)
{
	return pt_leb128_put(p, pt_zigzag(tsc - previous->tsc));
}

static inline uint8_t *put_run(struct ptr_previous *previous, uint8_t *begin, const struct ptr_run *r)
{
	uint8_t *p = begin + 1, flags = (uint8_t)(PTR_RUN + r->timing);

	if (r->slice != previous->slice) {
		flags |= PTR_RUN_SLICE;
		p = pt_leb128_put(p, r->slice);
		previous->slice = r->slice;
	}
	if (r->tsc != previous->tsc) {
		flags |= PTR_RUN_TSC;
		p = put_tsc(previous, p, r->tsc);
		previous->tsc = r->tsc;
	}
	if (r->repeats != 1) {
		flags |= PTR_RUN_REPEATS;
		p = pt_leb128_put(p, r->repeats);
	}
	if (r->cyc_count != PTR_UNKNOWN) {
		flags |= PTR_RUN_CYC;
		p = pt_leb128_put(p, r->cyc_count);
		p = pt_leb128_put(p, r->insn_count);
	}
	*begin = flags;
	return pt_leb128_put(p, r->path);
}

/* Of a CALL, after its first byte, what comes before its call path. from_zero: the differences are not to the
 * CALL before it. */
static inline uint8_t *put_call_thread(struct ptr_previous_call *previous, uint8_t *p,
				       const struct ptr_call *r, bool from_zero)
{
	uint64_t flags = (uint64_t)r->flags << PTR_CALL_SHIFT;

	if (from_zero) {
		*previous = (struct ptr_previous_call){0};
		flags |= PTR_CALL_FROM_ZERO;
	}
	if (r->thread != previous->thread || r->stack != previous->stack) {
		p = pt_leb128_put(p, flags | PTR_CALL_STACK);
		p = pt_leb128_put(p, r->thread);
		p = pt_leb128_put(p, r->stack);
		previous->thread = r->thread;
		previous->stack = r->stack;
		return p;
	}
	return pt_leb128_put(p, flags);
}

/* What comes after its call path: when it returned, and how many TSC ticks it took; where. */
static inline uint8_t *put_call_return(struct ptr_previous_call *previous, uint8_t *p,
				       const struct ptr_call *r, uint64_t elapsed)
{
	p = pt_leb128_put(p, pt_zigzag(r->return_tsc - previous->return_tsc));
	p = pt_leb128_put(p, pt_zigzag(elapsed));
	p = pt_leb128_put(p, pt_zigzag(r->return_branch - previous->return_branch));
	previous->return_tsc = r->return_tsc;
	previous->return_branch = r->return_branch;
	return p;
}

static inline uint8_t *put_call_rest(struct ptr_previous_call *previous, uint8_t *p, const struct ptr_call *r)
{
	p = put_call_return(previous, p, r, r->return_tsc - r->call_tsc);
	p = pt_leb128_put(p, pt_zigzag(r->return_branch - r->call_branch));
	p = pt_leb128_put(p, r->branch_count);
	p = pt_leb128_put(p, r->insn_count);
	p = put_count(p, r->cyc_count);
	return pt_leb128_put(p, r->depth);
}

#endif
