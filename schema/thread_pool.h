/*
 * thread_pool.h - threads that do what waits, one piece after the other, and sleep when nothing does.
 *
 * Work has sources. A thread asks one after the other, in the order in which they were added, and begins anew
 * after each piece: so what the first one has is done first.
 */
#ifndef SCHEMA_THREAD_POOL_H
#define SCHEMA_THREAD_POOL_H

#include <stdbool.h>

struct pt_thread_pool;

/* Does a piece of work, of some milliseconds at most (but for writing), in the pool's thread of that number,
 * from 0 on. False: there was none. */
typedef bool (*pt_thread_pool_work)(void *arg, unsigned thread);

/* At most so many threads, none at first. NULL: no memory. */
struct pt_thread_pool *pt_thread_pool_create(unsigned threads_max);
/* Ends the threads, after the piece that each is at. NULL is fine. */
void pt_thread_pool_destroy(struct pt_thread_pool *p);

enum { PT_THREAD_POOL_SOURCES = 3 };
/* One more source, at most PT_THREAD_POOL_SOURCES, while there are no threads. */
void pt_thread_pool_add(struct pt_thread_pool *p, pt_thread_pool_work work, void *arg);

/* One thread more, unless there are as many as there may be, or the system has none. By one thread. How many
 * there are then. */
unsigned pt_thread_pool_grow(struct pt_thread_pool *p);
/* There is work: wakes a thread, if one sleeps. Any thread may call it. */
void pt_thread_pool_wake(struct pt_thread_pool *p);
/* The same, of all that sleep. */
void pt_thread_pool_wake_all(struct pt_thread_pool *p);

#endif
