/* call_stacks.c - see call_stacks.h. */
#include "decode/output/call_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "decode/output/call_memos.h"
#include "decode/output/call_roles.h"
#include "schema/array.h"

/* Of deeper recursion the bottom is dropped: those calls are not reported, and do not return. */
#define FRAMES_MAX 16384

struct frame {
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

#define EXECS_UNKNOWN UINT32_MAX

struct pt_call_stack {
	const struct pt_task *task;
	uint32_t number;
	const struct pt_task *host; /* of a guest's: the host's thread that ran it last, NULL unknown */
	/* Of the process, when it ran last: an exec makes another program of it. EXECS_UNKNOWN: it begins
	 * anew. */
	uint32_t execs;
	struct frame *frames;
	uint32_t depth, room;
	uint32_t dropped; /* frames below the first, until that one returns */
	uint64_t resume;  /* after a trace end: where it should go on */
	bool replaced;	  /* by an exec: of its frames only those in the kernel are still to return */
	uint32_t thread;
	uint64_t tsc;			  /* at its last path, or when it began to run */
	uint64_t insns, branches, cycles; /* executed so far: by this thread, whatever else ran on its CPU */
	uint64_t seen_cycles;		  /* of the stream, what is in cycles already */
	bool has_cyc;
	bool listed; /* in the shard's list */
};

struct pt_call_stacks {
	struct pt_call_stacks_config config;
	struct pt_call_stack **stacks; /* that have run, by number */
	size_t stack_count, stack_room;
	struct pt_call_memos *memos;  /* NULL with sums */
	bool guests;		      /* some are of guests */
	uint64_t from_tsc, until_tsc; /* pt_call_stacks_keep() */
	bool no_memory;
	/* The step at hand. */
	struct pt_call_who who;
	struct pt_call_records *records;
};

struct pt_call_stacks *pt_call_stacks_create(const struct pt_call_stacks_config *config)
{
	struct pt_call_stacks *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->config = *config;
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
		for (uint32_t n = 0; n < c->stacks[i]->room; n++)
			c->stacks[i]->frames[n].asked = false;
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
	c->from_tsc = from_tsc;
	c->until_tsc = until_tsc;
}

/* ---- Stacks ----------------------------------------------------------------------------------------- */

struct pt_call_stack *pt_call_stack_create(const struct pt_task *task, uint32_t number)
{
	struct pt_call_stack *st = calloc(1, sizeof *st);

