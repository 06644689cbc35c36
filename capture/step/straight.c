/*
 * straight.c - straight code in one step: the instructions up to the next branch, or to what else is
 * special, where a breakpoint (INT3) is written for as long as the thread runs. See internal.h.
 *
 * A step by the trap flag costs more than twice as much as a stop at a breakpoint, in a virtual machine 30
 * us in place of 12. Only in code of files that is not writable: what is there is known. One thread at a
 * time runs in user space, and all on one CPU, so no other one comes to the breakpoint, which is taken away
 * before another has its turn. Where the thread is in a page fault then, who serves that could notice: a
 * fault that is interrupted is no longer there to be read. So not after userfaultfd(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include "capture/step/internal.h"

#define BREAKPOINT 0xcc

enum { PAGE_BYTES = 4096, CONDITION_MAX = 16 };
/* Bytes of branches without prefixes. */
enum { JMP_SHORT = 2, JMP_NEAR = 5, JCC_SHORT = 2, JCC_NEAR = 6, CALL_NEAR = 5, RET_NEAR = 1 };
#define USER_END (UINT64_C(1) << 47) /* a return to beyond is left to the CPU, which faults */

/* Nothing but the next instruction follows, and a step does not differ from a run. */
static bool is_plain(const struct step_insn *in)
{
	return in->insn.cls == INSN_OTHER && (in->quirk == STEP_PLAIN || in->quirk == STEP_CPUID);
}

/* True also when the memory is gone, with all that was in it: every thread was killed, by an exec, too. */
static bool write_byte(struct step_thread *t, uint64_t at, uint8_t byte)
{
	struct step_process *p = t->process;
	char path[32];

	if (p->memory < 0) { /* the process's first thread, and with it what it is called by, may be gone */
		snprintf(path, sizeof path, "/proc/%d/mem", (int)t->tid);
		p->memory = open(path, O_RDWR | O_CLOEXEC);
	}
	return p->memory >= 0 && pwrite(p->memory, &byte, 1, (off_t)at) >= 0;
}

/* Looks how far straight code goes from t->ip, within its page; *c is that instruction. */
static void look(struct step *s, struct step_thread *t, struct step_cached *c)
{
	const struct step_map *map = step_map_at(t->process, t->ip);
	uint64_t ip = t->ip, page_end = (ip | (PAGE_BYTES - 1)) + 1;
	const struct step_cached *next = c;
	uint8_t byte;
	struct iovec local = {&byte, 1}, remote;

	c->straight_known = true;
	if (!map || !map->file || map->writable)
		return;
	while (next && is_plain(&next->insn) && ip + next->insn.insn.len < page_end) {
		ip += next->insn.insn.len;
		next = step_cached(s, t, ip);
	}
	/* The cache may have put another instruction in this one's place. */
	if (ip == t->ip || c->ip != t->ip)
		return;
	remote = (struct iovec){(void *)(uintptr_t)ip, 1};
	if (process_vm_readv(t->tid, &local, 1, &remote, 1, 0) != 1)
		return;
	c->straight_bytes = (uint16_t)(ip - t->ip);
	c->straight_byte = byte;
}

bool step_straight_begin(struct step *s, struct step_thread *t)
{
	struct step_cached *c;

	if (s->single || s->options->max_steps || t->single || t->in_kernel || t->signal || t->shadow ||
	    !t->known || !is_plain(&t->insn))
		return false;
	c = step_cached(s, t, t->ip);
	if (!c || c->volatile_code)
		return false;
	if (!c->straight_known)
		look(s, t, c);
	if (!c->straight_bytes)
		return false;
	if (!write_byte(t, t->ip + c->straight_bytes, BREAKPOINT)) {
		c->straight_bytes = 0;
		return false;
	}
	t->straight_end = t->ip + c->straight_bytes;
	t->straight_byte = c->straight_byte;
	t->breakpoint = true;
	return true;
}

/* By ptrace, which can only while the thread has stopped. False: errno says why. */
static bool poke_byte(const struct step_thread *t, uint64_t at, uint8_t byte)
{
	uint64_t word_at = at & ~(uint64_t)7, word;

	errno = 0;
	word = (uint64_t)ptrace(PTRACE_PEEKTEXT, t->tid, word_at, 0);
	if (errno)
		return false;
	memcpy((uint8_t *)&word + (at - word_at), &byte, 1);
	return ptrace(PTRACE_POKETEXT, t->tid, word_at, word) == 0;
}

