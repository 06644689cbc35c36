/*
 * apart.h - memory that several threads use: in which cache lines it is, and whose these are.
 *
 * A write takes the cache line from the other cores' caches. Where two threads use two things in one line
 * (false sharing), each waits for the line again and again. And where one fills what another has read before,
 * the line is the other core's every time: stores wait in the store buffer until it has come, and when that is
 * full all does. No count of instructions shows either.
 */
#ifndef SCHEMA_APART_H
#define SCHEMA_APART_H

#include <stdlib.h>
#include <string.h>

#define PT_CACHE_LINE 64
#define PT_APART      128 /* bytes: two cache lines, for a processor fetches them in pairs */

/* Zeroed, in cache lines of its own; free() releases it. NULL: no memory. */
static inline void *pt_alloc_apart(size_t bytes)
{
	void *p = aligned_alloc(PT_APART, (bytes + PT_APART - 1) / PT_APART * PT_APART);

	return p ? memset(p, 0, bytes) : NULL;
}

/* The cache line at p will be written, and may be another core's. Any address will do. PREFETCHW is a NOP to
 * processors that do not know it, which have no PT; __builtin_prefetch(p, 1) takes it only where the whole
 * program is for those that do. */
static inline void pt_fetch_to_write(const void *p)
{
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
}

/* The same of all in [p, p + bytes). */
static inline void pt_fetch_all_to_write(const void *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += PT_CACHE_LINE)
		pt_fetch_to_write((const char *)p + i);
}

#endif