	if (!st)
		return NULL;
	st->task = task;
	st->execs = EXECS_UNKNOWN;
	st->number = number;
	return st;
}

void pt_call_stack_destroy(struct pt_call_stack *st)
{
	if (st)
		free(st->frames);
	free(st);
}

/* Into the list, in the order of numbers. */
static void list(struct pt_call_stacks *c, struct pt_call_stack *st)
{
	size_t at = c->stack_count;

	if (pt_array_grow(&c->stacks, c->stack_count, &c->stack_room, NULL) < 0) {
		c->no_memory = true;
		return;
	}
	for (; at > 0 && c->stacks[at - 1]->number > st->number; at--)
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

struct now { /* where in the trace */
	uint64_t tsc, branch, insns, branches;
};

/* What a stack's bottom stands on: a guest's on the stack of the host's thread that runs it. */
static uint32_t base_path(const struct pt_call_stacks *c, const struct pt_call_stack *st)
{
	const struct pt_call_stack *host = c->who.host_stack;

	if (!st->task->machine->pid || st->task == c->who.host_task)
		return 0;
	return host && host->depth ? host->frames[host->depth - 1].call_path : 0;
}

/* False: no memory. */
static bool add_call(struct pt_call_stacks *c, const struct ptr_call *r, uint32_t id)
{
	if (c->config.sums && !(r->return_tsc >= c->from_tsc && r->return_tsc < c->until_tsc))
		return pt_call_sums_add(c->config.sums, r, id);
	return ptr_calls_add(&c->records->calls, r, r->call_path ? 0 : id) == 0;
}

static void pop(struct pt_call_stacks *c, struct pt_call_stack *st, const struct now *now, uint32_t flags)
{
	const struct frame *f = &st->frames[--st->depth];
	const struct ptr_call r = {.thread = st->thread,
				   .stack = st->number,
				   .call_path = f->number,
				   .call_tsc = f->tsc,
				   .return_tsc = now->tsc,
				   .call_branch = f->branch,
				   .return_branch = now->branch,
				   .branch_count = now->branches - f->branches,
				   .insn_count = now->insns - f->insns,
				   .cyc_count = st->has_cyc ? st->cycles - f->cycles : PTR_UNKNOWN,
				   .flags = f->flags | flags,
				   .depth = st->dropped + st->depth};

	if (!st->depth)
		st->dropped = 0;
	c->no_memory |= !add_call(c, &r, f->call_path == PT_NO_CALL_PATH ? 0 : f->call_path);
}

/* Room for a frame more. False: no memory. */
static bool grow(struct pt_call_stacks *c, struct pt_call_stack *st)
{
	uint32_t room = st->room ? st->room * 2 : 4;
	struct frame *frames;

	if (room > FRAMES_MAX) { /* endless recursion: the bottom half is dropped */
		uint32_t keep = st->depth / 2;

		memmove(st->frames, st->frames + (st->depth - keep), keep * sizeof *st->frames);
		st->dropped += st->depth - keep;
		st->depth = keep;
		return true;
	}
	frames = realloc(st->frames, room * sizeof *frames);
	if (!frames) {
		c->no_memory = true;
		return false;
	}
	memset(frames + st->room, 0, (room - st->room) * sizeof *frames);
	st->frames = frames;
	st->room = room;
	return true;
}

/* ret: where it returns to, 0: a bottom. */
static struct frame *push(struct pt_call_stacks *c, struct pt_call_stack *st, const struct now *now,
			  uint64_t ret, const struct pt_callee *callee, uint32_t flags)
{
	uint32_t parent = st->depth ? st->frames[st->depth - 1].call_path : base_path(c, st);
	struct frame *f;

	if (st->depth == st->room && !grow(c, st))
		return NULL;
	f = &st->frames[st->depth++];
	/* What was called last from here is often called again. */
	if (!f->asked || f->parent != parent || f->place != callee->place || f->ip != callee->ip) {
		f->call_path = pt_call_path(c->config.paths, parent, callee, &c->records->paths);
		c->no_memory |= !f->call_path;
		f->asked = true;
		f->number = 0;
		f->parent = parent;
		f->place = callee->place;
		f->ip = callee->ip;
	}
	if (!f->number)
		f->number = pt_call_path_number(c->config.paths, f->call_path);
	f->ret = ret;
	f->tsc = now->tsc;
	f->branch = now->branch;
	f->insns = now->insns;
	f->branches = now->branches;
	f->cycles = st->cycles;
	f->flags = (uint16_t)flags;
	f->entered = false;
	return f;
}

/* Back to the frame that returns to `to`. False when there is none. */
static bool unwind(struct pt_call_stacks *c, struct pt_call_stack *st, const struct now *now, uint64_t to)
{
	uint32_t i = st->depth;

	while (i > 0 && st->frames[i - 1].ret != to)
		i--;
	if (i == 0)
		return false;
	/* Tail calls return together: the outermost frame of this return address that is in a row. */
	while (i > 1 && st->frames[i - 1].flags & PTR_CALL_NON_CALL && st->frames[i - 2].ret == to)
		i--;
	while (st->depth >= i)
		pop(c, st, now, st->frames[st->depth - 1].ret == to ? 0 : PTR_CALL_NO_RETURN);
	return true;
}

static void unwind_all(struct pt_call_stacks *c, struct pt_call_stack *st, const struct now *now)
{
	while (st->depth)
		pop(c, st, now, PTR_CALL_NO_RETURN);
}

/* The program that an exec has put in place begins. */
static void replace(struct pt_call_stacks *c, struct pt_call_stack *st, const struct now *now)
{
	unwind_all(c, st, now);
	st->replaced = false;
}

static struct now now_of(const struct pt_call_stack *st, uint64_t tsc)
{
	return (struct now){.tsc = tsc, .insns = st->insns, .branches = st->branches};
}

static void bottom(struct pt_call_stacks *c, struct pt_call_stack *st, const struct now *now,
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
static void resumed(struct pt_call_stacks *c, struct pt_call_stack *st, const struct now *now,
		    const struct pt_edge *edge)
{
	const struct pt_callee target = target_of(edge);

	if (st->replaced)
		replace(c, st, now);
	if (st->depth == 0)
		bottom(c, st, now, &target);
	else if (edge->to != st->resume && st->resume && !unwind(c, st, now, edge->to))
		push(c, st, now, st->resume, &target, 0);
	st->resume = 0;
}

static void returned(struct pt_call_stacks *c, struct pt_call_stack *st, const struct now *now,
		     const struct pt_edge *edge)
{
	const struct pt_callee target = target_of(edge);
	uint32_t i = st->depth;

	if (unwind(c, st, now, edge->to))
		return;
	while (i > 0 && st->frames[i - 1].ret == 0)
		i--;
	if (i == 0) { /* what runs now has called the bottom */
		unwind_all(c, st, now);
		bottom(c, st, now, &target);
	} else if (edge->first) {
		/* The address was put there to be jumped to: a retpoline, a signal's trampoline. */
		push(c, st, now, st->frames[st->depth - 1].ret, &target, PTR_CALL_NON_CALL);
	}
}

/*
 * SYSRET, IRET: what was entered last returns to where it was entered from; or to a signal's handler,
 * or next to that place (a system call that is restarted, an instruction that the kernel has
 * emulated).
 */
static void returned_from_kernel(struct pt_call_stacks *c, struct pt_call_stack *st, const struct now *now,
				 const struct pt_edge *edge)
{
	const struct pt_callee target = target_of(edge);
	uint32_t i = st->depth, ret_symbol;
	uint64_t ret;

	if (st->replaced && !(edge->to >> 63)) {
		replace(c, st, now);
		bottom(c, st, now, &target);
		return;
	}
	if (unwind(c, st, now, edge->to))
		return;
	while (i > 0 && !st->frames[i - 1].entered)
		i--;
	if (i == 0) { /* it was entered before the trace */
		unwind_all(c, st, now);
		bottom(c, st, now, &target);
		return;
	}
	ret = st->frames[i - 1].ret;
	ret_symbol = st->frames[i - 1].ret_symbol;
	while (st->depth >= i)
		pop(c, st, now, st->depth == i ? 0 : PTR_CALL_NO_RETURN);
	if (st->depth == 0) {
		bottom(c, st, now, &target);
	} else if (ret_symbol != (edge->named ? edge->place : 0)) {
		/* Into the middle of what was not called in the trace: back from a handler that was
		 * entered before it. */
		if (st->depth == 1 && !edge->first)
			unwind_all(c, st, now);
		if (st->depth)
			push(c, st, now, ret, &target, 0);
		else
			bottom(c, st, now, &target);
	}
}

static void enter(struct pt_call_stacks *c, struct pt_call_stack *st, const struct now *now,
		  const struct pt_edge *edge)
{
	const struct pt_callee target = target_of(edge);
	struct frame *f = push(c, st, now, edge->from + edge->bytes, &target, 0);

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

static void apply(struct pt_call_stacks *c, struct pt_call_stack *st, const struct now *now,
		  const struct pt_edge *edge)
{
	const struct pt_callee target = target_of(edge);

	switch ((enum pt_call_role)edge->role) {
	case PT_ROLE_CALL: push(c, st, now, edge->from + edge->bytes, &target, 0); break;
	case PT_ROLE_RET: returned(c, st, now, edge); break;
	case PT_ROLE_ENTER: enter(c, st, now, edge); break;
	case PT_ROLE_LEAVE: returned_from_kernel(c, st, now, edge); break;
	case PT_ROLE_VM_ENTRY_OR_EXIT:
		if (st->depth == 0)
			bottom(c, st, now, &target);
		break;
	case PT_ROLE_TAIL:
		if (st->depth)
			push(c, st, now, st->frames[st->depth - 1].ret, &target, PTR_CALL_NON_CALL);
		break;
	case PT_ROLE_BEGIN: resumed(c, st, now, edge); break;
	case PT_ROLE_END: st->resume = resume_ip(edge); break;
	default: break;
	}
}

/* ---- Steps ------------------------------------------------------------------------------------------ */

static void count_cycles(struct pt_call_stack *st, const struct pt_call_step *step)
{
	st->cycles += step->cycles - st->seen_cycles;
	st->seen_cycles = step->cycles;
	st->has_cyc |= step->has_cyc;
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
	st->thread = c->who.thread;
	if (st->task->machine->pid)
		st->host = c->who.host_task;
}

static void begin(struct pt_call_stacks *c, struct pt_call_stack *st, const struct pt_call_step *step)
{
	const struct pt_callee target = {
	    .ip = step->begin.ip, .place = step->begin.place, .named = step->begin.named};
	struct now now = now_of(st, step->tsc);

	runs(c, st);
	st->seen_cycles = step->cycles;
	st->tsc = step->tsc;
	if (st->depth == 0 && target.ip)
		bottom(c, st, &now, &target);
}

/* Calls that begin at edge `begin` and return before edge `end`. */
static void run_inner(struct pt_call_stacks *c, const struct pt_call_stack *st,
		      const struct pt_call_step *step, uint64_t first, uint32_t begin, uint32_t end)
{
	const struct pt_inner_run run = {
	    .thread = st->thread,
	    .stack = st->number,
	    .parent = st->frames[st->depth - 1].call_path,
	    .depth = st->dropped + st->depth,
	    .tsc = step->tsc,
	    .branch = first,
	    .has_cyc = st->has_cyc,
	    .at = {.first = step->run.first, .calls = step->run.calls, .begin = begin, .end = end}};
	const struct pt_call_sink to = {
	    .paths = c->config.paths, .added = &c->records->paths, .calls = &c->records->calls};

	c->no_memory |= !pt_call_memos_run(c->memos, &run, &to, c->config.graph);
}

/* There is a frame that they are called from, and room for theirs. */
static bool has_room(const struct pt_call_stack *st)
{
	return st->depth && st->depth + PTR_PATH_EDGES <= FRAMES_MAX;
}

/* One execution of the path, of which some edges have a role. first: the id of its first branch, 0 none. */
static void apply_path(struct pt_call_stacks *c, struct pt_call_stack *st, const struct pt_call_step *step,
		       uint64_t first)
{
	const struct pt_graph *g = c->config.graph;
	struct now now = {.tsc = step->tsc};
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
		if (inner >> i & 1)
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

static void run_each(struct pt_call_stacks *c, struct pt_call_stack *st, const struct pt_call_step *step)
{
	const struct pt_graph *g = c->config.graph;
	struct pt_call_step one = {.type = PT_CALL_RUN, .has_cyc = step->has_cyc, .cycles = step->cycles};

	for (uint32_t i = 0; i < step->runs.count && !c->no_memory; i++) {
		const struct pt_flow_run *r = &step->runs.runs[i];
		const struct pt_path *path = &g->paths[step->runs.paths[i]];

		fetch_ahead(g, step, i);
		one.tsc = r->tsc;
		one.count = path->count;
		one.inner = path->inner;
		one.run.branch = step->runs.first ? (step->runs.first + i) * PTR_RUN_BRANCHES : 0;
		one.run.calls = path->calls;
		one.run.first = path->first;
		one.run.insns = path->insns;
		one.run.repeats = r->repeats;
		run(c, st, &one);
		if (!path->calls) {
			st->insns += (uint64_t)path->insns * r->repeats;
			st->branches += (uint64_t)path->count * r->repeats;
		}
		if (r->cyc_count != PTR_UNKNOWN) {
			one.cycles += r->cyc_count;
			one.has_cyc = true;
		}
	}
}

static void forget(struct pt_call_stacks *c, struct pt_call_stack *st, uint64_t tsc)
{
	struct now now = now_of(st, tsc);

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
	c->records = records;
	for (size_t i = 0; i < count && !c->no_memory; i++) {
		if (i + STEPS_AHEAD < count)
			fetch_edges(c->config.graph, &steps[i + STEPS_AHEAD]);
		take_step(c, &steps[i]);
	}
	return !c->no_memory;
}

bool pt_call_stacks_finish(struct pt_call_stacks *c, struct pt_call_stack *st,
			   struct pt_call_records *records)
{
	struct now now = now_of(st, st->tsc);

	c->records = records;
	unwind_all(c, st, &now);
	return !c->no_memory;
}
