/* Code that is made at run time and written down as perf's jitdump: jitdump [FOLDER [tsc]]. Functions at
 * addresses of their own, and one address that has another function each time. tsc: with the TSC's
 * times. */
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static FILE *dump;
static int with_tsc;
static uint64_t indexes;

static uint64_t now(void)
{
	struct timespec t;

	if (with_tsc)
		return __rdtsc();
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void put(const void *bytes, size_t n)
{
	if (fwrite(bytes, 1, n, dump) != n)
		exit(1);
}

static void begin(const char *folder)
{
	uint32_t head[6] = {0x4a695444, 1, 40, EM_X86_64, 0, (uint32_t)getpid()};
	uint64_t rest[2] = {now(), (uint64_t)with_tsc};
	char name[4096];

	snprintf(name, sizeof name, "%s/jit-%d.dump", folder, getpid());
	dump = fopen(name, "w+");
	if (!dump)
		exit(1);
	put(head, sizeof head);
	put(rest, sizeof rest);
	fflush(dump);
	/* So that its name is in a recording. */
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED)
		exit(1);
}

static void load(const char *name, const void *address, const void *code, size_t n)
{
	uint32_t head[2] = {0, (uint32_t)(16 + 40 + strlen(name) + 1 + n)}, who[2];
	uint64_t time = now(), where[4] = {(uintptr_t)address, (uintptr_t)address, n, indexes++};

	who[0] = who[1] = (uint32_t)getpid();
	put(head, sizeof head);
	put(&time, sizeof time);
	put(who, sizeof who);
	put(where, sizeof where);
	put(name, strlen(name) + 1);
	put(code, n);
	fflush(dump);
}

/* Makes the function k at code[at], writes it down, and runs it. */
static int run(unsigned char *code, size_t at, int k)
{
	/* mov $k, %eax; 1: add $10, %eax; dec %edi; jne (or jg) 1b; ret */
	unsigned char bytes[] = {0xb8,
				 (unsigned char)k,
				 0,
				 0,
				 0,
				 0x83,
				 0xc0,
				 10,
				 0xff,
				 0xcf,
				 (unsigned char)(k & 1 ? 0x75 : 0x7f),
				 0xf9,
				 0xc3};
	char name[32];

	snprintf(name, sizeof name, "made_%d", k);
	if (mprotect(code, 4096, PROT_READ | PROT_WRITE))
		exit(1);
	memcpy(code + at, bytes, sizeof bytes);
	if (mprotect(code, 4096, PROT_READ | PROT_EXEC))
		exit(1);
	load(name, code + at, bytes, sizeof bytes);
	return ((int (*)(int))(void *)(code + at))(3 + k);
}

int main(int argc, char **argv)
{
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char folder[] = "/tmp/jitdump.XXXXXX";
	int sum = 0;

	if (argc < 2 && !mkdtemp(folder))
		return 1;
	with_tsc = argc > 2;
	begin(argc < 2 ? folder : argv[1]);
	for (int k = 0; k < 20; k++)
		sum += run(code, (size_t)k * 64, k);
	for (int k = 20; k < 40; k++)
		sum += run(code, 2048, k);
	/* Those from before are still there. */
	for (int k = 0; k < 20; k++)
		sum += ((int (*)(int))(void *)(code + (size_t)k * 64))(2);
	printf("%d\n", sum);
	return 0;
}
