/* call_stacks.c - see call_stacks.h. */
#include "decode/output/call_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "decode/output/call_frames.h"
#include "decode/output/call_memos.h"
#include "decode/output/call_roles.h"
#include "schema/apart.h"
#include "schema/array.h"

#define EXECS_UNKNOWN UINT32_MAX

_Static_assert(sizeof(struct pt_call_step) == 56, "a cache line or less: there are millions");

struct pt_call_stack {
	const struct pt_task *task;
	struct pt_frames frames;    /* its `stack` is the number, its `thread` who runs */
	const struct pt_task *host; /* of a guest's: the host's thread that ran it last, NULL unknown */
	/* Of the process, when it ran last: an exec makes another program of it. EXECS_UNKNOWN: it begins
	 * anew. */
	uint32_t execs;
	uint64_t resume; /* after a trace end: where it should go on */
	bool replaced;	 /* by an exec: of its frames only those in the kernel are still to return */
	uint64_t tsc;	 /* at its last path, or when it began to run */
	/* Executed so far: by this thread, whatever else ran on its CPU. */
	uint64_t insns, branches;
	uint64_t seen_cycles; /* of the stream, what is in the frames' cycles already */
	bool listed;	      /* in the shard's list */
};

struct pt_call_stacks {
	struct pt_call_stacks_config config;
	struct pt_call_stack **stacks; /* that have run, by number */
	size_t stack_count, stack_room;
	struct pt_call_memos *memos; /* NULL with sums */
	bool guests;		     /* some are of guests */
	struct pt_call_sink to;	     /* `calls` and `added` are the records' of the steps at hand */
	struct pt_call_who who;	     /* of the step at hand */
};

struct pt_call_stacks *pt_call_stacks_create(const struct pt_call_stacks_config *config)
{
	struct pt_call_stacks *c = pt_alloc_apart(sizeof *c);

	if (!c)
		return NULL;
	c->config = *config;
	c->to.paths = config->paths;
	c->to.sums = config->sums;
	c->memos = config->sums ? NULL : pt_call_memos_create();
	if (config->sums || c->memos)
		return c;
	pt_call_stacks_destroy(c);
	return NULL;
}

void pt_call_stacks_destroy(struct pt_call_stacks *c)
{
	if (!c)
		return;
	pt_call_memos_destroy(c->memos);
	free(c->stacks);
	free(c);
}

void pt_call_stacks_forget_paths(struct pt_call_stacks *c)
{
	if (c->memos)
		pt_call_memos_forget(c->memos);
}

void pt_call_stacks_forget_call_paths(struct pt_call_stacks *c)
{
	pt_call_stacks_forget_paths(c);
	for (size_t i = 0; i < c->stack_count; i++)
		pt_frames_forget_call_paths(&c->stacks[i]->frames);
}

void pt_call_records_deinit(struct pt_call_records *r)
{
	ptr_calls_deinit(&r->calls);
	free(r->paths.items);
}

void pt_call_records_empty(struct pt_call_records *r)
{
	ptr_calls_empty(&r->calls);
	r->paths.count = 0;
}

void pt_call_stacks_keep(struct pt_call_stacks *c, uint64_t from_tsc, uint64_t until_tsc)
{
	c->to.from_tsc = from_tsc;
	c->to.until_tsc = until_tsc;
}

/* ---- Stacks ----------------------------------------------------------------------------------------- */

struct pt_call_stack *pt_call_stack_create(const struct pt_task *task, uint32_t number)
{
	struct pt_call_stack *st = pt_alloc_apart(sizeof *st);

	if (!st)
		return NULL;
	st->task = task;
	st->execs = EXECS_UNKNOWN;
	st->frames.stack = number;
	return st;
}

void pt_call_stack_destroy(struct pt_call_stack *st)
{
	if (st)
		pt_frames_deinit(&st->frames);
	free(st);
}

/* Into the list, in the order of numbers. */
static void list(struct pt_call_stacks *c, struct pt_call_stack *st)
{
	size_t at = c->stack_count;

	if (pt_array_grow(&c->stacks, c->stack_count, &c->stack_room, NULL) < 0) {
		c->to.no_memory = true;
		return;
	}
	for (; at > 0 && c->stacks[at - 1]->frames.stack > st->frames.stack; at--)
		c->stacks[at] = c->stacks[at - 1];
	c->stacks[at] = st;
	c->stack_count++;
	st->listed = true;
	c->guests |= st->task->machine->pid != 0;
}

