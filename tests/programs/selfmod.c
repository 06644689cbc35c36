/* Code that changes as it runs: the next instruction, without a branch between; by another mapping of
 * its page; and, though it is write-protected, by /proc/self/mem. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* movb $N, next(%rip); next: jmp +2, or with N = 0x74, 0x75: jz, jnz; inc %eax; ret. Z is set. */
static const unsigned char straight[] = {0x31, 0xc0,			 /* xor %eax, %eax */
					 0xc6, 0x05, 0, 0, 0, 0,   0xeb, /* movb $0xeb, (%rip) */
					 0xeb, 0x02,			 /* jmp +2: is overwritten */
					 0xff, 0xc0,			 /* inc %eax */
					 0xc6, 0x05, 1, 0, 0, 0,   0x90, /* movb $0x90, 1(%rip) */
					 0x90, 0xc3,		     /* nop; ret: becomes nop, and so on */
					 0x05, 10,   0, 0, 0, 0xc3}; /* add $10, %eax; ret */

/* Its jump leads to after two or all of three NOPs. */
extern unsigned char spot[];
__attribute__((noinline)) static int file_code(int x)
{
	__asm__ volatile(".globl spot\nspot: jmp 1f\nnop\nnop\nnop\n1: nop" : "+r"(x));
	return x + 1;
}

int main(void)
{
	unsigned char *code =
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static const unsigned char ops[] = {0xeb, 0x74, 0x75, 0xeb, 0x75};
	int fd = memfd_create("code", 0), sum = 0;
	unsigned char *writable, *executable;

	for (size_t i = 0; i < sizeof ops; i++) {
		memcpy(code, straight, sizeof straight);
		code[8] = ops[i];
		sum += ((int (*)(void))(void *)code)();
	}
	printf("%d\n", sum);
	if (fd < 0 || ftruncate(fd, 4096) < 0)
		return 1;
	writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	executable = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	for (int k = 0; k < 6; k++) {
		/* mov $k, %eax; jmp +0 or +1; nop; ret */
		unsigned char bytes[] = {0xb8, (unsigned char)k,       0,    0,	  0,
					 0xeb, (unsigned char)(k & 1), 0x90, 0xc3};

		memcpy(writable, bytes, sizeof bytes);
		sum += ((int (*)(void))(void *)executable)();
	}
	printf("%d\n", sum);
	fd = open("/proc/self/mem", O_RDWR);
	for (int k = 0; k < 6; k++) {
		unsigned char distance = (unsigned char)(2 + k % 2);

		sum += file_code(k);
		if (pwrite(fd, &distance, 1, (off_t)(uintptr_t)(spot + 1)) == 1)
			sum += file_code(k);
	}
	printf("%d\n", sum);
	return 0;
}
