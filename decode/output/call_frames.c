/* call_frames.c - see call_frames.h. */
#include "decode/output/call_frames.h"

#include <stdlib.h>
#include <string.h>

void pt_frames_deinit(struct pt_frames *f)
{
	free(f->frames);
	*f = (struct pt_frames){0};
}

void pt_frames_forget_call_paths(struct pt_frames *f)
{
	for (uint32_t i = 0; i < f->room; i++)
		f->frames[i].asked = false;
}

/* ---- Pushing ---------------------------------------------------------------------------------------- */

/* Room for a frame more. False: no memory. */
static bool grow(struct pt_frames *f)
{
	uint32_t room = f->room ? f->room * 2 : 4;
	struct pt_frame *frames;

	if (room > PT_FRAMES_MAX) { /* endless recursion: the bottom half is dropped */
		uint32_t keep = f->depth / 2;

		memmove(f->frames, f->frames + (f->depth - keep), keep * sizeof *f->frames);
		f->dropped += f->depth - keep;
		f->depth = keep;
		return true;
	}
	frames = realloc(f->frames, room * sizeof *frames);
	if (!frames)
		return false;
	memset(frames + f->room, 0, (room - f->room) * sizeof *frames);
	f->frames = frames;
	f->room = room;
	return true;
}

/* What was called last from here is often called again. */
static void find_call_path(struct pt_frame *frame, const struct pt_call_begin *begin, struct pt_call_sink *to)
{
	const struct pt_callee *callee = &begin->callee;

	if (!frame->asked || frame->parent != begin->parent || frame->place != callee->place ||
	    frame->ip != callee->ip) {
		frame->call_path = pt_call_path(to->paths, begin->parent, callee, to->added);
		to->no_memory |= !frame->call_path;
		frame->asked = true;
		frame->number = 0;
		frame->parent = begin->parent;
		frame->place = callee->place;
		frame->ip = callee->ip;
	}
	if (!frame->number)
		frame->number = pt_call_path_number(to->paths, frame->call_path);
}

struct pt_frame *pt_frames_push(struct pt_frames *f, const struct pt_call_begin *begin,
				const struct pt_call_now *now, struct pt_call_sink *to)
{
	struct pt_frame *frame;

	if (f->depth == f->room && !grow(f)) {
		to->no_memory = true;
		return NULL;
	}
	frame = &f->frames[f->depth++];
	find_call_path(frame, begin, to);
	frame->ret = begin->ret;
	frame->tsc = now->tsc;
	frame->branch = now->branch;
	frame->insns = now->insns;
	frame->branches = now->branches;
	frame->cycles = f->cycles;
	frame->flags = (uint16_t)begin->flags;
	frame->entered = false;
	return frame;
}

/* ---- Popping ---------------------------------------------------------------------------------------- */

/* False: no memory. */
static bool add(struct pt_call_sink *to, const struct ptr_call *r, uint32_t id)
{
	if (to->sums && !(r->return_tsc >= to->from_tsc && r->return_tsc < to->until_tsc))
		return pt_call_sums_add(to->sums, r, id);
	return ptr_calls_add(to->calls, r, r->call_path ? 0 : id) == 0;
}

static void pop(struct pt_frames *f, uint32_t flags, const struct pt_call_now *now, struct pt_call_sink *to)
{
	const struct pt_frame *frame = &f->frames[--f->depth];
	const struct ptr_call r = {.thread = f->thread,
				   .stack = f->stack,
				   .call_path = frame->number,
				   .call_tsc = frame->tsc,
				   .return_tsc = now->tsc,
				   .call_branch = frame->branch,
				   .return_branch = now->branch,
				   .branch_count = now->branches - frame->branches,
				   .insn_count = now->insns - frame->insns,
				   .cyc_count = f->has_cyc ? f->cycles - frame->cycles : PTR_UNKNOWN,
				   .flags = frame->flags | flags,
				   .depth = f->dropped + f->depth};

	if (!f->depth)
		f->dropped = 0;
	to->no_memory |= !add(to, &r, frame->call_path == PT_NO_CALL_PATH ? 0 : frame->call_path);
}

bool pt_frames_return(struct pt_frames *f, uint64_t ret, const struct pt_call_now *now,
		      struct pt_call_sink *to)
{
	uint32_t i = f->depth;

	while (i > 0 && f->frames[i - 1].ret != ret)
		i--;
	if (i == 0)
		return false;
	/* Tail calls return together: the outermost frame of this return address that is in a row. */
	while (i > 1 && f->frames[i - 1].flags & PTR_CALL_NON_CALL && f->frames[i - 2].ret == ret)
		i--;
	while (f->depth >= i)
		pop(f, f->frames[f->depth - 1].ret == ret ? 0 : PTR_CALL_NO_RETURN, now, to);
	return true;
}

void pt_frames_cut(struct pt_frames *f, uint32_t depth, bool returns, const struct pt_call_now *now,
		   struct pt_call_sink *to)
{
	while (f->depth > depth)
		pop(f, returns && f->depth == depth + 1 ? 0 : PTR_CALL_NO_RETURN, now, to);
}