/* Out of the list, in which it is. */
static void unlist(struct pt_call_stacks *c, struct pt_call_stack *st)
{
	size_t at = 0;

	st->listed = false;
	while (c->stacks[at] != st)
		at++;
	c->stack_count--;
	memmove(c->stacks + at, c->stacks + at + 1, (c->stack_count - at) * sizeof(struct pt_call_stack *));
}

void pt_call_stacks_move(struct pt_call_stacks *from, struct pt_call_stacks *to, struct pt_call_stack *st)
{
	if (from->who.stack == st)
		from->who = (struct pt_call_who){0};
	if (!st->listed)
		return;
	unlist(from, st);
	list(to, st);
}

/* What a stack's bottom stands on: a guest's on the stack of the host's thread that runs it. */
static uint32_t base_path(const struct pt_call_stacks *c, const struct pt_call_stack *st)
{
	const struct pt_call_stack *host = c->who.host_stack;

	if (!st->task->machine->pid || st->task == c->who.host_task)
		return 0;
	return host ? pt_frames_call_path(&host->frames) : 0;
}

/* ret: where it returns to, 0: a bottom. */
static struct pt_frame *push(struct pt_call_stacks *c, struct pt_call_stack *st,
			     const struct pt_call_now *now, uint64_t ret, const struct pt_callee *callee,
			     uint32_t flags)
{
	const struct pt_call_begin begin = {.ret = ret,
					    .parent = st->frames.depth ? pt_frames_call_path(&st->frames)
								       : base_path(c, st),
					    .flags = flags,
					    .callee = *callee};

	return pt_frames_push(&st->frames, &begin, now, &c->to);
}

static bool unwind(struct pt_call_stacks *c, struct pt_call_stack *st, const struct pt_call_now *now,
		   uint64_t to)
{
	return pt_frames_return(&st->frames, to, now, &c->to);
}

static void unwind_all(struct pt_call_stacks *c, struct pt_call_stack *st, const struct pt_call_now *now)
{
	pt_frames_cut(&st->frames, 0, false, now, &c->to);
}

/* Of the frame on top, where it returns to. */
static uint64_t top_return(const struct pt_call_stack *st)
{
	return st->frames.frames[st->frames.depth - 1].ret;
}

/* The program that an exec has put in place begins. */
static void replace(struct pt_call_stacks *c, struct pt_call_stack *st, const struct pt_call_now *now)
{
	unwind_all(c, st, now);
	st->replaced = false;
}

static struct pt_call_now now_of(const struct pt_call_stack *st, uint64_t tsc)
{
	return (struct pt_call_now){.tsc = tsc, .insns = st->insns, .branches = st->branches};
}

static void bottom(struct pt_call_stacks *c, struct pt_call_stack *st, const struct pt_call_now *now,
		   const struct pt_callee *callee)
{
	push(c, st, now, 0, callee, PTR_CALL_NO_CALL);
}

/* ---- What edges do ---------------------------------------------------------------------------------- */

static struct pt_callee target_of(const struct pt_edge *edge)
{
	return (struct pt_callee){.ip = edge->to, .place = edge->place, .named = edge->named};
}

/* Tracing begins again: after a system call or interrupt, in a signal's handler, or after one. */
static void resumed(struct pt_call_stacks *c, struct pt_call_stack *st, const struct pt_call_now *now,
		    const struct pt_edge *edge)
{
	const struct pt_callee target = target_of(edge);

	if (st->replaced)
		replace(c, st, now);
	if (st->frames.depth == 0)
		bottom(c, st, now, &target);
	else if (edge->to != st->resume && st->resume && !unwind(c, st, now, edge->to))
		push(c, st, now, st->resume, &target, 0);
	st->resume = 0;
}

static void returned(struct pt_call_stacks *c, struct pt_call_stack *st, const struct pt_call_now *now,
		     const struct pt_edge *edge)
{
	const struct pt_callee target = target_of(edge);
	uint32_t i = st->frames.depth;

	if (unwind(c, st, now, edge->to))
		return;
	while (i > 0 && st->frames.frames[i - 1].ret == 0)
		i--;
	if (i == 0) { /* what runs now has called the bottom */
		unwind_all(c, st, now);
		bottom(c, st, now, &target);
	} else if (edge->first) {
		/* The address was put there to be jumped to: a retpoline, a signal's trampoline. */
		push(c, st, now, top_return(st), &target, PTR_CALL_NON_CALL);
	}
}

