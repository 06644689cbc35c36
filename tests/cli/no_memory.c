/*
 * no_memory.c - a library to preload: from the N-th allocation on (NO_MEMORY_AT, from 1; 0: none) each fails.
 * NO_MEMORY_COUNT names a file that gets the number of allocations at the end.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

void *__libc_malloc(size_t n);		     /* NOLINT(bugprone-reserved-identifier) */
void *__libc_calloc(size_t n, size_t bytes); /* NOLINT(bugprone-reserved-identifier) */
void *__libc_realloc(void *p, size_t n);     /* NOLINT(bugprone-reserved-identifier) */

static long allocations, from = -1;

static int fails(void)
{
	if (from < 0) {
		const char *at = getenv("NO_MEMORY_AT");

		from = at ? atol(at) : 0;
	}
	if (++allocations < from || !from)
		return 0;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t n)
{
	return fails() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t bytes)
{
	return fails() ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t n)
{
	return fails() ? NULL : __libc_realloc(p, n);
}

__attribute__((destructor)) static void report(void)
{
	const char *name = getenv("NO_MEMORY_COUNT");
	FILE *f;

	from = 0;
	f = name ? fopen(name, "w") : NULL;
	if (f) {
		fprintf(f, "%ld\n", allocations);
		fclose(f);
	}
}
