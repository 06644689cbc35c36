/* stepping.c - before and after a step: which instruction it executes, and what it did. See internal.h. */
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "capture/step/internal.h"

#define TRAP_FLAG	    0x100u  /* RFLAGS.TF: the CPU traps after each instruction */
#define NEW_USERFAULTFD	    0xaa00u /* ioctl() of /dev/userfaultfd, Linux 6.1: USERFAULTFD_IOC_NEW */
#define ENABLE_SHADOW_STACK 0x5001u /* arch_prctl(), Linux 6.6: ARCH_SHSTK_ENABLE */
#define VSYSCALL_PAGE	    0xffffffffff600000u

/* Does [start, start + bytes) overlap an executable mapping? */
static bool overlaps_code(const struct step_process *p, uint64_t start, uint64_t bytes)
{
	for (size_t i = 0; i < p->map_count; i++)
		if (start < p->maps[i].end &&
		    (bytes > UINT64_MAX - start || start + bytes > p->maps[i].start))
			return true;
	return false;
}

/*
 * May the system call change the executable mappings? To look at them costs a read of /proc/PID/maps,
 * so calls that only concern data are recognised by their arguments. False also when these cannot be
 * read: the thread is being killed.
 */
static bool changes_maps(struct step_thread *t, uint64_t number)
{
	struct step_process *p = t->process;
	uint64_t start, bytes, prot;

	switch (number) {
	case SYS_mmap:
	case SYS_mprotect:
	case SYS_pkey_mprotect:
	case SYS_munmap:
		if (!STEP_PEEK(t, rdi, &start) || !STEP_PEEK(t, rsi, &bytes) || !STEP_PEEK(t, rdx, &prot))
			return false;
		return p->read_implies_exec || overlaps_code(p, start, bytes) ||
		       (number != SYS_munmap && (prot & PROT_EXEC));
	case SYS_personality: p->read_implies_exec = true; return false; /* it may be, from now on */
	case SYS_mremap:
	case SYS_shmat:
	case SYS_shmdt:
	case SYS_remap_file_pages: return true;
	default: return false;
	}
}

/* Does the call write to a process's memory by its file, /proc/PID/mem, which mappings' protection
 * does not keep it from? */
static bool writes_memory(struct step_thread *t, uint64_t number)
{
	char path[64], to[64];
	uint64_t fd;
	ssize_t n;

	if (number != SYS_write && number != SYS_pwrite64 && number != SYS_writev && number != SYS_pwritev &&
	    number != SYS_pwritev2)
		return false;
	if (!STEP_PEEK(t, rdi, &fd))
		return false;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", t->tid, (int)fd);
	n = readlink(path, to, sizeof to);
	return n > 10 && n < (ssize_t)sizeof to && !memcmp(to, "/proc/", 6) && !memcmp(to + n - 4, "/mem", 4);
}

/* Does the call give a thread page faults of others to serve (userfaultfd(2))? */
static bool serves_faults(struct step_thread *t, uint64_t number)
{
	uint64_t request;

	return number == SYS_userfaultfd ||
	       (number == SYS_ioctl && STEP_PEEK(t, rsi, &request) && request == NEW_USERFAULTFD);
}

/* Does the call copy the process's memory? By number of either table, for INT 80 has its own. */
static bool forks(uint64_t number, bool int80)
{
	enum { FORK_32 = 2, CLONE_32 = 120 };

	return number == SYS_clone3 ||
	       (int80 ? number == FORK_32 || number == CLONE_32 : number == SYS_fork || number == SYS_clone);
}

/* Before an instruction that leaves user space: tracing ends with it. */
static void leave_user_space(struct step *s, struct step_thread *t)
{
	bool int80 = t->insn.quirk == STEP_INT80;
	uint64_t number = 0, first;

	if ((int80 || t->insn.insn.cls == INSN_SYSCALL) && !STEP_PEEK(t, rax, &number))
		return;
	t->forks = forks(number, int80);
	if (t->insn.insn.cls == INSN_SYSCALL) {
		if (!STEP_PEEK(t, rdi, &first))
			return;
		t->maps_changed = changes_maps(t, number);
		t->protects = number == SYS_mprotect || number == SYS_pkey_mprotect;
		t->pokes = writes_memory(t, number);
		t->renames = number == SYS_prctl && first == PR_SET_NAME;
		t->from_syscall = number != SYS_rt_sigreturn; /* which brings back all registers */
		s->single |= serves_faults(t, number);
		s->shadow_stacks |= number == SYS_arch_prctl && first == ENABLE_SHADOW_STACK;
		if (number == SYS_rt_sigprocmask)
			step_keep_trap_unblocked(t);
		step_affinity_called(s, t, number);
		step_end(s, t, t->ip);
		return;
	}
	t->far_trap = t->insn.quirk == STEP_TRAP;
	t->maps_changed = t->protects = int80;
	step_async_end(s, t);
}

void step_prepare(struct step *s, struct step_thread *t)
{
	t->known = step_insn(s, t, &t->insn);
	if (t->known && t->insn.quirk == STEP_MOV_SS) {
		t->shadow = t->ip;
		step_executed(s, t, &t->insn.insn, t->ip + t->insn.insn.len);
		s->result->steps++;
		t->known = step_insn(s, t, &t->insn);
	}
	if (t->known && (t->insn.insn.cls == INSN_SYSCALL || t->insn.insn.cls == INSN_INT)) {
		leave_user_space(s, t);
	} else if (!t->known && (t->ip & ~(uint64_t)4095) == VSYSCALL_PAGE) {
		struct iovec local = {&t->emulating, 8}, remote;
		uint64_t rsp;

		if (!STEP_PEEK(t, rsp, &rsp))
			return;
		remote = (struct iovec){(void *)(uintptr_t)rsp, 8};
		if (process_vm_readv(t->tid, &local, 1, &remote, 1, 0) != 8)
			t->emulating = 0;
		step_async_end(s, t);
	}
}

