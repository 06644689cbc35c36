/* calls.c - see calls.h. */
#include "decode/output/calls.h"

#include <stdlib.h>
#include <string.h>

#include "decode/output/call_paths.h"
#include "decode/output/sums.h"
#include "schema/array.h"
#include "schema/hash.h"

#define FRAMES_MAX 16384 /* deeper recursion is not followed: the bottom is dropped */

struct frame {
	uint64_t ret; /* where a return leads to; 0: the bottom */
	uint64_t tsc, branch, insns, branches, cycles;
	uint32_t call_path; /* or PT_NO_CALL_PATH */
	uint32_t parent, place;
	uint64_t ip;	/* what call_path was looked up by */
	uint16_t flags; /* PTR_CALL_* */
	bool entered;	/* by a system call, interrupt or exception */
};

struct stack {
	const struct pt_task *task;
	const struct pt_task *host; /* of a guest's: the host's thread that ran it last, NULL unknown */
	int32_t cpu;		    /* of an idle task, of which each CPU has one; else -1 */
	uint32_t execs; /* of the process, when it ran last: an exec makes another program of it */
	struct frame *frames;
	uint32_t depth, room;
	uint64_t resume; /* after a trace end: where it should go on */
	bool replaced;	 /* by an exec: of its frames only those in the kernel are still to return */
	uint32_t thread;
	uint64_t tsc;			  /* at its last path, or when it began to run */
	uint64_t insns, branches, cycles; /* executed so far: by this thread, whatever else ran on its CPU */
	uint64_t seen_cycles;		  /* of the stream, what is in cycles already */
	bool has_cyc;
};

struct pt_calls {
	struct pt_emit *emit;
	struct stack **stacks; /* number n of the hash is stacks[n - 1] */
	size_t stack_count, stack_room;
	struct pt_hash stack_hash;
	struct stack *last;
	bool guests; /* some are of guests */
	struct pt_call_paths *paths;
	/* ip to symbol, for calls' targets: a small cache. */
	struct {
		uint64_t ip;
		uint32_t code, symbol, place; /* place: the symbol, or what names code without one */
		bool first;		      /* ip is its first address */
	} symbols[4096];
};

struct pt_calls *pt_calls_create(struct pt_emit *emit)
{
	struct pt_calls *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->emit = emit;
	c->paths = pt_call_paths_create(emit);
	if (c->paths && pt_hash_init(&c->stack_hash, 6, NULL) == 0)
		return c;
	pt_calls_destroy(c);
	return NULL;
}

void pt_calls_destroy(struct pt_calls *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->stack_count; i++) {
		free(c->stacks[i]->frames);
		free(c->stacks[i]);
	}
	free(c->stacks);
	pt_hash_deinit(&c->stack_hash);
	pt_call_paths_destroy(c->paths);
	free(c);
}

static uint64_t stack_key(const struct pt_task *task, int32_t cpu)
{
	return pt_hash_mix((uintptr_t)task + (uint32_t)cpu);
}

static uint64_t key_of_stack(const void *stacks, uint32_t n)
{
	const struct stack *st = ((struct stack *const *)stacks)[n - 1];

	return stack_key(st->task, st->cpu);
}

static struct stack *find_stack(const struct pt_calls *c, const struct pt_task *task, int32_t cpu)
{
	const struct pt_hash *h = &c->stack_hash;
	uint32_t n;

	for (uint32_t i = pt_hash_first(h, stack_key(task, cpu)); (n = h->slots[i]); i = pt_hash_next(h, i))
		if (c->stacks[n - 1]->task == task && c->stacks[n - 1]->cpu == cpu)
			return c->stacks[n - 1];
	return NULL;
}

static struct stack *add_stack(struct pt_calls *c, const struct pt_task *task, int32_t cpu)
{
	struct stack *st = calloc(1, sizeof *st);