/*
 * SYSRET, IRET: what was entered last returns to where it was entered from; or to a signal's handler,
 * or next to that place (a system call that is restarted, an instruction that the kernel has
 * emulated).
 */
static void returned_from_kernel(struct pt_call_stacks *c, struct pt_call_stack *st,
				 const struct pt_call_now *now, const struct pt_edge *edge)
{
	const struct pt_callee target = target_of(edge);
	uint32_t i = st->frames.depth, ret_symbol;
	uint64_t ret;

	if (st->replaced && !(edge->to >> 63)) {
		replace(c, st, now);
		bottom(c, st, now, &target);
		return;
	}
	if (unwind(c, st, now, edge->to))
		return;
	while (i > 0 && !st->frames.frames[i - 1].entered)
		i--;
	if (i == 0) { /* it was entered before the trace */
		unwind_all(c, st, now);
		bottom(c, st, now, &target);
		return;
	}
	ret = st->frames.frames[i - 1].ret;
	ret_symbol = st->frames.frames[i - 1].ret_symbol;
	pt_frames_cut(&st->frames, i - 1, true, now, &c->to);
	if (st->frames.depth == 0) {
		bottom(c, st, now, &target);
	} else if (ret_symbol != (edge->named ? edge->place : 0)) {
		/* Into the middle of what was not called in the trace: back from a handler that was
		 * entered before it. */
		if (st->frames.depth == 1 && !edge->first)
			unwind_all(c, st, now);
		if (st->frames.depth)
			push(c, st, now, ret, &target, 0);
		else
			bottom(c, st, now, &target);
	}
}

static void enter(struct pt_call_stacks *c, struct pt_call_stack *st, const struct pt_call_now *now,
		  const struct pt_edge *edge)
{
	const struct pt_callee target = target_of(edge);
	struct pt_frame *f = push(c, st, now, edge->from + edge->bytes, &target, 0);

	if (!f)
		return;
	f->entered = true;
	f->ret_symbol = edge->from_symbol;
}

/* SYSCALL, SYSENTER and INT 80 are two bytes long; the others do not return after them. */
static uint64_t resume_ip(const struct pt_edge *edge)
{
	if (edge->kind == PTR_SYSCALL || edge->kind == PTR_INT)
		return edge->from + 2;
	return edge->kind == PTR_ASYNC ? edge->from : 0;
}

static void apply(struct pt_call_stacks *c, struct pt_call_stack *st, const struct pt_call_now *now,
		  const struct pt_edge *edge)
{
	const struct pt_callee target = target_of(edge);

	switch ((enum pt_call_role)edge->role) {
	case PT_ROLE_CALL: push(c, st, now, edge->from + edge->bytes, &target, 0); break;
	case PT_ROLE_RET: returned(c, st, now, edge); break;
	case PT_ROLE_ENTER: enter(c, st, now, edge); break;
	case PT_ROLE_LEAVE: returned_from_kernel(c, st, now, edge); break;
	case PT_ROLE_VM_ENTRY_OR_EXIT:
		if (st->frames.depth == 0)
			bottom(c, st, now, &target);
		break;
	case PT_ROLE_TAIL:
		if (st->frames.depth)
			push(c, st, now, top_return(st), &target, PTR_CALL_NON_CALL);
		break;
	case PT_ROLE_BEGIN: resumed(c, st, now, edge); break;
	case PT_ROLE_END: st->resume = resume_ip(edge); break;
	default: break;
	}
}

/* ---- Steps ------------------------------------------------------------------------------------------ */

static void count_cycles(struct pt_call_stack *st, const struct pt_call_step *step)
{
	st->frames.cycles += step->cycles - st->seen_cycles;
	st->seen_cycles = step->cycles;
	st->frames.has_cyc |= step->has_cyc;
}

/* The stack runs now. */
static void runs(const struct pt_call_stacks *c, struct pt_call_stack *st)
{
	if (st->execs == EXECS_UNKNOWN) {
		st->execs = c->who.execs;
	} else if (st->execs != c->who.execs) {
		st->resume = 0;
		st->replaced = true;
		st->execs = c->who.execs;
	}
	/* It is read soon, together with the number beside it, which would wait for a store; and is the same
	 * mostly. */
	if (st->frames.thread != c->who.thread)
		st->frames.thread = c->who.thread;
	if (st->task->machine->pid)
		st->host = c->who.host_task;
}

