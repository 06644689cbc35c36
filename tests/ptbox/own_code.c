/* Three threads, each of which runs a function of its own for ever; the program's first thread waits. */
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile unsigned long counts[3];

/* noinline, and not the same code: each has its own addresses. */
#define RUNS(name, i)                                                                                        \
	static __attribute__((noinline)) void name(void)                                                     \
	{                                                                                                    \
		for (;;)                                                                                     \
			if (++counts[i] % ((i) + 3) == 0)                                                    \
				counts[i] += (i) + 1;                                                        \
	}
RUNS(first, 0)
RUNS(second, 1)
RUNS(third, 2)

static void *run(void *arg)
{
	void (*f)(void) = (void (*)(void))arg;

	printf("%ld %s\n", syscall(SYS_gettid), f == first ? "first" : f == second ? "second" : "third");
	fflush(stdout);
	f();
	return NULL;
}

int main(void)
{
	pthread_t t[3];

	pthread_create(&t[0], NULL, run, (void *)first);
	pthread_create(&t[1], NULL, run, (void *)second);
	pthread_create(&t[2], NULL, run, (void *)third);
	pthread_join(t[0], NULL);
	return 0;
}