	if (!st || pt_array_grow(&c->stacks, c->stack_count, &c->stack_room, NULL) < 0)
		goto failed;
	st->task = task;
	st->cpu = cpu;
	st->execs = task->process ? task->process->execs : 0;
	c->stacks[c->stack_count] = st;
	if (pt_hash_insert(&c->stack_hash, stack_key(task, cpu), (uint32_t)c->stack_count + 1, key_of_stack,
			   c->stacks, NULL) < 0)
		goto failed;
	c->stack_count++;
	c->guests |= task->machine->pid != 0;
	return st;
failed:
	free(st);
	pt_emit_no_memory(c->emit, "the call stacks");
	return NULL;
}

static struct stack *stack_of(struct pt_calls *c, const struct pt_emit_stream *s, const struct pt_task *task)
{
	struct stack *st = c->last;
	int32_t cpu = -1;

	if (!task)
		return NULL;
	if (task->tid == 0)
		cpu = task->machine->pid ? s->vcpu : s->cpu;
	if (st && st->task == task && st->cpu == cpu)
		return st;
	st = find_stack(c, task, cpu);
	if (!st)
		st = add_stack(c, task, cpu);
	if (st)
		c->last = st;
	return st;
}

struct now {				/* where in the trace */
	const struct pt_emit_stream *s; /* NULL: it is over */
	struct pt_code *code;		/* whose addresses are pushed */
	uint64_t tsc, branch, insns, branches;
};

/* What a stack's bottom stands on: a guest's on the stack of the host's thread that runs it. */
static uint32_t base_path(struct pt_calls *c, const struct stack *st, const struct now *now)
{
	struct stack *host;

	if (!st->task->machine->pid || !now->s->host_task || st->task == now->s->host_task)
		return 0;
	host = stack_of(c, now->s, now->s->host_task);
	return host && host->depth ? host->frames[host->depth - 1].call_path : 0;
}

static void pop(struct pt_calls *c, struct stack *st, const struct now *now, uint32_t flags)
{
	struct frame *f = &st->frames[--st->depth];
	struct ptr_call r = {.thread = st->thread,
			     .call_path = f->call_path == PT_NO_CALL_PATH ? 0 : f->call_path,
			     .call_tsc = f->tsc,
			     .return_tsc = now->tsc,
			     .call_branch = f->branch,
			     .return_branch = now->branch,
			     .branch_count = now->branches - f->branches,
			     .insn_count = now->insns - f->insns,
			     .cyc_count = st->has_cyc ? st->cycles - f->cycles : PTR_UNKNOWN,
			     .flags = f->flags | flags,
			     .depth = st->depth};

	if (c->emit->failed)
		return;
	if (c->emit->sums && !pt_emit_writes(c->emit, PTR_DETAIL_CALLS, now->tsc))
		pt_sums_call(c->emit->sums, &r);
	else if (ptr_put_call(c->emit->writer, &r, &c->emit->error) < 0)
		c->emit->failed = true;
}

/* Room for a frame more. False: no memory. */
static bool grow(struct pt_calls *c, struct stack *st)
{
	uint32_t room = st->room ? st->room * 2 : 4;
	struct frame *frames;

	if (room > FRAMES_MAX) { /* endless recursion: the bottom half is dropped */
		uint32_t keep = st->depth / 2;

		memmove(st->frames, st->frames + (st->depth - keep), keep * sizeof *st->frames);
		st->depth = keep;
		return true;
	}
	frames = realloc(st->frames, room * sizeof *frames);
	if (!frames) {
		pt_emit_no_memory(c->emit, "the call stacks");
		return false;
	}
	memset(frames + st->room, 0, (room - st->room) * sizeof *frames);
	st->frames = frames;
	st->room = room;
	return true;
}

/* The cache's entry of ip, filled. */
static uint32_t cached_symbol(struct pt_calls *c, struct pt_code *code, uint64_t ip)
{
	uint32_t i = (uint32_t)((ip * 0x9e3779b97f4a7c15u) >> 52);

	if (c->symbols[i].ip != ip || c->symbols[i].code != code->id) {
		struct img_symbol sym;

		c->symbols[i].ip = ip;
		c->symbols[i].code = code->id;
		c->symbols[i].first = img_space_symbol(code->space, ip, &sym) == 0 && sym.start == ip;
		c->symbols[i].symbol = pt_emit_symbol(c->emit, code->space, ip);
		c->symbols[i].place = 0;
	}
	return i;
}

