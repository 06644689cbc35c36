/*
 * modes - changes of the CPU's mode in user space, as Wine does for 32-bit Windows programs: far returns, far
 * jumps and far calls between 64-bit and 32-bit code of one program; the vsyscall page; steps and blocks under
 * ptrace. Static and below 4 GB: gcc -static -no-pie.
 *
 *     modes WHAT N      WHAT: far, vsyscall, steps
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PTRACE_SINGLEBLOCK
#define PTRACE_SINGLEBLOCK 33
#endif

uint64_t saved_rsp;
uint8_t low_stack[65536] __attribute__((aligned(16)));
/* How: 0 RETF, 1 JMP m16:32, 2 IRETQ. Each comes back by another far transfer. */
unsigned run_32(unsigned n, unsigned how);

__asm__(".text\n"
	".globl run_32\n"
	"run_32:\n"
	"	push %rbx\n"
	"	push %rbp\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp, saved_rsp\n"
	"	lea low_stack + 65000, %esp\n"
	"	mov %edi, %ecx\n"
	"	mov $0x2b, %eax\n"
	"	mov %eax, %ds\n"
	"	mov %eax, %es\n"
	"	cmp $1, %esi\n"
	"	je 1f\n"
	"	ja 2f\n"
	"	pushq $0x23\n"
	"	pushq $code_32\n"
	"	lretq\n"
	"1:	ljmp *far_32\n"
	"2:	mov %rsp, %rdx\n"
	"	pushq $0x2b\n"
	"	pushq %rdx\n"
	"	pushfq\n"
	"	pushq $0x23\n"
	"	pushq $code_32\n"
	"	iretq\n"
	".code32\n"
	"code_32:\n"
	"	xor %eax, %eax\n"
	"3:	test $1, %cl\n"
	"	jz 4f\n"
	"	add %ecx, %eax\n"
	"	call helper_32\n"
	"4:	test $7, %cl\n"
	"	jnz 5f\n"
	"	lcall $0x33, $called_64\n"
	"5:	dec %ecx\n"
	"	jns 3b\n"
	"	test $1, %esi\n"
	"	jz 6f\n"
	"	ljmp $0x33, $back_64\n"
	"6:	push $0x33\n"
	"	push $back_64\n"
	"	lret\n"
	"helper_32:\n"
	"	add $3, %eax\n"
	"	ret\n"
	".code64\n"
	"called_64:\n"
	"	test $8, %cl\n"
	"	jz 7f\n"
	"	add $5, %eax\n"
	"7:	lretl\n"
	"back_64:\n"
	"	mov saved_rsp, %rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbp\n"
	"	pop %rbx\n"
	"	ret\n"
	".data\n"
	"far_32: .long code_32\n"
	"	.word 0x23\n"
	".text\n");

static unsigned far_transfers(unsigned n)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += run_32(i % 50, i % 3);
	return sum;
}

static unsigned vsyscall(unsigned n)
{
	long (*time_in_vsyscall)(long *) = (void *)(uintptr_t)0xffffffffff600400;
	unsigned sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += time_in_vsyscall(NULL) != 0;
	return sum;
}

static __attribute__((noinline)) unsigned work(unsigned n)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum = i % 3 ? sum * 5 + i : sum ^ i;
	return sum;
}

static unsigned steps(unsigned n)
{
	int status, stopped = 0;
	pid_t pid = fork();

	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit((int)work(n) & 0x7f);
	}
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		stopped++;
		if (stopped > (int)n * 4)
			ptrace(PTRACE_CONT, pid, 0, 0);
		else
			ptrace(stopped % 20 < 10 ? PTRACE_SINGLESTEP : PTRACE_SINGLEBLOCK, pid, 0, 0);
	}
	return (unsigned)stopped;
}

int main(int argc, char **argv)
{
	unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 0, sum;

	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "far"))
		sum = far_transfers(n);
	else if (!strcmp(argv[1], "vsyscall"))
		sum = vsyscall(n);
	else
		sum = steps(n);
	printf("%s %u\n", argv[1], sum);
	return 0;
}
