/* drain_threads.c - see drain_threads.h. */
#include "capture/record/drain_threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

struct drain_thread {
	struct hw_drain_threads *all;
	struct ptc_aux_writer *aux_writer;
	pthread_t thread;
};

struct hw_drain_threads {
	struct drain_thread *threads; /* the first is the caller */
	unsigned count, started;
	pthread_mutex_t lock; /* around what follows */
	pthread_cond_t go, done;
	unsigned run, working; /* number of this run; threads that work at it */
	bool end, failed;
	size_t next, jobs;
	hw_drain_thread_fn *fn;
	void *arg;
	struct pt_error error;
};

static void work(struct hw_drain_threads *t, struct ptc_aux_writer *aux_writer)
{
	pthread_mutex_lock(&t->lock);
	while (!t->failed && t->next < t->jobs) {
		size_t job = t->next++;
		struct pt_error e = {0};
		int ret;

		pthread_mutex_unlock(&t->lock);
		ret = t->fn(t->arg, job, aux_writer, &e);
		pthread_mutex_lock(&t->lock);
		if (ret && !t->failed) {
			t->failed = true;
			t->error = e;
		}
	}
	pthread_mutex_unlock(&t->lock);
}

static void *thread_main(void *arg)
{
	struct drain_thread *me = arg;
	struct hw_drain_threads *t = me->all;
	unsigned seen = 0;

	pthread_mutex_lock(&t->lock);
	for (;;) {
		while (!t->end && t->run == seen)
			pthread_cond_wait(&t->go, &t->lock);
		if (t->end)
			break;
		seen = t->run;
		pthread_mutex_unlock(&t->lock);
		work(t, me->aux_writer);
		pthread_mutex_lock(&t->lock);
		if (--t->working == 0)
			pthread_cond_signal(&t->done);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

struct hw_drain_threads *hw_drain_threads_create(struct ptc_writer *w, unsigned count, struct pt_error *e)
{
	struct hw_drain_threads *t = calloc(1, sizeof *t);
	sigset_t all, before;

	if (!t || !(t->threads = calloc(count, sizeof *t->threads))) {
		free(t);
		pt_fail_no_memory(e, "threads");
		return NULL;
	}
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->go, NULL);
	pthread_cond_init(&t->done, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (unsigned i = 0; i < count; i++) {
		struct drain_thread *one = &t->threads[i];

		one->all = t;
		one->aux_writer = ptc_aux_writer_create(w, e);
		if (!one->aux_writer)
			break;
		t->count++;
		/* Fewer than asked for will do: the caller is always there. */
		if (i && pthread_create(&one->thread, NULL, thread_main, one))
			break;
		t->started += i > 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (t->count)
		return t;
	hw_drain_threads_destroy(t);
	return NULL;
}

void hw_drain_threads_destroy(struct hw_drain_threads *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->end = true;
	pthread_cond_broadcast(&t->go);
	pthread_mutex_unlock(&t->lock);
	for (unsigned i = 1; i <= t->started; i++)
		pthread_join(t->threads[i].thread, NULL);
	for (unsigned i = 0; i < t->count; i++)
		ptc_aux_writer_destroy(t->threads[i].aux_writer);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->go);
	pthread_cond_destroy(&t->done);
	free(t->threads);
	free(t);
}

int hw_drain_threads_run(struct hw_drain_threads *t, size_t jobs, hw_drain_thread_fn *fn, void *arg,
			 struct pt_error *e)
{
	bool failed;

	pthread_mutex_lock(&t->lock);
	t->next = 0;
	t->jobs = jobs;
	t->fn = fn;
	t->arg = arg;
	t->failed = false;
	t->run++;
	t->working = t->started;
	pthread_cond_broadcast(&t->go);
	pthread_mutex_unlock(&t->lock);
	work(t, t->threads[0].aux_writer);
	pthread_mutex_lock(&t->lock);
	while (t->working)
		pthread_cond_wait(&t->done, &t->lock);
	failed = t->failed;
	pthread_mutex_unlock(&t->lock);
	if (failed)
		*e = t->error;
	return failed ? -1 : 0;
}