static uint32_t symbol_at(struct pt_calls *c, struct pt_code *code, uint64_t ip, bool *ret_first)
{
	uint32_t i = cached_symbol(c, code, ip);

	if (ret_first)
		*ret_first = c->symbols[i].first;
	return c->symbols[i].symbol;
}

/* What names code without a symbol. */
static uint32_t place_of(struct pt_calls *c, struct pt_code *code, uint64_t ip)
{
	uint32_t i = cached_symbol(c, code, ip);

	if (!c->symbols[i].place)
		c->symbols[i].place = pt_emit_place(c->emit, code->space, ip);
	return c->symbols[i].place;
}

/* What is called, and where it returns to (0: a bottom). */
struct callee {
	uint64_t ret, ip;
	uint32_t symbol; /* 0 unknown */
};

static void push(struct pt_calls *c, struct stack *st, const struct now *now, struct callee to,
		 uint32_t flags)
{
	uint32_t parent = st->depth ? st->frames[st->depth - 1].call_path : base_path(c, st, now);
	struct pt_callee callee = {.symbol = to.symbol, .ip = to.ip};
	struct frame *f;

	if (st->depth == st->room && !grow(c, st))
		return;
	f = &st->frames[st->depth++];
	callee.place = to.symbol ? to.symbol : place_of(c, now->code, to.ip);
	/* What was called last from here is often called again. */
	if (!f->call_path || f->parent != parent || f->place != callee.place || f->ip != to.ip) {
		f->call_path = pt_call_path(c->paths, parent, &callee);
		f->parent = parent;
		f->place = callee.place;
		f->ip = to.ip;
	}
	f->ret = to.ret;
	f->tsc = now->tsc;
	f->branch = now->branch;
	f->insns = now->insns;
	f->branches = now->branches;
	f->cycles = st->cycles;
	f->flags = (uint16_t)flags;
	f->entered = false;
}

/* Back to the frame that returns to `to`. False when there is none. */
static bool unwind(struct pt_calls *c, struct stack *st, const struct now *now, uint64_t to)
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

static void unwind_all(struct pt_calls *c, struct stack *st, const struct now *now)
{
	while (st->depth)
		pop(c, st, now, PTR_CALL_NO_RETURN);
}

/* The program that an exec has put in place begins. */
static void replace(struct pt_calls *c, struct stack *st, const struct now *now)
{
	unwind_all(c, st, now);
	st->replaced = false;
}

static struct now now_of(const struct pt_emit_stream *s, const struct stack *st, uint64_t tsc)
{
	return (struct now){.s = s, .tsc = tsc, .insns = st->insns, .branches = st->branches};
}

static void count_cycles(struct stack *st, const struct pt_emit_stream *s)
{
	st->cycles += s->cycles - st->seen_cycles;
	st->seen_cycles = s->cycles;
	st->has_cyc |= s->has_cyc;
}

static void bottom(struct pt_calls *c, struct stack *st, const struct now *now, uint32_t symbol, uint64_t ip)
{
	push(c, st, now, (struct callee){0, ip, symbol}, PTR_CALL_NO_CALL);
}

/* The stack that the stream runs on now. */
static struct stack *stack_now(struct pt_calls *c, struct pt_emit_stream *s, uint64_t tsc, struct now *ret)
{
	struct stack *st = stack_of(c, s, s->task);
	uint32_t execs = st && st->task->process ? st->task->process->execs : 0;

	if (!st)
		return NULL;
	*ret = now_of(s, st, tsc);
	if (st->execs != execs) {
		st->resume = 0;
		st->replaced = true;
		st->execs = execs;
	}
	st->thread = s->thread;
	if (st->task->machine->pid)
		st->host = s->host_task;
	return st;
}

