/*
 * kinds - a program for recordings in the emulated PC: PTWRITE in all its forms, perf's emulated one,
 * functions to be filtered by, branches of every kind, system calls, a page fault, a signal, an idle
 * moment. Static and at a fixed address: `nm` says where everything is.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

__attribute__((noinline)) uint64_t first(uint64_t n)
{
	uint64_t s = 0;

	for (uint64_t i = 0; i < n; i++)
		s += i & 4 ? i * 3 : i ^ s;
	return s;
}

__attribute__((noinline)) uint64_t second(uint64_t n)
{
	return n < 2 ? n : second(n - 1) + second(n - 2);
}

__attribute__((noinline)) uint64_t third(uint64_t n)
{
	static uint64_t (*const calls[])(uint64_t) = {first, second, first};
	uint64_t s = 0;

	for (uint64_t i = 0; i < n; i++)
		s += calls[i % 3](i % 7);
	return s;
}

/* Where a TraceStop range lies: nothing is traced any more from here on, until the event is started again. */
__attribute__((noinline)) uint64_t last(uint64_t n)
{
	return first(n) + 1;
}

/* n values, in registers and memory, of 4 and 8 bytes. */
__attribute__((noinline)) void write_values(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t v = i * UINT64_C(0x9e3779b97f4a7c15);
		uint32_t w = (uint32_t)(v >> 32);

		__asm__ volatile("ptwriteq %0" : : "r"(v));
		__asm__ volatile("ptwritel %0" : : "r"(w));
		if (i & 1)
			__asm__ volatile("ptwriteq %0" : : "m"(v));
		else
			__asm__ volatile("ptwritel %0" : : "m"(w));
	}
}

/*
 * perf's emulated PTWRITE: a value in 64 conditional branches after a jump over 16 bytes (perf-intel-pt(1)).
 */
#define BIT  "1: shl %rax\njc 1f\n"
#define BITS BIT BIT BIT BIT BIT BIT BIT BIT
__attribute__((naked, noinline)) void emulate(uint64_t value)
{
	(void)value;
	__asm__("jmp 1f\n.byte 0x0f, 0x0b\n.ascii \"perf,ptwrite  \"\n1: mov %rdi, %rax\n" BITS BITS BITS BITS
		    BITS BITS BITS BITS "1: ret\n");
}

static void *page;

static void on_fault(int signal)
{
	(void)signal;
	if (mprotect(page, 4096, PROT_READ | PROT_WRITE))
		_exit(1);
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, 1);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	struct timespec nap = {0, 2000000};
	char text[200];

	signal(SIGSEGV, on_fault);
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned i = 0; i < rounds; i++) {
		sink = first(50) + second(8) + third(30);
		if (argc > 2 && argv[2][0] == 'p')
			write_values(20);
		for (uint64_t k = 0; argc > 2 && argv[2][0] == 'e' && k < 60000; k++)
			emulate(k * UINT64_C(0x9e3779b97f4a7c15));
		*(volatile char *)page = 1;
		mprotect(page, 4096, PROT_NONE);
		for (size_t k = 0; k < sizeof text; k++)
			text[k] = (char)(k * 37 + i);
		qsort(text, sizeof text, 1, compare);
		sink += first(20);
		nanosleep(&nap, NULL);
		sink += last(20) + third(9) + second(5);
	}
	return getppid() == 0;
}
