/* rare [PAUSE_MS]: works, and calls rare() now and then, which takes 0 or 4 ms by turns; pauses after each
 * eighth of that; it ends when the file "done" is there. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static volatile unsigned sum;

__attribute__((noinline)) unsigned often(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sum += i & 1 ? i : sum >> 1;
	return sum;
}

__attribute__((noinline)) unsigned rare(double ms)
{
	double end = now_ms() + ms;

	do
		sum += often(50);
	while (now_ms() < end);
	return sum;
}

int main(int argc, char **argv)
{
	unsigned pause_ms = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	struct utsname u;

	for (unsigned i = 1; access("done", F_OK); i++) {
		for (unsigned k = 0; k < 200; k++)
			often(100);
		if (i % 8 == 0)
			sum += rare(i % 16 ? 0 : 4);
		if (i % 32 == 0)
			uname(&u);
		if (pause_ms)
			usleep(pause_ms * 1000);
	}
	return 0;
}
