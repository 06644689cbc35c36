/*
 * pauses.c - work in phases, distinguished by functions and parted by system calls that nothing else makes:
 * getpgid() before what is to be traced, getsid() before what is not (ptbox/pause.sh).
 */
#include <stdio.h>
#include <unistd.h>

static volatile unsigned sum;

__attribute__((noinline)) void traced(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sum += i & 3 ? i : 1;
}

__attribute__((noinline)) void paused(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sum -= i & 5 ? i : 2;
}

int main(void)
{
	for (int round = 0; round < 20; round++) {
		getpgid(0);
		traced(200);
		getsid(0);
		paused(200);
	}
	printf("%u\n", sum);
	return 0;
}