void step_straight_stopped(struct step *s, struct step_thread *t)
{
	/* A thread that is being killed (ESRCH) comes there no more. */
	if (t->breakpoint && !write_byte(t, t->straight_end, t->straight_byte) &&
	    !poke_byte(t, t->straight_end, t->straight_byte) && errno != ESRCH)
		step_error(s, "cannot take a breakpoint out of the program");
	t->breakpoint = false;
}

void step_straight_left(struct step *s, struct step_thread *t)
{
	if (t->breakpoint && !write_byte(t, t->straight_end, t->straight_byte))
		step_error(s, "cannot take a breakpoint out of a program");
	t->breakpoint = false;
}

void step_straight_sleeps(struct step_thread *t)
{
	if (!t->breakpoint)
		return;
	ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
	t->breakpoint = !write_byte(t, t->straight_end, t->straight_byte);
	t->single = true;
}

/* ---- Branches --------------------------------------------------------------------------------------- */

static bool set_register(struct step_thread *t, size_t offset, uint64_t value)
{
	return ptrace(PTRACE_POKEUSER, t->tid, offset, value) == 0;
}
#define SET(t, reg, value) set_register((t), offsetof(struct user_regs_struct, reg), (value))

/* By the flags. LOOPcc and JrCXZ are left to the CPU. */
static uint64_t jcc(struct step_thread *t, const struct step_insn *in, uint64_t target)
{
	uint64_t flags;

	if (in->condition > CONDITION_MAX || !STEP_PEEK(t, eflags, &flags))
		return 0;
	t->jumped = step_condition(in->condition, flags, 0);
	return t->jumped ? target : t->ip + in->insn.len;
}

/* A stack that is to grow is left to the CPU, which faults. */
static uint64_t call(struct step_thread *t, const struct step_insn *in, uint64_t target)
{
	uint64_t next = t->ip + in->insn.len, rsp;
	struct iovec local = {&next, sizeof next}, remote;

	if (!STEP_PEEK(t, rsp, &rsp))
		return 0;
	rsp -= sizeof next;
	remote = (struct iovec){(void *)(uintptr_t)rsp, sizeof next};
	return process_vm_writev(t->tid, &local, 1, &remote, 1, 0) == sizeof next && SET(t, rsp, rsp) ? target
												      : 0;
}

static uint64_t ret(struct step_thread *t)
{
	uint64_t to, rsp;
	struct iovec local = {&to, sizeof to}, remote;

	if (!STEP_PEEK(t, rsp, &rsp))
		return 0;
	remote = (struct iovec){(void *)(uintptr_t)rsp, sizeof to};
	return process_vm_readv(t->tid, &local, 1, &remote, 1, 0) == sizeof to && to < USER_END &&
		       SET(t, rsp, rsp + sizeof to)
		   ? to
		   : 0;
}

/* Does what a near branch at t->ip does to the stack: where it leads. 0, and nothing is done: it is left to
 * the CPU, as are those with prefixes, which make them longer. */
static uint64_t branch(const struct step *s, struct step_thread *t, const struct step_insn *in)
{
	uint64_t target = insn_target(&in->insn, t->ip, INSN_64);
	unsigned len = in->insn.len;

	switch (in->insn.cls) {
	case INSN_JMP: return len == JMP_SHORT || len == JMP_NEAR ? target : 0;
	case INSN_JCC: return len == JCC_SHORT || len == JCC_NEAR ? jcc(t, in, target) : 0;
	case INSN_CALL: return len == CALL_NEAR && !s->shadow_stacks ? call(t, in, target) : 0;
	case INSN_RET: return len == RET_NEAR && !s->shadow_stacks ? ret(t) : 0;
	default: return 0;
	}
}

/* The thread is one byte behind the breakpoint, and what was there is next. */
static void reached(struct step *s, struct step_thread *t)
{
	struct step_insn in;
	uint64_t to = step_insn(s, t, &in) ? branch(s, t, &in) : 0;

	if (!SET(t, rip, to ? to : t->ip) || !to)
		return;
	step_executed(s, t, &in.insn, to);
	s->result->steps++;
}

/* ---- What was executed ------------------------------------------------------------------------------ */

void step_straight_executed(struct step *s, struct step_thread *t, uint64_t now)
{
	uint64_t end = t->straight_end, until = now == end + 1 ? end : now;
	struct step_insn in;

	t->straight_end = 0;
	t->jumped = false;
	for (bool first = true; t->ip != until && t->ip < end && step_insn(s, t, &in); first = false) {
		step_executed(s, t, &in.insn, t->ip + in.insn.len);
		s->result->steps += !first; /* one was counted by who waited */
	}
	if (t->ip != until) { /* it was put somewhere else */
		step_async_end(s, t);
		step_begin(s, t, until);
	}
	if (now == end + 1)
		reached(s, t);
}
