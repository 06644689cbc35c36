/* Code that is made at run time: writable and executable, rewritten in place; then written,
 * protected, executed. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static int run(unsigned char *code, int k)
{
	/* mov $k, %eax; test %edi, %edi; je +1; inc...: a branch that depends on what was written */
	unsigned char bytes[] = {0xb8,
				 (unsigned char)k,
				 0,
				 0,
				 0,
				 0x83,
				 0xff,
				 3,
				 (unsigned char)(k & 1 ? 0x74 : 0x75),
				 3,
				 0x83,
				 0xc0,
				 10,
				 0xc3};

	memcpy(code, bytes, sizeof bytes);
	return ((int (*)(int))(void *)code)(3) + ((int (*)(int))(void *)code)(4);
}

int main(void)
{
	unsigned char *rwx =
	    mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *wx = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int sum = 0;

	for (int k = 0; k < 6; k++)
		sum += run(rwx, k);
	sum += run(rwx + 4096 - 6, 9); /* across two pages */
	for (int k = 0; k < 3; k++) {
		unsigned char bytes[] = {
		    0xb8, (unsigned char)k, 0, 0, 0, (unsigned char)(k == 1 ? 0x90 : 0xc3), 0xc3};

		mprotect(wx, 4096, PROT_READ | PROT_WRITE);
		memcpy(wx, bytes, sizeof bytes);
		mprotect(wx, 4096, PROT_READ | PROT_EXEC);
		sum += ((int (*)(void))(void *)wx)();
	}
	printf("%d\n", sum);
	return 0;
}
