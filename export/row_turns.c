/* row_turns.c - see row_turns.h. */
#include "export/row_turns.h"

#include <pthread.h>
#include <stdint.h>

#include "export/inserter.h"
#include "schema/thread.h"

enum { TURNS = 2 }; /* that are made ahead, at most */

/* A maker in a thread of its own. */
struct ahead {
	const struct row_maker *maker;
	struct kept_rows *rows[TURNS]; /* of turn n at n % TURNS */
	int results[TURNS];	       /* what make() returned */
	struct pt_error error;	       /* of the last one */
	pthread_t thread;
	/* Of what follows, and of results and error. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t made, run; /* turns */
	bool ends;	    /* nobody wants another one */
};

/* ---- The thread ---------------------------------------------------------------------------------------- */

/* There is room for another turn. False: none is wanted. */
static bool wait_for_room(struct ahead *a)
{
	bool wanted;

	pthread_mutex_lock(&a->lock);
	while (a->made - a->run == TURNS && !a->ends)
		pthread_cond_wait(&a->changed, &a->lock);
	wanted = !a->ends;
	pthread_mutex_unlock(&a->lock);
	return wanted;
}

static void *work(void *arg)
{
	struct ahead *a = arg;
	const struct row_maker *m = a->maker;
	int result = 1;

	while (result > 0 && wait_for_room(a)) {
		m->keep(m->arg, a->rows[a->made % TURNS]);
		result = m->make(m->arg, &a->error);
		pthread_mutex_lock(&a->lock);
		a->results[a->made++ % TURNS] = result;
		pthread_cond_signal(&a->changed);
		pthread_mutex_unlock(&a->lock);
	}
	return NULL;
}

/* ---- The caller's -------------------------------------------------------------------------------------- */

static void release(struct ahead *a)
{
	for (int i = 0; i < TURNS; i++)
		kept_rows_destroy(a->rows[i]);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
}

/* False: there is no memory, or no thread. */
static bool begin(struct ahead *a, const struct row_maker *maker)
{
	*a = (struct ahead){.maker = maker};
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	for (int i = 0; i < TURNS; i++)
		if (!(a->rows[i] = kept_rows_create()))
			goto failed;
	if (pt_thread_create(&a->thread, NULL, work, a) == 0)
		return true;
failed:
	release(a);
	return false;
}

static void end(struct ahead *a)
{
	pthread_mutex_lock(&a->lock);
	a->ends = true;
	pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	a->maker->keep(a->maker->arg, NULL);
	release(a);
}

/* As make(). */
static int run_turn(struct ahead *a, struct inserter *inserter, struct pt_error *e)
{
	int result;

	pthread_mutex_lock(&a->lock);
	while (a->run == a->made)
		pthread_cond_wait(&a->changed, &a->lock);
	result = a->results[a->run % TURNS];
	if (result < 0)
		*e = a->error;
	pthread_mutex_unlock(&a->lock);
	if (result < 0 || inserter_run_kept(inserter, a->rows[a->run % TURNS], e) < 0)
		return -1;
	pthread_mutex_lock(&a->lock);
	a->run++;
	pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->lock);
	return result;
}

/* ahead: the second one, NULL without a thread. */
static int take_turns(struct inserter *inserter, const struct row_maker *first,
		      const struct row_maker *second, struct ahead *ahead, const struct pt_sink_poll *poll,
		      struct pt_error *e)
{
	int more = 1, more_second = 1;

	while (more > 0 || more_second > 0) {
		if (poll->interrupted && poll->interrupted(poll->arg))
			return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "interrupted");
		if (more > 0)
			more = first->make(first->arg, e);
		if (more >= 0 && more_second > 0)
			more_second = ahead ? run_turn(ahead, inserter, e) : second->make(second->arg, e);
		if (more < 0 || more_second < 0)
			return -1;
	}
	return 0;
}

int row_turns_run(struct inserter *inserter, const struct row_maker *first, const struct row_maker *second,
		  bool threaded, const struct pt_sink_poll *poll, struct pt_error *e)
{
	struct ahead ahead;
	bool begun = threaded && begin(&ahead, second);
	int ret = take_turns(inserter, first, second, begun ? &ahead : NULL, poll, e);

	if (begun)
		end(&ahead);
	return ret;
}
