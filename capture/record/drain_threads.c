/* drain_threads.c - see drain_threads.h. */
#include "capture/record/drain_internal.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "schema/thread.h"

/*
 * Between two looks. A ring is emptied at a third full: two thirds of its room are left for what comes until
 * the next look.
 */
#define LOOK_NS 2000000

struct drain_thread {
	struct hw_drain_threads *all;
	struct ptc_aux_writer *aux_writer;
	cpu_set_t cpus; /* of its node; none: any */
	size_t *rings;
	size_t ring_count;
	pthread_t thread;
	uint64_t held_since_ns; /* 0: the queue has room */
	unsigned done;		/* the last round of which nothing is left to take */
};

struct hw_drain_threads {
	struct hw_drain *drain;
	struct drain_thread *threads;
	unsigned count, started;
	pthread_mutex_t lock; /* around what follows, and the threads' done */
	pthread_cond_t go, settled;
	unsigned round;
	bool busy, end, failed;
	struct pt_error error;
	struct hw_held_back held_back;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- A thread ---- */

static bool has_room(struct drain_thread *me)
{
	struct hw_drain_threads *t = me->all;
	struct ptc_load load;
	bool room;

	ptc_writer_load(t->drain->w, &load);
	room = load.bytes <= load.max_bytes / 4 * 3;
	if (room == !me->held_since_ns)
		return room;
	pthread_mutex_lock(&t->lock);
	if (room) {
		t->held_back.ns += now_ns() - me->held_since_ns;
		me->held_since_ns = 0;
	} else {
		t->held_back.times++;
		me->held_since_ns = now_ns();
	}
	pthread_mutex_unlock(&t->lock);
	return room;
}

/* Once around its rings. 1: something is left to take; 0: nothing; -1: an error. */
static int go_around(struct drain_thread *me, struct pt_error *e)
{
	struct hw_drain *d = me->all->drain;
	int left = 0;

	for (size_t i = 0; i < me->ring_count; i++) {
		struct hw_drain_ring *r = &d->rings[me->rings[i]];
		int took = has_room(me) ? hw_drain_take(d, r, me->aux_writer, e) : 1;

		if (took < 0)
			return -1;
		left |= took;
		hw_drain_spill_ring(d, r);
	}
	return left;
}

static void stay_on_node(const struct drain_thread *me)
{
	cpu_set_t both;

	if (pthread_getaffinity_np(pthread_self(), sizeof both, &both))
		return;
	CPU_AND(&both, &both, &me->cpus);
	/* Where it may not run there, it is farther from the memory that it reads, and that is all. */
	if (CPU_COUNT(&both))
		pthread_setaffinity_np(pthread_self(), sizeof both, &both);
}

static void wait_a_look(struct hw_drain_threads *t)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&t->go, &t->lock, &until);
}

