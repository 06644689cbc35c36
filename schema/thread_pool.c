/* thread_pool.c - see thread_pool.h. */
#include "schema/thread_pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "schema/thread.h"

struct source {
	pt_thread_pool_work work;
	void *arg;
};

struct thread {
	struct pt_thread_pool *pool;
	pthread_t thread;
	unsigned number;
};

struct pt_thread_pool {
	struct source sources[PT_THREAD_POOL_SOURCES];
	unsigned source_count;
	struct thread *threads;
	unsigned count, max;
	pthread_mutex_t mutex;
	pthread_cond_t work;
	/* How often work has come, so that none comes unseen between asking for it and sleeping. A thread
	 * counts itself as sleeping before it looks at `comings` for the last time, who brings work does it
	 * the other way round: one of the two sees the other. */
	atomic_uint comings, sleeping;
	atomic_bool ends;
};

struct pt_thread_pool *pt_thread_pool_create(unsigned threads_max)
{
	struct pt_thread_pool *p = calloc(1, sizeof *p);

	if (!p || !(p->threads = calloc(threads_max, sizeof *p->threads))) {
		free(p);
		return NULL;
	}
	p->max = threads_max;
	pthread_mutex_init(&p->mutex, NULL);
	pthread_cond_init(&p->work, NULL);
	return p;
}

void pt_thread_pool_destroy(struct pt_thread_pool *p)
{
	if (!p)
		return;
	atomic_store(&p->ends, true);
	pt_thread_pool_wake_all(p);
	for (unsigned i = 0; i < p->count; i++)
		pthread_join(p->threads[i].thread, NULL);
	pthread_cond_destroy(&p->work);
	pthread_mutex_destroy(&p->mutex);
	free(p->threads);
	free(p);
}

void pt_thread_pool_add(struct pt_thread_pool *p, pt_thread_pool_work work, void *arg)
{
	p->sources[p->source_count++] = (struct source){work, arg};
}

static bool work(const struct pt_thread_pool *p, unsigned thread)
{
	for (unsigned i = 0; i < p->source_count; i++)
		if (p->sources[i].work(p->sources[i].arg, thread))
			return true;
	return false;
}

/* Until more has come than `comings`. */
static void sleep_until_work(struct pt_thread_pool *p, unsigned comings)
{
	pthread_mutex_lock(&p->mutex);
	atomic_fetch_add(&p->sleeping, 1);
	while (atomic_load(&p->comings) == comings && !atomic_load(&p->ends))
		pthread_cond_wait(&p->work, &p->mutex);
	atomic_fetch_sub(&p->sleeping, 1);
	pthread_mutex_unlock(&p->mutex);
}

static void *run(void *arg)
{
	const struct thread *t = arg;
	struct pt_thread_pool *p = t->pool;

	while (!atomic_load(&p->ends)) {
		unsigned comings = atomic_load(&p->comings);

		if (!work(p, t->number))
			sleep_until_work(p, comings);
	}
	return NULL;
}

unsigned pt_thread_pool_grow(struct pt_thread_pool *p)
{
	struct thread *t = &p->threads[p->count];

	if (p->count == p->max)
		return p->count;
	*t = (struct thread){.pool = p, .number = p->count};
	if (pt_thread_create(&t->thread, NULL, run, t) == 0)
		p->count++;
	else
		p->max = p->count;
	return p->count;
}

static void wake(struct pt_thread_pool *p, int (*signal)(pthread_cond_t *))
{
	atomic_fetch_add(&p->comings, 1);
	if (!atomic_load(&p->sleeping))
		return;
	pthread_mutex_lock(&p->mutex);
	signal(&p->work);
	pthread_mutex_unlock(&p->mutex);
}

void pt_thread_pool_wake(struct pt_thread_pool *p)
{
	wake(p, pthread_cond_signal);
}

void pt_thread_pool_wake_all(struct pt_thread_pool *p)
{
	wake(p, pthread_cond_broadcast);
}
