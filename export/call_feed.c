/* call_feed.c - see call_feed.h. */
#include "export/call_feed.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "schema/thread.h"

enum {
	BATCHES = 4,
	BATCH_BYTES = 1 << 17,
	MESSAGE_BYTES = 256 /* a message is smaller */
};

enum kind { RUN, CALL, SUM, PATH, SYMBOL };

struct run {
	uint64_t number, tsc;
};

/* Messages one after another: a kind in 8 bytes, then its struct, whose size is a multiple of 8. */
struct batch {
	size_t bytes;
	_Alignas(8) unsigned char data[BATCH_BYTES];
};

struct call_feed {
	struct calls *calls;
	struct call_paths *paths;
	bool threaded; /* there is a thread */
	pthread_t thread;
	struct batch *batches; /* BATCHES of them; the one at `tail` is being filled */
	unsigned tail;
	/* Of both threads, behind the lock */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned full; /* batches before tail that wait, or are being read */
	bool ending;   /* no more will come */
	bool failed;
	struct pt_error error;
};

/* ---- Taking -------------------------------------------------------------------------------------------- */

static int take(struct call_feed *f, enum kind kind, const void *what, struct pt_error *e)
{
	const struct run *run = what;

	switch (kind) {
	case RUN: calls_run(f->calls, run->number, run->tsc); return 0;
	case CALL: return calls_add(f->calls, what, e);
	case SUM: return call_paths_add_sum(f->paths, what, e);
	case PATH: return call_paths_add(f->paths, what, e);
	case SYMBOL: return call_paths_symbol(f->paths, *(const uint64_t *)what, e);
	}
	return 0;
}

static size_t size_of(enum kind kind)
{
	static const size_t sizes[] = {[RUN] = sizeof(struct run),
				       [CALL] = sizeof(struct ptr_call),
				       [SUM] = sizeof(struct ptr_call_sum),
				       [PATH] = sizeof(struct ptr_call_path),
				       [SYMBOL] = sizeof(uint64_t)};

	return (sizes[kind] + 7) & ~(size_t)7;
}

static int take_batch(struct call_feed *f, const struct batch *b, struct pt_error *e)
{
	for (size_t at = 0; at < b->bytes;) {
		uint64_t kind;

		memcpy(&kind, b->data + at, sizeof kind);
		if (take(f, (enum kind)kind, b->data + at + sizeof kind, e) < 0)
			return -1;
		at += sizeof kind + size_of((enum kind)kind);
	}
	return 0;
}

/* The thread: takes batches until no more come. After a failure it takes none, and giving the next one
 * fails. */
static void *work(void *arg)
{
	struct call_feed *f = arg;
	struct pt_error error = {0};
	unsigned head = 0;

	pthread_mutex_lock(&f->lock);
	for (;;) {
		int ret;

		while (!f->full && !f->ending)
			pthread_cond_wait(&f->changed, &f->lock);
		if (!f->full || f->failed)
			break;
		pthread_mutex_unlock(&f->lock);
		ret = take_batch(f, &f->batches[head], &error);
		head = (head + 1) % BATCHES;
		pthread_mutex_lock(&f->lock);
		f->full--;
		if (ret < 0) {
			f->failed = true;
			f->error = error;
		}
		pthread_cond_signal(&f->changed);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* ---- Giving -------------------------------------------------------------------------------------------- */

/* The batch at tail is complete. 0, or -1: the thread has failed. */
static int hand_over(struct call_feed *f, struct pt_error *e)
{
	bool failed;

	pthread_mutex_lock(&f->lock);
	f->full++;
	pthread_cond_signal(&f->changed);
	while (f->full == BATCHES && !f->failed)
		pthread_cond_wait(&f->changed, &f->lock);
	failed = f->failed;
	pthread_mutex_unlock(&f->lock);
	if (failed) {
		if (e)
			*e = f->error;
		return -1;
	}
	f->tail = (f->tail + 1) % BATCHES;
	f->batches[f->tail].bytes = 0;
	return 0;
}

/* size: of what, whose struct may have no size that is a multiple of 8. */
static int give(struct call_feed *f, enum kind kind, const void *what, size_t size, struct pt_error *e)
{
	uint64_t number = kind;
	struct batch *b;

	if (!f->threaded)
		return take(f, kind, what, e);
	if (f->batches[f->tail].bytes > BATCH_BYTES - MESSAGE_BYTES && hand_over(f, e) < 0)
		return -1;
	b = &f->batches[f->tail];
	memcpy(b->data + b->bytes, &number, sizeof number);
	memcpy(b->data + b->bytes + sizeof number, what, size);
	b->bytes += sizeof number + size_of(kind);
	return 0;
}

_Static_assert(sizeof(uint64_t) + sizeof(struct ptr_call) + 8 <= MESSAGE_BYTES, "a message fits");

int call_feed_run(struct call_feed *f, uint64_t number, uint64_t tsc, struct pt_error *e)
{
	return give(f, RUN, &(struct run){.number = number, .tsc = tsc}, sizeof(struct run), e);
}

int call_feed_call(struct call_feed *f, const struct ptr_call *call, struct pt_error *e)
{
	return give(f, CALL, call, sizeof *call, e);
}

int call_feed_sum(struct call_feed *f, const struct ptr_call_sum *sum, struct pt_error *e)
{
	return give(f, SUM, sum, sizeof *sum, e);
}

int call_feed_path(struct call_feed *f, const struct ptr_call_path *path, struct pt_error *e)
{
	return give(f, PATH, path, sizeof *path, e);
}

int call_feed_symbol(struct call_feed *f, uint64_t start, struct pt_error *e)
{
	return give(f, SYMBOL, &start, sizeof start, e);
}

/* ---- Beginning and end --------------------------------------------------------------------------------- */

struct call_feed *call_feed_create(struct calls *calls, struct call_paths *paths, bool threaded,
				   struct pt_error *e)
{
	struct call_feed *f = calloc(1, sizeof *f);

	if (!f) {
		pt_fail_no_memory(e, "calls");
		return NULL;
	}
	f->calls = calls;
	f->paths = paths;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	f->batches = threaded ? calloc(BATCHES, sizeof *f->batches) : NULL;
	/* Without memory for it or without a thread it goes on in this one. */
	f->threaded = f->batches && pt_thread_create(&f->thread, NULL, work, f) == 0;
	return f;
}

static void stop(struct call_feed *f)
{
	if (!f->threaded)
		return;
	pthread_mutex_lock(&f->lock);
	f->ending = true;
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	f->threaded = false;
}

int call_feed_finish(struct call_feed *f, struct pt_error *e)
{
	if (f->threaded && hand_over(f, e) < 0)
		return -1;
	stop(f);
	if (f->failed && e)
		*e = f->error;
	return f->failed ? -1 : 0;
}

void call_feed_destroy(struct call_feed *f)
{
	if (!f)
		return;
	/* Whatever waits is of no use any more. */
	pthread_mutex_lock(&f->lock);
	f->failed = true;
	pthread_mutex_unlock(&f->lock);
	stop(f);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	free(f->batches);
	free(f);
}
