/*
 * What stepping by the trap flag changes unless care is taken: PUSHF shows the flag, so does R11
 * after SYSCALL, MOV SS is followed by no trap; and software interrupts, SIGTRAPs that somebody sent,
 * the vsyscall page. It prints what an untraced run prints.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile sig_atomic_t traps;

static void on_trap(int sig)
{
	(void)sig;
	traps = traps + 1;
}

static void on_fault(int sig)
{
	siglongjmp(back, sig);
}

static void flags(void)
{
	uint64_t q, r11;
	uint16_t w;

	__asm__ volatile("pushfq\n pop %0" : "=r"(q));
	__asm__ volatile("sub $126, %%rsp\n pushfw\n popw %0\n add $126, %%rsp" : "=r"(w)::"cc", "memory");
	printf("trap flag in pushfq %d, pushfw %d\n", (int)(q >> 8 & 1), w >> 8 & 1);
	__asm__ volatile("pushfq\n popfq\n pushfq\n pop %0" : "=r"(q)::"cc");
	printf("after popfq %d\n", (int)(q >> 8 & 1));
	__asm__ volatile("syscall\n mov %%r11, %0" : "=r"(r11) : "a"(SYS_getpid) : "rcx", "r11", "memory");
	printf("in r11 %d\n", (int)(r11 >> 8 & 1));
}

/* Each second instruction is a branch. */
static void stack_segment(void)
{
	long n = 0, ss, target;

	__asm__ volatile("mov %%ss, %1\n"
			 "mov %1, %%ss\n jmp 1f\n inc %0\n"
			 "1: test %0, %0\n mov %1, %%ss\n jz 2f\n inc %0\n"
			 "2: lea 3f(%%rip), %2\n mov %1, %%ss\n jmp *%2\n inc %0\n"
			 "3: sub $128, %%rsp\n mov %1, %%ss\n call 4f\n jmp 5f\n"
			 "4: mov %1, %%ss\n ret\n"
			 "5: add $128, %%rsp\n mov %1, %%ss\n pushfq\n popfq\n add $5, %0\n"
			 : "+r"(n), "=&r"(ss), "=&r"(target)::"cc", "memory");
	printf("mov ss: %ld\n", n);
	n = 1;
	__asm__ volatile("mov %%ss, %1\n mov %1, %%ss\n syscall\n test %0, %0\n jz 1f\n neg %0\n 1:"
			 : "+a"(n), "=&r"(ss)
			 : "D"(1L), "S"(""), "d"(0L)
			 : "rcx", "r11", "cc", "memory");
	printf("mov ss, syscall: %ld\n", n);
}

static void traps_of_its_own(void)
{
	signal(SIGTRAP, on_trap);
	for (int i = 0; i < 3; i++)
		__asm__ volatile("int3");
	__asm__ volatile(".byte 0xcd, 3");
	kill(getpid(), SIGTRAP);
	raise(SIGTRAP);
	printf("traps: %d\n", (int)traps);
}

static void traps_of_another(void)
{
	int before = traps;

	if (fork() == 0) {
		for (int i = 0; i < 200; i++)
			kill(getppid(), SIGTRAP);
		_exit(0);
	}
	while (traps == before)
		;
	printf("traps of another: some\n");
	while (wait(NULL) < 0 && errno == EINTR)
		;
}

/* As libc 2.41's fork() does it: from a constant set. */
static void trap_blocked(void)
{
	static const unsigned long all = ~0ul;
	unsigned long before, now = 0;
	int traps_before = traps;
	register unsigned long r10 __asm__("r10") = sizeof all;
	register const unsigned long *set __asm__("rsi") = &all;
	long n = SYS_rt_sigprocmask;

	__asm__ volatile("syscall"
			 : "+a"(n), "+r"(set)
			 : "D"(SIG_BLOCK), "d"(&before), "r"(r10)
			 : "rcx", "r11", "memory");
	printf("sigprocmask: %ld, its argument %s\n", n, set == &all ? "kept" : "lost");
	kill(getpid(), SIGTRAP);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, &now, sizeof now);
	printf("behind a block of all signals: %d traps, SIGUSR1 was %s\n", (int)traps - traps_before,
	       now >> (SIGUSR1 - 1) & 1 ? "blocked" : "not blocked");
	raise(SIGTRAP);
	printf("and %d\n", (int)traps - traps_before);
}

static void gates(void)
{
	long n = 20; /* getpid of 32-bit programs */

	signal(SIGSEGV, on_fault);
	if (sigsetjmp(back, 1) == 0) {
		__asm__ volatile("int $0x80" : "+a"(n)::"r8", "r9", "r10", "r11", "memory");
		printf("int 0x80: %s\n", n == getpid() ? "the pid" : "another number");
	} else {
		printf("int 0x80: refused\n");
	}
	if (sigsetjmp(back, 1) == 0) {
		long (*vsyscall_time)(long *) = (long (*)(long *))0xffffffffff600400;

		printf("vsyscall: %s\n", vsyscall_time(NULL) > 1000000000 ? "a time" : "no time");
	} else {
		printf("vsyscall: none\n");
	}
	if (sigsetjmp(back, 1) == 0)
		__asm__ volatile("int $0x81");
	else
		printf("int 0x81: refused\n");
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	flags();
	stack_segment();
	traps_of_its_own();
	trap_blocked();
	traps_of_another();
	gates();
	return 0;
}
