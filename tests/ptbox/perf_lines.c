/*
 * perf_lines.c - the programs that perf's manual pages record, by the name that they are run by: sort N
 * (sorts N numbers), loopy N (goes N times round a loop), eg_ptw VALUE (one PTWRITE).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

static int sort(size_t n)
{
	int *at = malloc(n * sizeof *at);

	if (!at)
		return 1;
	for (size_t i = 0; i < n; i++)
		at[i] = (int)(i * 7919 % 3001);
	qsort(at, n, sizeof *at, compare);
	printf("%d\n", at[n / 2]);
	free(at);
	return 0;
}

static int loop(unsigned long n)
{
	volatile unsigned long sum = 0;

	while (n--)
		sum = sum + n;
	return sum == 1;
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;

	if (!strcmp(name, "sort"))
		return sort(n);
	if (!strcmp(name, "loopy"))
		return loop(n);
	__asm__ volatile("ptwriteq %0" : : "r"(n));
	return 0;
}