void pt_calls_begin(struct pt_calls *c, struct pt_emit_stream *s, struct pt_code *code, uint64_t ip,
		    uint64_t tsc)
{
	struct now now;
	struct stack *st = stack_now(c, s, tsc, &now);

	if (!st)
		return;
	now.code = code;
	st->seen_cycles = s->cycles;
	st->tsc = tsc;
	if (st->depth == 0 && ip && code)
		bottom(c, st, &now, symbol_at(c, code, ip, NULL), ip);
}

void pt_calls_end(struct pt_calls *c, struct pt_emit_stream *s)
{
	struct stack *st = stack_of(c, s, s->task);

	if (st)
		count_cycles(st, s);
}

static void forget(struct pt_calls *c, struct stack *st, uint64_t tsc)
{
	struct now now = now_of(NULL, st, tsc);

	replace(c, st, &now);
	st->resume = 0;
	st->execs = st->task->process ? st->task->process->execs : 0;
}

void pt_calls_gap(struct pt_calls *c, struct pt_emit_stream *s, uint64_t tsc, bool no_image)
{
	struct stack *st = stack_of(c, s, s->task);

	if (st)
		forget(c, st, tsc != PTR_NO_TSC ? tsc : st->tsc);
	if (no_image || !s->host_task || (!c->guests && s->task && s->task->tid))
		return;
	/* Of them it is not known when their calls ended: after what was seen last. */
	for (size_t i = c->stack_count; i-- > 0;) {
		struct stack *other = c->stacks[i];

		if (other != st && (other->task == s->host_task || other->host == s->host_task))
			forget(c, other, other->tsc);
	}
}

/* Tracing begins again at `to`: after a system call or interrupt, in a signal's handler, or after one. */
static void resumed(struct pt_calls *c, struct stack *st, const struct now *now, struct pt_code *code,
		    uint64_t to)
{
	uint32_t symbol = symbol_at(c, code, to, NULL);

	if (st->replaced)
		replace(c, st, now);
	if (st->depth == 0)
		bottom(c, st, now, symbol, to);
	else if (to != st->resume && st->resume && !unwind(c, st, now, to))
		push(c, st, now, (struct callee){st->resume, to, symbol}, 0);
	st->resume = 0;
}

/* begins: the symbol of which the first instruction is returned to, 0 none. */
static void returned(struct pt_calls *c, struct stack *st, const struct now *now, struct pt_code *code,
		     uint64_t to, uint32_t begins)
{
	uint32_t i = st->depth;

	if (unwind(c, st, now, to))
		return;
	while (i > 0 && st->frames[i - 1].ret == 0)
		i--;
	if (i == 0) { /* what runs now has called the bottom */
		unwind_all(c, st, now);
		bottom(c, st, now, symbol_at(c, code, to, NULL), to);
	} else if (
	    begins) { /* the address was put there to be jumped to: a retpoline, a signal's trampoline */
		push(c, st, now, (struct callee){st->frames[st->depth - 1].ret, to, begins},
		     PTR_CALL_NON_CALL);
	}
}

/*
 * SYSRET, IRET: what was entered last returns to where it was entered from; or to a signal's handler,
 * or next to that place (a system call that is restarted, an instruction that the kernel has
 * emulated).
 */
static void returned_from_kernel(struct pt_calls *c, struct stack *st, const struct now *now,
				 struct pt_code *code, uint64_t to)
{
	uint32_t i = st->depth, symbol;
	uint64_t ret;
	bool first;