static void begin(struct pt_call_stacks *c, struct pt_call_stack *st, const struct pt_call_step *step)
{
	const struct pt_callee target = {
	    .ip = step->begin.ip, .place = step->begin.place, .named = step->begin.named};
	struct pt_call_now now = now_of(st, step->tsc);

	runs(c, st);
	st->seen_cycles = step->cycles;
	st->tsc = step->tsc;
	if (st->frames.depth == 0 && target.ip)
		bottom(c, st, &now, &target);
}

/* Calls that begin at edge `begin` and return before edge `end`. */
static void run_inner(struct pt_call_stacks *c, const struct pt_call_stack *st,
		      const struct pt_call_step *step, uint64_t first, uint32_t begin, uint32_t end)
{
	const struct pt_inner_run run = {
	    .thread = st->frames.thread,
	    .stack = st->frames.stack,
	    .parent = pt_frames_call_path(&st->frames),
	    .depth = st->frames.dropped + st->frames.depth,
	    .tsc = step->tsc,
	    .branch = first,
	    .has_cyc = st->frames.has_cyc,
	    .at = {.first = step->run.first, .calls = step->run.calls, .begin = begin, .end = end}};
	c->to.no_memory |= !pt_call_memos_run(c->memos, &run, &c->to, c->config.graph);
}

/* There is a frame that they are called from, and room for theirs. */
static bool has_room(const struct pt_call_stack *st)
{
	return st->frames.depth && st->frames.depth + PTR_PATH_EDGES <= PT_FRAMES_MAX;
}

/* One execution of the path, of which some edges have a role. first: the id of its first branch, 0 none. */
static void apply_path(struct pt_call_stacks *c, struct pt_call_stack *st, const struct pt_call_step *step,
		       uint64_t first)
{
	const struct pt_graph *g = c->config.graph;
	struct pt_call_now now = {.tsc = step->tsc};
	uint64_t insns = st->insns, branches = st->branches;
	uint32_t inner = step->inner && c->memos && pt_call_memos_pay(c->memos) ? step->inner : 0;

	st->insns += step->run.insns;
	st->branches += step->count;
	for (uint32_t left = step->run.calls; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(left);

		if (inner >> i & 1 && has_room(st)) {
			uint32_t end = pt_inner_calls_end(step->run.calls, inner, i);

			run_inner(c, st, step, first, i, end);
			left &= ~0u << (end - 1);
			continue;
		}
		if (inner >> i & 1) /* then all of the path's, edge by edge */
			inner = 0;
		now.insns = insns + pt_path_insns_until(g, step->run.first, step->count, step->run.insns, i);
		now.branches = branches + i + 1;
		now.branch = first ? first + i : 0;
		apply(c, st, &now, &g->edges[g->path_edges[step->run.first + i]]);
	}
}

static void run(struct pt_call_stacks *c, struct pt_call_stack *st, const struct pt_call_step *step)
{
	runs(c, st);
	st->tsc = step->tsc;
	count_cycles(st, step);
	st->insns += step->run.insns_before;
	st->branches += step->run.branches_before;
	for (uint32_t n = 0; n < step->run.repeats && step->run.calls; n++)
		apply_path(c, st, step, step->run.branch ? step->run.branch + (uint64_t)n * step->count : 0);
}

/* What is read of a run's path and its edges is fetched before it is its turn: mostly it is in no cache. */
#define PATHS_AHEAD 12
#define EDGES_AHEAD 6

static void fetch_ahead(const struct pt_graph *g, const struct pt_call_step *step, uint32_t i)
{
	const struct pt_path *path;

	if (i + PATHS_AHEAD < step->runs.count)
		__builtin_prefetch(&g->paths[step->runs.paths[i + PATHS_AHEAD]]);
	if (i + EDGES_AHEAD >= step->runs.count)
		return;
	path = &g->paths[step->runs.paths[i + EDGES_AHEAD]];
	__builtin_prefetch(&g->path_edges[path->first]);
	__builtin_prefetch(&g->path_until[path->first]);
}

static void run_one(struct pt_call_stacks *c, struct pt_call_stack *st, struct pt_call_step *one,
		    const struct pt_path *path, uint64_t number)
{
	one->count = path->count;
	one->inner = path->inner;
	one->run.branch = number * PTR_RUN_BRANCHES;
	one->run.calls = path->calls;
	one->run.first = path->first;
	one->run.insns = path->insns;
	run(c, st, one);
}

