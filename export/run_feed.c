/* run_feed.c - see run_feed.h. */
#include "export/run_feed.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "export/feed.h"

/* Of a run what run_feed_room() is filled with. */
#define GIVEN (offsetof(struct ptr_timed_run, own) + sizeof(struct group_run))

_Static_assert(GIVEN <= sizeof(struct ptr_timed_run), "a run fits");

struct run_feed {
	struct run_groups *groups;
	struct ptr_times *times;
	struct feed *feed; /* NULL: there is no thread */
};

/* Runs whose times are known by now go into the groups. */
static int take_settled(const struct run_feed *f, struct pt_error *e)
{
	const struct ptr_timed_run *r;

	while ((r = ptr_times_next(f->times)))
		if (run_groups_add(f->groups, (const void *)&r->own, r, e) < 0)
			return -1;
	return 0;
}

/* The run in ptr_times_room(). */
static int add(const struct run_feed *f, struct pt_error *e)
{
	return ptr_times_add(f->times) ? take_settled(f, e) : pt_fail_no_memory(e, "times");
}

static struct ptr_timed_run *room(const struct run_feed *f, struct pt_error *e)
{
	struct ptr_timed_run *run = ptr_times_room(f->times);

	if (!run)
		pt_fail_no_memory(e, "times");
	return run;
}

static int take(void *arg, void *message, struct pt_error *e)
{
	const struct run_feed *f = arg;
	struct ptr_timed_run *run = room(f, e);

	if (!run)
		return -1;
	memcpy(run, message, GIVEN);
	return add(f, e);
}

struct ptr_timed_run *run_feed_room(struct run_feed *f, struct pt_error *e)
{
	return f->feed ? feed_give(f->feed, GIVEN, e) : room(f, e);
}

int run_feed_add(struct run_feed *f, struct pt_error *e)
{
	return f->feed ? 0 : add(f, e);
}

int run_feed_finish(struct run_feed *f, struct pt_error *e)
{
	if (f->feed && feed_settle(f->feed, e) < 0)
		return -1;
	ptr_times_settle(f->times);
	return take_settled(f, e);
}

struct run_feed *run_feed_create(struct run_groups *groups, bool threaded, struct pt_error *e)
{
	struct run_feed *f = calloc(1, sizeof *f);

	if (f)
		f->times = ptr_times_create();
	if (!f || !f->times) {
		free(f);
		pt_fail_no_memory(e, "times");
		return NULL;
	}
	f->groups = groups;
	if (!threaded || (f->feed = feed_create(take, NULL, f, true, "runs", e)))
		return f;
	run_feed_destroy(f);
	return NULL;
}

void run_feed_destroy(struct run_feed *f)
{
	if (!f)
		return;
	feed_destroy(f->feed); /* its thread first */
	ptr_times_destroy(f->times);
	free(f);
}