static void *thread_main(void *arg)
{
	struct drain_thread *me = arg;
	struct hw_drain_threads *t = me->all;

	stay_on_node(me);
	pthread_mutex_lock(&t->lock);
	while (!t->end && !t->failed) {
		unsigned round = t->round;
		struct pt_error e = {0};
		int left;

		pthread_mutex_unlock(&t->lock);
		left = go_around(me, &e);
		pthread_mutex_lock(&t->lock);
		if (left < 0) {
			t->error = t->failed ? t->error : e;
			t->failed = true;
		} else if (left == 0) {
			me->done = round;
		}
		if (left <= 0)
			pthread_cond_broadcast(&t->settled);
		if (t->end || t->failed || t->round != round || (left && !me->held_since_ns))
			continue;
		if (left || t->busy)
			wait_a_look(t);
		else
			pthread_cond_wait(&t->go, &t->lock);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* ---- All of them ---- */

/* A thread without rings yet, on the node's CPUs. NULL: no memory. */
static struct drain_thread *add_thread(struct hw_drain_threads *t, const struct hw_list *cpus)
{
	struct drain_thread *ret = &t->threads[t->count++];

	ret->all = t;
	CPU_ZERO(&ret->cpus);
	for (size_t i = 0; cpus && i < cpus->count; i++)
		if (cpus->at[i] < CPU_SETSIZE)
			CPU_SET((size_t)cpus->at[i], &ret->cpus);
	ret->rings = calloc(HW_DRAIN_THREAD_RINGS, sizeof *ret->rings);
	return ret->rings ? ret : NULL;
}

/* Deals the rings of each node to threads; each has one at least. */
static int deal(struct hw_drain_threads *t, const struct hw_numa *numa, struct pt_error *e)
{
	size_t nodes = numa && numa->count ? numa->count : 1, count = t->drain->ring_count;

	for (size_t node = 0; node < nodes; node++) {
		struct drain_thread *to = NULL;

		for (size_t i = 0; i < count; i++) {
			if (numa && hw_numa_node_of(numa, t->drain->rings[i].cpu) != node)
				continue;
			if (!to || to->ring_count == HW_DRAIN_THREAD_RINGS)
				to = add_thread(t, numa && numa->count ? &numa->nodes[node] : NULL);
			if (!to)
				return pt_fail_no_memory(e, "drain threads");
			to->rings[to->ring_count++] = i;
		}
	}
	return 0;
}

static int start(struct drain_thread *me, struct pt_error *e)
{
	struct hw_drain_threads *t = me->all;

	me->aux_writer = ptc_aux_writer_create(t->drain->w, e);
	if (!me->aux_writer)
		return -1;
	if (pt_thread_create(&me->thread, NULL, thread_main, me))
		return pt_fail(e, PT_ERR_NO_MEMORY, PT_NO_OFFSET, "cannot create a thread");
	t->started++;
	return 0;
}

static int start_all(struct hw_drain_threads *t, struct pt_error *e)
{
	int r = 0;

	for (unsigned i = 0; i < t->count && r == 0; i++)
		r = start(&t->threads[i], e);
	return r;
}

struct hw_drain_threads *hw_drain_threads_create(struct hw_drain *d, const struct hw_numa *numa,
						 struct pt_error *e)
{
	struct hw_drain_threads *t = calloc(1, sizeof *t);
	size_t most = d->ring_count / HW_DRAIN_THREAD_RINGS + (numa ? numa->count : 0) + 1;
	pthread_condattr_t monotonic;

	if (!t || !(t->threads = calloc(most, sizeof *t->threads))) {
		free(t);
		pt_fail_no_memory(e, "drain threads");
		return NULL;
	}
	t->drain = d;
	t->busy = true;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->settled, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&t->go, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (deal(t, numa, e) == 0 && start_all(t, e) == 0)
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
	for (unsigned i = 0; i < t->started; i++)
		pthread_join(t->threads[i].thread, NULL);
	for (unsigned i = 0; i < t->count; i++) {
		ptc_aux_writer_destroy(t->threads[i].aux_writer);
		free(t->threads[i].rings);
	}
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->go);
	pthread_cond_destroy(&t->settled);
	free(t->threads);
	free(t);
}

void hw_drain_threads_busy(struct hw_drain_threads *t, bool busy)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->busy = busy;
	if (busy)
		pthread_cond_broadcast(&t->go);
	pthread_mutex_unlock(&t->lock);
}

static int error_of(const struct hw_drain_threads *t, struct pt_error *e)
{
	if (t->failed)
		*e = t->error;
	return t->failed ? -1 : 0;
}

int hw_drain_threads_go(struct hw_drain_threads *t, struct pt_error *e)
{
	int r;

	pthread_mutex_lock(&t->lock);
	t->round++;
	pthread_cond_broadcast(&t->go);
	r = error_of(t, e);
	pthread_mutex_unlock(&t->lock);
	return r;
}

static bool all_done(const struct hw_drain_threads *t)
{
	for (unsigned i = 0; i < t->count; i++)
		if (t->threads[i].done != t->round)
			return false;
	return true;
}

int hw_drain_threads_settle(struct hw_drain_threads *t, struct pt_error *e)
{
	int r;

	pthread_mutex_lock(&t->lock);
	while (!t->failed && !all_done(t))
		pthread_cond_wait(&t->settled, &t->lock);
	r = error_of(t, e);
	pthread_mutex_unlock(&t->lock);
	return r;
}

struct hw_held_back hw_drain_threads_held_back(struct hw_drain_threads *t)
{
	struct hw_held_back ret = {0};

	if (!t)
		return ret;
	pthread_mutex_lock(&t->lock);
	ret = t->held_back;
	pthread_mutex_unlock(&t->lock);
	return ret;
}

unsigned hw_drain_threads_count(const struct hw_drain_threads *t)
{
	return t->count;
}