/* Most neither call nor return. */
static void run_each(struct pt_call_stacks *c, struct pt_call_stack *st, const struct pt_call_step *step)
{
	const struct pt_graph *g = c->config.graph;
	struct pt_call_step one = {.type = PT_CALL_RUN, .has_cyc = step->has_cyc, .cycles = step->cycles};

	for (uint32_t i = 0; i < step->runs.count && !c->to.no_memory; i++) {
		const struct pt_flow_run *r = &step->runs.runs[i];
		const struct pt_path *path = &g->paths[step->runs.paths[i]];

		fetch_ahead(g, step, i);
		if (i && r[-1].cyc_count != PTR_UNKNOWN) {
			one.cycles += r[-1].cyc_count;
			one.has_cyc = true;
		}
		one.tsc = r->tsc;
		one.run.repeats = r->repeats;
		if (path->calls) {
			run_one(c, st, &one, path, step->runs.first ? step->runs.first + i : 0);
			continue;
		}
		st->insns += (uint64_t)path->insns * r->repeats;
		st->branches += (uint64_t)path->count * r->repeats;
	}
	runs(c, st);
	st->tsc = one.tsc;
	count_cycles(st, &one);
}

static void forget(struct pt_call_stacks *c, struct pt_call_stack *st, uint64_t tsc)
{
	struct pt_call_now now = now_of(st, tsc);

	replace(c, st, &now);
	st->resume = 0;
	st->execs = EXECS_UNKNOWN;
}

static void gap(struct pt_call_stacks *c, struct pt_call_stack *st, const struct pt_call_step *step)
{
	const struct pt_call_who *who = &c->who;

	if (st)
		forget(c, st, step->tsc != PTR_NO_TSC ? step->tsc : st->tsc);
	if (step->type == PT_CALL_GAP_OF_THREAD || !who->host_task)
		return;
	/* A thread has one stack, an idle task one on each CPU. */
	if (!c->guests && st && st->task == who->host_task && st->task->tid)
		return;
	/* Of them it is not known when their calls ended: after what was seen last. */
	for (size_t i = c->stack_count; i-- > 0;) {
		struct pt_call_stack *other = c->stacks[i];

		if (other != st && (other->task == who->host_task || other->host == who->host_task))
			forget(c, other, other->tsc);
	}
}

static void take_step(struct pt_call_stacks *c, const struct pt_call_step *step)
{
	struct pt_call_stack *st = c->who.stack;

	if (step->type == PT_CALL_WHO) {
		c->who = step->who;
		if (c->who.stack && !c->who.stack->listed)
			list(c, c->who.stack);
	} else if (step->type == PT_CALL_GAP || step->type == PT_CALL_GAP_OF_THREAD) {
		gap(c, st, step);
	} else if (st && step->type == PT_CALL_BEGIN) {
		begin(c, st, step);
	} else if (st && step->type == PT_CALL_RUN) {
		run(c, st, step);
	} else if (st && step->type == PT_CALL_RUNS) {
		run_each(c, st, step);
	} else if (st && step->type == PT_CALL_END) {
		count_cycles(st, step);
	}
}

/* What is read of a path's edges is fetched before it is its turn: mostly it is in no cache. */
#define STEPS_AHEAD 8

static void fetch_edges(const struct pt_graph *g, const struct pt_call_step *step)
{
	uint32_t i;

	if (step->type != PT_CALL_RUN || !step->run.calls)
		return;
	i = step->run.first + (uint32_t)__builtin_ctz(step->run.calls);
	__builtin_prefetch(&g->path_edges[i]);
	__builtin_prefetch(&g->path_until[i]);
}

bool pt_call_stacks_run(struct pt_call_stacks *c, const struct pt_call_step *steps, size_t count,
			struct pt_call_records *records)
{
	c->to.added = &records->paths;
	c->to.calls = &records->calls;
	for (size_t i = 0; i < count && !c->to.no_memory; i++) {
		if (i + STEPS_AHEAD < count)
			fetch_edges(c->config.graph, &steps[i + STEPS_AHEAD]);
		take_step(c, &steps[i]);
	}
	return !c->to.no_memory;
}

bool pt_call_stacks_finish(struct pt_call_stacks *c, struct pt_call_stack *st,
			   struct pt_call_records *records)
{
	struct pt_call_now now = now_of(st, st->tsc);

	c->to.added = &records->paths;
	c->to.calls = &records->calls;
	unwind_all(c, st, &now);
	return !c->to.no_memory;
}
