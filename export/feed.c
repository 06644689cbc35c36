/* feed.c - see feed.h. */
#include "export/feed.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#include "export/messages.h"
#include "schema/apart.h"
#include "schema/thread.h"

enum {
	BATCHES = 4,
	BATCHES_WAKE = 2, /* that wait before a thread that sleeps is woken: that is dear */
	BATCH_BYTES = 1 << 19,
	FETCHED = 8 /* messages ahead */
};

/* What two threads write is apart: else each write takes the line from the other one's cache. */
struct batch {
	alignas(PT_APART) struct messages messages;
};

struct feed {
	feed_take take;
	feed_fetch fetch;
	void *arg;
	const char *what;
	bool threaded; /* there is a thread */
	pthread_t thread;
	struct batch batches[BATCHES];
	alignas(PT_APART) struct messages *filled; /* the giving thread's */
	alignas(PT_APART) const
	    struct messages *taken_of; /* the taking one's: what is being taken is of it */
	/* Of both threads, behind the lock */
	alignas(PT_APART) pthread_mutex_t lock;
	pthread_cond_t more, taken;
	uint64_t given, done; /* batches: the n-th one is batches[n % BATCHES] */
	bool idle;	      /* the thread sleeps */
	bool ends, failed;
	struct pt_error error;
};

/* ---- Taking -------------------------------------------------------------------------------------------- */

/* Fetches what the message needs; returns the next one. NULL: none. */
static const void *fetch_one(const struct feed *f, const struct messages *m, const void *message)
{
	if (!f->fetch || !message)
		return NULL;
	f->fetch(f->arg, message);
	return messages_next(m, message);
}

void *feed_next(const struct feed *f, const void *message)
{
	return messages_next(f->taken_of, message);
}

static int take_batch(struct feed *f, struct messages *m, struct pt_error *e)
{
	const void *ahead = messages_first(m);
	int ret = 0;

	f->taken_of = m;
	for (int i = 0; i < FETCHED; i++)
		ahead = fetch_one(f, m, ahead);
	for (void *message = messages_first(m); !ret && message; message = messages_next(m, message)) {
		ahead = fetch_one(f, m, ahead);
		ret = f->take(f->arg, message, e);
	}
	m->bytes = 0;
	return ret;
}

static void *work(void *arg)
{
	struct feed *f = arg;
	struct pt_error error;

	pthread_mutex_lock(&f->lock);
	for (;;) {
		int ret;

		while (f->done == f->given && !f->ends) {
			f->idle = true;
			pthread_cond_wait(&f->more, &f->lock);
		}
		if (f->done == f->given || f->failed)
			break;
		pthread_mutex_unlock(&f->lock);
		ret = take_batch(f, &f->batches[f->done % BATCHES].messages, &error);
		pthread_mutex_lock(&f->lock);
		f->done++;
		if (ret < 0) {
			f->failed = true;
			f->error = error;
		}
		pthread_cond_signal(&f->taken);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* ---- Giving -------------------------------------------------------------------------------------------- */

static int failed(const struct feed *f, struct pt_error *e)
{
	if (e)
		*e = f->error;
	return -1;
}

/* The thread, if it sleeps. The lock is held. */
static void wake(struct feed *f)
{
	if (f->idle)
		pthread_cond_signal(&f->more);
	f->idle = false;
}

/* Until so few batches, or fewer, wait or are being taken. */
static int wait_until(struct feed *f, uint64_t few, struct pt_error *e)
{
	bool bad;

	pthread_mutex_lock(&f->lock);
	while (f->given - f->done > few && !f->failed) {
		wake(f);
		pthread_cond_wait(&f->taken, &f->lock);
	}
	bad = f->failed;
	pthread_mutex_unlock(&f->lock);
	return bad ? failed(f, e) : 0;
}

/* The batch that is filled. */
static int hand_over(struct feed *f, struct pt_error *e)
{
	if (!f->threaded) {
		f->failed = f->failed || take_batch(f, f->filled, &f->error) < 0;
		return f->failed ? failed(f, e) : 0;
	}
	pthread_mutex_lock(&f->lock);
	f->given++;
	if (f->given - f->done >= BATCHES_WAKE)
		wake(f);
	pthread_mutex_unlock(&f->lock);
	f->filled = &f->batches[f->given % BATCHES].messages;
	return wait_until(f, BATCHES - 1, e);
}

void *feed_give(struct feed *f, size_t bytes, struct pt_error *e)
{
	size_t takes = message_takes(bytes);

	if (f->filled->bytes && f->filled->bytes + takes > BATCH_BYTES && hand_over(f, e) < 0)
		return NULL;
	if (!messages_reserve(f->filled, takes < BATCH_BYTES ? BATCH_BYTES : takes)) {
		pt_fail_no_memory(e, f->what);
		return NULL;
	}
	return messages_add(f->filled, takes);
}

int feed_settle(struct feed *f, struct pt_error *e)
{
	if (f->filled->bytes && hand_over(f, e) < 0)
		return -1;
	if (f->threaded)
		return wait_until(f, 0, e);
	return f->failed ? failed(f, e) : 0;
}

/* ---- Beginning and end --------------------------------------------------------------------------------- */

struct feed *feed_create(feed_take take, feed_fetch fetch, void *arg, bool threaded, const char *what,
			 struct pt_error *e)
{
	struct feed *f = pt_alloc_apart(sizeof *f);

	if (!f) {
		pt_fail_no_memory(e, what);
		return NULL;
	}
	f->take = take;
	f->fetch = fetch;
	f->arg = arg;
	f->what = what;
	f->filled = &f->batches[0].messages;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->more, NULL);
	pthread_cond_init(&f->taken, NULL);
	f->threaded = threaded && pt_thread_create(&f->thread, NULL, work, f) == 0;
	return f;
}

void feed_destroy(struct feed *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->failed = f->ends = true;
	pthread_cond_signal(&f->more);
	pthread_mutex_unlock(&f->lock);
	if (f->threaded)
		pthread_join(f->thread, NULL);
	pthread_cond_destroy(&f->taken);
	pthread_cond_destroy(&f->more);
	pthread_mutex_destroy(&f->lock);
	for (int i = 0; i < BATCHES; i++)
		free(f->batches[i].messages.data);
	free(f);
}
