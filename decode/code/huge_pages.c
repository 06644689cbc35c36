/* huge_pages.c - see huge_pages.h. */
#include "decode/code/huge_pages.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE  ((size_t)2 << 20)
#define CACHE_LINE ((size_t)64)
#define SMALL_PAGE ((size_t)4096)

void *pt_pages_reserve(size_t n, size_t size)
{
	void *p =
	    mmap(NULL, n * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, n * size, MADV_HUGEPAGE);
	return p;
}

void pt_pages_release(void *p, size_t n, size_t size)
{
	if (p)
		munmap(p, n * size);
}

void pt_pages_small(void *p, size_t n, size_t size)
{
	if (p)
		madvise(p, n * size, MADV_NOHUGEPAGE);
}

void pt_pages_wipe(void *p, size_t n, size_t size)
{
	madvise(p, (n * size + SMALL_PAGE - 1) / SMALL_PAGE * SMALL_PAGE, MADV_DONTNEED);
}

void *pt_table_create(size_t n, size_t size)
{
	size_t bytes = n * size;
	void *p;

	if (bytes >= HUGE_PAGE)
		return pt_pages_reserve(n, size);
	p = aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
	return p ? memset(p, 0, bytes) : NULL;
}

void pt_table_destroy(void *p, size_t n, size_t size)
{
	if (n * size >= HUGE_PAGE)
		pt_pages_release(p, n, size);
	else
		free(p);
}
