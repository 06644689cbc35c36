/*
 * inner_calls.h - calls that begin and return in one run of a path. What they are follows from the path's edges
 * and from the call path that they are made from: call stacks (call_stacks.h) need no frames for them, and
 * call_memos.h remembers them.
 *
 * They are half of a compiler's calls, and three quarters of an interpreter's.
 */
#ifndef DECODE_OUTPUT_INNER_CALLS_H
#define DECODE_OUTPUT_INNER_CALLS_H

#include <stdint.h>

#include "decode/code/graph.h"
#include "decode/output/call_frames.h"

/* Of a path whose edges have roles, bit i: edge i is of a call that returns in the path, with nothing in it but
 * such calls and their tail calls. Of paths of more than 65,535 instructions (pt_path_is_wide()) none is. */
uint32_t pt_inner_calls_find(const struct pt_graph *graph, const struct pt_path *path);

/* Inner calls that follow each other in a path: the first one's edge, and that after the last one's return. */
struct pt_inner_at {
	uint32_t first, calls; /* as in struct pt_path */
	uint32_t begin, end;
};

/* The end of those that begin there: the first edge with a role that is of no inner call comes after them. */
static inline uint32_t pt_inner_calls_end(uint32_t calls, uint32_t inner, uint32_t begin)
{
	uint32_t others = (calls & ~inner) >> begin << begin;
	uint32_t before = others ? (others & -others) - 1 : ~0u;

	return 32 - (uint32_t)__builtin_clz(inner & before);
}

struct pt_inner_call {
	uint32_t call_path; /* id, PT_NO_CALL_PATH */
	uint32_t insns;
	uint8_t returns_at; /* its last edge, counted from `begin` */
	uint8_t branches;   /* edges in it */
	uint8_t depth;	    /* 0: called from `parent` */
	uint8_t flags;	    /* PTR_CALL_* */
};

/* In the order of returning. */
struct pt_inner_calls {
	struct pt_inner_call calls[PTR_PATH_EDGES];
	uint32_t count;
};

/* The calls, made from the call path `parent`. Call paths are asked for in the order of calls (pt_call_path()).
 * False: no memory. */
bool pt_inner_calls_make(const struct pt_graph *graph, const struct pt_inner_at *at, uint32_t parent,
			 const struct pt_call_sink *to, struct pt_inner_calls *ret);

#endif
