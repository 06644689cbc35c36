/*
 * huge_pages.h - memory for big tables that are read at random: huge pages save most TLB misses.
 */
#ifndef DECODE_CODE_HUGE_PAGES_H
#define DECODE_CODE_HUGE_PAGES_H

#include <stddef.h>

/*
 * Address space for n zeroed elements of size bytes; memory is taken where they are written first. So an
 * array can have room for the most that it will ever hold, and never moves. NULL: no memory. Give it back
 * with pt_pages_release(), and the same n and size; p may be NULL.
 */
void *pt_pages_reserve(size_t n, size_t size);
void pt_pages_release(void *p, size_t n, size_t size);

/* From now on on small pages: for arrays so small that a huge page would be mostly empty. p may be NULL. */
void pt_pages_small(void *p, size_t n, size_t size);

/* Zeroes the first n elements again and gives their memory back to the system. */
void pt_pages_wipe(void *p, size_t n, size_t size);

/* A zeroed hash table of n slots (n x size a power of two), which begins with a cache line. NULL: no memory.
 * Give it back with pt_table_destroy(), and the same n and size; p may be NULL. A large one is given back to
 * the system: of tables that double, the heap would keep as much as the last one has. */
void *pt_table_create(size_t n, size_t size);
void pt_table_destroy(void *p, size_t n, size_t size);

#endif
