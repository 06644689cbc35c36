/*
 * sigmask.c - SIGTRAP is never blocked in what is stepped. A step's end with SIGTRAP blocked takes a handler
 * of it away for good (force_sig_info_to_task() of the kernel).
 */
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "capture/step/internal.h"

#define TRAP_BIT ((uint64_t)1 << (SIGTRAP - 1))
#define RED_ZONE 128 /* bytes below the stack pointer that a function may use (System V ABI) */

void step_unblock_trap(struct step_thread *t)
{
	uint64_t mask;

	if (ptrace(PTRACE_GETSIGMASK, t->tid, sizeof mask, &mask) < 0 || !(mask & TRAP_BIT))
		return;
	mask &= ~TRAP_BIT;
	ptrace(PTRACE_SETSIGMASK, t->tid, sizeof mask, &mask);
}

void step_keep_trap_unblocked(struct step_thread *t)
{
	struct user_regs_struct regs;
	struct iovec local, remote;
	uint64_t set;

	if (ptrace(PTRACE_GETREGS, t->tid, 0, &regs) < 0 || !regs.rsi || regs.rdi == SIG_UNBLOCK)
		return;
	local = (struct iovec){&set, sizeof set};
	remote = (struct iovec){(void *)(uintptr_t)regs.rsi, sizeof set};
	if (process_vm_readv(t->tid, &local, 1, &remote, 1, 0) != sizeof set || !(set & TRAP_BIT))
		return;
	/* The set itself may be constant: another one, where nobody has anything. */
	set &= ~TRAP_BIT;
	t->sigset = regs.rsi;
	regs.rsi = (regs.rsp - RED_ZONE - sizeof set) & ~(uint64_t)7;
	remote.iov_base = (void *)(uintptr_t)regs.rsi;
	if (process_vm_writev(t->tid, &local, 1, &remote, 1, 0) != sizeof set ||
	    ptrace(PTRACE_SETREGS, t->tid, 0, &regs) < 0)
		t->sigset = 0;
}

void step_sigmask_set(struct step_thread *t)
{
	if (t->sigset)
		ptrace(PTRACE_POKEUSER, t->tid, offsetof(struct user_regs_struct, rsi), t->sigset);
	t->sigset = 0;
}
