/* spill_thread.c - see spill_thread.h. */
#include "capture/record/spill_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

/*
 * Between two looks. A ring is emptied at a third full: two thirds of its room are left for what comes until
 * the next look.
 */
#define LOOK_NS 2000000

struct hw_spill_thread {
	struct hw_drain *drain;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool busy, end;
};

static void *spill_thread_main(void *arg)
{
	struct hw_spill_thread *t = arg;
	struct timespec pause = {.tv_nsec = LOOK_NS};

	pthread_mutex_lock(&t->lock);
	while (!t->end) {
		if (!t->busy) {
			pthread_cond_wait(&t->changed, &t->lock);
			continue;
		}
		pthread_mutex_unlock(&t->lock);
		nanosleep(&pause, NULL);
		hw_drain_spill(t->drain);
		pthread_mutex_lock(&t->lock);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

struct hw_spill_thread *hw_spill_thread_create(struct hw_drain *d, struct pt_error *e)
{
	struct hw_spill_thread *t = calloc(1, sizeof *t);
	sigset_t all, before;
	int r;

	if (!t) {
		pt_fail_no_memory(e, "a thread");
		return NULL;
	}
	*t = (struct hw_spill_thread){.drain = d, .busy = true};
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&t->thread, NULL, spill_thread_main, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		return t;
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->changed);
	free(t);
	pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "cannot create a thread");
	return NULL;
}

void hw_spill_thread_busy(struct hw_spill_thread *t, bool busy)
{
	pthread_mutex_lock(&t->lock);
	t->busy = busy;
	if (busy)
		pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

void hw_spill_thread_destroy(struct hw_spill_thread *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->end = true;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->changed);
	free(t);
}
