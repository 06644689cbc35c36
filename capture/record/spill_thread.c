/* spill_thread.c - see spill_thread.h. */
#include "capture/record/spill_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define LOOK_NS 2000000 /* how often; a ring has room for two thirds more when it is noticed */

struct hw_spill_thread {
	struct hw_drain *drain;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool busy, end;
};

static void *spill_thread_main(void *arg)
{
	struct hw_spill_thread *g = arg;
	struct timespec pause = {.tv_nsec = LOOK_NS};

	pthread_mutex_lock(&g->lock);
	while (!g->end) {
		if (!g->busy) {
			pthread_cond_wait(&g->changed, &g->lock);
			continue;
		}
		pthread_mutex_unlock(&g->lock);
		nanosleep(&pause, NULL);
		hw_drain_stash(g->drain);
		pthread_mutex_lock(&g->lock);
	}
	pthread_mutex_unlock(&g->lock);
	return NULL;
}

struct hw_spill_thread *hw_spill_thread_create(struct hw_drain *d, struct pt_error *e)
{
	struct hw_spill_thread *g = calloc(1, sizeof *g);
	sigset_t all, before;
	int r;

	if (!g) {
		pt_fail_no_memory(e, "a thread");
		return NULL;
	}
	*g = (struct hw_spill_thread){.drain = d, .busy = true};
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->changed, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&g->thread, NULL, spill_thread_main, g);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		return g;
	pthread_mutex_destroy(&g->lock);
	pthread_cond_destroy(&g->changed);
	free(g);
	pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "cannot begin a thread");
	return NULL;
}

void hw_spill_thread_busy(struct hw_spill_thread *g, bool busy)
{
	pthread_mutex_lock(&g->lock);
	g->busy = busy;
	if (busy)
		pthread_cond_signal(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

void hw_spill_thread_destroy(struct hw_spill_thread *g)
{
	if (!g)
		return;
	pthread_mutex_lock(&g->lock);
	g->end = true;
	pthread_cond_signal(&g->changed);
	pthread_mutex_unlock(&g->lock);
	pthread_join(g->thread, NULL);
	pthread_mutex_destroy(&g->lock);
	pthread_cond_destroy(&g->changed);
	free(g);
}
