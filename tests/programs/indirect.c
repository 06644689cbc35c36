/* Function pointers, a jump table, recursion deeper than the CPU's 64 return addresses, a call to the
 * next instruction, a return that goes elsewhere. */
#include <stdio.h>

static int add(int x)
{
	return x + 3;
}
static int twice(int x)
{
	return x * 2;
}
static int less(int x)
{
	return x - 1;
}

static int table(int op, int x)
{
	switch (op) {
	case 0: return x + 1;
	case 1: return x * 3;
	case 2: return x ^ 5;
	case 3: return x - 7;
	case 4: return x / 3;
	case 5: return x % 11;
	case 6: return -x;
	default: return x;
	}
}

__attribute__((noinline)) static int deep(int n)
{
	return n ? deep(n - 1) + (n & 1) : 0;
}

static unsigned long here(void)
{
	unsigned long ip;

	__asm__ volatile("call 1f\n1: pop %0" : "=r"(ip));
	return ip;
}

static void elsewhere(void)
{
	__asm__ volatile(
	    "lea 1f(%%rip), %%rax\n sub $128, %%rsp\n push %%rax\n ret\n int3\n1: add $128, %%rsp" ::
		: "rax", "memory");
}

int main(void)
{
	int (*const f[])(int) = {add, twice, less};
	int x = 1;

	for (int i = 0; i < 200; i++) {
		x = f[(i * 7) % 3](x) & 0xffff;
		x = table(i % 9, x);
	}
	x += deep(150) + deep(10);
	elsewhere();
	printf("%d %d\n", x, here() != 0);
	return 0;
}