void step_deliver(struct step *s, struct step_thread *t)
{
	if (!t->in_kernel && step_is_caught(t->tid, t->signal))
		step_async_end(s, t);
}

/* SYSCALL leaves RFLAGS in R11: without the flag that is ours. */
static void hide_trap_flag_of_syscall(struct step_thread *t)
{
	uint64_t r11;

	if (STEP_PEEK(t, r11, &r11) && r11 & TRAP_FLAG)
		ptrace(PTRACE_POKEUSER, t->tid, offsetof(struct user_regs_struct, r11),
		       r11 & ~(uint64_t)TRAP_FLAG);
}

/* PUSHF has pushed RFLAGS: without the flag that is ours. It is bit 0 of the second byte. */
static void hide_trap_flag_of_pushf(struct step_thread *t)
{
	struct iovec local, remote;
	uint64_t rsp;
	uint8_t byte;

	if (!STEP_PEEK(t, rsp, &rsp))
		return;
	local = (struct iovec){&byte, 1};
	remote = (struct iovec){(void *)(uintptr_t)(rsp + 1), 1};
	if (process_vm_readv(t->tid, &local, 1, &remote, 1, 0) == 1 && byte & TRAP_FLAG >> 8) {
		byte &= (uint8_t) ~(TRAP_FLAG >> 8);
		process_vm_writev(t->tid, &local, 1, &remote, 1, 0);
	}
}

/* Where the thread is now, at the end of a step, is where user code goes on. */
static void arrived(struct step *s, struct step_thread *t, uint64_t ip)
{
	if (t->from_syscall)
		hide_trap_flag_of_syscall(t);
	t->from_syscall = false;
	step_affinity_returned(s, t);
	if (t->signalled)
		step_unblock_trap(t);
	t->signalled = false;
	if (t->maps_changed) {
		step_put_all(s);
		step_maps_update(s, t, t->protects);
		t->maps_changed = t->protects = false;
	}
	if (t->pokes) {
		step_maps_written(s);
		t->pokes = false;
	}
	if (t->renames) {
		step_comm(s, t, false);
		t->renames = false;
	}
	if (t->want_psb)
		step_put_aux(s, t);
	s->model.cycles += 3000;
	if (t->emulating) {
		/* The kernel did what the call asks for and returned from it; no trap stops it before
		 * the next instruction. */
		step_begin(s, t, t->emulating);
		t->emulating = 0;
		if (ip != t->ip && step_insn(s, t, &t->insn))
			step_executed(s, t, &t->insn.insn, ip);
		return;
	}
	step_begin(s, t, ip);
}

/* Sets t->jumped: was the instruction, a conditional branch to the next one, taken? False as peek(). */
static bool ask_condition(struct step_thread *t)
{
	uint64_t flags, rcx;

	t->jumped = false;
	if (!t->insn.condition || t->insn.insn.rel)
		return true;
	if (!STEP_PEEK(t, eflags, &flags) || !STEP_PEEK(t, rcx, &rcx))
		return false;
	t->jumped = step_condition(t->insn.condition, flags, rcx);
	return true;
}

/* Where the trap after a CPUID was lost, the next instruction was executed, too. Until t->insn is what led to
 * now. */
static void make_up_for_lost_trap(struct step *s, struct step_thread *t, uint64_t now)
{
	while (t->known && t->insn.quirk == STEP_CPUID && now != t->ip + t->insn.insn.len) {
		step_executed(s, t, &t->insn.insn, t->ip + t->insn.insn.len);
		s->result->steps++;
		t->known = step_insn(s, t, &t->insn);
	}
}

void step_stepped(struct step *s, struct step_thread *t)
{
	unsigned cls;
	uint64_t now;

	t->shadow = 0;
	t->single = false;
	if (!STEP_PEEK(t, rip, &now))
		return;
	if (t->in_kernel) {
		arrived(s, t, now);
		return;
	}
	if (t->straight_end) {
		step_straight_executed(s, t, now);
		return;
	}
	make_up_for_lost_trap(s, t, now);
	if (!t->known) {
		t->ip = now; /* it could not be read, and yet it ran: the decoder will say so */
		return;
	}
	if (t->insn.quirk == STEP_PUSHF)
		hide_trap_flag_of_pushf(t);
	if (!ask_condition(t))
		return;
	cls = t->insn.insn.cls;
	if (now != t->ip || cls == INSN_JMP || cls == INSN_JCC || cls == INSN_JMP_IND || cls == INSN_CALL ||
	    cls == INSN_CALL_IND || cls == INSN_RET)
		step_executed(s, t, &t->insn.insn, now); /* else a string instruction in its middle */
}

void step_interrupted(struct step *s, struct step_thread *t)
{
	uint64_t now;

	if (t->in_kernel)
		return;
	if (!STEP_PEEK(t, rip, &now))
		return;
	if (t->straight_end) {
		step_straight_executed(s, t, now);
		return;
	}
	if (t->shadow && now == t->shadow) {
		t->ip = now; /* the MOV SS itself was not executed */
	} else if (now != t->ip && t->known) {
		if (!ask_condition(t))
			return;
		step_executed(s, t, &t->insn.insn, now);
	}
	t->shadow = 0;
}