	if (st->replaced && !(to >> 63)) {
		replace(c, st, now);
		bottom(c, st, now, symbol_at(c, code, to, NULL), to);
		return;
	}
	if (unwind(c, st, now, to))
		return;
	while (i > 0 && !st->frames[i - 1].entered)
		i--;
	symbol = symbol_at(c, code, to, &first);
	if (i == 0) { /* it was entered before the trace */
		unwind_all(c, st, now);
		bottom(c, st, now, symbol, to);
		return;
	}
	ret = st->frames[i - 1].ret;
	while (st->depth >= i)
		pop(c, st, now, st->depth == i ? 0 : PTR_CALL_NO_RETURN);
	if (st->depth == 0) {
		bottom(c, st, now, symbol, to);
	} else if (symbol_at(c, code, ret, NULL) != symbol) {
		/* Into the middle of what was not called in the trace: back from a handler that was
		 * entered before it. */
		if (st->depth == 1 && !first)
			unwind_all(c, st, now);
		if (st->depth)
			push(c, st, now, (struct callee){ret, to, symbol}, 0);
		else
			bottom(c, st, now, symbol, to);
	}
}

/* What an edge does to the stack. */
enum role {
	ROLE_NOT_ASKED,
	ROLE_NONE,
	ROLE_CALL,
	ROLE_RET,
	ROLE_TAIL,
	ROLE_ENTER, /* a system call, an interrupt */
	ROLE_LEAVE,
	ROLE_BEGIN,
	ROLE_END,
	ROLE_VM_ENTRY_OR_EXIT /* into guest or host: its stack is as it was */
};

/* How far a call that is no call may jump over. */
#define SKIPPED_BYTES_MAX 16

/*
 * A call that calls no function: to the next instruction, to get its own address; or, within a
 * function, over a few instructions that never run, as retpolines and return stack stuffing have
 * them.
 */
static bool calls_nothing(struct pt_calls *c, struct pt_code *code, const struct pt_edge *edge, uint64_t next)
{
	bool first;

	if (edge->kind != PTR_CALL_DIR || edge->to - next > SKIPPED_BYTES_MAX)
		return edge->to == next;
	if (edge->to == next)
		return true;
	return edge->symbol && symbol_at(c, code, edge->to, &first) == edge->symbol && !first &&
	       symbol_at(c, code, edge->from, NULL) == edge->symbol;
}

static enum role role_of(struct pt_calls *c, struct pt_edge *edge)
{
	struct pt_code *code = c->emit->graph->codes[edge->code];
	struct insn in;
	uint8_t bytes[16];
	bool first;
	size_t n;

	if (edge->kind == PTR_VMENTRY || edge->kind == PTR_VMEXIT)
		return edge->from ? ROLE_NONE : ROLE_VM_ENTRY_OR_EXIT;
	if (!edge->from)
		return ROLE_BEGIN;
	if (!edge->to || edge->ends_trace)
		return ROLE_END;
	switch ((enum ptr_kind)edge->kind) {
	case PTR_CALL_DIR:
	case PTR_CALL_IND:
	case PTR_CALL_FAR:
	case PTR_SYSCALL:
	case PTR_INT:
		n = img_space_read(code->space, edge->from, bytes, sizeof bytes);
		if (insn_decode(bytes, n, INSN_64, &in) < 0)
			return ROLE_NONE;
		edge->bytes = in.len;
		edge->symbol = symbol_at(c, code, edge->to, NULL);
		if (edge->kind == PTR_SYSCALL || edge->kind == PTR_INT)
			return ROLE_ENTER;
		return calls_nothing(c, code, edge, edge->from + in.len) ? ROLE_NONE : ROLE_CALL;
	case PTR_ASYNC:
		edge->bytes = 0;
		edge->symbol = symbol_at(c, code, edge->to, NULL);
		return ROLE_ENTER;
	case PTR_RET:
	case PTR_RET_FAR:
		edge->symbol = symbol_at(c, code, edge->to, &first);
		if (!first)
			edge->symbol = 0;
		return ROLE_RET;
	case PTR_SYSRET:
	case PTR_IRET:
	case PTR_ERET: return ROLE_LEAVE;
	case PTR_JMP:
	case PTR_JMP_IND:
		edge->symbol = symbol_at(c, code, edge->to, &first);
		return first && edge->symbol != symbol_at(c, code, edge->from, NULL) ? ROLE_TAIL : ROLE_NONE;
	default: return ROLE_NONE;
	}
}

