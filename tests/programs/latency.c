/* Calls of work() whose lengths differ, from two callers, in two threads; one of them is slow in a
 * callee of its own. */
#include <pthread.h>
#include <stdio.h>

#ifndef OFTEN
#define OFTEN 301
#endif

static volatile unsigned sink;

__attribute__((noinline, noclone)) void settle(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sink += i;
}

__attribute__((noinline, noclone)) void refill(void)
{
	settle(400);
}

__attribute__((noinline, noclone)) unsigned work(unsigned n)
{
	settle(n);
	if (n == 37 && sink % 2 < 2)
		refill();
	return sink;
}

#ifdef MORE
__attribute__((noinline, noclone)) void added(void)
{
	settle(MORE);
}
#endif

__attribute__((noinline, noclone)) void often(void)
{
#ifdef MORE
	added();
#endif
	for (unsigned i = 0; i < OFTEN; i++)
		sink += work(i * 7919 % 31);
}

__attribute__((noinline, noclone)) void rarely(unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		sink += work(i == 20 ? 37 : i % 13);
}

static void *run(void *arg)
{
	rarely(55);
	return arg;
}

int main(void)
{
	pthread_t t;

	pthread_create(&t, NULL, run, NULL);
	often();
	rarely(40);
	pthread_join(t, NULL);
	printf("%u\n", sink & 1);
	return 0;
}
