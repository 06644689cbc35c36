/* drain_threads.c - see drain_threads.h. */
#include "capture/record/drain_threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

struct reader {
	struct hw_drain_threads *all;
	struct ptc_aux_writer *aux_writer;
	pthread_t thread;
};

struct hw_drain_threads {
	struct reader *readers; /* the first is the caller */
	unsigned count, started;
	pthread_mutex_t lock; /* around what follows */
	pthread_cond_t go, done;
	unsigned run, working; /* number of this run; who works at it */
	bool end, failed;
	size_t next, jobs;
	hw_drain_thread_fn *fn;
	void *arg;
	struct pt_error error;
};

static void work(struct hw_drain_threads *r, struct ptc_aux_writer *aux_writer)
{
	pthread_mutex_lock(&r->lock);
	while (!r->failed && r->next < r->jobs) {
		size_t job = r->next++;
		struct pt_error e = {0};
		int ret;

		pthread_mutex_unlock(&r->lock);
		ret = r->fn(r->arg, job, aux_writer, &e);
		pthread_mutex_lock(&r->lock);
		if (ret && !r->failed) {
			r->failed = true;
			r->error = e;
		}
	}
	pthread_mutex_unlock(&r->lock);
}

static void *reader_main(void *arg)
{
	struct reader *me = arg;
	struct hw_drain_threads *r = me->all;
	unsigned seen = 0;

	pthread_mutex_lock(&r->lock);
	for (;;) {
		while (!r->end && r->run == seen)
			pthread_cond_wait(&r->go, &r->lock);
		if (r->end)
			break;
		seen = r->run;
		pthread_mutex_unlock(&r->lock);
		work(r, me->aux_writer);
		pthread_mutex_lock(&r->lock);
		if (--r->working == 0)
			pthread_cond_signal(&r->done);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

struct hw_drain_threads *hw_drain_threads_create(struct ptc_writer *w, unsigned count, struct pt_error *e)
{
	struct hw_drain_threads *r = calloc(1, sizeof *r);
	sigset_t all, before;

	if (!r || !(r->readers = calloc(count, sizeof *r->readers))) {
		free(r);
		pt_fail_no_memory(e, "readers");
		return NULL;
	}
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->go, NULL);
	pthread_cond_init(&r->done, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (unsigned i = 0; i < count; i++) {
		struct reader *one = &r->readers[i];

		one->all = r;
		one->aux_writer = ptc_aux_writer_create(w, e);
		if (!one->aux_writer)
			break;
		r->count++;
		/* Fewer than asked for do, too: the caller is always there. */
		if (i && pthread_create(&one->thread, NULL, reader_main, one))
			break;
		r->started += i > 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r->count)
		return r;
	hw_drain_threads_destroy(r);
	return NULL;
}

void hw_drain_threads_destroy(struct hw_drain_threads *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->end = true;
	pthread_cond_broadcast(&r->go);
	pthread_mutex_unlock(&r->lock);
	for (unsigned i = 1; i <= r->started; i++)
		pthread_join(r->readers[i].thread, NULL);
	for (unsigned i = 0; i < r->count; i++)
		ptc_aux_writer_destroy(r->readers[i].aux_writer);
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->go);
	pthread_cond_destroy(&r->done);
	free(r->readers);
	free(r);
}

int hw_drain_threads_run(struct hw_drain_threads *r, size_t jobs, hw_drain_thread_fn *fn, void *arg,
			 struct pt_error *e)
{
	bool failed;

	pthread_mutex_lock(&r->lock);
	r->next = 0;
	r->jobs = jobs;
	r->fn = fn;
	r->arg = arg;
	r->failed = false;
	r->run++;
	r->working = r->started;
	pthread_cond_broadcast(&r->go);
	pthread_mutex_unlock(&r->lock);
	work(r, r->readers[0].aux_writer);
	pthread_mutex_lock(&r->lock);
	while (r->working)
		pthread_cond_wait(&r->done, &r->lock);
	failed = r->failed;
	pthread_mutex_unlock(&r->lock);
	if (failed)
		*e = r->error;
	return failed ? -1 : 0;
}