/* Finds the roles of a path's edges, once. */
static void find_roles(struct pt_calls *c, struct pt_path *path)
{
	struct pt_graph *g = c->emit->graph;

	path->calls = 0;
	for (uint32_t i = 0; i < path->count; i++) {
		struct pt_edge *edge = &g->edges[g->path_edges[path->first + i]];

		if (edge->role == ROLE_NOT_ASKED)
			edge->role = (uint8_t)role_of(c, edge);
		if (edge->role != ROLE_NONE)
			path->calls |= 1u << i;
	}
	path->role = path->calls ? ROLE_CALL : ROLE_NONE;
}

bool pt_calls_changes(struct pt_calls *c, struct pt_path *path)
{
	if (path->role == ROLE_NOT_ASKED)
		find_roles(c, path);
	return path->role != ROLE_NONE;
}

static void apply(struct pt_calls *c, struct stack *st, const struct now *now, const struct pt_edge *edge)
{
	struct pt_code *code = now->code;
	struct callee callee = {edge->from + edge->bytes, edge->to, edge->symbol};

	switch ((enum role)edge->role) {
	case ROLE_CALL: push(c, st, now, callee, 0); break;
	case ROLE_RET: returned(c, st, now, code, edge->to, edge->symbol); break;
	case ROLE_ENTER:
		push(c, st, now, callee, 0);
		if (st->depth)
			st->frames[st->depth - 1].entered = true;
		break;
	case ROLE_LEAVE: returned_from_kernel(c, st, now, code, edge->to); break;
	case ROLE_VM_ENTRY_OR_EXIT:
		if (st->depth == 0)
			bottom(c, st, now, symbol_at(c, code, edge->to, NULL), edge->to);
		break;
	case ROLE_TAIL:
		if (st->depth) {
			callee.ret = st->frames[st->depth - 1].ret;
			push(c, st, now, callee, PTR_CALL_NON_CALL);
		}
		break;
	case ROLE_BEGIN: resumed(c, st, now, code, edge->to); break;
	case ROLE_END:
		/* SYSCALL, SYSENTER and INT 80 are two bytes long; the others do not return after them. */
		st->resume = edge->kind == PTR_SYSCALL || edge->kind == PTR_INT ? edge->from + 2
			     : edge->kind == PTR_ASYNC				? edge->from
										: 0;
		break;
	default: break;
	}
}

/* One execution of the path, of which some edges have a role. first: the id of its first branch, 0 none. */
static void apply_path(struct pt_calls *c, struct stack *st, struct now *now, const struct pt_path *path,
		       uint64_t first)
{
	const struct pt_graph *g = c->emit->graph;
	uint64_t insns = st->insns, branches = st->branches;

	st->insns += path->insns;
	st->branches += path->count;
	for (uint32_t left = path->calls; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(left);
		const struct pt_edge *edge = &g->edges[g->path_edges[path->first + i]];

		now->insns = insns + g->path_until[path->first + i];
		now->branches = branches + i + 1;
		now->branch = first ? first + i : 0;
		now->code = g->codes[edge->code];
		apply(c, st, now, edge);
	}
}

void pt_calls_run(struct pt_calls *c, struct pt_emit_stream *s, struct pt_path *path,
		  const struct pt_flow_run *run, uint64_t number)
{
	struct now now;
	struct stack *st = stack_now(c, s, run->tsc, &now);

	if (!st)
		return;
	st->tsc = run->tsc;
	count_cycles(st, s);
	if (!pt_calls_changes(c, path)) {
		st->insns += (uint64_t)path->insns * run->repeats;
		st->branches += (uint64_t)path->count * run->repeats;
		return;
	}
	for (uint32_t n = 0; n < run->repeats; n++)
		apply_path(c, st, &now, path,
			   number ? number * PTR_RUN_BRANCHES + (uint64_t)n * path->count : 0);
}

void pt_calls_finish(struct pt_calls *c)
{
	for (size_t i = c->stack_count; i-- > 0;) {
		struct stack *st = c->stacks[i];
		struct now now = now_of(NULL, st, st->tsc);

		unwind_all(c, st, &now);
	}
}
