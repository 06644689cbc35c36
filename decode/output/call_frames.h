/*
 * call_frames.h - the frames of a thread's call stack: they are pushed and popped, which makes calls.
 *
 * Private to call_stacks.c, which knows what pushes and pops.
 */
#ifndef DECODE_OUTPUT_CALL_FRAMES_H
#define DECODE_OUTPUT_CALL_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/output/call_paths.h"
#include "decode/output/call_sums.h"
#include "schema/records.h"

/* Of deeper recursion the bottom is dropped: those calls are not reported, and do not return. */
#define PT_FRAMES_MAX 16384

struct pt_frame {
	uint64_t ret; /* where a return leads to; 0: the bottom */
	uint64_t tsc, branch, insns, branches, cycles;
	uint32_t call_path; /* its id, or PT_NO_CALL_PATH */
	uint32_t number;    /* the call path's, 0 if it was not known yet */
	uint32_t parent, place;
	uint64_t ip;	     /* what call_path was looked up by */
	uint32_t ret_symbol; /* entered: of what it returns to, 0 none */
	uint16_t flags;	     /* PTR_CALL_* */
	bool entered;	     /* by a system call, interrupt or exception */
	bool asked;	     /* for call_path, since call paths may have got other ids */
};

/* Zeroed at first. */
struct pt_frames {
	struct pt_frame *frames;
	uint32_t depth, room;
	uint32_t dropped; /* frames below the first, until that one returns */
	/* Of the calls that are made. */
	uint32_t thread, stack; /* as in struct ptr_call */
	uint64_t cycles;	/* executed so far: a frame's are these less those when it was pushed */
	bool has_cyc;
};

/* Where calls go to. */
struct pt_call_sink {
	struct pt_call_paths *paths;
	struct pt_new_call_paths *added; /* call paths without number */
	struct ptr_calls *calls;
	struct pt_call_sums *sums;    /* not NULL: calls that return before from_tsc or from until_tsc on */
	uint64_t from_tsc, until_tsc; /* are added to these */
	bool no_memory;		      /* then and ever after */
};

/* Where in the trace. */
struct pt_call_now {
	uint64_t tsc, branch, insns, branches;
};

/* What is pushed. */
struct pt_call_begin {
	uint64_t ret;	 /* where it returns to, 0: a bottom */
	uint32_t parent; /* id of the caller's call path, 0 none */
	uint32_t flags;	 /* PTR_CALL_* */
	struct pt_callee callee;
};

/* NULL: no memory. */
struct pt_frame *pt_frames_push(struct pt_frames *f, const struct pt_call_begin *begin,
				const struct pt_call_now *now, struct pt_call_sink *to);
/* Back to the frame that returns to `ret`. False when there is none. */
bool pt_frames_return(struct pt_frames *f, uint64_t ret, const struct pt_call_now *now,
		      struct pt_call_sink *to);
/* So many frames are left; those above have no return, but for the lowest of them if `returns`. */
void pt_frames_cut(struct pt_frames *f, uint32_t depth, bool returns, const struct pt_call_now *now,
		   struct pt_call_sink *to);
/* The top's call path; 0: there is no frame. */
static inline uint32_t pt_frames_call_path(const struct pt_frames *f)
{
	return f->depth ? f->frames[f->depth - 1].call_path : 0;
}
/* Call paths may have other ids from now on: those of frames that are not pushed are asked for again. */
void pt_frames_forget_call_paths(struct pt_frames *f);
void pt_frames_deinit(struct pt_frames *f);

#endif
