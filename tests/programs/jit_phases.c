/*
 * jit_phases ROUNDS - makes code and runs it, in the three ways of runtimes: written where it is
 * executable, once; written while it is not executable; written where it is executable, and changed
 * while it runs. It sleeps after each round.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

/* int f(int n): counts n down; whether it adds or subtracts, and how a test of bit 0 jumps, is `which`. */
static size_t make(unsigned char *to, int which)
{
	const unsigned char code[] = {0x31,
				      0xc0, /* xor %eax, %eax */
				      0x40,
				      0xf6,
				      0xc7,
				      0x01, /* 1: test $1, %dil */
				      (unsigned char)(which & 1 ? 0x74 : 0x75),
				      3, /* jz, jnz 2f */
				      0x83,
				      (unsigned char)(which & 2 ? 0xe8 : 0xc0),
				      5, /* sub, add $5, %eax */
				      0xff,
				      0xcf, /* 2: dec %edi */
				      0x75,
				      0xf3, /* jnz 1b */
				      0xc3};

	memcpy(to, code, sizeof code);
	return sizeof code;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int run(const unsigned char *code, double for_seconds)
{
	double end = seconds() + for_seconds;
	int sum = 0;

	do
		sum += ((int (*)(int))(void *)(unsigned long)code)(25);
	while (seconds() < end);
	return sum;
}

static unsigned char *map(int protection)
{
	unsigned char *p = mmap(NULL, 4 * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("jit_phases");
		exit(1);
	}
	return p;
}

int main(int argc, char **argv)
{
	unsigned char *once = map(PROT_READ | PROT_WRITE | PROT_EXEC), *turns = map(PROT_READ | PROT_WRITE),
		      *changes = map(PROT_READ | PROT_WRITE | PROT_EXEC);
	int rounds = argc > 1 ? atoi(argv[1]) : 3, sum = 0;
	size_t at = 0;

	printf("%p\n", (void *)turns);
	for (int i = 0; i < rounds; i++) {
		unsigned char *fresh = once + at;

		at += make(fresh, i);
		sum += run(fresh, 0.02);
		mprotect(turns, 4 * PAGE, PROT_READ | PROT_WRITE);
		make(turns + 100 * (i % 2), i);
		mprotect(turns, 4 * PAGE, PROT_READ | PROT_EXEC);
		sum += run(turns + 100 * (i % 2), 0.01);
		sum += run(once, 0.01);
		for (int k = 0; k < 8; k++) {
			make(changes, i + k);
			sum += run(changes, 0.004);
		}
		/* A slow machine's capture can catch up, and read what was made: it is known from here on. */
		sleep(2);
		sum += run(fresh, 0.03);
	}
	printf("%d\n", sum);
	return 0;
}
